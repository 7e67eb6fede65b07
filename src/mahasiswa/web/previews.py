"""Import and bulk delete: a preview of a file or of NIMs, which writes nothing, and the confirmation that writes all of it.

A helper process reads what was sent, compares it with the stored records and makes the page (`helper_tasks`). The
handlers here send it the body, answer its questions, and make the changes of a confirmation.
"""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, Write
from mahasiswa.sheets import public as sheets
from mahasiswa.store import Query, Store
from mahasiswa.store.store_errors import Changed
from mahasiswa.web.forms import read_large_body
from mahasiswa.web.helpers import (
    PIECE_BYTES,
    PREVIEW_SILENT_SECONDS,
    Outcome,
    helper_task,
    in_messages,
)
from mahasiswa.web.list_query import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.service import Request
from mahasiswa.work import IMPORT, PREVIEW

# Stored records that are compared with unknown NIMs because their NIM looks the same.
NEAR_MAX_RECORDS = 20_000
CHUNK_RECORDS = 500


async def choose_import(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return pages.empty_form("impor").respond(request.scope)


async def preview_import(request: Request, store: Store, _pages: Pages) -> Response:
    """POST /mahasiswa/impor: a preview of the changes. Nothing is written or kept."""
    return await _preview(request, store, "preview_import")


async def confirm_import(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write the previewed rows, all or none. New repairs are first previewed again."""
    async with read_large_body(request) as (body, _):
        talk = partial(_converse, request, store, "confirm_import", body)
        outcome = await talk()
        if outcome.kind == "page":
            return outcome.page()
        try:
            writes = [_write(*row) for row in outcome.rows]
            change = await store.write_all("import", writes)
        except Changed:  # a record has changed since it was read, so nothing is written
            return (await talk(has_changed=True)).page()
    return pages.shown(change)


async def choose_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/hapus: the page to paste NIMs or to choose a file; with a search, the preview of its records."""
    query = query_of(request.query_params)
    if not query.cari:
        return pages.empty_form("hapus").respond(request.scope)
    nims: list[tuple[str]] = []
    async for records in store.reader(IMPORT).chunks(query):
        nims += [(record.nim,) for record in records]
        if len(nims) > sheets.UPLOAD_MAX_ROWS:
            limit = wording.number(sheets.UPLOAD_MAX_ROWS)
            raise sheets.SheetError(wording.TOO_MANY_FOUND.format(limit=limit))
    return (await _converse(request, store, "preview_found", in_messages(nims))).page()


async def preview_ticked(request: Request, store: Store, _pages: Pages) -> Response:
    """POST /mahasiswa/hapus/pilihan: the preview of the rows that a person has ticked on a page of the list."""
    return await _preview(request, store, "preview_ticked")


async def preview_deletion(request: Request, store: Store, _pages: Pages) -> Response:
    """POST /mahasiswa/hapus: the records with these NIMs, and the NIMs without a record. Nothing is written or kept."""
    return await _preview(request, store, "preview_deletion")


async def confirm_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/simpan: remove the records of the preview, all or none; or preview them again, repaired.

    A record that was changed since the preview is removed too, because the NIM was confirmed. A record that was removed
    since is left out, so a second click changes nothing. The preview of an import leads here to remove the records that
    its file lacks.
    """
    async with read_large_body(request) as (body, _):
        outcome = await _converse(request, store, "confirm_deletion", body)
    if outcome.kind == "page":
        return outcome.page()
    removals = [nim for (nim,) in outcome.rows]
    return pages.shown(await store.write_all("delete", removals=removals))


async def _preview(request: Request, store: Store, task: str) -> Response:
    async with read_large_body(request) as (body, boundary):
        talk = _converse(request, store, task, body, boundary=boundary)
        return (await request.while_connected(talk)).page()


async def _converse(
    request: Request, store: Store, task: str, given: bytearray | Iterable[bytes], **head: object
) -> Outcome:
    """Let a helper do a task with a body, or with messages; raise what `Helpers.converse` raises, and Busy.

    The changes to write count in the budget of answers, because they wait for the database when the helper has ended.
    """
    key = await store.signing_key()
    if isinstance(given, bytearray):
        given = _pieces(given)
    answer = partial(_answer, store, sheets.KeySigner(key))
    async with request.limits.slots.slot(PREVIEW, PREVIEW_SILENT_SECONDS):
        outcome = await request.service.helpers.converse(
            helper_task(request, task, **head), given, answer
        )
    request.count_answer(outcome.rows_bytes)
    return outcome


def _pieces(body: bytearray) -> Iterable[bytes]:
    for at in range(0, len(body), PIECE_BYTES):
        yield bytes(body[at : at + PIECE_BYTES])


async def _answer(
    store: Store, signer: sheets.KeySigner, question: str, arguments: Sequence[Any]
) -> Iterable[bytes]:
    """Answer a question of a helper about stored records, or about a signature."""
    reader = store.reader(IMPORT)
    if question == "find":
        (nims,) = arguments
        return in_messages((await reader.find(nims)).values())
    if question == "near":
        (keys,) = arguments
        return in_messages((nim,) for nim in await reader.near(keys, NEAR_MAX_RECORDS))
    if question == "after":
        (last,) = arguments
        return in_messages(record[:1] for record in await reader.after(last, CHUNK_RECORDS))
    if question == "total":
        return [b"[%d]" % (await reader.search(Query(), 0, 0)).total]
    purpose, digest, *signature = arguments
    of_digest = bytes.fromhex(digest)
    if question == "sign":
        return [json.dumps([signer.sign(purpose, of_digest).hex()]).encode()]
    is_ours = signer.has_signed(purpose, of_digest, bytes.fromhex(*signature))
    return [json.dumps([is_ours]).encode()]


def _write(nim: str, nama: str, alamat: str, expected: str | None) -> Write:
    return Write(Mahasiswa(nim, nama, alamat), expected)

"""Selection: a page of the records with these NIMs, which changes nothing, and its buttons.

A helper process reads the body, compares it with the stored records and makes the page (`helper_tasks`). The handlers
here send the body to the helper, answer the helper's questions, and make the changes of a confirmation.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets import public as sheets
from mahasiswa.store import Reader, Store
from mahasiswa.web.exports import export_records
from mahasiswa.web.forms import read_large_body
from mahasiswa.web.helpers import (
    PIECE_BYTES,
    PREVIEW_SILENT_SECONDS,
    Outcome,
    helper_task,
    in_messages,
)
from mahasiswa.web.list_query import ListQuery, query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.service import Request
from mahasiswa.work import EXPORT, IMPORT, PREVIEW, slices

# Maximum stored NIMs in the answer to one question for nearly equal ones.
NEAR_MAX_RECORDS = 20_000
CHUNK_RECORDS = 500


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST …/simpan: remove the selected records, all or none. New repairs are first previewed again.

    A deletion also removes a record that was changed since the preview, because its NIM was
    confirmed. A record that was removed since is left out, so a second click changes nothing.
    """
    async with read_large_body(request) as (body, _):
        outcome = await _converse(request, store, "confirm", body)
    if outcome.status:
        return outcome.page()
    removals = [nim for part in outcome.parts for (nim,) in json.loads(part)]
    return pages.shown(await store.write_all("delete", removals=removals))


async def select(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/pilih: the page to paste NIMs or to choose a file; with a search, the selection of its hits."""
    query = ListQuery(query_of(request.query_params))
    if not query.query.cari:
        return pages.empty_form("pilih").respond(request.scope)
    nims: list[tuple[str]] = []
    async with aclosing(store.reader(IMPORT).chunks(query.query)) as chunks:
        async for records in chunks:
            nims += [(record.nim,) for record in records]
            if len(nims) > sheets.UPLOAD_MAX_ROWS:
                limit = wording.number(sheets.UPLOAD_MAX_ROWS)
                raise sheets.SheetError(wording.TOO_MANY_FOUND.format(limit=limit))
    given = in_messages(nims)
    return (await _converse(request, store, "preview_found", given, query=query.export)).page()


async def export_selected(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/pilih/ekspor.xlsx and .csv: the same of the records of a selection, in its order."""
    async with read_large_body(request) as (body, _):
        outcome = await _converse(request, store, "confirm", body)
    if outcome.status:
        return outcome.page()
    # Each read takes a slot of its own. This slot is for the helper or the thread that writes the
    # file.
    async with request.limits.slots.slot(EXPORT):
        records = _selected(store.reader(IMPORT), outcome.parts)
        return await export_records(request, pages, records)


async def _selected(reader: Reader, parts: Sequence[bytes]) -> AsyncGenerator[Sequence[Mahasiswa]]:
    """The records with the nims in these parts, without those that were removed since."""
    for part in parts:
        nims = [nim for (nim,) in json.loads(part)]
        for asked in slices(nims, CHUNK_RECORDS):
            stored = await reader.find(asked)
            if found := [stored[nim] for nim in asked if nim in stored]:
                yield found


async def _preview(request: Request, store: Store, _pages: Pages, task: str) -> Response:
    """Answer with the page that a helper makes of the body. Nothing is kept."""
    async with read_large_body(request) as (body, boundary):
        return (await _converse(request, store, task, body, boundary=boundary)).page()


# POST /mahasiswa/pilih: the records with these NIMs.
preview = partial(_preview, task="preview")
# POST /mahasiswa/pilih/centang: the selection of the rows that a person has ticked on a page of the list.
select_ticked = partial(_preview, task="preview_ticked")
# POST /mahasiswa/pilih/cetak: the records of a selection on a page to print.
print_selected = partial(_preview, task="print_selected")


async def _converse(
    request: Request, store: Store, task: str, given: bytearray | Iterable[bytes], **head: object
) -> Outcome:
    """Let a helper do a task with a body, or with messages; raise what `Helpers.converse` raises, and Busy.

    The changes to write count in the budget of answers, because they wait for the database when the helper has ended.
    """
    key = await store.signing_key()
    if isinstance(given, bytearray):
        given = map(bytes, slices(given, PIECE_BYTES))
    answer = partial(_answer, store)
    async with request.limits.slots.slot(PREVIEW, PREVIEW_SILENT_SECONDS):
        outcome = await request.service.helpers.converse(
            helper_task(request, task, key=key.hex(), **head), given, answer
        )
    if not outcome.status:
        request.count_answer(sum(map(len, outcome.parts)))
    return outcome


async def _answer(store: Store, question: str, arguments: Sequence[Any]) -> Iterable[bytes]:
    """Answer a question of a helper about stored records."""
    reader = store.reader(IMPORT)
    if question == "find":
        return in_messages((await reader.find(arguments[0])).values())
    return in_messages((nim,) for nim in await reader.near(arguments[0], NEAR_MAX_RECORDS))

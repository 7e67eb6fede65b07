"""Bulk delete: a person gives NIMs, sees their records in a preview, and removes them all with one confirmation."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from threading import Event
from typing import BinaryIO
from urllib.parse import quote, unquote

from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.record import NIM_MAX_CHARACTERS, Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.errors import Unavailable, Uncertain
from mahasiswa.store.threads import in_thread
from mahasiswa.web.failures import PageTooLong, problem_of_failed_write
from mahasiswa.web.forms import read_large_form
from mahasiswa.web.list_view import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import compressed, rendered_in_thread
from mahasiswa.web.uploads import NEAR_MAX_RECORDS, read_table, read_upload
from mahasiswa.work import IMPORT, PAGE_MAX_BYTES, Busy

NIM_ONLY = sheets.Choice(nim_only=True)

QUOTED_NIM_MAX_CHARACTERS = 4 * 3 * NIM_MAX_CHARACTERS
"""Maximum length of a percent-encoded NIM. A character has up to four bytes, and each byte takes three characters."""


async def choose(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/hapus: the page to paste NIMs or to choose a file; with a search, the preview of its records."""
    query = query_of(request.query_params)
    if not query.cari:
        return await pages.empty_bulk_delete_form.respond(request.scope, request.limits.slots)

    def render(records: Iterator[Mahasiswa]) -> Response:
        found = []
        size = 0
        for record in islice(records, sheets.UPLOAD_MAX_ROWS + 1):
            found.append(record)
            size += sum(map(len, record))
            if size > PAGE_MAX_BYTES:
                raise PageTooLong
        if len(found) > sheets.UPLOAD_MAX_ROWS:
            limit = wording.number(sheets.UPLOAD_MAX_ROWS)
            return pages.bulk_delete_form(wording.TOO_MANY_FOUND.format(limit=limit))
        return compressed(pages.bulk_delete(found, (), dump(record.nim for record in found)), request.accept_encoding)

    try:
        return await request.while_connected(in_thread(store.reader(IMPORT).chunks(query), render))
    except sheets.SheetError as error:
        return pages.bulk_delete_form(str(error))


async def preview_ticked(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/pilihan: the preview of the rows that a person has ticked on a page of the list."""
    form = await read_large_form(request, ("nim",), sheets.MAX_CONFIRMED_BYTES, "confirmation too large", IMPORT)
    try:
        if not form["nim"]:
            return pages.bulk_delete_form(wording.NO_ROWS_TICKED)
        nims = load("".join(f"{nim} " for nim in form["nim"]))
    except sheets.SheetError as error:
        return pages.bulk_delete_form(str(error))
    cells = [sheets.NimCell(number, nim) for number, nim in enumerate(nims, 1)]
    return await request.while_connected(_preview(request, store, pages, cells))


async def preview(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus: the records with these NIMs, and the NIMs without a record. Nothing is written or kept."""
    async with read_upload(request) as upload:
        try:
            cells = await read_table(request, upload, _read_file, _read_pasted)
            if cells is None:
                return pages.bulk_delete_form(wording.NO_NIMS_CHOSEN)
            return await request.while_connected(_preview(request, store, pages, cells))
        except sheets.SheetError as error:
            return pages.bulk_delete_form(*upload.refusal(error))


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/simpan: remove the records of the preview, all or none.

    A record that was changed since the preview is removed too, because the NIM was confirmed. A record that was removed
    since is left out, so a second click changes nothing.
    """
    form = await read_large_form(request, ("nim",), sheets.MAX_CONFIRMED_BYTES, "confirmation too large", IMPORT)
    # A field that was sent twice did not come from the preview.
    data = form["nim"][0] if len(form["nim"]) == 1 else ""
    try:
        nims = await request.limits.slots.run(IMPORT, partial(load, data))
        await store.write_all("delete", removals=dict.fromkeys(nims))
    except sheets.SheetError as error:
        return pages.bulk_delete_form(str(error))
    except (Unavailable, Uncertain, Busy) as error:
        return pages.error(problem_of_failed_write(error))
    return pages.redirect


def dump(nims: Iterable[str]) -> str:
    """NIMs as one form field: percent-encoded, so that no browser alters them, with a space after each.

    Raises SheetError if the form that the browser sends back would exceed MAX_CONFIRMED_BYTES.
    """
    data = "".join(quote(nim, safe="") + " " for nim in nims)
    # A browser encodes `%` and `~` once more.
    if len(data) + 2 * (data.count("%") + data.count("~")) + len("nim=") > sheets.MAX_CONFIRMED_BYTES:
        raise sheets.TooBig(wording.DELETION_TOO_LARGE.format(limit=wording.size(sheets.MAX_CONFIRMED_BYTES)))
    return data


def load(data: str) -> Sequence[str]:
    """The NIMs of a form field. Raises SheetError for anything that `dump` never makes."""
    *nims, end = data.split(" ", sheets.UPLOAD_MAX_ROWS)
    if (
        not nims
        or end
        or not data.isascii()
        or "%00" in data
        or "\0" in data
        or max(map(len, nims)) > QUOTED_NIM_MAX_CHARACTERS
    ):
        raise sheets.SheetError(wording.DELETION_DAMAGED)
    try:
        return [unquote(nim, errors="strict") for nim in nims]
    except UnicodeDecodeError as error:
        raise sheets.SheetError(wording.DELETION_DAMAGED) from error


def _read_file(file: BinaryIO, stop: Event) -> Sequence[sheets.NimCell]:
    with sheets.read(file, sheets.WEB, stop, NIM_ONLY) as table:
        return sheets.clean_nims(table)


def _read_pasted(text: str, stop: Event) -> Sequence[sheets.NimCell]:
    return sheets.clean_nims(sheets.read_text(text, sheets.WEB, stop, NIM_ONLY))


async def _preview(request: Request, store: Store, pages: Pages, cells: Sequence[sheets.NimCell]) -> Response:
    nims = [cell.nim for cell in cells if not cell.problem]
    reader = store.reader(IMPORT)
    existing = await reader.find(nims)
    unknown = [nim for nim in nims if nim not in existing]
    near = await reader.near(unknown, NEAR_MAX_RECORDS) if unknown else ()

    def render() -> Response:
        missing = sheets.not_found(cells, existing, near)
        found = [existing[cell.nim] for cell in cells if not cell.problem and cell.nim in existing]
        return pages.bulk_delete(found, missing, dump(existing))

    return await rendered_in_thread(request, IMPORT, render)

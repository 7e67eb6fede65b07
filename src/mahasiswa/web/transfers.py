"""Import of spreadsheets, with a preview that writes nothing, and export."""

import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from threading import Event
from typing import BinaryIO, cast

from starlette.datastructures import UploadFile
from starlette.responses import Response, StreamingResponse

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.errors import Changed, Refused, Unavailable, Uncertain
from mahasiswa.store.threads import with_records
from mahasiswa.web.forms import read_large_form, read_upload
from mahasiswa.web.list_view import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import compressed, sent_and_closed
from mahasiswa.web.students import unsaved
from mahasiswa.work import EXPORT, IMPORT, WORKBOOK, Busy

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

SheetRows = Sequence[sheets.Row | sheets.InvalidRow]


async def choose(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return await pages.empty_import_form.respond(request.scope, request.limits.slots)


async def preview(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: a preview of the changes. Nothing is written or kept."""
    async with read_upload(request, sheets.UPLOAD_MAX_BYTES) as form:
        file, field = form.get("berkas"), form.get("tempel")
        pasted = field if isinstance(field, str) else ""
        run, stop = request.limits.slots.run, Event()
        try:
            if isinstance(file, UploadFile) and file.size:
                kind = WORKBOOK if sheets.is_workbook(file.file) else IMPORT
                note, rows = await request.while_connected(run(kind, partial(_read_file, file.file, stop), stop))
            elif pasted.strip():
                note, rows = None, await request.while_connected(run(IMPORT, partial(_read_pasted, pasted, stop), stop))
            else:
                return pages.import_form(wording.NOTHING_CHOSEN)
            return await request.while_connected(_preview(request, store, pages.preview, rows, note))
        except sheets.SheetError as error:
            return pages.import_form(str(error), 413 if isinstance(error, sheets.TooBig) else 400, pasted)


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write the rows of the preview, all or none."""
    run = request.limits.slots.run
    form = await read_large_form(request, ("data", "ada"), sheets.MAX_CONFIRMED_BYTES, "confirmation too large", IMPORT)
    # A field that was sent twice, or is not UTF-8, did not come from the preview.
    data = "" if form.wrong else form.values["data"] or ""
    try:
        confirmed = await run(IMPORT, partial(sheets.load, data))
    except sheets.SheetError as error:
        return pages.import_form(str(error), 400)
    chosen = [entry for entry in confirmed if form.values["ada"] == "perbarui" or entry.versi is None]
    try:
        existing = await store.find([entry.row.nim for entry in chosen])
        writes = await run(IMPORT, partial(sheets.writes, chosen, existing))
        if writes is None:
            return await _again(request, store, pages, confirmed)
        await store.write_all(writes)
    except Changed:
        return await _again(request, store, pages, confirmed)
    except Refused:
        return pages.import_form(wording.CONFIRMATION_DAMAGED, 400)
    except (Unavailable, Uncertain, Busy) as error:
        return pages.error(unsaved(error))
    return pages.redirect


async def template(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/templat.xlsx: an empty table that passes its own import."""

    async def fill(file: BinaryIO) -> None:
        await request.limits.slots.run(EXPORT, partial(sheets.write_template, file))

    return await _download(request, pages, "templat-mahasiswa.xlsx", fill)


async def export_xlsx(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.xlsx: all records, or those of a search, with every cell as text."""
    return await _export(request, store, pages, "mahasiswa.xlsx", sheets.write_xlsx)


async def export_csv(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.csv: the same as CSV that an Indonesian Excel opens."""
    return await _export(request, store, pages, "mahasiswa.csv", sheets.write_csv)


async def _again(request: Request, store: Store, pages: Pages, confirmed: Sequence[sheets.Confirmed]) -> Response:
    """Show the same rows as a new preview against the list as it is now."""
    show = partial(pages.preview, changed=True)
    try:
        return await _preview(request, store, show, [entry.row for entry in confirmed], None)
    except sheets.SheetError as error:  # too large now: each record that was added meanwhile has a digest to send back
        return pages.import_form(str(error), 400)


def _read_file(file: BinaryIO, stop: Event) -> tuple[str | None, SheetRows]:
    with sheets.read(file, sheets.WEB, stop) as table:
        return table.note, sheets.check(table)


def _read_pasted(text: str, stop: Event) -> SheetRows:
    return sheets.check(sheets.read_text(text, sheets.WEB, stop))


async def _preview(
    request: Request, store: Store, show: Callable[..., Response], rows: SheetRows, note: str | None
) -> Response:
    existing = await store.find([row.nim for row in rows if isinstance(row, sheets.Row)])
    accept_encoding = request.headers.get("accept-encoding", "").encode("latin-1")

    def render() -> Response:
        plan = sheets.compare(rows, existing)
        return compressed(show(plan, sheets.dump(plan), note), accept_encoding)

    return await request.limits.slots.run(IMPORT, render)


async def _export(
    request: Request,
    store: Store,
    pages: Pages,
    name: str,
    write: Callable[[Iterator[Mahasiswa], BinaryIO], None],
) -> Response:
    query = query_of(request.query_params)

    async def fill(file: BinaryIO) -> None:
        await with_records(store, query, lambda records: write(records, file))

    try:
        return await _download(request, pages, name, fill)
    except sheets.NotCarried as error:
        return pages.error("not carried", text=str(error))


async def _download(
    request: Request, pages: Pages, name: str, fill: Callable[[BinaryIO], Coroutine[None, None, None]]
) -> Response:
    """Answer with a file. It is complete before its first byte is sent, so no transaction waits for a slow client."""
    headers = {**pages.headers, **pages.not_stored, "content-disposition": f'attachment; filename="{name}"'}
    media_type = "text/csv" if name.endswith(".csv") else XLSX
    if request.method == "HEAD":
        return pages.head(media_type, headers)
    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - closed after the last byte was sent
    try:
        await request.while_connected(fill(file))
        headers["content-length"] = str(file.tell())
    except BaseException:
        file.close()
        raise
    return StreamingResponse(sent_and_closed(file), headers=headers, media_type=media_type)

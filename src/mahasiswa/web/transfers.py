"""Spreadsheets in, by way of a preview that writes nothing, and out."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, cast

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mahasiswa import sheets
from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.errors import Changed, Refused, Unavailable, Uncertain
from mahasiswa.store.threads import with_records
from mahasiswa.web.forms import read_form, read_upload
from mahasiswa.web.list_view import View
from mahasiswa.web.pages import PROBLEMS, Pages
from mahasiswa.web.students import unsaved

UPLOAD = sheets.UPLOAD_MAX_BYTES
"""Bytes of a spreadsheet that is uploaded."""

PIECE = 256 * 1024
"""Bytes of a download that are sent at a time."""

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

WORKBOOKS = asyncio.Semaphore(2)
"""Workbooks read at the same time: each may take half a gigabyte."""


async def choose(_request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: where to choose a file or paste cells."""
    return pages.import_form()


async def preview(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: what a file would change. Nothing is written, nothing kept."""
    async with read_upload(request, UPLOAD) as form:
        file, field = form.get("berkas"), form.get("tempel")
        pasted = field if isinstance(field, str) else ""
        try:
            if isinstance(file, UploadFile) and file.size:
                async with WORKBOOKS:
                    note, rows = await asyncio.to_thread(_read_file, file.file)
            elif pasted.strip():
                note, rows = None, await asyncio.to_thread(lambda: sheets.check(sheets.read_text(pasted)))
            else:
                return pages.import_form("Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau.")
            return await _preview(store, pages.preview, rows, note)
        except sheets.SheetError as error:
            return pages.import_form(str(error), 413 if isinstance(error, sheets.TooBig) else 400, pasted)


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write what the preview showed, all of it or nothing."""
    form = await read_form(request, ("data", "ada"), sheets.MAX_CONFIRMED_BYTES, "confirmation too large")
    try:
        # Sent twice, or no UTF-8: not what the preview gave, and nothing to repair.
        confirmed = sheets.load("" if form.wrong else form.values["data"] or "")
    except sheets.SheetError as error:
        return pages.import_form(str(error), 400)
    chosen = [entry for entry in confirmed if form.values["ada"] == "perbarui" or entry.versi is None]
    try:
        writes = sheets.writes(chosen, await store.find([entry.row.nim for entry in chosen]))
        if writes is None:
            return await _again(store, pages, confirmed)
        await store.write_all(writes)
    except Changed:
        return await _again(store, pages, confirmed)
    except Refused:
        return pages.import_form(PROBLEMS["refused"].text, 400)
    except (Unavailable, Uncertain) as error:
        return pages.error(unsaved(error))
    return pages.redirect


async def template(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/templat.xlsx: an empty table that passes its own import."""
    from mahasiswa.sheets.xlsx_export import write_template  # noqa: PLC0415 - slow to import, and seldom used

    return await _download(
        request, pages, "templat-mahasiswa.xlsx", lambda file: asyncio.to_thread(write_template, file)
    )


async def export_xlsx(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.xlsx: all records, or those of the same search, every cell as text."""
    from mahasiswa.sheets.xlsx_export import write_xlsx  # noqa: PLC0415 - as above

    return await _export(request, store, pages, "mahasiswa.xlsx", write_xlsx)


async def export_csv(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.csv: likewise, as an Indonesian Excel opens it."""
    return await _export(request, store, pages, "mahasiswa.csv", sheets.write_csv)


async def _again(store: Store, pages: Pages, confirmed: Sequence[sheets.Confirmed]) -> Response:
    """Nothing is lost: the rows themselves come back as a new preview against what the list holds now."""
    try:
        return await _preview(store, partial(pages.preview, changed=True), [entry.row for entry in confirmed], None)
    except sheets.SheetError as error:  # it no longer fits: each row that exists now has a version to send back
        return pages.import_form(str(error), 400)


def _read_file(file: BinaryIO) -> tuple[str | None, list[sheets.Row | sheets.InvalidRow]]:
    with sheets.read(file) as table:
        return table.note, sheets.check(table)


async def _preview(
    store: Store, show: Callable[..., Response], rows: Sequence[sheets.Row | sheets.InvalidRow], note: str | None
) -> Response:
    existing = await store.find([row.nim for row in rows if isinstance(row, sheets.Row)])
    plan = sheets.compare(rows, existing)
    data = sheets.dump(plan)
    return await asyncio.to_thread(show, plan, data, note)


async def _export(
    request: Request,
    store: Store,
    pages: Pages,
    name: str,
    write: Callable[[Iterator[Mahasiswa], BinaryIO], None],
) -> Response:
    query = View.asked_for(request.query_params).query

    async def fill(file: BinaryIO) -> None:
        await with_records(store, query, lambda records: write(records, file))

    try:
        return await _download(request, pages, name, fill)
    except sheets.NotCarried as error:
        return pages.error("not carried", text=str(error))
    except Unavailable:
        return pages.error("not read")


async def _download(request: Request, pages: Pages, name: str, fill: Callable[[BinaryIO], Awaitable[None]]) -> Response:
    """Answer with a file, written whole before its first byte leaves: no transaction waits for a slow client."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    media_type = "text/csv" if name.endswith(".csv") else XLSX
    if request.method == "HEAD":
        return pages.head(media_type, headers)
    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - closed when the last byte has left
    try:
        await fill(file)
        headers["content-length"] = str(file.tell())
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return StreamingResponse(_pieces(file), headers={**pages.headers, **headers}, media_type=media_type)


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece

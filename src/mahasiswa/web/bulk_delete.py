"""Bulk delete: a person gives NIMs, sees their records in a preview, and removes them all with one confirmation."""

from collections.abc import Iterator
from functools import partial
from itertools import accumulate, islice
from urllib.parse import unquote

from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.threads import in_thread
from mahasiswa.web.forms import read_confirmation
from mahasiswa.web.list_view import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_view import MAX_REPAIRED_ROWS, REPAIRED_MAX_BYTES, Alert
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.uploads import absentees, existing_and_near, preview_of_upload, read_preview
from mahasiswa.work import IMPORT


async def choose(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/hapus: the page to paste NIMs or to choose a file; with a search, the preview of its records."""
    query = query_of(request.query_params)
    if not query.cari:
        return await pages.empty_upload_forms["hapus"].respond(request.scope, request.limits.slots)

    def first_nims(records: Iterator[Mahasiswa]) -> list[str]:
        return [record.nim for record in islice(records, sheets.UPLOAD_MAX_ROWS + 1)]

    nims = await in_thread(store.reader(IMPORT).chunks(query), first_nims)
    if len(nims) > sheets.UPLOAD_MAX_ROWS:
        raise sheets.SheetError(wording.TOO_MANY_FOUND.format(limit=wording.number(sheets.UPLOAD_MAX_ROWS)))
    return await _preview(request, store, pages, sheets.file_of_nims(nims))


async def preview_ticked(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/pilihan: the preview of the rows that a person has ticked on a page of the list."""
    ticked = (await read_confirmation(request, ("nim[]",)))["nim[]"]
    if not ticked:
        raise sheets.SheetError(wording.NO_ROWS_TICKED)
    return await request.while_connected(_preview(request, store, pages, sheets.file_of_nims(map(unquote, ticked))))


async def preview(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus: the records with these NIMs, and the NIMs without a record. Nothing is written or kept."""
    return await preview_of_upload(request, pages, "hapus", partial(_preview, request, store, pages))


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/simpan: remove the records of the preview, all or none; or preview them again, repaired.

    A record that was changed since the preview is removed too, because the NIM was confirmed. A record that was removed
    since is left out, so a second click changes nothing. The preview of an import leads here to remove the records that
    its file lacks.
    """
    sent, alert, cleaned = await read_preview(request)
    if sent["periksa"][-1:] == ["sisa"]:
        others = await absentees(store.reader(IMPORT), set(sheets.nims(cleaned)), sheets.UPLOAD_MAX_ROWS)
        cleaned, alert = sheets.file_of_nims(record.nim for record in others), ""
    elif not alert and not sent["periksa"]:
        shown = set(cleaned.file.new)
        cells = await request.limits.slots.run(IMPORT, partial(sheets.clean_nims, cleaned.rows))
        nims = [cell.nim for cell in cells if cell.number in shown and not cell.problem]
        await store.write_all("delete", removals=dict.fromkeys(nims))
        return pages.redirect
    return await request.while_connected(_preview(request, store, pages, cleaned, alert))


async def _preview(
    request: Request, store: Store, pages: Pages, cleaned: sheets.CleanedFile, alert: Alert = ""
) -> Response:
    if cleaned.columns_problem:
        raise sheets.SheetError(cleaned.columns_problem)
    cells = await request.limits.slots.run(IMPORT, partial(sheets.clean_nims, cleaned.rows))
    existing, near = await existing_and_near(store.reader(IMPORT), [cell.nim for cell in cells if not cell.problem])

    def render() -> Response:
        found, missing = sheets.compare_nims(cells, existing, near)
        file = cleaned.selected() if cleaned.file.has_all_cells else cleaned.file
        _, data = sheets.dump(sheets.CleanedFile(file._replace(new=[row.number for row in found]), [], []))
        in_input = {number: sheets.in_input(cells[0]) for number, cells in cleaned.rows}
        texts = [in_input[cell.number] for cell in missing]
        sizes = accumulate(len(text.encode()) for text in texts[:MAX_REPAIRED_ROWS])
        return pages.page(
            "bulk_delete.html",
            200,
            pages.not_stored,
            found=found,
            renamed=[row for row in found if row.nama],
            missing=list(zip(texts, missing, strict=True)),
            inputs=sum(size <= REPAIRED_MAX_BYTES for size in sizes),
            most=MAX_REPAIRED_ROWS,
            data=data,
            alert=alert,
        )

    return await rendered_in_thread(request, IMPORT, render)

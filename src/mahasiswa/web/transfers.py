"""Import of spreadsheets, with a preview that writes nothing."""

from collections.abc import Sequence
from functools import partial

from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.digits import whole_number
from mahasiswa.record import Write
from mahasiswa.store import Query, Store
from mahasiswa.store.errors import Changed, Refused
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_view import Alert, PreviewView
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.uploads import absentees, existing_and_near, numbers, preview_of_upload, read_preview
from mahasiswa.work import IMPORT

ALL_LOST_ZEROS = "nol"  # the value of the button that restores the zeros of all NIMs
ABSENTEES_MAX_ROWS = 1000  # records that are listed because the file lacks them


async def choose(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return await pages.empty_upload_forms["impor"].respond(request.scope, request.limits.slots)


async def preview(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: a preview of the changes. Nothing is written or kept."""
    return await preview_of_upload(request, pages, "impor", partial(_preview, request, store, pages))


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write the rows of the preview, all or none; or preview them again, repaired.

    If the form has a repair that no preview has shown yet, the answer is a new preview.
    """
    sent, alert, cleaned = await read_preview(request)
    opened = sent["periksa"][-1] if sent["periksa"] else ""
    if alert or opened or cleaned.columns_problem or sent["pakai[]"]:
        alert = alert or ("chosen" if sent["pakai[]"] or not opened else "")
        again = _preview(request, store, pages, cleaned, opened=opened, alert=alert, meant=sent["pakai[]"])
        return await request.while_connected(again)
    if not await _write(request, store, cleaned, update=sent["ada"][-1:] == ["perbarui"]):
        return await _preview(request, store, pages, cleaned, alert="changed")
    return pages.redirect


async def _write(request: Request, store: Store, cleaned: sheets.CleanedFile, *, update: bool) -> bool:
    """Write the changes that the preview showed. Return False, with nothing written, if a record has changed since."""
    existing = await store.reader(IMPORT).find(sheets.nims(cleaned))

    def changes() -> list[Write] | None:
        plan = sheets.compare(cleaned, existing)
        return sheets.confirmed_writes(cleaned.file, plan, update=update)

    writes = await request.limits.slots.run(IMPORT, changes)
    if writes is None:
        return False
    try:
        await store.write_all("import", writes)
    except Changed:
        return False
    except Refused:
        raise sheets.SheetError(wording.CONFIRMATION_DAMAGED) from None
    return True


async def _preview(
    request: Request,
    store: Store,
    pages: Pages,
    cleaned: sheets.CleanedFile,
    *,
    opened: str = "",
    alert: Alert = "",
    meant: Sequence[str] = (),
) -> Response:
    """The preview of these rows. `opened` is a part to show with its rows; `baru-500` shows those from index 500 on.

    `meant` are the rows whose NIM is replaced by the similar one that is stored, or ALL_LOST_ZEROS.
    """
    part, _, start = opened.partition("-")
    nims = sheets.nims(cleaned)
    reader = store.reader(IMPORT)
    existing, near = await existing_and_near(reader, nims)
    total = (await reader.search(Query(), 0, 0)).total
    others = await absentees(reader, set(nims), ABSENTEES_MAX_ROWS) if part == "sisa" else []

    def render() -> Response:
        shown, plan, stored = cleaned, sheets.compare(cleaned, existing, near), existing
        if meant:
            rows = None if ALL_LOST_ZEROS in meant else numbers(meant)
            shown = sheets.clean_again(sheets.with_stored_nims(cleaned, plan, rows))
            stored = {**existing, **{record.nim: record for record in near}}
            plan = sheets.compare(shown, stored, near)
        file, data = sheets.dump(shown._replace(file=sheets.with_shown_changes(shown.file, plan)))
        view = PreviewView(
            shown._replace(file=file),
            plan,
            data,
            absent=total - len(stored.keys() & sheets.nims(shown)),
            absentees=others,
            opened=part,
            start=whole_number(start) or 0,
            alert=alert,
        )
        if view.columns_problem:
            return pages.upload_form("impor", view.columns_problem, view=view)
        status = 409 if alert == "changed" else 200
        return pages.page("preview.html", status, pages.not_stored, view=view, row_name=sheets.row_name)

    return await rendered_in_thread(request, IMPORT, render)

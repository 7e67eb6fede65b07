"""Import and selection: an upload is staged, its page can be repaired, and all that it shows is saved or removed, or nothing."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from urllib.parse import unquote

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.digits import whole_number
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets import columns, rules
from mahasiswa.sheets.read import UPLOAD_MAX_ROWS
from mahasiswa.sheets.stage import Line, Stage, Stale
from mahasiswa.store import Query, Store
from mahasiswa.web.acts import REMOVED, Alert, FormTexts, Students, act, choice_of, settle
from mahasiswa.web.exports import Export, export_records, print_records
from mahasiswa.web.forms import read_preview_form
from mahasiswa.web.list_query import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.stage_page import CHOICES, said, shown_stage
from mahasiswa.web.uploads import UploadRefused, in_thread, read_into, received, stage_of, staged
from mahasiswa.work import EXPORT, IMPORT, STAGE


async def choose(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor and pilih: the page to choose a file or to paste cells."""
    return pages.upload_form(request.purpose)


async def upload(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor and pilih: read a file or pasted cells into a stage, and lead to its page."""
    async with received(request) as given:
        fill = partial(read_into, request, given=given)
        return await request.while_connected(staged(request, store, pages, fill, given.name))


async def show(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/:id and pilih/:id: the page of a stage. After it is saved, the redirect to the change."""
    with await stage_of(request) as stage:
        page = partial(_page, request, pages, stage, None)
        return await request.rendered(STAGE, page)


async def change(request: Request, store: Store, pages: Pages) -> Response:
    """POST of the same: do the action of the pressed button, unless another page has changed the lines meanwhile."""
    form = await read_preview_form(request)
    students = Students(store, asyncio.get_running_loop())
    with await stage_of(request) as stage:
        try:
            alert = await _press(request, stage, form, students)
        except Stale:
            alert = "stale"
        page = partial(_page, request, pages, stage, alert)
        return await request.rendered(STAGE, page)


async def rest(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/sisa/:id: the lines that are not saved as a workbook, each with its problem."""
    titles = (*wording.HEADER, wording.REMARK)
    lines = await _lines(request, "left")
    rows = [(*line[2:5], said(line) if line.problem else "") for line in lines]
    return await export_records(
        request, pages, _export(request, rows), "mahasiswa-dilewati", titles
    )


async def select_ticked(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/pilih/centang: the selection of the rows that a person has ticked on a page of the list."""
    form = await read_preview_form(request)
    nims = list(map(unquote, form["nim[]"]))
    if not nims:
        raise UploadRefused(wording.NO_ROWS_TICKED)
    return await _selected(request, store, pages, nims)


async def select_found(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/pilih/hasil: the selection of the hits of the search in the URL's query."""
    query = query_of(request.query_params)
    found = await store.reader(IMPORT).search(query, 0, UPLOAD_MAX_ROWS)
    if found.total > UPLOAD_MAX_ROWS:
        limit = wording.number(UPLOAD_MAX_ROWS)
        raise UploadRefused(wording.TOO_MANY_FOUND.format(limit=limit))
    return await _selected(request, store, pages, [record.nim for record in found.records])


async def export_selected(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/pilih/ekspor.xlsx/:id and ekspor.csv/:id: the records of a selection, in its order."""
    records = await _records(request, store)
    return await export_records(request, pages, _export(request, records))


async def print_selected(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/pilih/cetak/:id: the records of a selection on a page to print."""
    records = await _records(request, store)
    return await print_records(
        request, pages, _export(request, records), Query(), request.parameter
    )


async def _records(request: Request, store: Store) -> Sequence[Mahasiswa]:
    """The records that the page of a selection shows as found, without those that were removed since."""
    lines = await _lines(request, "of_state", *REMOVED, -1, 0)
    stored = await store.reader(IMPORT).find([line.nim for line in lines])
    return [stored[line.nim] for line in lines if line.nim in stored]


def _export(request: Request, rows: Sequence[Sequence[str]]) -> Export:
    return lambda work: request.slots.run(EXPORT, lambda: work(iter(rows)))


async def _lines(request: Request, statement: str, *parameters: object) -> list[Line]:
    with await stage_of(request) as stage:
        return await in_thread(request, partial(stage.lines, statement, *parameters))


async def _selected(request: Request, store: Store, pages: Pages, nims: Iterable[str]) -> Response:
    """A stage of stored NIMs, and a redirect to its page."""
    lines = [(0, number, nim, "", "", "", "") for number, nim in enumerate(nims, 1)]
    return await staged(
        request,
        store,
        pages,
        lambda stage: in_thread(request, partial(stage.put_lines, (), lines, 1)),
    )


async def _press(
    request: Request, stage: Stage, form: FormTexts, students: Students
) -> Alert | None:
    """Do the action of the pressed button. Return the alert of a page that is shown again. Raise Stale."""
    version = whole_number("".join(form["versi"])) or 0
    button = "".join(form["aksi"])
    if button != "baca":
        return await in_thread(request, partial(act, stage, version, button, form, students))
    choice = await in_thread(request, partial(choice_of, stage, form))
    if choice is None:
        return "columns"
    await request.while_connected(read_into(request, stage, version, choice=choice))
    await in_thread(request, partial(settle, stage, students))
    return None


def _page(request: Request, pages: Pages, stage: Stage, alert: Alert | None) -> Response:
    """The page of a stage as it is now. After a press, a redirect to it; after its lines are saved, one to the change."""
    change = stage.facts().change
    if change is not None:
        return pages.shown(change or None)
    if request.method == "POST" and not alert:
        return pages.redirect_to(f"{request.path}?{request.url.query}".rstrip("?"))
    query = request.query_params
    start = whole_number(query.get("mulai", "")) or 0
    status = 400 if alert == "columns" else 409 if alert else 200
    return pages.page(
        "stage.html",
        status,
        pages.not_stored,
        stage=shown_stage(stage, query.get("bagian", ""), start),
        alert=alert,
        choices=CHOICES,
        parts=columns.FIELD_OF,
        doubts=rules.DOUBTS,
        reasons=rules.SKIPPED,
        said=said,
    )

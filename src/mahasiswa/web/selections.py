"""Selection: the records with the NIMs of a list are staged, then printed, downloaded, or removed at once."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote, urlencode

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.digits import whole_number
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets import rules, selection
from mahasiswa.sheets import stage as stages
from mahasiswa.sheets.read import UPLOAD_MAX_ROWS
from mahasiswa.sheets.stage import Facts, Line, Stage, Stale
from mahasiswa.store import Query, Reader, Store
from mahasiswa.web.exports import export_records, print_records
from mahasiswa.web.forms import cells_of, read_preview_form
from mahasiswa.web.import_page import PAGE_LINES, Group, said
from mahasiswa.web.list_query import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.service import Request
from mahasiswa.web.uploads import (
    READ_NIMS,
    UploadRefused,
    client_of,
    in_thread,
    note_near,
    received,
    staged,
)
from mahasiswa.work import EXPORT, IMPORT, STAGE, slices

FIRST_LINES = 10  # of the records that are found, and of each problem
MISSING_MAX = 100  # lines without a record that have inputs
FOUND = "found"  # the group of the records that are found, as the query of the page names it


class SelectionPage(NamedTuple):
    """The page of a selection: what is found without a doubt, the doubts, and the lines without a record."""

    identifier: str
    facts: Facts
    found: Group
    problems: Sequence[Group]
    missing: Sequence[Line]
    missing_total: int
    alert: str

    @classmethod
    def of(cls, stage: Stage, start: int, alert: str) -> "SelectionPage":
        counts = stage.counts()
        total = counts["sama"] + counts["berubah"]
        found = stage.lines("found", PAGE_LINES if start else FIRST_LINES, start)
        problems = [
            Group(code, count, stage.lines("of_problem", code, FIRST_LINES, 0), 0)
            for code, count in stage.ask("problems")
        ]
        missing = stage.lines("of_state", "baru", MISSING_MAX, 0)
        group = Group(FOUND, total, found, start)
        return cls(stage.path.name, stage.facts(), group, problems, missing, counts["baru"], alert)

    def reason(self, line: Line) -> str:
        """The likely reason why no record has the NIM of a line, or a blank text."""
        if line.near:
            return said(line._replace(problem="near"))
        return wording.SEVERAL_NIMS if selection.has_several(line.nim) else ""


async def choose(_request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/pilih: the page to paste NIMs or to choose a file."""
    return pages.upload_form("pilih")


async def upload(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/pilih: the selection of pasted NIMs, or of those in a file."""

    async def match(stage: Stage, version: int) -> None:
        await in_thread(request, partial(stage.begin, version))
        await _match(request, store.reader(IMPORT), stage)
        await in_thread(request, stage.commit)

    async with received(request, "pilih") as given:
        identifier = await staged(request, request.service.uploads, "pilih", given, match)
    return pages.redirect_to(f"/mahasiswa/pilih/{identifier}")


async def select_ticked(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/pilih/centang: the selection of the rows that a person has ticked on a page of the list."""
    form = await read_preview_form(request)
    nims = list(dict.fromkeys(map(unquote, form["nim[]"])))
    if not nims:
        raise UploadRefused(wording.NO_ROWS_TICKED)
    return await _selected(request, store, pages, nims)


async def select_found(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/pilih/hasil: the selection of the hits of the search in the URL's query."""
    query = query_of(request.query_params)
    nims: list[str] = []
    async with aclosing(store.reader(IMPORT).chunks(query)) as chunks:
        async for records in chunks:
            nims += [record.nim for record in records]
            if len(nims) > UPLOAD_MAX_ROWS:
                limit = wording.number(UPLOAD_MAX_ROWS)
                raise UploadRefused(wording.TOO_MANY_FOUND.format(limit=limit))
    return await _selected(request, store, pages, nims)


async def show(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/pilih/:id: the selection. After its records are removed, it leads to the change."""
    alert = "checked" if "diperiksa" in request.query_params else ""
    return await rendered_in_thread(request, STAGE, partial(_page, request, pages, alert))


async def change(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/pilih/:id: do what the pressed button says, with the lines of its page."""
    form = await read_preview_form(request)
    is_checked = False
    alert = "stale"
    with await _opened(request) as stage:
        if (await in_thread(request, stage.facts)).change is None:
            with suppress(Stale):
                is_checked = await _act(request, store, stage, form)
                alert = ""
        facts = await in_thread(request, stage.facts)
    if facts.change is not None:
        return pages.shown(facts.change or None)
    if alert:
        return await rendered_in_thread(request, STAGE, partial(_page, request, pages, alert))
    query = f"?{urlencode({'diperiksa': 1})}" if is_checked else ""
    return pages.redirect_to(f"{request.path}{query}")


async def export(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/pilih/ekspor.xlsx/:id and ekspor.csv/:id: the records of a selection, in its order."""
    nims = await _nims(request)
    suffix = request.path.split("/")[-2].removeprefix("ekspor")
    async with request.limits.slots.slot(EXPORT):
        records = _records(store.reader(IMPORT), nims)
        return await export_records(request, pages, records, f"mahasiswa{suffix}")


async def print_selected(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/pilih/cetak/:id: the records of a selection on a page to print."""
    nims = await _nims(request)
    async with request.limits.slots.slot(EXPORT):
        records = _records(store.reader(IMPORT), nims)
        return await print_records(request, pages, records, Query(), request.parameter)


async def _opened(request: Request) -> Stage:
    find = partial(Stage.find, request.service.uploads, request.parameter, "pilih")
    return await in_thread(request, find)


async def _nims(request: Request) -> list[str]:
    """The NIMs of the records that the page of a selection shows as found."""
    with await _opened(request) as stage:
        return await in_thread(request, partial(_found, stage))


def _found(stage: Stage) -> list[str]:
    return [line.nim for line in stage.lines("found", -1, 0)]


async def _records(reader: Reader, nims: Sequence[str]) -> AsyncGenerator[Sequence[Mahasiswa]]:
    """The records with these NIMs, without those that were removed since."""
    for asked in slices(nims, READ_NIMS):
        stored = await reader.find(asked)
        if found := [stored[nim] for nim in asked if nim in stored]:
            yield found


async def _selected(request: Request, store: Store, pages: Pages, nims: Iterable[str]) -> Response:
    """A stage of stored NIMs, and a redirect to its page."""
    folder = request.service.uploads
    create = partial(Stage.create, folder, "pilih", "", client_of(request))
    stage = await in_thread(request, create)
    try:
        with stage:
            lines = [(0, number, nim, "", "", "", "") for number, nim in enumerate(nims, 1)]
            await in_thread(request, partial(stage.begin, 1))
            await in_thread(request, partial(stage.do, "put_line", lines))
            await _match(request, store.reader(IMPORT), stage)
            await in_thread(request, stage.commit)
    except BaseException:
        stages.remove(folder, stage.path.name)
        raise
    return pages.redirect_to(f"/mahasiswa/pilih/{stage.path.name}")


async def _act(
    request: Request, store: Store, stage: Stage, form: Mapping[str, Sequence[str]]
) -> bool:
    """Do what the pressed button says; return whether typed NIMs were stored in the place of a deletion. Raise Stale."""
    run = partial(in_thread, request)
    version = whole_number("".join(form["versi"])) or 0
    action, _, target = "".join(form["aksi"][-1:]).partition(":")
    await run(partial(stage.begin, version))
    is_typed = await run(partial(_type, stage, form))
    if action == "hapus" and not is_typed:
        # Also records that were changed since, because their NIMs were confirmed.
        removals = await run(partial(_found, stage))
        removed = await store.write_all("delete", removals=removals)
        await run(partial(stage.do, "finish", [(str(removed or ""),)]))
    else:
        await run(partial(_decide, stage, action, target))
        await _match(request, store.reader(IMPORT), stage)
    await run(stage.commit)
    return is_typed and action == "hapus"


def _type(stage: Stage, form: Mapping[str, Sequence[str]]) -> bool:
    """Store the typed NIMs that differ from those of the stage; return whether there are any. A blank one drops its line."""
    changed = []
    for key, texts in cells_of(form, ("nim",)).items():
        for line in stage.lines("line", *key):
            if texts["nim"] != "".join(line.nim.splitlines()):
                nim = rules.judge(texts["nim"], "", "").nim
                dropped = "" if nim else "person"
                changed.append(line._replace(nim=nim, nama="", own="", skipped=dropped))
    return stage.do("change_line", ((*line[2:8], *line[:2]) for line in changed))


def _decide(stage: Stage, action: str, target: str) -> None:
    """Call lines right, or drop them from the selection, as a button says."""
    if action == "benar":
        stage.do("accept", [(target,)])
    elif action == "lewati" and "." in target:
        sheet, _, number = target.partition(".")
        key = whole_number(sheet), whole_number(number)
        stage.do("skip_line", [key])
    elif action == "lewati":
        stage.do("skip", [(target,)])


async def _match(request: Request, reader: Reader, stage: Stage) -> None:
    """Give each line the stored NIM among its words, and note the record, or a record with nearly that NIM."""
    run = partial(in_thread, request)
    lines = await run(partial(stage.lines, "kept"))
    forms = {form for line in lines for form in selection.forms_of(line.nim)}
    stored: dict[str, Mahasiswa] = {}
    for asked in slices(sorted(forms), READ_NIMS):
        stored |= await reader.find(asked)
    await run(partial(stage.do, "match", _matched(lines, stored)))

    await note_near(request, reader, stage)
    await run(partial(stage.do, "settle_selection"))


def _matched(lines: Sequence[Line], stored: Mapping[str, Mahasiswa]) -> list[Sequence[object]]:
    """Each line with the texts of its record. The second line with the same NIM is skipped."""
    seen: set[str] = set()
    rows: list[Sequence[object]] = []
    for line in lines:
        nim = selection.nim_in(line.nim, stored)
        record = stored.get(nim)
        nama = line.nama or (selection.name_in(line.nim) if record and nim != line.nim else "")
        shown = nim if record else line.nim
        skipped = "same" if shown in seen else ""
        seen.add(shown)
        texts = record[1:] if record else (None, None)
        rows.append((shown, nama, skipped, *texts, *line[:2]))
    return rows


def _page(request: Request, pages: Pages, alert: str) -> Response:
    start = whole_number(request.query_params.get("mulai", "")) or 0
    with Stage.find(request.service.uploads, request.parameter, "pilih") as stage:
        page = SelectionPage.of(stage, start, alert)
    if page.facts.change is not None:
        return pages.shown(page.facts.change or None)
    status = 409 if alert == "stale" else 200
    return pages.page("selection.html", status, pages.not_stored, selection=page, said=said)

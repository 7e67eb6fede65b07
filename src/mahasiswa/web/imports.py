"""Import: an upload is staged, its preview can be repaired, and all that it shows is saved, or nothing.

Each POST of a preview is one transaction of its stage. So no other page or worker sees a line that was changed but not
compared, and none acts on the same version.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal
from urllib.parse import urlencode

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.digits import whole_number
from mahasiswa.record import FIELDS, Write, digest
from mahasiswa.sheets import columns, rules
from mahasiswa.sheets.stage import Line, Stage, StagedSheet, Stale, State
from mahasiswa.store import Store
from mahasiswa.store.store_errors import Changed
from mahasiswa.web.exports import export_records
from mahasiswa.web.forms import cells_of, read_preview_form
from mahasiswa.web.import_page import ImportPage, said
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.service import Request
from mahasiswa.web.uploads import (
    READ_NIMS,
    UploadRefused,
    in_thread,
    note_near,
    read_into,
    received,
    staged,
)
from mahasiswa.work import EXPORT, IMPORT, STAGE, slices

CHECKED = "diperiksa"  # in the query of the preview after a press that stored typed cells instead of saving
BLANK_ALAMAT = "-"

Alert = Literal["stale", "changed", "columns", "checked"]
"""Why the preview is shown again: another page has changed it, records have changed, the columns make no record, or
typed cells were stored in the place of saving."""

STATUSES: Mapping[Alert | None, int] = {"stale": 409, "changed": 409, "columns": 400}

SAVED: Mapping[str, Sequence[State]] = {"simpan": ("baru",), "perbarui": ("baru", "berubah")}
"""The lines that each button saves, by their states."""


async def choose(_request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return pages.upload_form("impor")


async def upload(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: read a file or pasted cells into a stage, and lead to its preview."""

    async def compare(stage: Stage, version: int) -> None:
        await in_thread(request, partial(stage.begin, version))
        await _compare(request, store, stage)
        await in_thread(request, stage.commit)

    async with received(request, "impor") as given:
        folder = request.service.uploads
        identifier = await staged(request, folder, "impor", given, compare)
    return pages.redirect_to(f"/mahasiswa/impor/{identifier}")


async def show(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/:id: the preview. After the lines are saved, it leads to the change."""
    alert: Alert | None = "checked" if CHECKED in request.query_params else None
    return await rendered_in_thread(request, STAGE, partial(_page, request, pages, alert))


async def change(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/:id: do what the pressed button says, with the lines of its page, and nothing if they are others."""
    form = await read_preview_form(request)
    find = partial(Stage.find, request.service.uploads, request.parameter, "impor")
    with await in_thread(request, find) as stage:
        alert: Alert | None = "stale"
        if (await in_thread(request, stage.facts)).change is None:
            with suppress(Stale):
                alert = await _act(request, store, stage, form)
        facts = await in_thread(request, stage.facts)

    if facts.change is not None:
        return pages.shown(facts.change or None)
    if alert in STATUSES:
        return await rendered_in_thread(request, STAGE, partial(_page, request, pages, alert))
    opened, start = _opened(request)
    query = urlencode(
        {CHECKED: 1} if alert else {"bagian": opened, "mulai": start} if opened else {}
    )
    return pages.redirect_to(f"{request.path}?{query}".rstrip("?"))


async def rest(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/sisa/:id: the lines that are not saved as a workbook, each with its problem."""

    def left() -> list[Sequence[str]]:
        with Stage.find(request.service.uploads, request.parameter, "impor") as stage:
            lines = stage.lines("left")
        return [(*line[2:5], said(line) if line.problem else "") for line in lines]

    rows = await in_thread(request, left)

    async def parts() -> AsyncGenerator[Sequence[Sequence[str]]]:
        for part in slices(rows, READ_NIMS):
            yield part

    async with request.limits.slots.slot(EXPORT):
        titles = (*wording.HEADER, wording.REMARK)
        return await export_records(request, pages, parts(), "mahasiswa-dilewati.xlsx", titles)


def _opened(request: Request) -> tuple[str, int]:
    """The group of lines that a page shows from a number on."""
    query = request.query_params
    return query.get("bagian", ""), whole_number(query.get("mulai", "")) or 0


async def _act(
    request: Request, store: Store, stage: Stage, form: Mapping[str, Sequence[str]]
) -> Alert | None:
    """Do what the pressed button says; return why the preview is shown again, or None. Raise Stale."""
    run = partial(in_thread, request)
    version = whole_number("".join(form["versi"])) or 0
    action, _, target = "".join(form["aksi"][-1:]).partition(":")
    if action == "baca":
        choice = _choice(form, await run(stage.sheets))
        if choice is None:
            return "columns"
        options = {"purpose": "impor", "pasted": False, "version": version, "choice": choice}
        await request.while_connected(read_into(request, stage, options))
        if error := (await run(stage.facts)).error:
            raise UploadRefused(error)
        version += 1

    await run(partial(stage.begin, version))
    is_typed = await run(partial(_type, stage, form))
    await run(partial(_decide, stage, action, target))
    before = await run(stage.counts)
    has_changed = await _compare(request, store, stage)
    alert: Alert | None = None
    states = SAVED.get(action, ())
    if states and is_typed:
        alert = "checked"
    elif states and has_changed and not _are_stored(before, await run(stage.counts)):
        alert = "changed"
    elif any(before[state] for state in states):
        alert = await _save(request, store, stage, states)
    await run(stage.commit)
    return alert


async def _save(
    request: Request, store: Store, stage: Stage, states: Sequence[State]
) -> Alert | None:
    """Save the lines of these states, all or none, and note it in the stage, so that a second click leads to the same page."""

    def writes() -> list[Write]:
        lines = [line for state in states for line in stage.lines("of_state", state, -1, 0)]
        return [Write(line.record, line.stored and digest(line.stored)) for line in lines]

    try:
        saved = await store.write_all("import", await in_thread(request, writes))
    except Changed:  # since they were compared, a moment ago
        await _compare(request, store, stage)
        return "changed"
    await in_thread(request, partial(stage.do, "finish", [(saved or "",)]))
    return None


def _are_stored(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether all lines are stored by now, as after a crash between the commit and its note."""
    return after["sama"] == before["baru"] + before["berubah"] + before["sama"]


async def _compare(request: Request, store: Store, stage: Stage) -> bool:
    """Compare all lines with the stored records; return whether one is not as it was noted before."""
    run = partial(in_thread, request)
    reader = store.reader(IMPORT)
    has_changed = False
    for nims in slices(await run(partial(stage.column, "nims")), READ_NIMS):
        stored = await reader.find(nims)
        rows = map(_with_cleaned, (stored.get(nim) or (nim, None, None) for nim in nims))
        has_changed |= await run(partial(stage.do, "note_stored", rows))

    await note_near(request, reader, stage)

    return await run(partial(stage.do, "settle")) or has_changed


def _with_cleaned(record: tuple[str, str | None, str | None]) -> Sequence[str | None]:
    """A stored record, followed by its texts as an import would clean them; None if there is none."""
    nim, nama, alamat = record
    return nim, nama, alamat, rules.cleaned(nama), rules.cleaned_alamat(alamat)


def _choice(form: Mapping[str, Sequence[str]], sheets: Sequence[StagedSheet]) -> object | None:
    """The columns of the sheets that a person reads, or reads no more; None if they do not make a record."""
    chosen: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for (number, index), cell in cells_of(form, ("kolom",)).items():
        chosen[number][index] = cell["kolom"]

    choice = {}
    for sheet in sheets:
        is_read = len(sheets) == 1 or form[f"lembar.{sheet.id}"] == ["1"]
        parts = dict(sheet.columns)
        if sheet.id in chosen:
            parts = {at: part for at, part in chosen[sheet.id].items() if part in columns.PARTS}
        fields = [columns.PARTS[part].field for part in parts.values()]
        if is_read and (fields.count("nim") != 1 or len(fields) == 1):
            return None
        if is_read or sheet.is_read:
            choice[str(sheet.id)] = {"columns": parts, "is_read": is_read}
    return {"sheets": choice}


def _type(stage: Stage, form: Mapping[str, Sequence[str]]) -> bool:
    """Store the typed texts that differ from those of the stage; return whether there are any."""
    typed = []
    for key, texts in cells_of(form, FIELDS).items():
        for line in stage.lines("line", *key):
            new = line._replace(**texts)
            # A browser removes line breaks from the text of an input.
            if any(
                new_text != "".join(text.splitlines())
                for new_text, text in zip(new[2:5], line[2:5], strict=True)
            ):
                typed.append(_judged(new))
    return _change_lines(stage, typed)


def _decide(stage: Stage, action: str, target: str) -> None:
    """Skip lines, call them right, or repair them, as a button says."""
    if action == "benar" and not rules.is_fault(target):
        stage.do("accept", [(target,)])
    elif action == "lewati" and "." in target:
        for key in cells_of({f"baris.{target}": [""]}, ("baris",)):
            skipped = (line._replace(skipped="person") for line in stage.lines("line", *key))
            _change_lines(stage, skipped)
    elif action == "lewati":
        stage.do("skip", [(target,)])
    elif action == "kembalikan":
        stage.do("take_back", [("person",)])
    elif action == "perbaiki" and target in REPAIRS:
        lines = stage.lines("of_problem", target, -1, 0)
        _change_lines(stage, map(REPAIRS[target], lines))


def _change_lines(stage: Stage, lines: Iterable[Line]) -> bool:
    return stage.do("change_line", ((*line[2:8], *line[:2]) for line in lines))


def _judged(line: Line) -> Line:
    """A line with new texts, which a person has not looked at yet."""
    return line._replace(**rules.judge(*line[2:5])._asdict(), skipped="", accepted="")


REPAIRS: Mapping[str, Callable[[Line], Line]] = {
    "separators": lambda line: _judged(line._replace(nim=rules.bare_nim(line.nim) or line.nim)),
    "near": lambda line: _judged(line._replace(nim=line.near or line.nim)),
    # No rule looks at this address, so it is no doubt.
    "no_alamat": lambda line: line._replace(alamat=BLANK_ALAMAT),
}
"""The repairs of all lines with a problem."""


def _page(request: Request, pages: Pages, alert: Alert | None = None) -> Response:
    """The preview as it is in the stage now, or after the lines are saved the redirect to the change."""
    opened, start = _opened(request)
    with Stage.find(request.service.uploads, request.parameter, "impor") as stage:
        page = ImportPage.of(stage, opened, start, alert)
    if page.facts.change is not None:
        return pages.shown(page.facts.change or None)
    return pages.preview(page, STATUSES.get(alert, 200))

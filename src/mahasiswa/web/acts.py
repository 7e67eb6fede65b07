"""The buttons of a preview and of a selection: what each does with a stage, in one thread and one transaction.

So no other page or worker sees a line that was changed but not compared, and none acts on the same version.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from mahasiswa.record import FIELDS, Mahasiswa, Write, digest, near_key
from mahasiswa.sheets import columns, rules, selection
from mahasiswa.sheets.stage import Choice, Line, Stage, State
from mahasiswa.store import Store
from mahasiswa.store.store_errors import Changed
from mahasiswa.web.forms import cells_of
from mahasiswa.work import IMPORT

NEAR_MAX_RECORDS = 20_000  # stored NIMs that are nearly those of an upload
BLANK_ALAMAT = "-"
NOT_STORED = (None, None, None)

Alert = Literal["stale", "changed", "columns", "checked"]
"""Why the page is shown again: another page has changed it, records have changed, the columns make no record, or
typed cells were stored in the place of saving."""

FormTexts = Mapping[str, Sequence[str]]
"""All texts of each field of a form."""

T = TypeVar("T")


class Students(NamedTuple):
    """The list, for a thread that waits until the event loop of the worker has read or changed it."""

    store: Store
    loop: asyncio.AbstractEventLoop

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def stored(self, nims: Iterable[str]) -> Mapping[str, Mahasiswa]:
        """The records that exist among these nims, by nim."""
        return self.wait(self.store.reader(IMPORT).find(sorted(nims)))


def act(
    stage: Stage, version: int, button: str, form: FormTexts, students: Students
) -> Alert | None:
    """Store the typed lines, and do the action of a button. Return the alert of a page that is shown again. Raise Stale.

    A button that saves does nothing else if a line was typed, because its page has not shown the outcome.
    """
    action, _, target = button.partition(":")
    stage.begin(version)
    is_typed = _change_lines(stage, _typed_lines(stage, form))
    alert: Alert | None = None
    if action in ACTS:
        stage.do(ACTS[action], [(target,)])
    elif action == "perbaiki" and target in REPAIRS:
        lines = stage.lines("of_problem", target, -1, 0)
        _change_lines(stage, map(REPAIRS[target], lines))
    elif action in SAVED:
        alert = "checked" if is_typed else _save(stage, SAVED[action], students)
    compare(stage, students)
    stage.commit()
    return alert


def settle(stage: Stage, students: Students) -> None:
    """Compare the lines that a child process has put into a stage."""
    stage.begin(stage.facts().version)
    compare(stage, students)
    stage.commit()


def compare(stage: Stage, students: Students) -> None:
    """Note the stored record of each line, or one with nearly its NIM, and give each line its problem."""
    facts = stage.facts()
    if facts.change is not None:  # everything is saved
        return
    if facts.purpose == "pilih":
        lines = stage.lines("kept")
        forms = {form for line in lines for form in selection.forms_of(line.nim)}
        stage.do("match", _matched(lines, students.stored(forms)))
    else:
        nims = stage.column("nims")
        stored = students.stored(nims)
        stage.do("note_stored", ((nim, *stored.get(nim, NOT_STORED)[1:]) for nim in nims))

    nims = stage.column("nims_without_near")
    keys = sorted({near_key(nim) for nim in nims} - {""})
    found = students.wait(students.store.reader(IMPORT).near(keys, NEAR_MAX_RECORDS))
    near = {near_key(nim): (nim, record.nama) for nim, record in students.stored(found).items()}
    stage.do("note_near", ((nim, *near.get(near_key(nim), ("", None))) for nim in nims))
    stage.do("settle_selection" if facts.purpose == "pilih" else "settle")


def choice_of(stage: Stage, form: FormTexts) -> Choice | None:
    """How a person reads each sheet; None if a sheet that is read has not one NIM."""
    given = {key: cell["kolom"] for key, cell in cells_of(form, ["kolom"]).items()}
    choice = []
    for sheet in stage.sheets():
        is_read = form[f"lembar.{sheet.id}"] == ["1"]
        parts = []
        for column in range(sheet.width):
            # The page may have shown the columns of other sheets only.
            part = given.get((sheet.id, column), sheet.columns.get(column))
            if part in columns.FIELD_OF:
                parts.append((column, part))
        if is_read and [columns.FIELD_OF[part] for _, part in parts].count("nim") != 1:
            return None
        choice.append((parts, is_read))
    return choice


def _typed_lines(stage: Stage, form: FormTexts) -> Iterator[Line]:
    """The lines whose texts in a form differ from those of the stage."""
    for key, texts in cells_of(form, FIELDS).items():
        for line in stage.lines("line", *key):
            typed = line._replace(**texts)
            if typed != line:
                yield _judged(typed)


def _save(stage: Stage, states: Sequence[State], students: Students) -> Alert | None:
    """Save the lines of these states, or remove their records, all or none. Do nothing if records have changed.

    The stage notes the change, so a second click leads to the same page. After a crash before that note, everything
    is stored already, so nothing is stored twice.
    """
    lines = [line for state in states for line in stage.lines("of_state", state, -1, 0)]
    if states == REMOVED:
        # Also records that were changed since, because their NIMs were confirmed.
        work = students.store.write_all("delete", removals=[line.nim for line in lines])
    else:
        writes = [Write(line.record, line.stored and digest(line.stored)) for line in lines]
        work = students.store.write_all("import", writes)
    try:
        change = students.wait(work)
    except Changed:
        return "changed"
    stage.do("finish", [(change or "",)])
    return None


def _matched(lines: Iterable[Line], stored: Mapping[str, Mahasiswa]) -> Iterator[Sequence[object]]:
    """Each line of a selection with the record of the stored NIM among its words. A NIM counts once."""
    seen: set[str] = set()
    for line in lines:
        record = stored.get(selection.nim_in(line.nim, stored))
        nim, *texts = record or (line.nim, None, None)
        nama = line.nama or (selection.name_in(line.nim) if nim != line.nim else "")
        yield nim, nama, "same" if nim in seen else "", *texts, *line[:2]
        seen.add(nim)


def _change_lines(stage: Stage, lines: Iterable[Line]) -> bool:
    return stage.do("change_line", ((*line[2:8], *line[:2]) for line in lines))


def _judged(line: Line) -> Line:
    """A line with new texts, which a person has not looked at yet."""
    return line._replace(**rules.judge(line.number, line[2:5])._asdict(), accepted="")


ACTS: Mapping[str, str] = {"benar": "accept", "lewati": "skip", "kembalikan": "take_back"}
"""The buttons that decide about lines, and the statements of stage.sql that do it.

A colon in the button's value precedes the problem of the lines, one line such as 0.15, or why they were skipped.
"""

REMOVED: Sequence[State] = ("ditemukan",)
SAVED: Mapping[str, Sequence[State]] = {
    "simpan": ("baru",),
    "perbarui": ("baru", "berubah"),
    "hapus": REMOVED,
}
"""The buttons that save lines or remove their records, and the states of these lines."""

REPAIRS: Mapping[str, Callable[[Line], Line]] = {
    "separators": lambda line: _judged(line._replace(nim=rules.bare_nim(line.nim) or line.nim)),
    "near": lambda line: _judged(line._replace(nim=line.near or line.nim)),
    # No rule looks at this address, so it is no doubt.
    "no_alamat": lambda line: line._replace(alamat=BLANK_ALAMAT),
}
"""The repairs of all lines with a problem."""

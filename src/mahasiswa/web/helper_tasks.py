"""The tasks of a helper process: previews of imports and selections, the changes that their buttons make, and workbooks."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.digits import whole_number
from mahasiswa.record import Mahasiswa, near_key
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets import selection as selections
from mahasiswa.sheets.row_questions import WITHOUT_HIDDEN
from mahasiswa.web.forms import parse_confirmation, parse_upload, utf8, utf8_bytes
from mahasiswa.web.helpers import PIECE_BYTES, in_messages
from mahasiswa.web.list_query import Printout
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_page import Alert, shown_missing
from mahasiswa.web.responses import compressed
from mahasiswa.work import groups, slices

ASKED_NIMS = 500  # maximum NIMs in one question for records
# Maximum length of the keys in one question for nearly equal NIMs. The database looks at all records for each question, and psycopg
# quotes the keys on the event loop.
ASKED_KEYS_MAX_CHARACTERS = 100_000

REPEATED_MAX_BYTES = 1 << 20
"""Maximum length of a pasted text that the page of an error shows again. A longer one is left out whole, because a
person who sends a part again would lose the other rows."""

Sent = Mapping[str, Sequence[str]]
"""The values of each field of a form. A field that was not sent has none.
`benar[]` has the answers to questions."""

Led = tuple[Mapping[str, object], Iterable[bytes]]
"""The head of the outcome of a task, and the parts of the outcome."""


@dataclass
class Task:
    """A task, its input, and the function that asks the worker."""

    head: Mapping[str, Any]
    given: Sequence[bytes]
    ask: Callable[..., Iterator[Any]]
    pages: Pages
    pasted: str = ""  # one character for each byte

    def find(self, nims: Sequence[str]) -> dict[str, Mahasiswa]:
        """The stored records with these NIMs, by NIM."""
        found: dict[str, Mahasiswa] = {}
        for asked in slices(nims, ASKED_NIMS):
            for row in self.ask("find", asked):
                found[row[0]] = Mahasiswa._make(row)
        return found

    def near(self, nims: Iterable[str]) -> list[Mahasiswa]:
        """Stored records with nearly these NIMs."""
        found: list[str] = []
        keys = sorted({near_key(nim) for nim in nims} - {""})
        for asked in groups(keys, len, ASKED_KEYS_MAX_CHARACTERS):
            found += [nim for (nim,) in self.ask("near", asked)]
        return sorted(self.find(found).values())

    @property
    def key(self) -> bytes:
        """The key that signs the fields of previews."""
        return bytes.fromhex(self.head["key"])

    def shown(self, response: Response) -> Led:
        """The page as an outcome."""
        takes_gzip = self.head["takes_gzip"]
        done = compressed(response, self.head["number"], takes_gzip=takes_gzip)
        head = {"status": done.status_code, "headers": dict(done.headers)}
        return head, slices(bytes(done.body), PIECE_BYTES)


def do(task: Task) -> Led:
    """Do a task. A file that cannot be read leads to a page that says so. Raise ProblemPage."""
    try:
        return TASKS[task.head["task"]](task)
    except sheets.SheetError as error:
        message = str(error)
        pasted = task.pasted
        if len(pasted) > REPEATED_MAX_BYTES:
            limit = wording.size(REPEATED_MAX_BYTES)
            message += f" {wording.PASTE_NOT_REPEATED.format(limit=limit)}"
            pasted = ""
        status = 413 if isinstance(error, sheets.TooBig) else 400
        purpose = task.head["purpose"]
        page = task.pages.upload_form(purpose, message, status, utf8(pasted))
        return task.shown(page)


def preview(task: Task) -> Led:
    """The selection of the records in a file or in a pasted text."""
    upload = parse_upload(b"".join(task.given), task.head["boundary"])
    task.pasted = pasted = upload.pasted
    if not upload.file and (not pasted or pasted.isspace()):
        raise sheets.SheetError(wording.NOTHING_CHOSEN["pilih"])
    choice = sheets.Choice(nim_only=True)
    opened: AbstractContextManager[sheets.Table]
    if upload.file:
        opened = sheets.read(upload.file, choice)
    else:
        opened = nullcontext(sheets.read_text(utf8_bytes(pasted), choice))
    with opened as table:
        return _selection_of(task, table)


def _selection_of(task: Task, table: sheets.Table) -> Led:
    """The selection of the NIMs in a column, or else of those in lines that are stored."""
    rows = list(table.rows)
    problem = sheets.problem_of(table.file.tables)
    if not problem:
        nims = selections.clean_nims(rows)
        return _selected(task, nims, unread_sheets=table.file.unread_sheets)
    lines = selections.lines_of(table.file.sheets)
    if not task.find(selections.nims_in(lines)):
        raise sheets.SheetError(problem)
    return _selected(task, lines, unread_sheets=table.file.other_sheets)


def preview_ticked(task: Task) -> Led:
    ticked = _confirmation(task)["nim[]"]
    if not ticked:
        raise sheets.SheetError(wording.NO_ROWS_TICKED)
    return _selected(task, selections.nims_of(map(unquote, ticked)))


def preview_found(task: Task) -> Led:
    """The records of a search, whose NIMs are the input."""
    nims = [nim for message in task.given for (nim,) in json.loads(message)]
    return _selected(task, selections.nims_of(nims))


def confirm(task: Task) -> Led:
    """The NIMs to remove or to export, or a preview of repairs or of open questions."""

    def nims(found: Sequence[str]) -> Led:
        return {}, in_messages((nim,) for nim in found)

    return _confirmed_selection(task, _confirmation(task), nims)


def print_selected(task: Task) -> Led:
    """The records of a selection on a page to print, or a preview of its repairs."""
    sent = _confirmation(task)

    def printed(nims: Sequence[str]) -> Led:
        stored = task.find(nims)
        records = [stored[nim] for nim in nims if nim in stored]
        texts = {name: values[-1] for name, values in sent.items() if values}
        data = "".join(sent["data"])
        page = task.pages.printed(records, Printout.of(texts), data)
        return task.shown(page)

    return _confirmed_selection(task, sent, printed)


def _confirmed_selection(task: Task, sent: Sent, act: Callable[[Sequence[str]], Led]) -> Led:
    """Act on the NIMs that a selection has shown as found; or a preview of new repairs, or of an open question."""
    data = "".join(sent["data"])
    found, missing, unread_sheets = selections.load_selection(data, task.key)
    shown = sorted(found + missing)
    typed = {number: nim for number, (nim,) in _inputs(sent, "nim[]").items()}
    leaves_hidden = WITHOUT_HIDDEN in sent["perbaiki[]"]
    kept = [row for row in shown if not (leaves_hidden and row.is_hidden)]
    repaired = selections.repaired_nims(kept, typed, _numbers(sent["lewati[]"]))
    ticks = sent["benar[]"]
    alert: Alert = "repaired" if repaired != shown else ""
    if alert or sent["periksa"]:
        return _selected(task, repaired, alert, ticks, unread_sheets=unread_sheets)
    questions = selections.questions_of(found)
    if task.head["writes"] and sheets.unanswered(questions, [row.number for row in found], ticks):
        return _selected(task, shown, "asked", ticks, unread_sheets=unread_sheets)
    return act([row.nim for row in found])


TASKS: Mapping[str, Callable[[Task], Led]] = {
    function.__name__: function
    for function in (
        preview,
        preview_ticked,
        preview_found,
        confirm,
        print_selected,
    )
}


def _confirmation(task: Task) -> Sent:
    return parse_confirmation(b"".join(task.given))


def _selected(
    task: Task,
    rows: Sequence[selections.NimRow],
    alert: Alert = "",
    ticks: Collection[str] = (),
    unread_sheets: Sequence[str] = (),
) -> Led:
    """The page of a selection. The task has a query if the hits of a search are selected."""
    existing, near = _existing_and_near(task, selections.nims_in(rows))
    found = selections.select(rows, existing, near)._replace(unread_sheets=unread_sheets)
    shown = {
        "selection": found,
        "questions": selections.questions_of(row for row, _ in found.found),
        "data": selections.dump_selection(found, task.key),
        "missing": shown_missing(found),
        "ticks": ticks,
        "query": task.head.get("query", ""),
        "sheet_rows": sheets.SHEET_ROWS,
    }
    pages = task.pages
    page = pages.page("selection.html", 200, pages.not_stored, alert=alert, **shown)
    return task.shown(page)


def _existing_and_near(
    task: Task, nims: Sequence[str]
) -> tuple[dict[str, Mahasiswa], Sequence[Mahasiswa]]:
    """The records with these NIMs, and those near the other NIMs."""
    existing = task.find(nims)
    return existing, task.near(nim for nim in nims if nim not in existing)


def _inputs(sent: Sent, *names: str) -> Mapping[int, Sequence[str]]:
    """The texts of the inputs with these names, by the number of the row."""
    columns = [sent[name] for name in names]
    rows = zip(sent["baris[]"], *columns, strict=False)
    return {number: texts for row, *texts in rows for number in _numbers([row])}


def _numbers(texts: Iterable[str]) -> set[int]:
    """The numbers of rows in a field that is sent several times."""
    return {number for text in texts if (number := whole_number(text)) is not None}

"""The tasks of a helper process: previews of imports and selections, the changes that their buttons make, and workbooks."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.digits import whole_number
from mahasiswa.record import FIELDS, Field, Mahasiswa, near_key
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets import selection as selections
from mahasiswa.sheets.limits import KEY_CHARACTERS
from mahasiswa.sheets.row_questions import WITHOUT_HIDDEN
from mahasiswa.web.forms import parse_confirmation, parse_upload, utf8, utf8_bytes
from mahasiswa.web.helpers import PIECE_BYTES, in_messages
from mahasiswa.web.list_query import Printout
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_page import Alert, PreviewPage, shown_missing
from mahasiswa.web.responses import compressed
from mahasiswa.work import groups, slices

REST_NAME = "baris-yang-dilewati.xlsx"
ALL_LOST_ZEROS = "nol"  # the value of the button that restores the zeros of all NIMs
ABSENTEES_MAX_ROWS = 1000  # records that are listed because the file lacks them
ASKED_NIMS = 500  # maximum NIMs in one question for records
# Maximum length of the keys in one question for nearly equal NIMs. The database looks at all records for each question, and psycopg
# quotes the keys on the event loop.
ASKED_KEYS_MAX_CHARACTERS = 100_000

REPEATED_MAX_BYTES = 1 << 20
"""Maximum length of a pasted text that the page of an error shows again. A longer one is left out whole, because a
person who sends a part again would lose the other rows."""

# The name of a select. Two digits are enough for MAX_TITLES.
_is_column = re.compile(
    rf"kolom-(?P<key>[0-9a-f]{{{KEY_CHARACTERS}}})-(?P<number>[0-9]{{1,2}})"
).fullmatch

Sent = Mapping[str, Sequence[str]]
"""The values of each field of a form. A field that was not sent has none.

The form of an import's preview has these fields, among others. `periksa` names a part and the index of its first shown
row, such as `baru-500`. `pakai[]` has the rows whose NIM is replaced by a similar stored NIM, or ALL_LOST_ZEROS.
`benar[]` has the answers to questions.
"""

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

    def absentees(self, in_file: Collection[str], most: int) -> list[str]:
        """The first stored NIMs that the file lacks. Their records may have long texts, so they are not kept."""
        found: list[str] = []
        last: str | None = None
        while len(found) < most and (nims := [nim for (nim,) in self.ask("after", last)]):
            found += [nim for nim in nims if nim not in in_file]
            last = nims[-1]
        return found[:most]

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
    """The preview of a file or of a pasted text: of an import, or of a selection."""
    body = b"".join(task.given)
    upload = parse_upload(body, task.head["boundary"])
    task.pasted = pasted = upload.pasted
    purpose = task.head["purpose"]
    if not upload.file and (not pasted or pasted.isspace()):
        raise sheets.SheetError(wording.NOTHING_CHOSEN[purpose])
    names = upload.texts.get("lembar", ())
    choice = _chosen(upload.texts, names, nim_only=purpose == "pilih")
    opened: AbstractContextManager[sheets.Table]
    if upload.file:
        opened = sheets.read(upload.file, choice)
    else:
        opened = nullcontext(sheets.read_text(utf8_bytes(pasted), choice))
    with opened as table:
        if purpose == "pilih":
            return _selection_of(task, table)
        name = upload.name[: sheets.NAME_MAX_CHARACTERS]
        cleaned = sheets.clean_table(table, name, choice.columns)
        return _import_preview(task, cleaned, defaultdict(list))


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
    """The changes of a button, or a preview of new repairs, of other changes than were shown, or of open questions."""
    is_import = task.head["purpose"] == "impor"
    return _confirm_import(task) if is_import else _confirm_selection(task)


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


def _confirm_import(task: Task) -> Led:
    sent = _confirmation(task)
    alert, cleaned = _repaired(sent, task.key)
    opened, meant = sent["periksa"], sent["pakai[]"]
    if opened == ["belum"]:
        return _rest(task, cleaned)
    if opened and not meant:
        return _import_preview(task, cleaned, sent, alert)
    if alert or meant or cleaned.columns_problem:
        return _import_preview(task, cleaned, sent, alert or "repaired")
    return _import(task, cleaned, sent)


def _import(task: Task, cleaned: sheets.CleanedFile, sent: Sent) -> Led:
    """The changes of the button to save; or a preview if records have changed since, or a question is open."""
    plan = sheets.compare(cleaned, task.find(cleaned.nims()))
    updates = sent["ada"][-1:] == ["perbarui"]
    writes = sheets.confirmed_writes(cleaned.file, plan, update=updates)
    if writes is None or task.head["has_changed"]:
        return _import_preview(task, cleaned, sent, "changed")
    changed = plan.changed if updates else []
    written = {row.number for row in plan.new + changed}
    of_file = sheets.questions_of(cleaned) if cleaned.file.has_questions else []
    questions = [*of_file, *plan.questions]
    if writes and sheets.unanswered(questions, written, sent["benar[]"]):
        return _import_preview(task, cleaned, sent, "asked")
    return {}, in_messages((*record, expected) for record, expected in writes)


def _rest(task: Task, cleaned: sheets.CleanedFile) -> Led:
    """The rows that no button writes, as a workbook, so that a person can repair them later."""
    plan = sheets.compare(cleaned, task.find(cleaned.nims()))
    rows = [(*row.cells, row.problem) for row in plan.wrong]
    headers = task.pages.download_headers(REST_NAME)
    media_type = sheets.EXPORTS[".xlsx"].media_type
    workbook = sheets.rest_as_xlsx(rows)
    return task.shown(Response(workbook, 200, headers, media_type))


def _confirm_selection(task: Task) -> Led:
    """The NIMs to remove or to export, or a preview of repairs, of open questions, or of the records that a file lacks."""
    sent = _confirmation(task)
    if sent["periksa"][-1:] == ["sisa"]:
        alert, cleaned = _repaired(sent, task.key)
        if alert or not cleaned.has_all_rows():
            return _import_preview(task, cleaned, sent, alert)
        nims = task.absentees(set(cleaned.nims()), sheets.UPLOAD_MAX_ROWS)
        return _selected(task, selections.nims_of(nims))
    return _confirmed_selection(task, sent, _nims)


def _nims(nims: Sequence[str]) -> Led:
    return {}, in_messages((nim,) for nim in nims)


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


def _import_preview(task: Task, cleaned: sheets.CleanedFile, sent: Sent, alert: Alert = "") -> Led:
    """The preview of these rows after a button was pressed."""
    nims = cleaned.nims()
    stored, near = _existing_and_near(task, nims)
    plan = sheets.compare(cleaned, stored, near)
    if meant := sent["pakai[]"]:
        cleaned = _as_meant(cleaned, plan, meant)
        stored |= {record.nim: record for record in near}
        plan = sheets.compare(cleaned, stored, near)

    part, _, start = "".join(sent["periksa"][-1:]).partition("-")
    (total,) = task.ask("total")
    questions = sheets.questions_of(cleaned)
    file = sheets.with_shown_changes(cleaned.file, plan, has_questions=bool(questions))
    preview = PreviewPage(
        file,
        cleaned,
        plan,
        questions,
        sheets.dump(file, task.key),
        absent=total - len(stored.keys() & cleaned.nims()),
        total=total,
        absentees=_absentees(task, nims) if part == "sisa" else [],
        opened=part,
        start=whole_number(start) or 0,
        alert=alert,
        ticks=sent["benar[]"],
    )
    return task.shown(task.pages.preview(preview))


def _absentees(task: Task, nims: Sequence[str]) -> Sequence[Mahasiswa]:
    """The first stored records whose NIM is not among these."""
    absent = task.absentees(set(nims), ABSENTEES_MAX_ROWS)
    return sorted(task.find(absent).values())


def _as_meant(
    cleaned: sheets.CleanedFile, plan: sheets.ImportPlan, rows: Sequence[str]
) -> sheets.CleanedFile:
    """The file with the NIMs that are stored in place of the similar ones in these rows."""
    numbers = _numbers(rows)
    typed = dict(cleaned.file.typed)
    for row in plan.new:
        has_lost_zeros = ALL_LOST_ZEROS in rows and wording.LOST_ZEROS in row.notices
        if row.near and (has_lost_zeros or row.number in numbers):
            _, *texts = typed.get(row.number, (None, None, None))
            typed[row.number] = (row.near.nim, *texts)
    return sheets.clean_again(cleaned.file._replace(typed=typed))


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


def _repaired(sent: Sent, key: bytes) -> tuple[Alert, sheets.CleanedFile]:
    """The rows of a preview's form with its repairs, and whether there are any. Raise SheetError."""
    carried = sheets.load("".join(sent["data"]), key)
    cleaned = sheets.clean_again(carried)
    file = cleaned.file
    names = sent["lembar"]
    if sent["semua"]:
        names = [sheet.name for sheet in file.sheets]
    choice = _chosen(sent, names)
    accepted = _numbers(sent["benar[]"])
    left_out = dict.fromkeys(_numbers(sent["lewati[]"]), sheets.LEFT_OUT)
    typed = {**_inputs(sent, "nim[]", "nama[]", "alamat[]"), **left_out}
    fills_alamat = bool(sent["isi"])
    repaired = sheets.repaired(
        cleaned, choice, typed, accepted, sent["perbaiki[]"], fills_alamat=fills_alamat
    )
    return ("", cleaned) if repaired == file else ("repaired", sheets.clean_again(repaired))


def _inputs(sent: Sent, *names: str) -> Mapping[int, Sequence[str]]:
    """The texts of the inputs with these names, by the number of the row."""
    columns = [sent[name] for name in names]
    rows = zip(sent["baris[]"], *columns, strict=False)
    return {number: texts for row, *texts in rows for number in _numbers([row])}


def _chosen(sent: Sent, names: Sequence[str], *, nim_only: bool = False) -> sheets.Choice:
    """The sheets and the columns that a person has chosen: a field `kolom-KEY-N` for column N of the tables with a key."""
    chosen: dict[str, dict[int, Field]] = {}
    for name, values in sent.items():
        if column := _is_column(name):
            roles = chosen.setdefault(column["key"], {})
            number = int(column["number"])
            roles.update((number, field) for field in FIELDS if field == values[-1])
    return sheets.Choice(names, chosen, nim_only)


def _numbers(texts: Iterable[str]) -> set[int]:
    """The numbers of rows in a field that is sent several times."""
    return {number for text in texts if (number := whole_number(text)) is not None}

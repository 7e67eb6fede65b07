"""Import of spreadsheets, with a preview that writes nothing."""

from collections.abc import Mapping, Sequence
from functools import partial
from threading import Event
from typing import BinaryIO

from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa, Write
from mahasiswa.store import Query, Reader, Store
from mahasiswa.store.errors import Changed, Refused, Unavailable, Uncertain
from mahasiswa.web.failures import problem_of_failed_write
from mahasiswa.web.forms import read_large_form
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_view import Alert, PreviewView
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.uploads import NEAR_MAX_RECORDS, read_table, read_upload
from mahasiswa.work import IMPORT, Busy

NUMBER_MAX_DIGITS = 9

LOST_ZEROS = "nol"
"""The value of the button that restores the zeros of all NIMs."""

ABSENTEES_MAX_ROWS = 1000
"""Maximum records that are listed because the file lacks them."""

FIELDS = (
    "data", "ada", "periksa", "lembar", "kolom[]", "baris[]", "nim[]", "nama[]", "alamat[]", "benar[]", "lewati[]",
    "pakai[]", "isi",
)  # fmt: skip
"""The fields of a preview's form. Those with brackets are sent several times, in the order of the page."""


async def choose(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return await pages.empty_import_form.respond(request.scope, request.limits.slots)


async def preview(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: a preview of the changes. Nothing is written or kept."""
    async with read_upload(request) as upload:
        choice = _choice(upload.texts.get("lembar", ()), upload.texts.get("kolom[]", ()))
        try:
            read_file = partial(_read_file, upload.name[: sheets.NAME_MAX_CHARACTERS], choice)
            cleaned = await read_table(request, upload, read_file, _read_pasted)
            if cleaned is None:
                return pages.import_form(wording.NOTHING_CHOSEN)
            return await request.while_connected(_preview(request, store, pages, cleaned))
        except sheets.SheetError as error:
            return pages.import_form(*upload.refusal(error))


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write the rows of the preview, all or none; or preview them again, repaired.

    If the form has a repair that no preview has shown yet, the answer is a new preview.
    """
    sent = await read_large_form(request, FIELDS, sheets.MAX_CONFIRMED_BYTES, "confirmation too large", IMPORT)
    try:
        alert, cleaned = await request.limits.slots.run(IMPORT, partial(_read_sent, sent))
        opened = sent["periksa"][-1] if sent["periksa"] else ""
        if alert or opened or cleaned.columns_problem or sent["pakai[]"]:
            alert = "" if opened else alert or "chosen"
            again = _preview(request, store, pages, cleaned, opened=opened, alert=alert, meant=sent["pakai[]"])
            return await request.while_connected(again)
        if not await _write(request, store, cleaned, update=sent["ada"][-1:] == ["perbarui"]):
            return await _preview(request, store, pages, cleaned, alert="changed")
    except sheets.SheetError as error:
        return pages.import_form(str(error), 400)
    except Refused:
        return pages.import_form(wording.CONFIRMATION_DAMAGED, 400)
    except (Unavailable, Uncertain, Busy) as error:
        return pages.error(problem_of_failed_write(error))
    return pages.redirect


def _read_file(name: str, choice: sheets.Choice, file: BinaryIO, stop: Event) -> sheets.CleanedFile:
    with sheets.read(file, sheets.WEB, stop, choice) as table:
        return sheets.clean_table(table, name)


def _read_pasted(text: str, stop: Event) -> sheets.CleanedFile:
    return sheets.clean_table(sheets.read_text(text, sheets.WEB, stop), "")


def _read_sent(sent: Mapping[str, Sequence[str]]) -> tuple[Alert, sheets.CleanedFile]:
    """Read the form of a preview. Return the kind of repairs in it, if there are any, and the rows with them."""
    # A field that was sent twice did not come from the preview.
    file = sheets.load(sent["data"][0] if len(sent["data"]) == 1 else "")
    cleaned = sheets.clean_again(file)
    texts = zip(sent["baris[]"], sent["nim[]"], sent["nama[]"], sent["alamat[]"], strict=False)
    repairs = sheets.Repairs(
        _choice(sent["lembar"], sent["kolom[]"]),
        {number: (nim, nama, alamat) for row, nim, nama, alamat in texts for number in _numbers([row])},
        _numbers(sent["benar[]"]),
        _numbers(sent["lewati[]"]),
        fills_alamat=bool(sent["isi"]),
    )
    repaired = sheets.repaired(cleaned, repairs)
    if repaired.repairs() == file.repairs():
        return "", cleaned
    is_typed = (repaired.typed, repaired.accepted) != (file.typed, file.accepted)
    return "repaired" if is_typed else "chosen", sheets.clean_again(repaired)


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
    return True


def _choice(names: Sequence[object], columns: Sequence[object]) -> sheets.Choice:
    """The sheets and the columns that a person has chosen. An invalid choice counts as none."""
    chosen = [name for name in names if isinstance(name, str) and len(name) <= sheets.NAME_MAX_CHARACTERS]
    if len(columns) != len(wording.HEADER):
        return sheets.Choice(chosen)
    nim, nama, alamat = (int(str(column)) if _is_number(str(column)) else None for column in columns)
    if any(column is not None and column >= sheets.MAX_TITLES for column in (nim, nama, alamat)):
        return sheets.Choice(chosen)
    return sheets.Choice(chosen, (nim, nama, alamat))


def _numbers(texts: Sequence[str]) -> set[int]:
    return {int(text) for text in texts if _is_number(text)}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= NUMBER_MAX_DIGITS


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

    `meant` are the rows whose NIM is replaced by the similar one that is stored, or LOST_ZEROS.
    """
    part, _, start = opened.partition("-")
    nims = sheets.nims(cleaned)
    reader = store.reader(IMPORT)
    existing = dict(await reader.find(nims))
    new = sheets.near_nims(cleaned.results, existing)
    near = await reader.near(new, NEAR_MAX_RECORDS) if new else ()
    total = (await reader.search(Query(), 0, 0)).total
    absentees = await _absentees(reader, set(nims)) if part == "sisa" else []

    def render() -> Response:
        shown, plan = cleaned, sheets.compare(cleaned, existing, near)
        if meant:
            rows = None if LOST_ZEROS in meant else _numbers(meant)
            shown = sheets.clean_again(sheets.with_stored_nims(cleaned, plan, rows))
            existing.update((record.nim, record) for record in near)
            plan = sheets.compare(shown, existing, near)
        file, data = sheets.dump(shown._replace(file=sheets.with_shown_changes(shown.file, plan)))
        view = PreviewView(
            shown._replace(file=file),
            plan,
            data,
            absent=total - len(existing.keys() & sheets.nims(shown)),
            absentees=absentees,
            opened=part,
            start=int(start) if _is_number(start) else 0,
            alert=alert,
        )
        return pages.preview(view)

    return await rendered_in_thread(request, IMPORT, render)


async def _absentees(reader: Reader, in_file: set[str]) -> list[Mahasiswa]:
    """The first stored records that the file lacks. Besides them it reads at most as many records as the file has rows."""
    found: list[Mahasiswa] = []
    last: str | None = None
    while len(found) < ABSENTEES_MAX_ROWS and (chunk := await reader.after(last, ABSENTEES_MAX_ROWS)):
        found += [record for record in chunk if record.nim not in in_file]
        last = chunk[-1].nim
    return found[:ABSENTEES_MAX_ROWS]

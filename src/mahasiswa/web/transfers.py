"""Import of spreadsheets, with a preview that writes nothing, and export."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from threading import Event
from typing import BinaryIO, TypeVar

from starlette.datastructures import UploadFile
from starlette.responses import Response, StreamingResponse

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa, Write
from mahasiswa.store import Query, Store
from mahasiswa.store.errors import Changed, Refused, Unavailable, Uncertain
from mahasiswa.store.threads import in_thread
from mahasiswa.web.forms import read_large_form, read_upload
from mahasiswa.web.list_view import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_view import Alert, PreviewView
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread, sent_and_closed, unsent_file
from mahasiswa.web.students import unsaved
from mahasiswa.work import EXPORT, IMPORT, WORKBOOK, Busy, Kind

Item = TypeVar("Item")

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

FILENAME_MAX_CHARACTERS = 255

NUMBER_MAX_DIGITS = 9

NEAR_MAX_RECORDS = 20_000
"""Maximum records that are compared with unknown NIMs because their NIM looks the same."""

ABSENTEES_MAX_ROWS = 1000
"""Maximum records that are listed because the file lacks them."""

FIELDS = ("data", "ada", "periksa", "lembar", "kolom[]", "baris[]", "nim[]", "nama[]", "alamat[]", "benar[]")
"""The fields of a preview's form. Those with brackets are sent several times, in the order of the page."""


async def choose(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return await pages.empty_import_form.respond(request.scope, request.limits.slots)


async def preview(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: a preview of the changes. Nothing is written or kept."""
    async with read_upload(request, sheets.UPLOAD_MAX_BYTES) as form:
        file, field = form.get("berkas"), form.get("tempel")
        pasted = field if isinstance(field, str) else ""
        choice = _choice(form.getlist("lembar"), form.getlist("kolom[]"))
        try:
            if isinstance(file, UploadFile) and file.filename:
                name = file.filename[:FILENAME_MAX_CHARACTERS]
                reading = await read_upload_in_thread(request, file, partial(_read_file, name, choice))
            elif pasted.strip():
                reading = await read_in_thread(request, IMPORT, partial(_read_pasted, pasted))
            else:
                return pages.import_form(wording.NOTHING_CHOSEN)
            return await request.while_connected(_preview(request, store, pages, reading))
        except sheets.SheetError as error:
            return pages.import_form(str(error), 413 if isinstance(error, sheets.TooBig) else 400, pasted)


async def confirm(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write the rows of the preview, all or none; or preview them again, repaired.

    If the form has a repair that no preview has shown yet, the answer is a new preview.
    """
    run = request.limits.slots.run
    sent = await read_large_form(request, FIELDS, sheets.MAX_CONFIRMED_BYTES, "confirmation too large", IMPORT)
    try:
        is_repaired, reading = await run(IMPORT, partial(_read_sent, sent))
        opened = sent["periksa"][-1] if sent["periksa"] else ""
        if is_repaired or opened or reading.unclear:
            alert: Alert = "" if opened else "unseen"
            again = _preview(request, store, pages, reading, opened=opened, alert=alert)
            return await request.while_connected(again)
        if not await _write(request, store, reading, update=sent["ada"][-1:] == ["perbarui"]):
            return await _preview(request, store, pages, reading, alert="changed")
    except sheets.SheetError as error:
        return pages.import_form(str(error), 400)
    except Refused:
        return pages.import_form(wording.CONFIRMATION_DAMAGED, 400)
    except (Unavailable, Uncertain, Busy) as error:
        return pages.error(unsaved(error))
    return pages.redirect


async def read_upload_in_thread(request: Request, upload: UploadFile, read: Callable[[BinaryIO, Event], Item]) -> Item:
    """Call `read` with an uploaded file in a thread of its kind. See `read_in_thread`."""
    kind = WORKBOOK if sheets.is_workbook(upload.file) else IMPORT
    return await read_in_thread(request, kind, partial(read, upload.file))


async def read_in_thread(request: Request, kind: Kind, read: Callable[[Event], Item]) -> Item:
    """Call `read` in a thread of this kind; raise Busy. If the client disconnects, the event is set."""
    stop = Event()
    return await request.while_connected(request.limits.slots.run(kind, partial(read, stop), stop))


async def template(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/templat.xlsx: an empty table that passes its own import."""

    async def fill(file: BinaryIO) -> None:
        await request.limits.slots.run(EXPORT, partial(sheets.write_template, file))

    return await _download(request, pages, "templat-mahasiswa.xlsx", fill)


async def export_xlsx(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.xlsx: all records, or those of a search, with every cell as text."""
    return await _export(request, pages, "mahasiswa.xlsx", store.chunks, sheets.write_xlsx)


async def export_csv(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.csv: the same as CSV that an Indonesian Excel opens."""
    return await _export(request, pages, "mahasiswa.csv", store.chunks, sheets.write_csv)


def _read_file(name: str, choice: sheets.Choice, file: BinaryIO, stop: Event) -> sheets.Reading:
    with sheets.read(file, sheets.WEB, stop, choice) as table:
        return sheets.first_reading(table, name)


def _read_pasted(text: str, stop: Event) -> sheets.Reading:
    return sheets.first_reading(sheets.read_text(text, sheets.WEB, stop), "")


def _read_sent(sent: Mapping[str, Sequence[str]]) -> tuple[bool, sheets.Reading]:
    """Read the form of a preview. Return whether a person has repaired something, and the rows with the repairs."""
    # A field that was sent twice did not come from the preview.
    book = sheets.load(sent["data"][0] if len(sent["data"]) == 1 else "")
    reading = sheets.read_again(book)
    typed = {
        int(row): (nim, nama, alamat)
        for row, nim, nama, alamat in zip(
            sent["baris[]"], sent["nim[]"], sent["nama[]"], sent["alamat[]"], strict=False
        )
        if _is_number(row)
    }
    ticked = {int(row) for row in sent["benar[]"] if _is_number(row)}
    repaired = sheets.repaired(reading, _choice(sent["lembar"], sent["kolom[]"]), typed, ticked)
    if repaired.state() == book.state():
        return False, reading
    return True, sheets.read_again(repaired)


async def _write(request: Request, store: Store, reading: sheets.Reading, *, update: bool) -> bool:
    """Write the changes that the preview showed. Return False, with nothing written, if a record has changed since."""
    existing = await store.find(sheets.nims(reading.answers))

    def changes() -> list[Write] | None:
        plan = sheets.compare(reading.answers, existing, accepted=reading.book.accepted)
        return sheets.writes(reading.book, plan, update=update)

    writes = await request.limits.slots.run(IMPORT, changes)
    if writes is None:
        return False
    try:
        await store.write_all(writes)
    except Changed:
        return False
    return True


def _choice(sheet: Sequence[object], places: Sequence[object]) -> sheets.Choice:
    """The sheet and the columns that a person has chosen. An invalid choice counts as none."""
    name = sheet[0] if sheet and isinstance(sheet[0], str) and len(sheet[0]) <= FILENAME_MAX_CHARACTERS else None
    if name and "\0" in name:
        name = None
    if len(places) != len(wording.HEADER):
        return sheets.Choice(name)
    nim, nama, alamat = (int(str(place)) if _is_number(str(place)) else None for place in places)
    if any(place is not None and place >= sheets.MAX_TITLES for place in (nim, nama, alamat)):
        return sheets.Choice(name)
    return sheets.Choice(name, (nim, nama, alamat))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= NUMBER_MAX_DIGITS


async def _preview(
    request: Request, store: Store, pages: Pages, reading: sheets.Reading, *, opened: str = "", alert: Alert = ""
) -> Response:
    """The preview of these rows. `opened` names the part that is shown with all its rows."""
    nims = sheets.nims(reading.answers)
    existing = await store.find(nims)
    new = sheets.near_nims(reading.answers, existing)
    near = await store.near(new, NEAR_MAX_RECORDS) if new else ()
    absent = await store.count(Query()) - len(existing)
    absentees = await _absentees(store, set(nims)) if opened == "sisa" else []

    def render() -> Response:
        plan = sheets.compare(reading.answers, existing, near, reading.book.accepted)
        book, data = sheets.dump(reading._replace(book=sheets.shown(reading.book, plan)))
        view = PreviewView(reading._replace(book=book), plan, data)
        view.absent, view.absentees, view.opened, view.alert = absent, absentees, opened, alert
        return pages.preview(view)

    return await rendered_in_thread(request, IMPORT, render)


async def _absentees(store: Store, in_file: set[str]) -> list[Mahasiswa]:
    """The first stored records that the file lacks. Besides them it reads at most as many records as the file has rows."""
    found: list[Mahasiswa] = []
    last: str | None = None
    while len(found) < ABSENTEES_MAX_ROWS and (chunk := await store.after(last, ABSENTEES_MAX_ROWS)):
        found += [record for record in chunk if record.nim not in in_file]
        last = chunk[-1].nim
    return found[:ABSENTEES_MAX_ROWS]


async def _export(
    request: Request,
    pages: Pages,
    name: str,
    chunks: Callable[[Query], AsyncGenerator[Sequence[Item]]],
    write: Callable[[Iterator[Item], BinaryIO], None],
) -> Response:
    query = query_of(request.query_params)

    async def fill(file: BinaryIO) -> None:
        await in_thread(chunks(query), lambda records: write(records, file))

    try:
        return await _download(request, pages, name, fill)
    except sheets.NotCarried as error:
        return pages.error("not carried", text=str(error))


async def _download(
    request: Request, pages: Pages, name: str, fill: Callable[[BinaryIO], Coroutine[None, None, None]]
) -> Response:
    """Answer with a file. It is complete before its first byte is sent, so no transaction waits for a slow client."""
    headers = {**pages.headers, **pages.not_stored, "content-disposition": f'attachment; filename="{name}"'}
    media_type = "text/csv" if name.endswith(".csv") else XLSX
    if request.method == "HEAD":
        return pages.head(media_type, headers)
    with unsent_file() as file:
        await request.while_connected(fill(file))
        headers["content-length"] = str(file.tell())
    return StreamingResponse(sent_and_closed(file), headers=headers, media_type=media_type)

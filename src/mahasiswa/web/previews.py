"""Import and bulk delete: a preview of a file or of NIMs, which writes nothing, and the confirmation that writes all of it."""

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, islice, repeat
from threading import Event
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.digits import whole_number
from mahasiswa.record import Mahasiswa, Write
from mahasiswa.sheets import public as sheets
from mahasiswa.store import Query, Reader, Store
from mahasiswa.store.reader import size_with
from mahasiswa.store.store_errors import Changed, Refused
from mahasiswa.store.threads import in_thread
from mahasiswa.web.forms import read_confirmation, read_upload, utf8, utf8_bytes
from mahasiswa.web.list_query import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_view import MAX_REPAIRED_ROWS, REPAIRED_MAX_BYTES, Alert, PreviewView
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.routes import Purpose
from mahasiswa.work import IMPORT, WORKBOOK

ALL_LOST_ZEROS = "nol"  # the value of the button that restores the zeros of all NIMs
ABSENTEES_MAX_ROWS = 1000  # records that are listed because the file lacks them
NEAR_MAX_RECORDS = 20_000  # stored records that are compared with unknown NIMs because their NIM looks the same
CHUNK_RECORDS = 1000

REPEATED_MAX_BYTES = 1 << 20
"""Maximum length of a pasted text that the page of an error shows again. A longer one is left out whole, because a
person who sends a part again would lose the other rows."""


async def choose_import(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return await pages.empty_form("impor").respond(request.scope, request.limits.slots)


async def preview_import(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: a preview of the changes. Nothing is written or kept."""
    return await _preview_of_upload(request, pages, "impor", partial(_import_preview, request, store, pages))


async def confirm_import(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write the rows of the preview, all or none; or preview them again, repaired.

    If the form has a repair that no preview has shown yet, the answer is a new preview.
    """
    sent, alert, cleaned = await _read_preview(request)
    opened = sent["periksa"][-1] if sent["periksa"] else ""
    if alert or opened or cleaned.columns_problem or sent["pakai[]"]:
        alert = alert or ("chosen" if sent["pakai[]"] or not opened else "")
        again = _import_preview(request, store, pages, cleaned, opened=opened, alert=alert, meant=sent["pakai[]"])
        return await request.while_connected(again)
    existing = await store.reader(IMPORT).find(sheets.nims(cleaned))

    def changes() -> list[Write]:
        plan = sheets.compare(cleaned, existing)
        writes = sheets.confirmed_writes(cleaned.file, plan, update=sent["ada"][-1:] == ["perbarui"])
        if writes is None:
            raise Changed
        return writes

    try:
        await store.write_all("import", await request.limits.slots.run(IMPORT, changes))
    except Changed:  # a record has changed since the preview, so nothing is written
        return await _import_preview(request, store, pages, cleaned, alert="changed")
    except Refused:
        raise sheets.SheetError(wording.CONFIRMATION_DAMAGED) from None
    return pages.redirect


async def choose_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/hapus: the page to paste NIMs or to choose a file; with a search, the preview of its records."""
    query = query_of(request.query_params)
    if not query.cari:
        return await pages.empty_form("hapus").respond(request.scope, request.limits.slots)

    def first_nims(records: Iterator[Mahasiswa]) -> list[str]:
        return [record.nim for record in islice(records, sheets.UPLOAD_MAX_ROWS + 1)]

    nims = await in_thread(store.reader(IMPORT).chunks(query), first_nims)
    if len(nims) > sheets.UPLOAD_MAX_ROWS:
        raise sheets.SheetError(wording.TOO_MANY_FOUND.format(limit=wording.number(sheets.UPLOAD_MAX_ROWS)))
    return await _deletion_preview(request, store, pages, sheets.file_of_nims(nims))


async def preview_ticked(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/pilihan: the preview of the rows that a person has ticked on a page of the list."""
    ticked = (await read_confirmation(request))["nim[]"]
    if not ticked:
        raise sheets.SheetError(wording.NO_ROWS_TICKED)
    file = sheets.file_of_nims(map(unquote, ticked))
    return await request.while_connected(_deletion_preview(request, store, pages, file))


async def preview_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus: the records with these NIMs, and the NIMs without a record. Nothing is written or kept."""
    return await _preview_of_upload(request, pages, "hapus", partial(_deletion_preview, request, store, pages))


async def confirm_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/simpan: remove the records of the preview, all or none; or preview them again, repaired.

    A record that was changed since the preview is removed too, because the NIM was confirmed. A record that was removed
    since is left out, so a second click changes nothing. The preview of an import leads here to remove the records that
    its file lacks.
    """
    sent, alert, cleaned = await _read_preview(request)
    if sent["periksa"][-1:] == ["sisa"]:
        others = await _absentees(store.reader(IMPORT), set(sheets.nims(cleaned)), sheets.UPLOAD_MAX_ROWS)
        cleaned, alert = sheets.file_of_nims(record.nim for record in others), ""
    elif not alert and not sent["periksa"]:
        shown = set(cleaned.file.new)
        cells = await request.limits.slots.run(IMPORT, partial(sheets.clean_nims, cleaned.rows))
        nims = [cell.nim for cell in cells if cell.number in shown and not cell.problem]
        await store.write_all("delete", removals=nims)
        return pages.redirect
    return await request.while_connected(_deletion_preview(request, store, pages, cleaned, alert))


async def _preview_of_upload(
    request: Request,
    pages: Pages,
    purpose: Purpose,
    preview: Callable[[sheets.CleanedFile], Coroutine[Any, Any, Response]],
) -> Response:
    """Read the file of an upload, or else its pasted text, in a thread, and show its preview.

    If it cannot be read, show the form again with the reason and the pasted text.
    """
    async with read_upload(request) as (file, pasted, texts):
        if not file and (not pasted or pasted.isspace()):
            raise sheets.SheetError(wording.NOTHING_CHOSEN[purpose])
        choice = _chosen(texts.get("lembar", ()), texts.get("kolom[]", ()), nim_only=purpose == "hapus")
        stop = Event()

        def read() -> sheets.CleanedFile:
            if not file:
                return sheets.clean_table(sheets.read_text(utf8_bytes(pasted), sheets.WEB, stop, choice), "")
            name = utf8(file.filename or "")[: sheets.NAME_MAX_CHARACTERS]
            with sheets.read(file.file, sheets.WEB, stop, choice) as table:
                return sheets.clean_table(table, name)

        kind = WORKBOOK if file and sheets.kind_of(file.file) else IMPORT
        try:
            cleaned = await request.while_connected(request.limits.slots.run(kind, read, stop))
            return await request.while_connected(preview(cleaned))
        except sheets.SheetError as error:
            status = 413 if isinstance(error, sheets.TooBig) else 400
            if len(pasted) <= REPEATED_MAX_BYTES:
                return pages.upload_form(purpose, str(error), status, utf8(pasted))
            not_repeated = wording.PASTE_NOT_REPEATED.format(limit=wording.size(REPEATED_MAX_BYTES))
            return pages.upload_form(purpose, f"{error} {not_repeated}", status)


async def _import_preview(
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
    existing, near = await _existing_and_near(request, reader, nims)
    total = (await reader.search(Query(), 0, 0)).total
    others = await _absentees(reader, set(nims), ABSENTEES_MAX_ROWS) if part == "sisa" else []

    def render() -> Response:
        shown, plan, stored = cleaned, sheets.compare(cleaned, existing, near), existing
        if meant:
            rows = None if ALL_LOST_ZEROS in meant else _numbers(meant)
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
        if shown.columns_problem:
            return pages.upload_form("impor", shown.columns_problem, view=view)
        status = 409 if alert == "changed" else 200
        return pages.page("preview.html", status, pages.not_stored, view=view, row_name=sheets.row_name)

    return await rendered_in_thread(request, IMPORT, render)


async def _deletion_preview(
    request: Request, store: Store, pages: Pages, cleaned: sheets.CleanedFile, alert: Alert = ""
) -> Response:
    if cleaned.columns_problem:
        raise sheets.SheetError(cleaned.columns_problem)
    cells = await request.limits.slots.run(IMPORT, partial(sheets.clean_nims, cleaned.rows))
    existing, near = await _existing_and_near(
        request, store.reader(IMPORT), [cell.nim for cell in cells if not cell.problem]
    )

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


async def _existing_and_near(
    request: Request, reader: Reader, nims: Sequence[str]
) -> tuple[Mapping[str, Mahasiswa], Sequence[Mahasiswa]]:
    """The records with these NIMs. For the NIMs without a record, also the records with a similar NIM.

    They count in the budget of answers, because a preview that waits for a thread keeps them; raise Busy.
    """
    existing = await reader.find(nims)
    request.count_answer(size_with(0, list(existing.values())))
    unknown = [nim for nim in nims if nim not in existing]
    near = await reader.near(unknown, NEAR_MAX_RECORDS) if unknown else ()
    request.count_answer(size_with(0, near))
    return existing, near


async def _absentees(reader: Reader, in_file: Collection[str], most: int) -> list[Mahasiswa]:
    """The first stored records that the file lacks. Besides them it reads at most as many records as the file has rows."""
    found: list[Mahasiswa] = []
    last: str | None = None
    while len(found) < most and (chunk := await reader.after(last, CHUNK_RECORDS)):
        found += [record for record in chunk if record.nim not in in_file]
        last = chunk[-1].nim
    return found[:most]


async def _read_preview(request: Request) -> tuple[Mapping[str, Sequence[str]], Alert, sheets.CleanedFile]:
    """Read a preview's form: its fields, the kind of the repairs in it, if any, and the rows with them.

    Raise BodyRefused, Busy, SheetError.
    """
    sent = await read_confirmation(request)
    return sent, *await request.limits.slots.run(IMPORT, partial(_repaired, sent))


def _repaired(sent: Mapping[str, Sequence[str]]) -> tuple[Alert, sheets.CleanedFile]:
    # A field that was sent twice did not come from the preview.
    cleaned = sheets.clean_again(sheets.load(sent["data"][0] if len(sent["data"]) == 1 else ""))
    file = cleaned.file
    # The preview of a bulk delete has no inputs for Nama and Alamat.
    columns = (sent[field] or repeat(None) for field in ("nim[]", "nama[]", "alamat[]"))
    rows = zip(sent["baris[]"], *columns, strict=False)
    repaired = sheets.repaired(
        cleaned,
        _chosen(sent["lembar"], sent["kolom[]"]),
        {number: texts for row, *texts in rows for number in _numbers([row])}
        | dict.fromkeys(_numbers(sent["lewati[]"]), sheets.LEFT_OUT),
        _numbers(sent["benar[]"]),
        fills_alamat=bool(sent["isi"]),
    )
    if repaired == file:
        return "", cleaned
    is_typed = (repaired.typed, repaired.accepted) != (file.typed, file.accepted)
    return "repaired" if is_typed else "chosen", sheets.clean_again(repaired)


def _chosen(names: Sequence[str], columns: Sequence[str], *, nim_only: bool = False) -> sheets.Choice:
    """The sheets and the columns that a person has chosen. An invalid choice counts as none."""
    names = [name for name in names if len(name) <= sheets.NAME_MAX_CHARACTERS]
    of_fields = [whole_number(column) for column in columns]
    if len(columns) != len(wording.HEADER) or any((column or 0) >= sheets.MAX_TITLES for column in of_fields):
        return sheets.Choice(names, nim_only=nim_only)
    nim, nama, alamat = of_fields
    return sheets.Choice(names, (nim, nama, alamat), nim_only)


def _numbers(texts: Iterable[str]) -> set[int]:
    """The numbers of rows in a field that is sent several times."""
    return {number for text in texts if (number := whole_number(text)) is not None}

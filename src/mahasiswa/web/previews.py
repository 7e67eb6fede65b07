"""Import and bulk delete: a preview of a file or of NIMs, which writes nothing, and the confirmation that writes all of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from threading import Event
from urllib.parse import unquote

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.digits import whole_number
from mahasiswa.record import Mahasiswa, Write
from mahasiswa.sheets import deletion
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.limits import MAX_TITLES
from mahasiswa.store import Query, Reader, Store
from mahasiswa.store.reader import size_with
from mahasiswa.store.store_errors import Changed
from mahasiswa.store.threads import in_thread
from mahasiswa.web.forms import Upload, read_upload, utf8, utf8_bytes
from mahasiswa.web.list_query import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.preview_page import Alert, PreviewPage, shown_missing
from mahasiswa.web.request import Request
from mahasiswa.web.responses import rendered_in_thread
from mahasiswa.web.routes import Purpose
from mahasiswa.work import IMPORT, WORKBOOK

ALL_LOST_ZEROS = "nol"  # the value of the button that restores the zeros of all NIMs
ABSENTEES_MAX_ROWS = 1000  # records that are listed because the file lacks them
# Stored records that are compared with unknown NIMs because their NIM looks the same.
NEAR_MAX_RECORDS = 20_000
CHUNK_RECORDS = 1000


async def choose_import(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor: the page to choose a file or to paste cells."""
    return pages.empty_form("impor").respond(request.scope)


async def preview_import(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor: a preview of the changes. Nothing is written or kept."""
    async with read_upload(request) as upload:
        cleaned = await _cleaned(request, upload, "impor")
        return await request.while_connected(_import_preview(request, store, pages, cleaned))


async def confirm_import(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/impor/simpan: write the previewed rows, all or none. New repairs are first previewed again."""
    sent, key = request.confirmation, await store.signing_key()
    alert, cleaned = await request.limits.slots.run(IMPORT, partial(_repaired, sent, key))
    opened = sent["periksa"][-1] if sent["periksa"] else ""
    if alert or opened or cleaned.columns_problem or sent["pakai[]"]:
        alert = alert or ("chosen" if sent["pakai[]"] or not opened else "")
        again = _import_preview(
            request, store, pages, cleaned, opened=opened, alert=alert, meant=sent["pakai[]"]
        )
        return await request.while_connected(again)
    existing = await store.reader(IMPORT).find(cleaned.nims())
    request.count_answer(size_with(0, list(existing.values())))

    def changes() -> tuple[Alert, Sequence[Write]]:
        plan = sheets.compare(cleaned, existing)
        update = sent["ada"][-1:] == ["perbarui"]
        if update and plan.needs_tick and not sent["yakin"]:
            return "names", ()
        writes = sheets.confirmed_writes(cleaned.file, plan, update=update)
        return ("changed", ()) if writes is None else ("", writes)

    alert, writes = await request.limits.slots.run(IMPORT, changes)
    try:
        await store.write_all("import", writes)
    except Changed:  # a record has changed since it was read, so nothing is written
        alert = "changed"
    return (
        await _import_preview(request, store, pages, cleaned, alert=alert)
        if alert
        else pages.redirect_home
    )


async def choose_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/hapus: the page to paste NIMs or to choose a file; with a search, the preview of its records."""
    query = query_of(request.query_params)
    if not query.cari:
        return pages.empty_form("hapus").respond(request.scope)
    nims = await in_thread(
        store.reader(IMPORT).chunks(query),
        lambda records: [record.nim for record in islice(records, sheets.UPLOAD_MAX_ROWS + 1)],
    )
    if len(nims) > sheets.UPLOAD_MAX_ROWS:
        raise sheets.SheetError(
            wording.TOO_MANY_FOUND.format(limit=wording.number(sheets.UPLOAD_MAX_ROWS))
        )
    return await _deletion_preview(request, store, pages, deletion.nims_of(nims))


async def preview_ticked(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/pilihan: the preview of the rows that a person has ticked on a page of the list."""
    ticked = request.confirmation["nim[]"]
    if not ticked:
        raise sheets.SheetError(wording.NO_ROWS_TICKED)
    cells = await request.limits.slots.run(IMPORT, lambda: deletion.nims_of(map(unquote, ticked)))
    return await _deletion_preview(request, store, pages, cells)


async def preview_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus: the records with these NIMs, and the NIMs without a record. Nothing is written or kept."""
    async with read_upload(request) as upload:
        cleaned = await _cleaned(request, upload, "hapus")
        if cleaned.columns_problem:
            raise sheets.SheetError(cleaned.columns_problem)
        cells = await request.limits.slots.run(IMPORT, partial(deletion.clean_nims, cleaned.rows))
        return await request.while_connected(_deletion_preview(request, store, pages, cells))


async def confirm_deletion(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/hapus/simpan: remove the records of the preview, all or none; or preview them again, repaired.

    A record that was changed since the preview is removed too, because the NIM was confirmed. A record that was removed
    since is left out, so a second click changes nothing. The preview of an import leads here to remove the records that
    its file lacks.
    """
    sent, key = request.confirmation, await store.signing_key()
    run = partial(request.limits.slots.run, IMPORT)
    if sent["periksa"][-1:] == ["sisa"]:
        _, cleaned = await run(partial(_repaired, sent, key))
        cells = deletion.nims_of(
            await _absentees(store.reader(IMPORT), set(cleaned.nims()), sheets.UPLOAD_MAX_ROWS)
        )
        return await request.while_connected(_deletion_preview(request, store, pages, cells))
    found, missing = await run(partial(deletion.load_deletion, "".join(sent["data"]), key))
    shown = sorted(found + missing)
    rows = zip(sent["baris[]"], sent["nim[]"], strict=False)
    typed = {number: nim for row, nim in rows for number in _numbers([row])}
    cells = await run(partial(deletion.repaired_nims, shown, typed, _numbers(sent["lewati[]"])))
    if cells == shown and not sent["periksa"]:
        await store.write_all("delete", removals=dict.fromkeys(cell.nim for cell in found))
        return pages.redirect_home
    again = _deletion_preview(
        request, store, pages, cells, alert="repaired" if cells != shown else ""
    )
    return await request.while_connected(again)


async def _cleaned(request: Request, upload: Upload, purpose: Purpose) -> sheets.CleanedFile:
    """The file of an upload, or else its pasted text, which is read in a thread. Raise SheetError, Busy."""
    file, pasted, texts = upload
    if not file and (not pasted or pasted.isspace()):
        raise sheets.SheetError(wording.NOTHING_CHOSEN[purpose])
    columns = texts.get("kolom[]", [])
    if columns == texts.get("semula[]"):  # those that were found in the sheets of the last time
        columns = []
    choice = _chosen(texts.get("lembar", ()), columns, nim_only=purpose == "hapus")
    stop = Event()

    def read() -> sheets.CleanedFile:
        if not file:
            table = sheets.read_text(utf8_bytes(pasted), sheets.WEB, stop, choice)
            return sheets.clean_table(table, "", choice.columns)
        name = utf8(file.filename or "")[: sheets.NAME_MAX_CHARACTERS]
        with sheets.read(file.file, sheets.WEB, stop, choice) as table:
            return sheets.clean_table(table, name, choice.columns)

    kind = WORKBOOK if file and sheets.kind_of(file.file) else IMPORT
    return await request.while_connected(request.limits.slots.run(kind, read, stop))


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
    key = await store.signing_key()
    nims = cleaned.nims()
    reader = store.reader(IMPORT)
    existing, near = await _existing_and_near(request, reader, nims)
    total = (await reader.search(Query(), 0, 0)).total
    absent_nims = await _absentees(reader, set(nims), ABSENTEES_MAX_ROWS) if part == "sisa" else []
    others = sorted((await reader.find(absent_nims)).values())
    request.count_answer(size_with(0, others))

    def render() -> Response:
        shown, plan, stored = cleaned, sheets.compare(cleaned, existing, near), existing
        if meant:
            nims = sheets.nims_meant(plan, None if ALL_LOST_ZEROS in meant else _numbers(meant))
            shown, stored = (
                sheets.clean_again(cleaned.file.with_nims(nims)),
                {**existing, **{r.nim: r for r in near}},
            )
            plan = sheets.compare(shown, stored, near)
        file, data = sheets.dump(shown.versions(sheets.with_shown_changes(shown.file, plan)), key)
        absent = total - len(stored.keys() & shown.nims())
        preview = PreviewPage(
            file, shown, plan, data, absent, total, others, part, whole_number(start) or 0, alert
        )
        if shown.columns_problem:
            return pages.upload_form("impor", shown.columns_problem, preview=preview)
        status = 409 if alert == "changed" else 200
        return pages.page(
            "preview.html", status, pages.not_stored, preview=preview, row_name=sheets.row_name
        )

    return await rendered_in_thread(request, IMPORT, render)


async def _deletion_preview(
    request: Request,
    store: Store,
    pages: Pages,
    cells: Sequence[deletion.NimCell],
    alert: Alert = "",
) -> Response:
    nims = [cell.nim for cell in cells if not cell.problem]
    existing, near = await _existing_and_near(request, store.reader(IMPORT), nims)
    key = await store.signing_key()

    def render() -> Response:
        compared = deletion.compare_nims(cells, existing, near)
        shown = {
            "deletion": compared,
            "data": deletion.dump_deletion(compared, key),
            "missing": shown_missing(compared),
        }
        return pages.page("bulk_delete.html", 200, pages.not_stored, alert=alert, **shown)

    return await rendered_in_thread(request, IMPORT, render)


async def _existing_and_near(
    request: Request, reader: Reader, nims: Sequence[str]
) -> tuple[Mapping[str, Mahasiswa], Sequence[Mahasiswa]]:
    """The records with these NIMs, and those near the other NIMs. They count as answers, which may raise Busy."""
    existing = await reader.find(nims)
    request.count_answer(size_with(0, list(existing.values())))
    unknown = [nim for nim in nims if nim not in existing]
    near = await reader.near(unknown, NEAR_MAX_RECORDS) if unknown else ()
    request.count_answer(size_with(0, near))
    return existing, near


async def _absentees(reader: Reader, in_file: Collection[str], most: int) -> list[str]:
    """The first stored NIMs that the file lacks. Their records may have long texts, so they are not kept."""
    found: list[str] = []
    last: str | None = None
    while len(found) < most and (chunk := await reader.after(last, CHUNK_RECORDS)):
        found += [record.nim for record in chunk if record.nim not in in_file]
        last = chunk[-1].nim
    return found[:most]


def _repaired(sent: Mapping[str, Sequence[str]], key: bytes) -> tuple[Alert, sheets.CleanedFile]:
    """The rows of a preview's form with its repairs, and their kind, if there are any. Raise SheetError."""
    cleaned = sheets.clean_again(sheets.load("".join(sent["data"]), key))
    file = cleaned.file
    rows = zip(sent["baris[]"], sent["nim[]"], sent["nama[]"], sent["alamat[]"], strict=False)
    names = [sheet.name for sheet in file.sheets] if sent["semua"] else sent["lembar"]
    typed: dict[int, Sequence[str | None]] = {
        number: texts for row, *texts in rows for number in _numbers([row])
    }
    typed |= dict.fromkeys(_numbers(sent["lewati[]"]), sheets.LEFT_OUT)
    choice, accepted = _chosen(names, sent["kolom[]"]), _numbers(sent["benar[]"])
    repaired = sheets.repaired(cleaned, choice, typed, accepted, fills_alamat=bool(sent["isi"]))
    if repaired == file:
        return "", cleaned
    is_typed = (repaired.typed, repaired.accepted) != (file.typed, file.accepted)
    return "repaired" if is_typed else "chosen", sheets.clean_again(repaired)


def _chosen(
    names: Sequence[str], columns: Sequence[str], *, nim_only: bool = False
) -> sheets.Choice:
    """The sheets and the columns that a person has chosen. An invalid choice counts as none."""
    names = [name for name in names if len(name) <= sheets.NAME_MAX_CHARACTERS]
    of_fields = [whole_number(column) for column in columns]
    if len(columns) != len(wording.HEADER) or any(
        (column or 0) >= MAX_TITLES for column in of_fields
    ):
        return sheets.Choice(names, nim_only=nim_only)
    nim, nama, alamat = of_fields
    return sheets.Choice(names, (nim, nama, alamat), nim_only)


def _numbers(texts: Iterable[str]) -> set[int]:
    """The numbers of rows in a field that is sent several times."""
    return {number for text in texts if (number := whole_number(text)) is not None}

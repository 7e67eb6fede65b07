"""Reads what a preview is made of: an upload, the form that the preview sends back, and the stored records."""

import re
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import repeat
from threading import Event
from typing import Any, BinaryIO, NamedTuple

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.digits import whole_number
from mahasiswa.record import Mahasiswa
from mahasiswa.store import Reader
from mahasiswa.web.forms import FORM_MAX_BYTES, BodyRefused, body_of, large_body, read_confirmation
from mahasiswa.web.pages import Pages, Purpose
from mahasiswa.web.preview_view import Alert
from mahasiswa.web.request import Request
from mahasiswa.work import IMPORT, WORKBOOK

CONTENT_TYPE_MAX_BYTES = 1024
"""Maximum length of the header Content-Type of an upload. Parsing one of 64 KB takes the event loop 178 ms."""

MAX_TEXTS = (
    sheets.MAX_SHEETS + 5
)  # in an upload: the sheets and the columns that a person has chosen, and the pasted text

REPEATED_MAX_BYTES = 1 << 20
"""Maximum length of a pasted text that the page of an error shows again. A longer one is left out whole, because a
person who sends a part again would lose the other rows."""

FIELDS = (
    "data", "ada", "periksa", "lembar", "kolom[]", "baris[]", "nim[]", "nama[]", "alamat[]", "benar[]", "lewati[]",
    "pakai[]", "isi",
)  # fmt: skip
"""The fields of a preview's form. Those with brackets are sent several times, in the order of the page."""

NEAR_MAX_RECORDS = 20_000  # stored records that are compared with unknown NIMs because their NIM looks the same
CHUNK_RECORDS = 1000

# RFC 2046, section 5.1.1.
is_boundary = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]").fullmatch


class Upload(NamedTuple):
    """A multipart form: the file, if one was chosen, the pasted text, and all other texts.

    `pasted` has one character for each byte. Only the thread that reads it decodes it, because a text of 16 MB takes
    64 MB if one of its characters is an emoji.
    """

    file: UploadFile | None
    pasted: str
    texts: Mapping[str, Sequence[str]]


async def preview_of_upload(
    request: Request,
    pages: Pages,
    purpose: Purpose,
    preview: Callable[[sheets.CleanedFile], Coroutine[Any, Any, Response]],
) -> Response:
    """Read the file of an upload, or else its pasted text, in a thread, and show its preview.

    If it cannot be read, show the form again with the reason and the pasted text. Raise BodyRefused, Busy.
    """
    async with _read_upload(request) as upload:
        choice = _chosen(upload.texts.get("lembar", ()), upload.texts.get("kolom[]", ()), nim_only=purpose == "hapus")
        stop = Event()
        if upload.file:
            kind = WORKBOOK if sheets.kind_of(upload.file.file) else IMPORT
            name = _utf8(upload.file.filename or "")[: sheets.NAME_MAX_CHARACTERS]
            read = partial(_read_file, upload.file.file, name, choice, stop)
        elif upload.pasted and not upload.pasted.isspace():
            kind, read = IMPORT, partial(_read_pasted, upload.pasted, choice, stop)
        else:
            raise sheets.SheetError(wording.NOTHING_CHOSEN[purpose])
        try:
            cleaned = await request.while_connected(request.limits.slots.run(kind, read, stop))
            return await request.while_connected(preview(cleaned))
        except sheets.SheetError as error:
            status = 413 if isinstance(error, sheets.TooBig) else 400
            if len(upload.pasted) <= REPEATED_MAX_BYTES:
                return pages.upload_form(purpose, str(error), status, _utf8(upload.pasted))
            not_repeated = wording.PASTE_NOT_REPEATED.format(limit=wording.size(REPEATED_MAX_BYTES))
            return pages.upload_form(purpose, f"{error} {not_repeated}", status)


@asynccontextmanager
async def _read_upload(request: Request) -> AsyncIterator[Upload]:
    """Read a multipart form, valid within the `with`. The file is spooled to disk."""
    with large_body(request) as count:
        most = sheets.UPLOAD_MAX_BYTES
        pieces = body_of(request, most + FORM_MAX_BYTES, "file too large", count, shown_limit=most)
        # The client's charset would choose the codec of all texts. ISO 8859-1 keeps every byte, and UTF-8 is read below.
        content_type = b'multipart/form-data; charset=latin-1; boundary="%b"' % _boundary(request)
        headers = Headers(raw=[(b"content-type", content_type)])
        try:
            # The parser has a copy of the text, so no variable keeps it.
            form = await MultiPartParser(headers, pieces, max_files=1, max_fields=MAX_TEXTS, max_part_size=most).parse()
        except MultiPartException:
            raise BodyRefused("bad request") from None
        try:
            yield _upload(form)
        finally:
            await form.close()


def _read_file(file: BinaryIO, name: str, choice: sheets.Choice, stop: Event) -> sheets.CleanedFile:
    with sheets.read(file, sheets.WEB, stop, choice) as table:
        return sheets.clean_table(table, name)


def _read_pasted(pasted: str, choice: sheets.Choice, stop: Event) -> sheets.CleanedFile:
    return sheets.clean_table(sheets.read_text(_utf8(pasted), sheets.WEB, stop, choice), "")


def _boundary(request: Request) -> bytes:
    content_type = request.first_headers.get(b"content-type", b"")
    if len(content_type) > CONTENT_TYPE_MAX_BYTES:
        raise BodyRefused("bad request")
    media_type, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if media_type != b"multipart/form-data":
        raise BodyRefused("not a form")
    if not is_boundary(boundary):
        raise BodyRefused("bad request")
    return boundary


def _upload(form: FormData) -> Upload:
    texts: dict[str, list[str]] = {}
    pasted = ""
    for name, value in form.multi_items():
        if not isinstance(value, str):
            continue
        if name == "tempel":
            pasted = value
        elif len(value) > FORM_MAX_BYTES:
            raise BodyRefused("bad request")
        else:
            texts.setdefault(_utf8(name), []).append(_utf8(value))
    file = form.get("berkas")
    return Upload(file if isinstance(file, UploadFile) and file.filename else None, pasted, texts)


def _utf8(text: str) -> str:
    """The text whose bytes are the characters of this one; raise BodyRefused."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise BodyRefused("bad request") from None


async def read_preview(request: Request) -> tuple[Mapping[str, Sequence[str]], Alert, sheets.CleanedFile]:
    """Read a preview's form: its fields, the kind of the repairs in it, if any, and the rows with them.

    Raise BodyRefused, Busy, SheetError.
    """
    sent = await read_confirmation(request, FIELDS)
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
        {number: texts for row, *texts in rows for number in numbers([row])}
        | dict.fromkeys(numbers(sent["lewati[]"]), sheets.LEFT_OUT),
        numbers(sent["benar[]"]),
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


def numbers(texts: Iterable[str]) -> set[int]:
    """The numbers of rows in a field that is sent several times."""
    return {number for text in texts if (number := whole_number(text)) is not None}


async def existing_and_near(reader: Reader, nims: Sequence[str]) -> tuple[Mapping[str, Mahasiswa], Sequence[Mahasiswa]]:
    """The records with these NIMs. For the NIMs without a record, also the records with a similar NIM."""
    existing = await reader.find(nims)
    unknown = [nim for nim in nims if nim not in existing]
    return existing, await reader.near(unknown, NEAR_MAX_RECORDS) if unknown else ()


async def absentees(reader: Reader, in_file: Collection[str], most: int) -> list[Mahasiswa]:
    """The first stored records that the file lacks. Besides them it reads at most as many records as the file has rows."""
    found: list[Mahasiswa] = []
    last: str | None = None
    while len(found) < most and (chunk := await reader.after(last, CHUNK_RECORDS)):
        found += [record for record in chunk if record.nim not in in_file]
        last = chunk[-1].nim
    return found[:most]

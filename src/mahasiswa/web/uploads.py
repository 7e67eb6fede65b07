"""Reads the file and the choices of a person for a preview: from an upload, or from the form that a preview sends back."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import repeat

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from mahasiswa import sheets, wording
from mahasiswa.digits import whole_number
from mahasiswa.web.forms import FORM_MAX_BYTES, BodyRefused, body_of, large_body, read_confirmation
from mahasiswa.web.preview_view import Alert
from mahasiswa.web.request import Request
from mahasiswa.work import IMPORT

CONTENT_TYPE_MAX_BYTES = 1024
"""Maximum length of the header Content-Type of an upload. Parsing one of 64 KB takes the event loop 178 ms."""

MAX_TEXTS = (
    sheets.MAX_SHEETS + 5
)  # in an upload: the sheets and the columns that a person has chosen, and the pasted text

FIELDS = (
    "data", "ada", "periksa", "lembar", "kolom[]", "baris[]", "nim[]", "nama[]", "alamat[]", "benar[]", "lewati[]",
    "pakai[]", "isi",
)  # fmt: skip
"""The fields of a preview's form. Those with brackets are sent several times, in the order of the page."""

# RFC 2046, section 5.1.1.
is_boundary = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]").fullmatch


@asynccontextmanager
async def read_upload(request: Request) -> AsyncIterator[tuple[UploadFile | None, str, Mapping[str, Sequence[str]]]]:
    """Read a multipart form, valid within the `with`: its file, its pasted text, and all other texts by name.

    The file is spooled to disk. The pasted text has one character for each byte. Only the thread that reads it decodes
    it, because a text of 16 MB takes 64 MB if one of its characters is an emoji. Raise BodyRefused, Busy.
    """
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
            file, pasted = form.get("berkas"), ""
            texts: dict[str, list[str]] = {}
            for name, value in form.multi_items():
                if isinstance(value, str) and name == "tempel":
                    pasted = value
                elif isinstance(value, str):
                    if len(value) > FORM_MAX_BYTES:
                        raise BodyRefused("bad request")
                    texts.setdefault(utf8(name), []).append(utf8(value))
            yield file if isinstance(file, UploadFile) and file.filename else None, pasted, texts
        finally:
            await form.close()


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


def utf8(text: str) -> str:
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
        chosen(sent["lembar"], sent["kolom[]"]),
        {number: texts for row, *texts in rows for number in numbers([row])}
        | dict.fromkeys(numbers(sent["lewati[]"]), sheets.LEFT_OUT),
        numbers(sent["benar[]"]),
        fills_alamat=bool(sent["isi"]),
    )
    if repaired == file:
        return "", cleaned
    is_typed = (repaired.typed, repaired.accepted) != (file.typed, file.accepted)
    return "repaired" if is_typed else "chosen", sheets.clean_again(repaired)


def chosen(names: Sequence[str], columns: Sequence[str], *, nim_only: bool = False) -> sheets.Choice:
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

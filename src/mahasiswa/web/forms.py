"""Reads the body of a POST, a form or an upload: counts its bytes, and decodes its texts unchanged."""

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from io import BytesIO
from sys import getsizeof
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from mahasiswa.sheets.limits import MAX_SHEETS
from mahasiswa.sheets.public import MAX_CONFIRMED_BYTES, UPLOAD_MAX_BYTES, is_utf8
from mahasiswa.web.request import Request
from mahasiswa.wording import ProblemName
from mahasiswa.work import IMPORT, RECORD

FORM_MAX_BYTES = 64 * 1024
INLINE_FORM_MAX_BYTES = 8 * 1024  # a longer form is decoded in a thread; 64 KB of `%41` take 10 ms
MAX_FIELDS = 20  # of a form for one record
# Fields of the form of a preview, or of ticks; a preview has 100 rows to repair with six fields
# each, and as many ticks.
MAX_REPAIRS = 1000
DECODE_BYTES = 64 * 1024  # a longer text would hold the GIL for too long

CONTENT_TYPE_MAX_BYTES = 1024  # of an upload; parsing a header of 64 KB takes the event loop 178 ms
# In an upload: the sheets and the columns that a person has chosen, the columns before, and the pasted text.
MAX_TEXTS = MAX_SHEETS + 8

# RFC 2046, section 5.1.1.
is_boundary = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]").fullmatch


class BodyRefused(Exception):
    """The body cannot be read as a form. `problem` names the page that says so, `limit` is the limit in bytes, if any."""

    def __init__(self, problem: ProblemName, limit: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.limit = limit


class Form(NamedTuple):
    """The requested fields. `values` has each text, or None if it was not sent; `wrong` has the problems of texts."""

    values: dict[str, str | None]
    wrong: dict[str, str]


async def read_before(request: Request, body: str | Sequence[str]) -> None:
    """Read the body to its end before the handler runs, so that no handler writes what the rest of a body refuses.

    Without fields it is ignored, and needs no content type (specification 4.6). Raise BodyRefused, Busy.
    """
    if body == "preview":
        request.confirmation = await _read_confirmation(request)
    elif body and body != "upload":
        request.fields = await _read_form(request, body)
    elif not body:
        async for _ in read_pieces(request, FORM_MAX_BYTES, "too large", lambda _: None):
            pass


async def _read_form(request: Request, fields: Sequence[str]) -> Form:
    """Read an application/x-www-form-urlencoded body; raise BodyRefused, Busy. Other fields than `fields` are ignored."""
    form = Form({}, {})
    with request.limits.bodies.hold() as count:
        body = await read_body(request, FORM_MAX_BYTES, "too large", count)

        def parse() -> None:
            sent = _sent(request, body, MAX_FIELDS)
            for field in fields:
                values = sent[field]
                try:
                    form.values[field] = _decode(values[0]).decode() if values else None
                except UnicodeDecodeError:
                    form.values[field] = _decode(values[0]).decode(errors="replace")
                    form.wrong[field] = "not_utf8"
                if len(values) > 1:
                    form.wrong[field] = "twice"

        if len(body) > INLINE_FORM_MAX_BYTES:
            await request.limits.slots.run(RECORD, parse)
        else:
            parse()
    # They wait with the change. A text with an emoji takes four bytes for each character.
    request.count_texts(sum(map(getsizeof, form.values.values())))
    return form


async def _read_confirmation(request: Request) -> Mapping[str, Sequence[str]]:
    """Read the form of a preview or of ticked rows in a thread: all values of each field. Wrong bytes are replaced."""
    with large_body(request) as count:
        body = await read_body(request, MAX_CONFIRMED_BYTES, "confirmation too large", count)
        request.count_answer(len(body))  # its texts are kept until the answer

        def parse() -> Mapping[str, Sequence[str]]:
            sent = _sent(request, body, MAX_REPAIRS).items()
            texts = {
                field: [_decode(value).decode(errors="replace") for value in values]
                for field, values in sent
            }
            return defaultdict(list, texts)

        return await request.limits.slots.run(IMPORT, parse)


class Upload(NamedTuple):
    """A multipart form. Its file is spooled to disk. The pasted text has one character for each byte."""

    file: UploadFile | None
    pasted: str
    texts: Mapping[str, Sequence[str]]  # all others, by name


@asynccontextmanager
async def read_upload(request: Request) -> AsyncIterator[Upload]:
    """Read a multipart form, valid within the `with`. Raise BodyRefused, Busy."""
    with large_body(request) as count:
        most = UPLOAD_MAX_BYTES
        pieces = read_pieces(request, most + FORM_MAX_BYTES, "file too large", count)
        # The client's charset would choose the codec of all texts. ISO 8859-1 keeps every byte, and UTF-8 is read below.
        content_type = b'multipart/form-data; charset=latin-1; boundary="%b"' % _boundary(request)
        headers = Headers(raw=[(b"content-type", content_type)])
        try:
            # The parser has a copy of the text, so no variable keeps it.
            form = await MultiPartParser(
                headers, pieces, max_files=1, max_fields=MAX_TEXTS, max_part_size=most
            ).parse()
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
            request.pasted = pasted
            yield Upload(
                file if isinstance(file, UploadFile) and file.filename else None, pasted, texts
            )
        finally:
            await form.close()


def _sent(request: Request, body: bytes, max_fields: int) -> Mapping[str, Sequence[bytes]]:
    """The values of each field as they were sent."""
    headers = request.first_headers
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if body and (
        content_type != b"application/x-www-form-urlencoded" or b"content-encoding" in headers
    ):
        raise BodyRefused("not a form")
    if body.count(b"&") >= max_fields:
        raise BodyRefused("bad request")
    sent: defaultdict[str, list[bytes]] = defaultdict(list)
    for pair in body.split(b"&"):
        name, _, value = pair.partition(b"=")
        sent[_decode(name).decode(errors="replace")].append(value)
    return sent


def _decode(text: bytes) -> bytes:
    """The text without its percent-encoding. Only the field of a preview is longer than DECODE_BYTES; only its `=` is encoded."""
    if len(text) > DECODE_BYTES:
        return text.replace(b"%3D", b"=")
    return unquote_to_bytes(text.replace(b"+", b" "))


@contextmanager
def large_body(request: Request) -> Iterator[Callable[[int], None]]:
    """Count an upload: yield the function that counts its bytes and raises Busy. If many arrive, the slowest ends."""
    received, connection = 0, request.connection

    def count(new: int) -> None:
        nonlocal received
        received += new
        count_bytes(new)

    with request.limits.bodies.hold() as count_bytes:
        if connection:
            request.limits.uploads.hold(count, 0, connection.give_body_up, lambda: received)
        try:
            yield count
        finally:
            if connection:
                request.limits.uploads.release(count, connection.give_body_up)


async def read_pieces(
    request: Request, max_bytes: int, too_large: ProblemName, count: Callable[[int], None]
) -> AsyncGenerator[bytes, None]:
    """The pieces of a body as they arrive. Raise BodyRefused, ClientDisconnect and what `count` of a length raises."""
    header = request.first_headers.get(b"content-length", b"")
    length = (
        int(header)
        if header.isdigit() and b"transfer-encoding" not in request.first_headers
        else None
    )
    if (length or 0) > max_bytes:
        raise BodyRefused(too_large, max_bytes)
    received, has_more = 0, True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":  # also if the body breaks HTTP's framing
            raise ClientDisconnect
        piece: bytes = message.get("body", b"")
        received += len(piece)
        if received > max_bytes:
            raise BodyRefused(too_large, max_bytes)
        count(len(piece))
        if request.connection and request.connection.body_is_late:
            raise BodyRefused("too slow")
        yield piece
        # Stop reading at Content-Length: waiting for the empty final message costs one more receive().
        has_more = message.get("more_body", False) and received != length


async def read_body(
    request: Request, max_bytes: int, too_large: ProblemName, count: Callable[[int], None]
) -> bytes:
    """A whole body; raise what `read_pieces` raises."""
    # A list of tiny pieces would take far more memory than their bytes, which are counted.
    body = bytearray()
    async for piece in read_pieces(request, max_bytes, too_large, count):
        body += piece
    return bytes(body)


def _boundary(request: Request) -> bytes:
    content_type = request.first_headers.get(b"content-type", b"")
    media_type, options = parse_options_header(content_type[:CONTENT_TYPE_MAX_BYTES])
    boundary = options.get(b"boundary", b"")
    if media_type != b"multipart/form-data":
        raise BodyRefused("not a form")
    if not is_boundary(boundary):
        raise BodyRefused("bad request")
    return boundary


def utf8_bytes(text: str) -> bytes:
    """The bytes that are the characters of this text; raise BodyRefused if they are not UTF-8."""
    data = text.encode("latin-1")
    if not is_utf8(BytesIO(data)):
        raise BodyRefused("bad request")
    return data


def utf8(text: str) -> str:
    """The text whose bytes are the characters of this one; raise BodyRefused."""
    return utf8_bytes(text).decode()

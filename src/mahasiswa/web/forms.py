"""Reads the body of a POST, a form or an upload: counts its bytes, and decodes its texts unchanged."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from io import BytesIO
from sys import getsizeof
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote_to_bytes

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from mahasiswa.sheets.limits import MAX_SHEETS
from mahasiswa.sheets.public import MAX_CONFIRMED_BYTES, UPLOAD_MAX_BYTES, is_utf8
from mahasiswa.web.request import BareRequest, Form, ProblemPage
from mahasiswa.wording import ProblemName
from mahasiswa.work import RECORD, STAGE, Count

FORM_MAX_BYTES = 64 * 1024
INLINE_FORM_MAX_BYTES = 8 * 1024  # a longer form is decoded in a thread
MAX_FIELDS = 20  # of a form for one record
PREVIEW_FORM_MAX_BYTES = 1 << 20
# Maximum fields of the form of a preview, or of ticked rows: 500 lines with three texts, or 300
# columns of 200 sheets beside ten lines with each problem.
PREVIEW_MAX_FIELDS = 2000

CONTENT_TYPE_MAX_BYTES = 1024  # of an upload; a longer header would hold the event loop
# Maximum texts in an upload: the sheets and the columns (400 at most) that a person has chosen, and
# the pasted text.
MAX_TEXTS = MAX_SHEETS + 500

# RFC 2046, section 5.1.1.
is_boundary = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]").fullmatch


async def read_form(request: BareRequest, fields: Sequence[str]) -> Form:
    """Read an application/x-www-form-urlencoded body; raise ProblemPage, Busy.

    Other fields than `fields` are ignored. If `fields` is empty, the whole body is ignored, and
    needs no content type (specification 4.6).
    """
    form = Form({}, {})
    with request.limits.bodies.hold() as count:
        body = bytes(await read_body(request, FORM_MAX_BYTES, "too large", count))
        if not fields:
            return form

        def parse() -> None:
            _check_form(request, body)
            sent = _sent(body, MAX_FIELDS)
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
    # The texts stay in memory while the change waits. A text with an emoji takes four bytes for
    # each character.
    request.count_texts(sum(map(getsizeof, form.values.values())))
    return form


async def read_preview_form(request: BareRequest) -> Mapping[str, str]:
    """The first value of each field of a preview's form; a blank text for others. Raise ProblemPage, Busy."""
    with (
        request.limits.arriving_previews.one(request.connection.address()),
        request.limits.bodies.hold() as count,
    ):
        body = bytes(await read_body(request, PREVIEW_FORM_MAX_BYTES, "too large", count))
        _check_form(request, body)
        parse = partial(parse_confirmation, body)
        fields = await request.limits.slots.run(STAGE, parse)
        return defaultdict(str, {name: values[0] for name, values in fields.items()})


def parse_confirmation(body: bytes) -> Mapping[str, Sequence[str]]:
    """All values of each field of a preview's form, or of ticked rows. Wrong bytes are replaced. Raise ProblemPage."""
    texts = {
        field: [_decode(value).decode(errors="replace") for value in values]
        for field, values in _sent(body, PREVIEW_MAX_FIELDS).items()
    }
    return defaultdict(list, texts)


class Upload(NamedTuple):
    """A multipart form. The pasted text has one character for each byte."""

    file: BinaryIO | None
    name: str
    pasted: str
    texts: Mapping[str, Sequence[str]]  # all others, by name


def parse_upload(body: bytes, boundary: str) -> Upload:
    """The parts of an upload. Raise ProblemPage."""
    # The client's charset would choose the codec of all texts. ISO 8859-1 keeps every byte, and UTF-8 is read below.
    content_type = f'multipart/form-data; charset=latin-1; boundary="{boundary}"'
    try:
        form = _parsed(Headers({"content-type": content_type}), body)
    except MultiPartException:
        raise ProblemPage("bad request") from None
    file = form.get("berkas")
    pasted = ""
    texts: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, str) and name == "tempel":
            pasted = value
        elif isinstance(value, str):
            texts.setdefault(utf8(name), []).append(utf8(value))
    if isinstance(file, UploadFile) and file.filename:
        return Upload(file.file, utf8(file.filename), pasted, texts)
    return Upload(None, "", pasted, texts)


def _parsed(headers: Headers, body: bytes) -> FormData:
    async def stream() -> AsyncGenerator[bytes]:
        yield body

    parser = MultiPartParser(
        headers, stream(), max_files=1, max_fields=MAX_TEXTS, max_part_size=UPLOAD_MAX_BYTES
    )
    parser.spool_max_size = 2 * UPLOAD_MAX_BYTES  # all of it stays in memory
    return asyncio.run(parser.parse())


def _check_form(request: BareRequest, body: bytes | bytearray) -> None:
    """Raise ProblemPage if the body is not a form."""
    headers = request.first_headers
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if body and (
        content_type != b"application/x-www-form-urlencoded" or b"content-encoding" in headers
    ):
        raise ProblemPage("not a form")


def _sent(body: bytes, max_fields: int) -> Mapping[str, Sequence[bytes]]:
    """The values of each field as they were sent."""
    if body.count(b"&") >= max_fields:
        raise ProblemPage("bad request")
    sent: defaultdict[str, list[bytes]] = defaultdict(list)
    for pair in body.split(b"&"):
        name, _, value = pair.partition(b"=")
        sent[_decode(name).decode(errors="replace")].append(value)
    return sent


def _decode(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


@asynccontextmanager
async def read_large_body(request: BareRequest) -> AsyncIterator[tuple[bytearray, str]]:
    """Read an upload, or the form of a preview or of ticked rows; raise ProblemPage, Busy.

    Yield the body, and the boundary of an upload or a blank text. If too many such bodies arrive,
    or too many bytes, the slowest one is given up. The body counts in the budget until the end of
    the block.
    """
    is_upload = request.route is not None and request.route.body == "upload"
    boundary = boundary_of(request) if is_upload else ""
    limit = UPLOAD_MAX_BYTES + FORM_MAX_BYTES if is_upload else MAX_CONFIRMED_BYTES
    problem: ProblemName = "file too large" if is_upload else "confirmation too large"
    connection = request.connection
    uploads = request.limits.uploads
    with request.limits.bodies.hold() as count:

        def count_received(length: int) -> None:
            uploads.grow(count, length)
            count(length)

        uploads.hold(count, 0, connection, connection.give_body_up)
        try:
            body = await read_body(request, limit, problem, count_received)
        finally:
            uploads.release(count, connection.give_body_up)
        if not is_upload:
            _check_form(request, body)
        yield body, boundary


async def read_body(
    request: BareRequest, max_bytes: int, too_large: ProblemName, count: Count
) -> bytearray:
    """A whole body; raise what `body_pieces` raises, and what `count` of a length raises."""
    # A list of tiny pieces would take far more memory than their bytes, which are counted.
    body = bytearray()
    async for piece in body_pieces(request, max_bytes, too_large):
        body += piece
        count(len(piece))
    return body


async def body_pieces(
    request: BareRequest, max_bytes: int, too_large: ProblemName
) -> AsyncGenerator[bytes]:
    """The pieces of a body as they arrive. Raise ProblemPage and ClientDisconnect."""
    length = int(request.first_headers.get(b"content-length", -1))  # -1: a chunked body
    if length > max_bytes:
        raise ProblemPage(too_large, max_bytes)
    received = 0
    has_more = True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":  # also if the body breaks HTTP's framing
            raise ClientDisconnect
        piece: bytes = message.get("body", b"")
        received += len(piece)
        if received > max_bytes:
            raise ProblemPage(too_large, max_bytes)
        if request.connection.body_is_late:
            raise ProblemPage("too slow")
        # Stop reading at Content-Length: waiting for the empty final message costs one more receive().
        has_more = message.get("more_body", False) and received != length
        yield piece


def boundary_of(request: BareRequest) -> str:
    content_type = request.first_headers.get(b"content-type", b"")
    media_type, options = parse_options_header(content_type[:CONTENT_TYPE_MAX_BYTES])
    boundary = options.get(b"boundary", b"")
    if media_type != b"multipart/form-data":
        raise ProblemPage("not a form")
    if not is_boundary(boundary):
        raise ProblemPage("bad request")
    return boundary.decode()


def utf8_bytes(text: str) -> bytes:
    """The bytes that are the characters of this text; raise ProblemPage if they are not UTF-8."""
    data = text.encode("latin-1")
    if not is_utf8(BytesIO(data)):
        raise ProblemPage("bad request")
    return data


def utf8(text: str) -> str:
    """The text whose bytes are the characters of this one; raise ProblemPage."""
    return utf8_bytes(text).decode()

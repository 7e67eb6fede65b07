"""Reads the body of a POST, a form or an upload: counts its bytes, and decodes its texts unchanged."""

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from sys import getsizeof
from typing import Any
from urllib.parse import unquote_to_bytes

from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect

from mahasiswa.digits import whole_number
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
    fields = await read_preview_lists(request)
    return defaultdict(str, {name: values[0] for name, values in fields.items()})


async def read_preview_lists(request: BareRequest) -> Mapping[str, Sequence[str]]:
    """All values of each field of the form of a preview or of ticked rows. Raise ProblemPage, Busy."""
    with (
        request.limits.arriving_previews.one(request.connection.address()),
        request.limits.bodies.hold() as count,
    ):
        body = bytes(await read_body(request, PREVIEW_FORM_MAX_BYTES, "too large", count))
        _check_form(request, body)
        parse = partial(parse_confirmation, body)
        return await request.limits.slots.run(STAGE, parse)


def cells_of(
    form: Mapping[str, Any], fields: Sequence[str]
) -> Mapping[tuple[int, int], Mapping[str, Any]]:
    """The texts of the fields `nama.2.15`: by their two numbers, then by the name."""
    cells: defaultdict[tuple[int, int], dict[str, Any]] = defaultdict(dict)
    for name, given in form.items():
        field, *rest = name.split(".")
        numbers = list(map(whole_number, rest))
        if field in fields and len(numbers) == 2 and None not in numbers:
            first, second = numbers
            cells[first or 0, second or 0][field] = given if isinstance(given, str) else given[0]
    return cells


def parse_confirmation(body: bytes) -> Mapping[str, Sequence[str]]:
    """All values of each field of a preview's form, or of ticked rows. Wrong bytes are replaced. Raise ProblemPage."""
    texts = {
        field: [_decode(value).decode(errors="replace") for value in values]
        for field, values in _sent(body, PREVIEW_MAX_FIELDS).items()
    }
    return defaultdict(list, texts)


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

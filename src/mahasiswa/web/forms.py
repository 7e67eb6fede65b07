"""Reads the body of a POST, a form or an upload, with its deadline, and decodes its texts unchanged."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any
from urllib.parse import parse_qs

from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect

from mahasiswa.web.connection import MIN_BYTES_PER_SECOND, connection_of
from mahasiswa.web.request import Form, Request
from mahasiswa.web.responses import ProblemPage
from mahasiswa.wording import ProblemName
from mahasiswa.work import FORM, PREVIEW_FORM, STAGE

# Maximum time in which a client sends nothing of a body. What it sends gives time back.
BODY_TIMEOUT_SECONDS = 10.0

FORM_MAX_BYTES = 64 * 1024
MAX_FIELDS = 20  # of a form for one record
PREVIEW_FORM_MAX_BYTES = 1 << 20
# Maximum fields of the form of a preview, or of ticked rows: 200 lines with three texts, ten lines
# with each of the other problems, and 300 columns of 200 sheets.
PREVIEW_MAX_FIELDS = 2000

SURROGATES = "surrogateescape"

# Of a cell: its field, and two numbers.
cell_name = re.compile(r"(\w+)\.([0-9]{1,9})\.([0-9]{1,9})")

CONTENT_TYPE_MAX_BYTES = 1024  # of an upload; a longer header would hold the event loop
# RFC 2046, section 5.1.1.
is_boundary = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]").fullmatch


async def read_form(request: Request, fields: Sequence[str]) -> Form:
    """Read an application/x-www-form-urlencoded body; raise ProblemPage, Busy.

    Other fields than `fields` are ignored. If `fields` is empty, the whole body is ignored, and
    needs no content type (specification 4.6). A field that is sent twice is refused.
    """
    request.hold(FORM)
    body = await read_body(request, FORM_MAX_BYTES)
    form: Form = dict.fromkeys(fields)
    sent = _parsed(request, body, MAX_FIELDS, fields) if fields else {}
    for field, texts in sent.items():
        if len(texts) > 1:
            raise ProblemPage("bad request")
        form[field] = texts[0]
    return form


async def read_preview_form(request: Request) -> Mapping[str, Sequence[str]]:
    """All values of each field of the form of a preview or of ticked rows. Raise ProblemPage, Busy."""

    def parse() -> Mapping[str, Sequence[str]]:
        return defaultdict(list, _parsed(request, body, PREVIEW_MAX_FIELDS))

    with request.slots.place(PREVIEW_FORM):
        body = await read_body(request, PREVIEW_FORM_MAX_BYTES)
        return await request.slots.run(STAGE, parse)


def cells_of(
    form: Mapping[str, Sequence[str]], fields: Sequence[str]
) -> Mapping[tuple[int, int], Mapping[str, Any]]:
    """The texts of the fields `nama.2.15`: by their two numbers, then by the name."""
    cells: defaultdict[tuple[int, int], dict[str, Any]] = defaultdict(dict)
    for name, texts in form.items():
        found = cell_name.fullmatch(name)
        if found and found[1] in fields:
            cells[int(found[2]), int(found[3])][found[1]] = texts[0]
    return cells


def _parsed(
    request: Request, body: bytes, max_fields: int, fields: Collection[str] = ()
) -> Mapping[str, Sequence[str]]:
    """The texts of these fields, or of all. Raise ProblemPage if the body is not a form, or a text is not UTF-8."""
    headers = request.sent
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if body and (
        content_type != b"application/x-www-form-urlencoded" or b"content-encoding" in headers
    ):
        raise ProblemPage("not a form")
    try:
        sent = parse_qs(
            body.decode(errors=SURROGATES),
            keep_blank_values=True,
            errors=SURROGATES,
            max_num_fields=max_fields,
        )
        form = {name: sent[name] for name in fields or sent if name in sent}
        "".join(chain.from_iterable(form.values())).encode()
    except ValueError:  # too many fields, or a byte that is not UTF-8
        raise ProblemPage("bad request") from None
    return form


async def read_body(request: Request, max_bytes: int) -> bytes:
    """A whole body; raise what `body_pieces` raises."""
    # A list of tiny pieces would take far more memory than their bytes.
    body = bytearray()
    async for piece in body_pieces(request, max_bytes, "too large"):
        body += piece
    return bytes(body)


async def body_pieces(
    request: Request, max_bytes: int, too_large: ProblemName
) -> AsyncGenerator[bytes]:
    """The pieces of a body as they arrive. Raise ProblemPage and ClientDisconnect."""
    length = int(request.sent.get(b"content-length", -1))  # -1: a chunked body
    if length > max_bytes:
        raise ProblemPage(too_large, max_bytes)
    now = asyncio.get_running_loop().time
    connection = connection_of(request.scope)
    left = BODY_TIMEOUT_SECONDS
    received = 0
    has_more = True
    while has_more:
        began = now()
        try:
            # A body that has arrived needs no timer.
            async with asyncio.timeout(left) if connection.awaits_body() else nullcontext():
                message = await request.receive()
        except TimeoutError:
            raise ProblemPage("too slow") from None
        if message["type"] == "http.disconnect":  # also if the body breaks HTTP's framing
            raise ClientDisconnect
        piece: bytes = message.get("body", b"")
        received += len(piece)
        if received > max_bytes:
            raise ProblemPage(too_large, max_bytes)
        earned = len(piece) / MIN_BYTES_PER_SECOND - (now() - began)
        left = min(BODY_TIMEOUT_SECONDS, left + earned)
        has_more = message.get("more_body", False)
        yield piece


def boundary_of(request: Request) -> str:
    content_type = request.sent.get(b"content-type", b"")
    media_type, options = parse_options_header(content_type[:CONTENT_TYPE_MAX_BYTES])
    boundary = options.get(b"boundary", b"")
    if media_type != b"multipart/form-data":
        raise ProblemPage("not a form")
    if not is_boundary(boundary):
        raise ProblemPage("bad request")
    return boundary.decode()

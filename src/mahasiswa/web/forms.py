"""Reads the body of a form post: counts its bytes, sets deadlines, and decodes its fields without changing them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from mahasiswa.pace import Pace
from mahasiswa.sheets import MAX_CONFIRMED_BYTES
from mahasiswa.web.request import Request
from mahasiswa.wording import ProblemName
from mahasiswa.work import IMPORT, Busy

FORM_MAX_BYTES = 64 * 1024

BODY_TIMEOUT_SECONDS = 10.0
"""Maximum time in which no byte of a body arrives, and in which a client may be slower than pace.py allows."""

MAX_FIELDS = 1000
"""Maximum number of fields of a form. A preview has 100 rows to repair with six fields each, and as many ticks."""

DECODE_BYTES = 64 * 1024
"""Bytes that are decoded at a time: a larger piece would hold the GIL for too long."""

FormProblem = Literal["twice", "not_utf8"]


class BodyRefused(Exception):
    """The body cannot be read as a form. `problem` names the page that says so, `limit` is the limit in bytes, if any."""

    def __init__(self, problem: ProblemName, limit: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.limit = limit


class Form(NamedTuple):
    """The requested fields. `values` has each text, or None if it was not sent; `wrong` has the problems of texts."""

    values: dict[str, str | None]
    wrong: dict[str, FormProblem]


async def read_form(request: Request, fields: Sequence[str]) -> Form:
    """Read an application/x-www-form-urlencoded body; raise BodyRefused, Busy. Other fields than `fields` are ignored."""
    form = Form({}, {})
    with request.limits.bodies.hold() as count:
        body = await _read_body(request, FORM_MAX_BYTES, "too large", count)
        for field, values in zip(fields, _sent(request, body, fields).values(), strict=True):
            try:
                form.values[field] = _decode(values[0]).decode() if values else None
            except UnicodeDecodeError:
                form.values[field] = _decode(values[0]).decode(errors="replace")
                form.wrong[field] = "not_utf8"
            if len(values) > 1:
                form.wrong[field] = "twice"
    return form


async def read_confirmation(request: Request, fields: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Read the form of a preview, or of ticked rows, and parse it in a thread. Return all values of each field, in order.

    Bytes that are not UTF-8 are replaced.
    """

    def parse() -> Mapping[str, Sequence[str]]:
        sent = _sent(request, body, fields)
        return {field: [_decode(value).decode(errors="replace") for value in sent[field.encode()]] for field in fields}

    with large_body(request) as count:
        body = await _read_body(request, MAX_CONFIRMED_BYTES, "confirmation too large", count)
        return await request.limits.slots.run(IMPORT, parse)


def _sent(request: Request, body: bytes, fields: Sequence[str]) -> Mapping[bytes, Sequence[bytes]]:
    """The values of each field as they were sent."""
    headers = request.first_headers
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if body and (content_type != b"application/x-www-form-urlencoded" or b"content-encoding" in headers):
        raise BodyRefused("not a form")
    if body.count(b"&") > MAX_FIELDS:
        raise BodyRefused("bad request")
    sent: dict[bytes, list[bytes]] = {field.encode(): [] for field in fields}
    for pair in body.split(b"&"):
        name, _, value = pair.partition(b"=")
        if (values := sent.get(_decode(name))) is not None:
            values.append(value)
    return sent


def _decode(text: bytes) -> bytes:
    """The text without its percent-encoding, decoded in pieces that do not cut an escape into two."""
    text = text.replace(b"+", b" ")
    if len(text) <= DECODE_BYTES:
        return unquote_to_bytes(text) if b"%" in text else text
    pieces = []
    at = 0
    while at < len(text):
        escape = text.find(b"%", at + DECODE_BYTES - 2, at + DECODE_BYTES)
        end = escape if escape != -1 else at + DECODE_BYTES
        pieces.append(unquote_to_bytes(text[at:end]))
        at = end
    return b"".join(pieces)


async def _read_body(request: Request, max_bytes: int, too_large: ProblemName, count: Callable[[int], None]) -> bytes:
    receive = bounded_receive(request, max_bytes, max_bytes, too_large, count)
    length = _content_length(request)
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":  # also if the body breaks HTTP's framing
            raise ClientDisconnect
        body += message.get("body", b"")
        # Stop reading at Content-Length: waiting for the empty final message costs one more receive().
        more = message.get("more_body", False) and len(body) != length
    return bytes(body)


@contextmanager
def large_body(request: Request) -> Iterator[Callable[[int], None]]:
    """Count an upload or a confirmation. Yield the function that counts the bytes that arrive; it raises Busy.

    If too many arrive at the same time, the slowest one is refused, so slow clients cannot keep others out.
    """
    received, is_refused = 0, False

    def count(new: int) -> None:
        nonlocal received
        if is_refused:
            raise Busy("uploads: this one was the slowest")
        received += new
        count_bytes(new)

    def refuse() -> None:
        nonlocal is_refused
        is_refused = True

    with request.limits.bodies.hold() as count_bytes:
        request.limits.uploads.hold(count, 0, refuse, lambda: received)
        try:
            yield count
        finally:
            request.limits.uploads.release(count, refuse)


def bounded_receive(
    request: Request, max_bytes: int, limit: int, too_large: ProblemName, count: Callable[[int], None]
) -> Receive:
    """The request's receive(), with deadlines and a limit on the bytes that really arrive. `limit` is for the message.

    While no byte arrives, HttpProtocol sends an empty message each second, so the deadlines need no timer. A timer took
    a twentieth of the time of an addition.
    """
    if (_content_length(request) or 0) > max_bytes:
        raise BodyRefused(too_large, limit)
    pace, received = Pace(BODY_TIMEOUT_SECONDS), 0

    async def receive() -> Message:
        nonlocal received
        message = await request.receive()
        new = len(message.get("body", b""))
        received += new
        if pace.is_too_slow(received):
            raise BodyRefused("too slow")
        if received > max_bytes:
            raise BodyRefused(too_large, limit)
        count(new)
        return message

    return receive


def _content_length(request: Request) -> int | None:
    """Content-Length in bytes, or None for a chunked body."""
    headers = request.first_headers
    length = headers.get(b"content-length", b"")
    return int(length) if length.isdigit() and b"transfer-encoding" not in headers else None

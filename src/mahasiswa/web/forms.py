"""Reads the body of a form post: counts its bytes, sets deadlines, and decodes its fields without changing them."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect

from mahasiswa.pace import Pace
from mahasiswa.sheets import MAX_CONFIRMED_BYTES
from mahasiswa.web.request import Request
from mahasiswa.wording import ProblemName
from mahasiswa.work import IMPORT, Busy

FORM_MAX_BYTES = 64 * 1024
BODY_TIMEOUT_SECONDS = (
    10.0  # maximum time without a byte of a body, and in which a client may be slower than pace.py allows
)
MAX_FIELDS = 1000  # of a form; a preview has 100 rows to repair with six fields each, and as many ticks
DECODE_BYTES = 64 * 1024  # bytes that are decoded at a time: a larger piece would hold the GIL for too long

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
        body = await _whole(body_of(request, FORM_MAX_BYTES, "too large", count))
        for field, values in _sent(request, body, fields).items():
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
    with large_body(request) as count:
        body = await _whole(body_of(request, MAX_CONFIRMED_BYTES, "confirmation too large", count))

        def parse() -> Mapping[str, Sequence[str]]:
            sent = _sent(request, body, fields).items()
            return {field: [_decode(value).decode(errors="replace") for value in values] for field, values in sent}

        return await request.limits.slots.run(IMPORT, parse)


async def _whole(pieces: AsyncGenerator[bytes, None]) -> bytes:
    body = bytearray()  # a list of tiny pieces would take far more memory than their bytes, which are counted
    async for piece in pieces:
        body += piece
    return bytes(body)


def _sent(request: Request, body: bytes, fields: Sequence[str]) -> Mapping[str, Sequence[bytes]]:
    """The values of each field as they were sent."""
    headers = request.first_headers
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if body and (content_type != b"application/x-www-form-urlencoded" or b"content-encoding" in headers):
        raise BodyRefused("not a form")
    if body.count(b"&") > MAX_FIELDS:
        raise BodyRefused("bad request")
    sent: dict[str, list[bytes]] = {field: [] for field in fields}
    for pair in body.split(b"&"):
        name, _, value = pair.partition(b"=")
        if (values := sent.get(_decode(name).decode(errors="replace"))) is not None:
            values.append(value)
    return sent


def _decode(text: bytes) -> bytes:
    """The text without its percent-encoding, decoded in pieces that do not cut an escape into two."""
    text = text.replace(b"+", b" ")
    if b"%" not in text:
        return text
    cuts = [0]
    while cuts[-1] < len(text):
        end = cuts[-1] + DECODE_BYTES
        escape = text.find(b"%", end - 2, end)
        cuts.append(end if escape == -1 else escape)
    return b"".join([unquote_to_bytes(text[first:end]) for first, end in pairwise(cuts)])


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


def body_of(
    request: Request, max_bytes: int, too_large: ProblemName, count: Callable[[int], None], *, shown_limit: int = 0
) -> AsyncGenerator[bytes, None]:
    """The body in pieces as they arrive, with deadlines and a limit; raise BodyRefused, ClientDisconnect and what `count` raises.

    While no byte arrives, HttpProtocol sends an empty message each second, so the deadlines need no timer. A timer took
    a twentieth of the time of an addition.
    """
    headers = request.first_headers
    header = headers.get(b"content-length", b"")
    length = int(header) if header.isdigit() and b"transfer-encoding" not in headers else None
    if (length or 0) > max_bytes:
        raise BodyRefused(too_large, shown_limit or max_bytes)

    async def pieces() -> AsyncGenerator[bytes, None]:
        pace, received, more = Pace(BODY_TIMEOUT_SECONDS), 0, True
        while more:
            message = await request.receive()
            if message["type"] == "http.disconnect":  # also if the body breaks HTTP's framing
                raise ClientDisconnect
            piece = message.get("body", b"")
            received += len(piece)
            if pace.is_too_slow(received):
                raise BodyRefused("too slow")
            if received > max_bytes:
                raise BodyRefused(too_large, shown_limit or max_bytes)
            count(len(piece))
            # Stop reading at Content-Length: waiting for the empty final message costs one more receive().
            more = message.get("more_body", False) and received != length
            yield piece

    return pieces()

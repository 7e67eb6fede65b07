"""Reading a form post: its bytes, counted and timed as they come, and its fields, exactly as they were typed."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

MAX_BODY = 64 * 1024
"""Bytes of a form's body."""

BODY_SECONDS = 10.0
"""How long a client may take to send a body; as much longer as SLOWEST grants for what has come."""

SLOWEST = 16 * 1024
"""Bytes a second."""

LINGER_SECONDS, IDLE_SECONDS = 30.0, 5.0
"""How long a client may go on sending what is not read, in all and without a pause."""

BodyProblem = Literal["bad request", "too slow", "too large", "confirmation too large", "file too large", "not a form"]

FormProblem = Literal["twice", "not_utf8"]


class BodyRefused(Exception):
    """The body cannot be read as a form; `problem` names the page that says so."""

    def __init__(self, problem: BodyProblem) -> None:
        super().__init__(problem)
        self.problem = problem


class Form(NamedTuple):
    """The fields that were asked for: None where one was not sent, and what is wrong with those that were."""

    values: dict[str, str | None]
    wrong: dict[str, FormProblem]


async def read_form(
    request: Request, fields: Sequence[str], max_body: int = MAX_BODY, problem: BodyProblem = "too large"
) -> Form:
    """Read an application/x-www-form-urlencoded body; raise BodyRefused. Fields nobody asked for are ignored."""
    headers = _headers(request)
    body = await _read_body(request, _announced(headers), max_body, problem)
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if body and (content_type != b"application/x-www-form-urlencoded" or b"content-encoding" in headers):
        raise BodyRefused("not a form")
    sent: dict[bytes, list[bytes]] = {}
    for pair in body.split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            sent.setdefault(_decode(name), []).append(_decode(value))
    form = Form({}, {})
    for field in fields:
        values = sent.get(field.encode(), [])
        try:
            form.values[field] = values[0].decode() if values else None
        except UnicodeDecodeError:
            form.values[field] = values[0].decode(errors="replace")
            form.wrong[field] = "not_utf8"
        if len(values) > 1:
            form.wrong[field] = "twice"
    return form


def _decode(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


async def drain_body(receive: Receive) -> None:
    """Read on after an answer that did not wait for the body: a reset could take it from a client that still sends."""
    more = True
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while more:
                message = await asyncio.wait_for(receive(), IDLE_SECONDS)
                more = message.get("more_body", False)


@asynccontextmanager
async def read_upload(request: Request, max_file: int) -> AsyncIterator[FormData]:
    """Read a form with a file, valid within the `with`; raise BodyRefused."""
    bounded = Request(
        request.scope, _bounded(request, _announced(_headers(request)), max_file + MAX_BODY, "file too large")
    )
    try:
        async with bounded.form(max_files=1, max_fields=5, max_part_size=max_file) as form:
            yield form
    except (ClientDisconnect, MultiPartException):  # or the body is no HTTP
        raise BodyRefused("bad request") from None


async def _read_body(request: Request, announced: int | None, limit: int, problem: BodyProblem) -> bytes:
    receive = _bounded(request, announced, limit, problem)
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":  # or the body is no HTTP
            raise BodyRefused("bad request")
        body += message.get("body", b"")
        # To hear that there is no more takes as long as to hear what there is.
        more = message.get("more_body", False) and len(body) != announced
    return bytes(body)


def _bounded(request: Request, announced: int | None, limit: int, problem: BodyProblem) -> Receive:
    """The request's body, counted and timed as it comes: a client may announce one length and send another."""
    if announced and announced > limit:
        raise BodyRefused(problem)
    deadline = asyncio.get_running_loop().time() + BODY_SECONDS
    received = 0

    async def receive() -> Message:
        nonlocal received
        try:
            async with asyncio.timeout_at(deadline + received / SLOWEST):
                message = await request.receive()
        except TimeoutError:
            raise BodyRefused("too slow") from None
        received += len(message.get("body", b""))
        if received > limit:
            raise BodyRefused(problem)
        return message

    return receive


def _headers(request: Request) -> Mapping[bytes, bytes]:
    return dict(reversed(request.scope["headers"]))  # of several the first


def _announced(headers: Mapping[bytes, bytes]) -> int | None:
    """The length of the body in bytes; None where it comes in chunks, whose end tells."""
    length = headers.get(b"content-length", b"")
    return int(length) if length.isdigit() and b"transfer-encoding" not in headers else None

"""Reads the body of a form post: counts its bytes, sets deadlines, and decodes its fields without changing them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as StarletteRequest
from starlette.types import Message, Receive

from mahasiswa.web.request import Request
from mahasiswa.wording import ProblemName

FORM_MAX_BYTES = 64 * 1024

BODY_TIMEOUT_SECONDS = 10.0
"""Maximum time for a whole body; longer by one second for each BODY_BYTES_PER_SECOND that arrived."""

BODY_BYTES_PER_SECOND = 16 * 1024

FormProblem = Literal["twice", "not_utf8"]


class BodyRefused(Exception):
    """The body cannot be read as a form. `problem` names the page that says so, `limit` is the limit in bytes, if any."""

    def __init__(self, problem: ProblemName, limit: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.limit = limit


class Form(NamedTuple):
    """The fields that were asked for: each text, or None if it was not sent, and the problems of those that were."""

    values: dict[str, str | None]
    wrong: dict[str, FormProblem]


async def read_form(
    request: Request, fields: Sequence[str], max_bytes: int = FORM_MAX_BYTES, too_large: ProblemName = "too large"
) -> Form:
    """Read an application/x-www-form-urlencoded body; raise BodyRefused. Other fields than `fields` are ignored."""
    headers = _headers(request)
    body = await _read_body(request, _content_length(headers), max_bytes, too_large)
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if body and (content_type != b"application/x-www-form-urlencoded" or b"content-encoding" in headers):
        raise BodyRefused("not a form")
    sent: dict[bytes, list[bytes]] = {field.encode(): [] for field in fields}
    for pair in body.split(b"&"):
        name, _, value = pair.partition(b"=")
        if (values := sent.get(_decode(name))) is not None:
            values.append(_decode(value))
    form = Form({}, {})
    for field, values in zip(fields, sent.values(), strict=True):
        try:
            form.values[field] = values[0].decode() if values else None
        except UnicodeDecodeError:
            form.values[field] = values[0].decode(errors="replace")
            form.wrong[field] = "not_utf8"
        if len(values) > 1:
            form.wrong[field] = "twice"
    return form


def _decode(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" ")) if b"%" in text else text.replace(b"+", b" ")


@asynccontextmanager
async def read_upload(request: Request, file_max_bytes: int) -> AsyncIterator[FormData]:
    """Read a multipart form with a file, valid within the `with`; raise BodyRefused."""
    length = _content_length(_headers(request))
    receive = _bounded(request, length, file_max_bytes, file_max_bytes + FORM_MAX_BYTES, "file too large")
    bounded = StarletteRequest(request.scope, receive)
    try:
        async with bounded.form(max_files=1, max_fields=5, max_part_size=file_max_bytes) as form:
            yield form
    except (ClientDisconnect, MultiPartException):  # also if the body breaks HTTP's framing
        raise BodyRefused("bad request") from None


async def _read_body(request: Request, length: int | None, max_bytes: int, too_large: ProblemName) -> bytes:
    receive = _bounded(request, length, max_bytes, max_bytes, too_large)
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":  # also if the body breaks HTTP's framing
            raise BodyRefused("bad request")
        body += message.get("body", b"")
        # Stop reading at Content-Length: waiting for the empty final message costs one more receive().
        more = message.get("more_body", False) and len(body) != length
    return bytes(body)


def _bounded(request: Request, length: int | None, limit: int, max_bytes: int, too_large: ProblemName) -> Receive:
    """The request's receive(), with a deadline and a limit on the bytes that really arrive."""
    if length and length > max_bytes:
        raise BodyRefused(too_large, limit)
    deadline = asyncio.get_running_loop().time() + BODY_TIMEOUT_SECONDS
    received = 0

    async def receive() -> Message:
        nonlocal received
        try:
            async with asyncio.timeout_at(deadline + received / BODY_BYTES_PER_SECOND):
                message = await request.receive()
        except TimeoutError:
            raise BodyRefused("too slow") from None
        received += len(message.get("body", b""))
        if received > max_bytes:
            raise BodyRefused(too_large, limit)
        return message

    return receive


def _headers(request: Request) -> Mapping[bytes, bytes]:
    return dict(reversed(request.scope["headers"]))  # the first of several with the same name


def _content_length(headers: Mapping[bytes, bytes]) -> int | None:
    """Content-Length in bytes, or None for a chunked body."""
    length = headers.get(b"content-length", b"")
    return int(length) if length.isdigit() and b"transfer-encoding" not in headers else None

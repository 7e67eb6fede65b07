"""Reading a form post: its bytes, counted and timed as they come, and its fields, exactly as they were typed."""

import asyncio
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect, Request

MAX_BODY = 64 * 1024
"""Bytes of a form's body."""

BODY_SECONDS = 10.0
"""How long a client may take to send it."""

FormProblem = Literal["twice", "not_utf8"]


class BodyRefused(Exception):
    """The body cannot be read as a form; `problem` names the page that says so."""

    def __init__(self, problem: Literal["too slow", "too large", "not a form"]) -> None:
        super().__init__(problem)
        self.problem = problem


class Form(NamedTuple):
    """The fields that were asked for: None where one was not sent, and what is wrong with those that were."""

    values: dict[str, str | None]
    wrong: dict[str, FormProblem]


async def read_form(request: Request, fields: Sequence[str], max_body: int = MAX_BODY) -> Form:
    """Read an application/x-www-form-urlencoded body; raise BodyRefused. Fields nobody asked for are ignored."""
    body = await _read_body(request, max_body)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and (content_type != "application/x-www-form-urlencoded" or "content-encoding" in request.headers):
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


async def _read_body(request: Request, limit: int) -> bytes:
    """Read the body, counted as it comes: a client may announce one length and send another, or none."""
    announced = request.headers.get("content-length", "")
    if re.fullmatch(r"[0-9]+", announced) and int(announced) > limit:
        raise BodyRefused("too large")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise BodyRefused("too large")
    except (TimeoutError, ClientDisconnect):
        raise BodyRefused("too slow") from None
    return bytes(body)

"""One line for each change and each refused request; none for what is read."""

import json
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

LONGEST_METHOD, LONGEST_PATH, LONGEST_NIM = 20, 3200, 255
"""Characters of each in a line. A nim of 255 characters takes 3,060 in a path."""


class Log:
    """An ASGI layer that says what was changed or refused: the action, the nim, the status, how long it took."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note what became of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500
        began = time.perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            note(scope, status, time.perf_counter() - began)


def note(scope: Scope, status: int, seconds: float) -> None:
    """Log a request where it changed something or was refused.

    A path is as it was sent, percent-encoded and without its query; a nim is quoted. Neither can hold a line break or
    an escape sequence, so that nobody can forge a line, nor fill the disk with a long one.
    """
    if status < 400 and scope["method"] != "POST":
        return
    level = logging.INFO if status < 400 else logging.WARNING if status < 500 else logging.ERROR
    path = _quoted(scope["raw_path"].decode("latin-1"), LONGEST_PATH)[1:-1]
    nim = scope.get("state", {}).get("nim")
    about = f" {_quoted(nim, LONGEST_NIM)}" if nim is not None else ""
    log.log(level, "%s %s%s %d %.1f ms", scope["method"][:LONGEST_METHOD], path, about, status, seconds * 1000)


def _quoted(text: str, most: int) -> str:
    """As JSON in ASCII, cut where it is too long for a record's."""
    shown = json.dumps(text if len(text) <= most else text[:most] + "...")
    return shown.replace("\x7f", "\\u007f")

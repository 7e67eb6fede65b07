"""One line for each change and each refused request; none for what is read."""

import json
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)


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

    A path is as it was sent, percent-encoded and without its query; a nim is quoted as JSON in ASCII. Neither can hold
    a line break or an escape sequence, so that nobody can forge a line.
    """
    if status < 400 and scope["method"] != "POST":
        return
    level = logging.INFO if status < 400 else logging.WARNING if status < 500 else logging.ERROR
    path = json.dumps(scope["raw_path"].decode("latin-1"))[1:-1]
    nim = scope.get("state", {}).get("nim")
    about = f" {json.dumps(nim)}" if nim is not None else ""
    log.log(level, "%s %s%s %d %.1f ms", scope["method"], path, about, status, seconds * 1000)

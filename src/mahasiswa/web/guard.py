"""The door: every request passes here before anything else looks at it."""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from mahasiswa.web.pages import Pages

malformed_escape = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class Guard:
    """An ASGI layer that hands on only requests whose target is sound, by their raw path without BASE_URL's prefix.

    Granian's `path` is decoded, `%2F` to `/` and bad UTF-8 to U+FFFD, so that a nim cannot be read from it. From here
    on `path` is the raw one, still percent-encoded; a route decodes its own segment, once.
    """

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        self.app = app
        self.pages = pages
        self.prefix = pages.prefix.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the application's start and stop."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: bytes = scope["raw_path"]
        if malformed_escape.search(path):
            await self.pages.error("bad request")(scope, receive, send)
        elif path != self.prefix and not path.startswith(self.prefix + b"/"):
            await self.pages.error("no page")(scope, receive, send)
        else:
            scope["path"] = path[len(self.prefix) :].decode("latin-1") or "/"
            await self.app(scope, receive, send)

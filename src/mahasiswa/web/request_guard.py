"""The door: every request passes here before anything else looks at it."""

import re
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from mahasiswa.settings import Settings
from mahasiswa.web import log
from mahasiswa.web.forms import drain_body
from mahasiswa.web.pages import Pages

malformed_escape = re.compile(rb"%(?![0-9A-Fa-f]{2})")

THIS_COMPUTER = ("localhost", "127.0.0.1", "[::1]")


class RequestGuard:
    """An ASGI layer that hands on only requests that mean one thing, by their raw path without BASE_URL's prefix.

    Granian's `path` is decoded, `%2F` to `/` and bad UTF-8 to U+FFFD, so that a nim cannot be read from it. From here
    on `path` is the raw one, still percent-encoded; a route decodes its own segment, once.
    """

    def __init__(self, app: ASGIApp, pages: Pages, settings: Settings) -> None:
        self.app = app
        self.pages = pages
        self.prefix = pages.prefix.encode()
        self.hosts = _hosts(settings) if settings.same_origin_only else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the application's start and stop."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if problem := self._problem(scope):
            page = self.pages.error(problem)
            log.note(scope, page.status_code, 0)
            await page(scope, receive, send)
            await drain_body(receive)
        else:
            scope["path"] = scope["raw_path"][len(self.prefix) :].decode("latin-1") or "/"
            await self.app(scope, receive, send)

    def _problem(self, scope: Scope) -> str | None:
        path: bytes = scope["raw_path"]
        host = None
        for name, value in scope["headers"]:
            if name == b"host":
                if host is not None:
                    return "bad request"
                host = value
        # Granian gives an empty one where there is none, which HTTP/1.0 allows.
        if not host and (host is None or scope["http_version"] != "1"):
            return "bad request"
        if not path or (b"%" in path and malformed_escape.search(path)):
            return "bad request"
        if self.hosts and not self._same_origin(scope, host):
            return "other site"
        if path != self.prefix and not path.startswith(self.prefix + b"/"):
            return "no page"
        return None

    def _same_origin(self, scope: Scope, host: bytes) -> bool:
        """Whether a request is for a name of ours and, where it may change something, comes from a page of ours.

        As browsers say it themselves: Sec-Fetch-Site, or Origin from those that do not send that. A client that says
        neither is no browser. The name guards against a site that has its own name lead to our address.
        """
        if self.hosts and host.lower() not in self.hosts:
            return False
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return True
        headers = dict(scope["headers"])
        site = headers.get(b"sec-fetch-site")
        if site:
            return site in (b"same-origin", b"none")
        origin = headers.get(b"origin")
        return not origin or origin.lower().partition(b"://")[2] == host.lower()


def _hosts(settings: Settings) -> frozenset[bytes]:
    """The values of Host that BASE_URL allows; for this computer by all of its names."""
    parts = urlsplit(settings.base_url.lower())
    port = f":{parts.port}" if parts.port else ""
    names = THIS_COMPUTER if parts.netloc.removesuffix(port) in THIS_COMPUTER else (parts.netloc.removesuffix(port),)
    usual = {"http": ":80", "https": ":443"}[parts.scheme]
    ports = {port, ""} if port == usual else {port, usual} if not port else {port}
    return frozenset(f"{name}{port}".encode() for name in names for port in ports)

"""The request that handlers get: Starlette's, with its path still percent-encoded and with notes for the middleware."""

from urllib.parse import unquote_to_bytes

from starlette.requests import Request as StarletteRequest
from starlette.types import Receive, Scope


class Request(StarletteRequest):
    """An HTTP request within the prefix of BASE_URL.

    `path` is the raw path without that prefix: a nim may hold an encoded slash, so only the route decodes its segment.
    """

    def __init__(self, scope: Scope, receive: Receive, prefix: bytes) -> None:
        super().__init__(scope, receive)
        self.path = scope["raw_path"][len(prefix) :].decode("latin-1") or "/"
        self.added_nim: str | None = None
        """The nim of an addition, for the log; other changes have it in their path."""

    @property
    def nim(self) -> str | None:
        """The last segment of the path, decoded once (specification 4.7.3); None if it is not UTF-8.

        No record has such a nim. The empty text is a nim like any other.
        """
        try:
            return unquote_to_bytes(self.path.rpartition("/")[2].encode("latin-1")).decode()
        except UnicodeDecodeError:
            return None

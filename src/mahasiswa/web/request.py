"""A request with its path percent-encoded, its route and the limits of the worker, and the problem of a failed one."""

import asyncio
import errno
import logging
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack  # noqa: TC003 - in an annotation of an attribute
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.requests import Request as StarletteRequest
from starlette.types import Receive, Scope

from mahasiswa.store.store_errors import Locked, TookTooLong, Unavailable, Uncertain
from mahasiswa.web.list_query import ListQuery, is_list_query
from mahasiswa.web.routes import Router
from mahasiswa.wording import ProblemName
from mahasiswa.work import LONG_PAGE, LONG_PAGE_BYTES, Busy, Kind, Slots

# Errors of the operating system that are no fault of the program.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)  # for a file or a process

NO_NIM = "\0"  # which no record has

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(eq=False)
class ProblemPage(Exception):
    """The answer is the page of this problem; `text` replaces its sentence, `limit` is in bytes."""

    problem: ProblemName
    limit: int = 0
    text: str = ""


class Form(NamedTuple):
    """The requested fields. `values` has each text, or None if it was not sent; `wrong` has the problems of texts."""

    values: dict[str, str | None]
    wrong: dict[str, str]


class BareRequest(StarletteRequest):
    """An HTTP request and its route. `path` is raw, without the prefix of BASE_URL: handlers decode its segment."""

    def __init__(
        self, scope: Scope, receive: Receive, slots: Slots, prefix: bytes, router: Router
    ) -> None:
        super().__init__(scope, receive)
        self.slots = slots
        self.path = scope["raw_path"].removeprefix(prefix).decode("latin-1") or "/"
        self.methods = router.methods(self.path)
        self.route = self.methods.get("GET" if self.method == "HEAD" else self.method)
        self.address: str  # of the client
        self.is_long = False
        self.holding: ExitStack  # until the answer was sent
        self.number = ""  # short, and in the log, so that a person can say which request failed
        self.fields: Form  # of a POST, unless a helper reads its body
        # The nim of an addition, for the log. Other changes have the nim in their path.
        self.added_nim: str | None = None

    @cached_property
    def first_headers(self) -> Mapping[bytes, bytes]:
        """The headers by lower-case name: the first of several with the same name."""
        return dict(reversed(self.scope["headers"]))

    @cached_property
    def parameter(self) -> str:
        """The last segment of the path, decoded once (specification 4.7.3). No record has a nim that is not UTF-8."""
        try:
            return unquote_to_bytes(self.path.rpartition("/")[2].encode("latin-1")).decode()
        except UnicodeDecodeError:
            return NO_NIM

    @property
    def adds_again(self) -> bool:
        """Whether the form for the next record follows an addition."""
        return b"lagi=1" in self.scope["query_string"].split(b"&")

    @cached_property
    def list_query(self) -> str:
        """The query of the list from which a record was opened, rebuilt from its parameters; empty without one."""
        # An error page about a wrong method also leads back to that page of the list.
        keeps_query = self.scope["query_string"] and any(
            route.keeps_query for route in self.methods.values()
        )
        has_query = keeps_query and is_list_query(self.query_params)
        return ListQuery.of(self.query_params).list_query if has_query else ""

    def hold(self, kind: Kind) -> None:
        """Hold a place of this kind until the answer was sent; raise Busy."""
        self.holding.enter_context(self.slots.place(kind, self.address))

    def count_page(self, length: int) -> None:
        """Count a page, or the records for it, of this length in bytes if it is long; raise Busy."""
        if length > LONG_PAGE_BYTES and not self.is_long:
            self.is_long = True
            self.hold(LONG_PAGE)

    async def while_connected(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work after the body was read. If the client leaves, cancel the work and raise ClientDisconnect."""
        working = asyncio.create_task(work)
        disconnected = asyncio.create_task(self._disconnected())
        try:
            await asyncio.wait((working, disconnected), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise ClientDisconnect
        finally:
            disconnected.cancel()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            del working  # for the same reason as in work.ended

    async def _disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def problem_of(self, error: Exception) -> ProblemName:
        """The problem to report for an error. Its reason is logged, with a traceback if it is a bug."""
        if isinstance(error, Busy):
            log.warning("busy: %s", error)
            return "busy write" if self.method == "POST" else "busy"
        if isinstance(error, Locked):
            log.warning("another program holds a lock: %s", error)
            return "locked"
        if isinstance(error, Unavailable | Uncertain) and self.route and self.route.writes:
            log.error("a change was not saved: %s (request %s)", error, self.number)
            return "uncertain" if isinstance(error, Uncertain) else "not saved"
        if isinstance(error, Unavailable):
            is_late = isinstance(error, TookTooLong)
            reason = "interrupted" if is_late else "the database could not be read"
            log.log(logging.WARNING if is_late else logging.ERROR, "%s: %s", reason, error)
            is_search = is_late and self.query_params.get("cari") and not self.list_query
            return "search too long" if is_search else "not read"
        number = error.errno if isinstance(error, OSError) else None
        if number in DISK_FULL + NO_ROOM:
            log.error("the operating system refused: %s", error)
            return "disk full" if number in DISK_FULL else "busy"
        log.error("an unexpected error (request %s)", self.number, exc_info=error)
        return "failed"

"""A request to a service with its route, and the problem of a failed one. A Service is what all handlers share."""

import asyncio
import errno
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import Receive, Scope

from mahasiswa.settings import Settings
from mahasiswa.store import Store
from mahasiswa.store.store_errors import Locked, TookTooLong, Unavailable, Uncertain
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.list_query import ListQuery, is_list_query
from mahasiswa.web.page_renderer import NUMBER
from mahasiswa.web.pages import Pages
from mahasiswa.web.responses import compressed
from mahasiswa.web.routes import Router, UploadPurpose
from mahasiswa.wording import ProblemName
from mahasiswa.work import FILE, LONG_PAGE, Busy, Kind, Slots

# Errors of the operating system that are no fault of the program.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)  # for a file or a process

# The problem that each error is for a GET, and for a POST.
PROBLEMS_OF: tuple[tuple[type[Exception], ProblemName, ProblemName], ...] = (
    (Busy, "busy", "busy write"),
    (Locked, "locked", "locked"),
    (Uncertain, "not read", "uncertain"),
    (Unavailable, "not read", "not saved"),
)

LONG_PAGE_BYTES = 1024 * 1024  # from here on a page is of the kind LONG_PAGE

NO_NIM = "\0"  # which no record has

Form = dict[str, str | None]  # the text of each field, or None if it was not sent

Requests = Counter[tuple[str, int]]
"""The number of requests by route and status. Every unknown path is the route `other`, so no client can add a time series."""

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass
class Service:
    """The settings, the store, the folder of uploads, the pages, the slots of a worker, and the number of its requests."""

    settings: Settings
    store: Store
    uploads: Path
    cache: ListCache
    pages: Pages
    slots: Slots
    requests: Requests
    router: Router


class Request(StarletteRequest):
    """An HTTP request and its route. `path` is raw, without the prefix of BASE_URL: handlers decode its segment.

    `sent` has its headers by lower-case name: the last of several with the same name.
    """

    def __init__(self, scope: Scope, receive: Receive, service: Service) -> None:
        super().__init__(scope, receive)
        self.service = service
        self.slots = service.slots
        self.sent: dict[bytes, bytes] = dict(scope["headers"])
        raw_path = scope["raw_path"].decode("latin-1")
        self.path = raw_path.removeprefix(service.settings.prefix) or "/"
        self.methods = service.router.methods(raw_path)
        self.route = self.methods.get("GET" if self.method == "HEAD" else self.method)
        self.address: str  # of the client
        self.is_long = False
        self.holding: AsyncExitStack  # until the answer was sent
        self.fields: Form  # of a POST, unless its handler reads the body
        # The nim of an addition, for the log. Other changes have the nim in their path.
        self.added_nim: str | None = None

    @property
    def purpose(self) -> UploadPurpose:
        """The purpose of the stage in the path."""
        return self.route.purpose if self.route else "impor"

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

    def unsent_file(self) -> BinaryIO:
        """A temporary file, closed after the answer was sent; raise Busy. The first write creates it, so waiting costs none."""
        self.hold(FILE)
        file = cast("BinaryIO", tempfile.SpooledTemporaryFile(1))  # noqa: SIM115 - open until its last byte was sent
        self.holding.push_async_callback(_close, file)
        return file

    async def rendered(self, kind: Kind, render: Callable[[], Response]) -> Response:
        """Render and compress a page in a thread of this kind, because it may be long; raise Busy."""
        number = NUMBER.get()

        def packed() -> Response:
            NUMBER.set(number)
            return compressed(render(), self.sent)

        return await self.slots.run(kind, packed)

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
        """The problem to report for an error. It is logged, with a traceback if it is a bug."""
        problem = self._problem_of(error)
        is_search = self.query_params.get("cari") and not self.list_query
        if is_search and isinstance(error, TookTooLong):
            problem = "search too long"
        is_usual = isinstance(error, Busy | Locked | TookTooLong)
        bug = error if problem == "failed" else None
        level = logging.WARNING if is_usual else logging.ERROR
        log.log(level, "%s: %s (request %s)", problem, error, NUMBER.get(), exc_info=bug)
        return problem

    def _problem_of(self, error: Exception) -> ProblemName:
        for kind, read, change in PROBLEMS_OF:
            if isinstance(error, kind):
                return change if self.method == "POST" else read
        number = error.errno if isinstance(error, OSError) else None
        if number in DISK_FULL:
            return "disk full"
        return "busy" if number in NO_ROOM else "failed"


async def _close(file: BinaryIO) -> None:
    """Close a temporary file in a thread, because the kernel may take long to free its memory."""
    with suppress(OSError, Busy):  # a rest that did not fit, or no thread can start
        await asyncio.to_thread(file.close)

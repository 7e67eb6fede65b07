"""Counts the requests of this worker, and shows its state at /metrics in the text format of Prometheus (METRICS=1)."""

import os
import re
import shutil
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from starlette.responses import Response

from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store import Store
from mahasiswa.store.copies import age_seconds
from mahasiswa.store.engines import backup_files
from mahasiswa.store.errors import StoreError
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.routes import Routes
from mahasiswa.work import RECORD, Busy

BOUNDS_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, float("inf"))
"""Upper bounds of the buckets in which durations are counted."""


TYPES = {"mahasiswa_requests_total": "counter", "mahasiswa_request_seconds": "histogram"}
"""All others are gauges."""


class Metrics:
    """The counters of one worker. Its process id is a label, because each worker counts for itself."""

    def __init__(self, settings: Settings, routes: Routes, cache: ListCache) -> None:
        self._settings = settings
        self._routes = routes
        self._cache = cache
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._durations: Counter[tuple[str, float]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def observe(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a request. Every unknown path is the route `other`, so no client can add a time series."""
        route = self._routes.match(path) or "other"
        self._requests[route, method, status] += 1
        self._durations[route, BOUNDS_SECONDS[bisect_left(BOUNDS_SECONDS, seconds)]] += 1
        self._seconds[route] += seconds

    async def show(self, request: Request, store: Store, pages: Pages) -> Response:
        """GET /metrics."""
        try:
            await store.reader(RECORD).get("")
            is_up = 1
        except (StoreError, Busy):
            is_up = 0
        families = groupby(sorted(self._lines(request, is_up), key=_family), _family)
        text = "".join(f"# TYPE {name} {TYPES.get(name, 'gauge')}\n{''.join(lines)}" for name, lines in families)
        return Response(text, headers=pages.headers, media_type="text/plain; version=0.0.4")

    def _lines(self, request: Request, is_up: int) -> Iterator[str]:
        for (route, method, status), count in self._requests.items():
            yield _line("requests_total", count, route=route, method=method, status=status)
        for route, seconds in self._seconds.items():
            count = 0
            for bound in BOUNDS_SECONDS:
                count += self._durations[route, bound]
                yield _line(
                    "request_seconds_bucket", count, route=route, le="+Inf" if bound == BOUNDS_SECONDS[-1] else bound
                )
            yield _line("request_seconds_count", count, route=route)
            yield _line("request_seconds_sum", seconds, route=route)
        for kind, running, waiting in request.limits.slots.load():
            yield _line("work_running", running, kind=kind.name)
            yield _line("work_running_max", kind.running, kind=kind.name)
            yield _line("work_waiting", waiting, kind=kind.name)
            yield _line("work_waiting_max", kind.waiting, kind=kind.name)
        yield _line("request_bodies_bytes", request.limits.bodies.in_memory)
        yield _line("answers_bytes", request.limits.answers.in_memory)
        yield _line("list_page_age_seconds", self._cache.age_seconds())
        yield _line("database_up", is_up)
        yield from self._sizes()

    def _sizes(self) -> Iterator[str]:
        """The files of an SQLite database, the room beside them, and the age of the newest back-up."""
        url, folder = self._settings.database_url, self._settings.backup_dir
        if isinstance(url, SQLiteURL):
            path = url.address
            with suppress(OSError):  # a file that is missing has no size
                yield _line("database_bytes", path.stat().st_size)
                yield _line("disk_free_bytes", shutil.disk_usage(path.parent).free)
                yield _line("database_wal_bytes", Path(f"{path}-wal").stat().st_size)
            if folder:
                with suppress(OSError, StopIteration):
                    yield _line("newest_backup_age_seconds", age_seconds(next(iter(backup_files(url, folder)))))


def _family(line: str) -> str:
    """The name of the metric in a line. The three series of a histogram are one metric."""
    return re.sub("(?<=request_seconds)_(bucket|count|sum)$", "", line.partition("{")[0])


def _line(name: str, value: float, **labels: object) -> str:
    pairs = ",".join(f'{label}="{text}"' for label, text in {"worker": os.getpid(), **labels}.items())
    return f"mahasiswa_{name}{{{pairs}}} {value:.10g}\n"

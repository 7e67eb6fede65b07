"""For monitors: the health check, and the counters and the state of this worker in Prometheus' text format (METRICS=1)."""

import os
import re
import shutil
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store import Store
from mahasiswa.store.backup_folder import age_seconds
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import StoreError
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import RECORD, Busy

BOUNDS_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, float("inf"))  # upper bounds of the buckets of durations
TYPES = {"requests_total": "counter", "request_seconds": "histogram"}  # all others are gauges

Sample = tuple[str, float, Mapping[str, object]]  # the name of a series, its value, and its labels


async def health(_request: Request, store: Store, pages: Pages) -> Response:
    """GET /sehat: 200 if the store answers a read of one record. Otherwise Unavailable is raised, which gives 503."""
    await store.reader(RECORD).get("")
    heading, text = wording.HEALTHY
    return pages.page("error.html", heading=heading, text=text)


class Metrics:
    """The counters of one worker. Its process id is a label, because each worker counts for itself."""

    def __init__(self, settings: Settings, cache: ListCache) -> None:
        self._settings = settings
        self._cache = cache
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._durations: Counter[tuple[str, float]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request. Every unknown path is the route `other`, so no client can add a time series."""
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
        text = ""
        for family, samples in groupby(sorted(self._samples(request, is_up), key=_family), _family):
            text += f"# TYPE mahasiswa_{family} {TYPES.get(family, 'gauge')}\n"
            for name, value, labels in samples:
                pairs = ",".join(f'{label}="{shown}"' for label, shown in {"worker": os.getpid(), **labels}.items())
                text += f"mahasiswa_{name}{{{pairs}}} {value:.10g}\n"
        return Response(text, headers=pages.headers, media_type="text/plain; version=0.0.4")

    def _samples(self, request: Request, is_up: int) -> Iterator[Sample]:
        for (route, method, status), count in self._requests.items():
            yield "requests_total", count, {"route": route, "method": method, "status": status}
        for route, seconds in self._seconds.items():
            count = 0
            for bound in BOUNDS_SECONDS:
                count += self._durations[route, bound]
                name = "+Inf" if bound == BOUNDS_SECONDS[-1] else bound
                yield "request_seconds_bucket", count, {"route": route, "le": name}
            yield "request_seconds_count", count, {"route": route}
            yield "request_seconds_sum", seconds, {"route": route}
        limits = request.limits
        for kind, running, waiting in limits.slots.load():
            work = {"running": running, "running_max": kind.running, "waiting": waiting, "waiting_max": kind.waiting}
            yield from ((f"work_{name}", value, {"kind": kind.name}) for name, value in work.items())
        gauges = {
            "request_bodies_bytes": limits.bodies.in_memory,
            "answers_bytes": limits.answers.in_memory,
            "list_page_age_seconds": self._cache.age_seconds(),
            "database_up": is_up,
            **self._sizes(),
        }
        yield from ((name, value, {}) for name, value in gauges.items())

    def _sizes(self) -> Mapping[str, float]:
        """The files of an SQLite database, the room beside them, and the age of the newest back-up."""
        url, folder = self._settings.database_url, self._settings.backup_dir
        sizes: dict[str, float] = {}
        if isinstance(url, SQLiteURL):
            with suppress(OSError):  # a file that is missing has no size
                sizes["database_bytes"] = url.address.stat().st_size
                sizes["disk_free_bytes"] = shutil.disk_usage(url.address.parent).free
                sizes["database_wal_bytes"] = Path(f"{url.address}-wal").stat().st_size
            if folder:
                with suppress(OSError, StopIteration):
                    sizes["newest_backup_age_seconds"] = age_seconds(next(iter(engine_of(url).backup_files(folder))))
        return sizes


def _family(sample: Sample) -> str:
    """The metric of a series. The three series of a histogram are one metric."""
    return re.sub("(?<=request_seconds)_(bucket|count|sum)$", "", sample[0])

"""For monitors: the health check, and the counters and the state of this worker in Prometheus' text format (METRICS=1)."""

import os
import re
import resource
import shutil
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from itertools import groupby
from pathlib import Path

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store import Store
from mahasiswa.store.backup_folder import age_seconds, read_outcome
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import StoreError
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import RECORD, Busy

BOUNDS_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, float("inf"))  # upper bounds of the buckets of durations

VERSION = metadata.version("mahasiswa")

# The kind and the meaning of each metric.
FAMILIES = {
    "mahasiswa_requests_total": ("counter", "Requests by route, method and status."),
    "mahasiswa_request_seconds": (
        "histogram",
        "Durations of requests by route. A list page from memory counts as 0 s.",
    ),
    "mahasiswa_work_running": ("gauge", "Work of each kind that runs."),
    "mahasiswa_work_running_max": ("gauge", "Maximum work of each kind that runs at the same time."),
    "mahasiswa_work_waiting": ("gauge", "Work of each kind that waits."),
    "mahasiswa_work_waiting_max": ("gauge", "Maximum work of each kind that may wait."),
    "mahasiswa_request_bodies_bytes": ("gauge", "Request bodies in memory."),
    "mahasiswa_answers_bytes": ("gauge", "Answers that clients have not taken yet."),
    "mahasiswa_list_page_age_seconds": ("gauge", "Time since the list page was rendered."),
    "mahasiswa_database_up": ("gauge", "1 if the database answers a read, otherwise 0."),
    "mahasiswa_database_bytes": ("gauge", "Size of the SQLite file."),
    "mahasiswa_database_wal_bytes": ("gauge", "Size of the write-ahead log of the SQLite file."),
    "mahasiswa_disk_free_bytes": ("gauge", "Free space beside the SQLite file."),
    "mahasiswa_newest_backup_age_seconds": ("gauge", "Age of the newest back-up in BACKUP_DIR."),
    "mahasiswa_backup_last_success_timestamp_seconds": (
        "gauge",
        "Time of the last back-up of the service that succeeded.",
    ),
    "mahasiswa_backup_failures_total": ("counter", "Back-ups of the service that failed."),
    "mahasiswa_build_info": ("gauge", "1, with the version of the service."),
    "process_cpu_seconds_total": ("counter", "Processor time of the worker."),
    "process_resident_memory_bytes": ("gauge", "Resident memory of the worker."),
    "process_virtual_memory_bytes": ("gauge", "Virtual memory of the worker."),
    "process_open_fds": ("gauge", "Open files of the worker."),
    "process_max_fds": ("gauge", "Maximum open files of the worker."),
    "process_start_time_seconds": ("gauge", "Start of the worker."),
}

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
        self._started = time.time()

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
            kind, meaning = FAMILIES[family]
            text += f"# HELP {family} {meaning}\n# TYPE {family} {kind}\n"
            for name, value, labels in samples:
                pairs = ",".join(f'{label}="{shown}"' for label, shown in {"worker": os.getpid(), **labels}.items())
                text += f"{name}{{{pairs}}} {value:.15g}\n"
        return Response(text, headers=pages.headers, media_type="text/plain; version=0.0.4")

    def _samples(self, request: Request, is_up: int) -> Iterator[Sample]:
        for (route, method, status), count in self._requests.items():
            yield "mahasiswa_requests_total", count, {"route": route, "method": method, "status": status}
        for route, seconds in self._seconds.items():
            count = 0
            for bound in BOUNDS_SECONDS:
                count += self._durations[route, bound]
                name = "+Inf" if bound == BOUNDS_SECONDS[-1] else bound
                yield "mahasiswa_request_seconds_bucket", count, {"route": route, "le": name}
            yield "mahasiswa_request_seconds_count", count, {"route": route}
            yield "mahasiswa_request_seconds_sum", seconds, {"route": route}
        limits = request.limits
        for kind, running, waiting in limits.slots.load():
            work = {"running": running, "running_max": kind.running, "waiting": waiting, "waiting_max": kind.waiting}
            yield from ((f"mahasiswa_work_{name}", value, {"kind": kind.name}) for name, value in work.items())
        gauges = {
            "request_bodies_bytes": limits.bodies.in_memory,
            "answers_bytes": limits.answers.in_memory,
            "list_page_age_seconds": self._cache.age_seconds(),
            "database_up": is_up,
            **self._sizes(),
        }
        yield from ((f"mahasiswa_{name}", value, {}) for name, value in gauges.items())
        yield "mahasiswa_build_info", 1, {"version": VERSION}
        yield from ((f"process_{name}", value, {}) for name, value in self._process().items())

    def _sizes(self) -> Mapping[str, float]:
        """The files of an SQLite database, the room beside them, and the state of its back-ups."""
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
                with suppress(OSError, ValueError):
                    last = read_outcome(url.address)
                    sizes["backup_failures_total"] = last.failures
                    if last.succeeded:
                        sizes["backup_last_success_timestamp_seconds"] = last.succeeded
        return sizes

    def _process(self) -> Mapping[str, float]:
        """The processor time, the memory and the files of this worker, as all exporters of Prometheus name them."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        values = {
            "cpu_seconds_total": used.ru_utime + used.ru_stime,
            "max_fds": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "start_time_seconds": self._started,
        }
        with suppress(OSError):  # only Linux has this folder
            virtual, resident, *_ = map(int, Path("/proc/self/statm").read_text("ascii").split())
            values["virtual_memory_bytes"] = virtual * resource.getpagesize()
            values["resident_memory_bytes"] = resident * resource.getpagesize()
            values["open_fds"] = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - no Path for each file
        return values


def _family(sample: Sample) -> str:
    """The metric of a series. The three series of a histogram are one metric."""
    return re.sub("(?<=_request_seconds)_(bucket|count|sum)$", "", sample[0])

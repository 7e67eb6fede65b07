"""The counters and the state of this worker in Prometheus' text format (METRICS=1)."""

import os
import resource
import shutil
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from itertools import chain
from pathlib import Path

from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store.backup_folder import Outcome, beside_dumps, read_outcome
from mahasiswa.system.lookout import looked
from mahasiswa.web.list_cache import ListCache
from mahasiswa.work import Limits

# Upper bounds of the buckets of durations.
BOUNDS_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, float("inf"))

HISTOGRAM = "mahasiswa_request_seconds"

WORK = (
    ("running", "Work of each kind that runs."),
    ("running_max", "Maximum work of each kind that runs at the same time."),
    ("waiting", "Work of each kind that waits."),
    ("waiting_max", "Maximum work of each kind that may wait."),
)

VERSION = metadata.version("mahasiswa")

# The end of the name of a series, its value, and its labels.
Sample = tuple[str, float, Mapping[str, object]]
Gauge = tuple[str, str, float]  # the name and the meaning of a metric of one series, and its value


class Metrics:
    """The counters of one worker. Each worker counts for itself, so its process id is a label."""

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
        bound = BOUNDS_SECONDS[bisect_left(BOUNDS_SECONDS, seconds)]
        self._durations[route, bound] += 1
        self._seconds[route] += seconds

    def last_backup(self, list_id: str) -> Outcome | None:
        """The noted outcome of the last back-up or dump; None if there are no back-ups."""
        url = self._settings.database_url
        folder = self._settings.backup_dir
        if folder is None:
            return None
        place = url.address if isinstance(url, SQLiteURL) else beside_dumps(folder, list_id)
        try:
            return looked(place, read_outcome)
        except OSError:
            return None

    def text(self, limits: Limits, is_up: int, last: Outcome | None) -> str:
        """All metrics as Prometheus reads them. `is_up` is 1 if the database answers."""
        text = ""
        for name, meaning, samples in self._families(limits, is_up, last):
            kind = "counter" if name.endswith("_total") else "gauge"
            kind = "histogram" if name == HISTOGRAM else kind
            text += f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
            for end, value, labels in samples:
                all_labels = {"worker": os.getpid(), **labels}
                pairs = [f'{label}="{shown}"' for label, shown in all_labels.items()]
                text += f"{name}{end}{{{','.join(pairs)}}} {value:.15g}\n"
        return text

    def _families(
        self, limits: Limits, is_up: int, last: Outcome | None
    ) -> Iterator[tuple[str, str, Iterable[Sample]]]:
        """The name and the meaning of each metric, and its series."""
        requests = [
            ("", count, {"route": route, "method": method, "status": status})
            for (route, method, status), count in self._requests.items()
        ]
        yield (
            "mahasiswa_requests_total",
            "Requests by route, method and status; an unknown path is the route other.",
            requests,
        )
        yield (
            HISTOGRAM,
            "Durations of requests by route. A list page from memory counts as 0 s.",
            self._histogram(),
        )
        # How much runs and waits, and the maximum of each.
        load = [
            (kind.name, (running, kind.running, waiting, kind.waiting))
            for kind, running, waiting in limits.slots.load()
        ]
        for at, (name, meaning) in enumerate(WORK):
            work = [("", numbers[at], {"kind": kind}) for kind, numbers in load]
            yield f"mahasiswa_work_{name}", meaning, work
        for name, meaning, value in chain(
            self._state(limits, is_up), _backups(last) if last else (), self._process()
        ):
            yield name, meaning, [("", value, {})]
        yield (
            "mahasiswa_build_info",
            "1, with the version of the service.",
            [("", 1, {"version": VERSION})],
        )

    def _histogram(self) -> Iterator[Sample]:
        for route, seconds in self._seconds.items():
            count = 0
            for bound in BOUNDS_SECONDS:
                count += self._durations[route, bound]
                shown = "+Inf" if bound == BOUNDS_SECONDS[-1] else bound
                yield "_bucket", count, {"route": route, "le": shown}
            yield "_count", count, {"route": route}
            yield "_sum", seconds, {"route": route}

    def _state(self, limits: Limits, is_up: int) -> Iterator[Gauge]:
        """The memory of the budgets, and the database with its files."""
        url = self._settings.database_url
        yield "mahasiswa_request_bodies_bytes", "Request bodies in memory.", limits.bodies.in_memory
        yield (
            "mahasiswa_answers_bytes",
            "Answers that clients have not taken yet.",
            limits.answers.in_memory,
        )
        yield (
            "mahasiswa_list_page_age_seconds",
            "Time since the list page was rendered. It is rendered when someone asks for it after a change.",
            self._cache.age_seconds(),
        )
        yield "mahasiswa_database_up", "1 if the database answers a read, otherwise 0.", is_up
        if not isinstance(url, SQLiteURL):
            return
        with suppress(OSError):  # a file that is missing has no size
            file = Path(os.path.realpath(url.address))  # SQLite keeps its log beside it
            yield "mahasiswa_database_bytes", "Size of the SQLite file.", file.stat().st_size
            yield (
                "mahasiswa_disk_free_bytes",
                "Free space beside the file.",
                shutil.disk_usage(file.parent).free,
            )
            wal = Path(f"{file}-wal")
            yield (
                "mahasiswa_database_wal_bytes",
                "Size of the write-ahead log of the SQLite file.",
                wal.stat().st_size,
            )

    def _process(self) -> Iterator[Gauge]:
        """The processor time, the memory and the files of this worker, as all exporters of Prometheus name them."""
        yield "process_cpu_seconds_total", "Processor time of the worker.", time.process_time()
        yield (
            "process_max_fds",
            "Maximum open files.",
            resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )
        yield "process_start_time_seconds", "Start of the worker.", self._started
        with suppress(OSError):  # only Linux has this folder
            pages = Path("/proc/self/statm").read_text("ascii").split()
            virtual, resident = map(int, pages[:2])
            page = resource.getpagesize()
            yield "process_virtual_memory_bytes", "Virtual memory of the worker.", virtual * page
            yield "process_resident_memory_bytes", "Resident memory of the worker.", resident * page
            count = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - no Path for each file
            yield "process_open_fds", "Open files of the worker.", count


def _backups(last: Outcome) -> Iterator[Gauge]:
    failed = "Back-ups of the service that failed."
    yield "mahasiswa_backup_failures_total", failed, last.failures
    meaning = "Records that the list has lost within 30 days, if there are enough for an alarm; otherwise 0."
    yield "mahasiswa_records_missing", meaning, last.missing
    if last.newest:
        age = max(0.0, time.time() - last.newest)
        meaning = "Age of the newest back-up in BACKUP_DIR."
        yield "mahasiswa_newest_backup_age_seconds", meaning, age
    if last.succeeded:
        meaning = "Time of the last back-up of the service that succeeded."
        yield "mahasiswa_backup_last_success_timestamp_seconds", meaning, last.succeeded

"""The metrics of this worker and of the service in Prometheus' text format (METRICS=1)."""

import math
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store.backup_folder import age, find_backups

# The name and the meaning of each metric. A counter ends with _total.
METRICS = {
    "requests_total": "Requests by route and status; an unknown path is the route other.",
    "errors_total": "Requests that ended with a status of 500 or above.",
    "database_up": "1 if the database answers a read, otherwise 0.",
    "newest_backup_age_seconds": "Age of the newest back-up in BACKUP_DIR; +Inf if there is none.",
    "disk_free_bytes": "Free space beside the SQLite file.",
}

Requests = Counter[tuple[str, int]]
"""The number of requests by route and status. Every unknown path is the route `other`, so no client can add a time series."""


def text(requests: Requests, state: Mapping[str, float]) -> str:
    """All metrics as Prometheus reads them. `state` has those of the service by name.

    Each worker counts for itself, so its process id is a label.
    """
    errors = sum(count for (_, status), count in requests.items() if status >= 500)
    samples = {(name, ""): value for name, value in {"errors_total": errors, **state}.items()}
    for (route, status), count in requests.items():
        samples["requests_total", f',route="{route}",status="{status}"'] = count
    text = ""
    for name, meaning in METRICS.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        text += f"# HELP mahasiswa_{name} {meaning}\n# TYPE mahasiswa_{name} {kind}\n"
        for (metric, labels), value in samples.items():
            if metric == name:
                text += f'mahasiswa_{name}{{worker="{os.getpid()}"{labels}}} {value:.15g}\n'
    return text


def state_of_files(settings: Settings, list_id: str) -> dict[str, float]:
    """The free space beside an SQLite file, and the age of its newest back-up in BACKUP_DIR, which may be slow."""
    url, folder = settings.database_url, settings.backup_dir
    state: dict[str, float] = {}
    if isinstance(url, SQLiteURL):
        with suppress(OSError):  # the file or a folder is gone
            state["disk_free_bytes"] = shutil.disk_usage(url.address.resolve().parent).free
            if folder and list_id:
                newest = next(iter(find_backups(folder, list_id)), None)
                seconds = age(newest).total_seconds() if newest else math.inf
                state["newest_backup_age_seconds"] = seconds
    return state

"""Handlers for monitors: the health check, and the metrics in Prometheus' text format (METRICS=1)."""

import asyncio
import math
import os
import shutil
from contextlib import suppress

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.settings import Settings, SQLiteURL
from mahasiswa.store import Store
from mahasiswa.store.backup_folder import age_seconds, find_backups, id_of_list
from mahasiswa.store.store_errors import StoreError
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import RECORD, Busy

# The name and the meaning of each metric. A counter ends with _total.
METRICS = {
    "requests_total": "Requests by route and status; an unknown path is the route other.",
    "errors_total": "Requests that ended with a status of 500 or above.",
    "database_up": "1 if the database answers a read, otherwise 0.",
    "newest_backup_age_seconds": "Age of the newest back-up in BACKUP_DIR; +Inf if there is none.",
    "disk_free_bytes": "Free space beside the SQLite file.",
}


async def health(_request: Request, store: Store, pages: Pages) -> Response:
    """GET /sehat: 200 if the store answers a read of one record. Otherwise Unavailable is raised, which gives 503."""
    await store.reader(RECORD).get("")
    heading, text = wording.HEALTHY
    return pages.page("error.html", heading=heading, text=text, history="")


async def metrics(request: Request, store: Store, pages: Pages) -> Response:
    """GET /metrics. Each worker counts for itself, so its process id is a label."""
    list_id = ""
    with suppress(StoreError, Busy):
        list_id = id_of_list(await store.signing_key())

    state = await asyncio.to_thread(_state_of_files, request.service.settings, list_id)
    state |= {"database_up": bool(list_id), "errors_total": 0}
    for (route, status), count in request.service.requests.items():
        state[f'requests_total,route="{route}",status="{status}"'] = count
        state["errors_total"] += count * (status >= 500)

    text = ""
    for name, meaning in METRICS.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        text += f"# HELP mahasiswa_{name} {meaning}\n# TYPE mahasiswa_{name} {kind}\n"
        for sample, value in state.items():
            if sample.split(",")[0] == name:
                labels = sample.removeprefix(name)
                text += f'mahasiswa_{name}{{worker="{os.getpid()}"{labels}}} {value:.15g}\n'
    return Response(text, headers=pages.headers, media_type="text/plain; version=0.0.4")


def _state_of_files(settings: Settings, list_id: str) -> dict[str, float]:
    """The free space beside an SQLite file, and the age of its newest back-up in BACKUP_DIR, which may be slow."""
    url = settings.database_url
    state: dict[str, float] = {}
    if isinstance(url, SQLiteURL):
        with suppress(OSError):  # the file or a folder is gone
            state["disk_free_bytes"] = shutil.disk_usage(url.address.resolve().parent).free
            if settings.backup_dir and list_id:
                newest = next(iter(find_backups(settings.backup_dir, list_id)), None)
                seconds = age_seconds(newest) if newest else math.inf
                state["newest_backup_age_seconds"] = seconds
    return state

"""Handlers for monitors: the health check, and the metrics."""

import asyncio
from contextlib import suppress

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.store import Store
from mahasiswa.store.backup_folder import id_of_list
from mahasiswa.store.store_errors import StoreError
from mahasiswa.web import metrics
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import RECORD, Busy


async def health(_request: Request, store: Store, pages: Pages) -> Response:
    """GET /sehat: 200 if the store answers a read of one record. Otherwise Unavailable is raised, which gives 503."""
    await store.reader(RECORD).get("")
    heading, text = wording.HEALTHY
    return pages.page("error.html", heading=heading, text=text, history="")


async def show(request: Request, store: Store, pages: Pages) -> Response:
    """GET /metrics."""
    list_id = ""
    with suppress(StoreError, Busy):
        list_id = id_of_list((await store.signing_key()).hex())
    service = request.service
    state = await asyncio.to_thread(metrics.state_of_files, service.settings, list_id)
    text = metrics.text(service.requests, {"database_up": bool(list_id), **state})
    return Response(text, headers=pages.headers, media_type="text/plain; version=0.0.4")

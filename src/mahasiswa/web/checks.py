"""Handlers of the check of the whole list for records that may be wrong."""

from functools import partial
from typing import get_args

from starlette.responses import Response

from mahasiswa.record import Write, digest, groups, tidy
from mahasiswa.store import Query, Store, Suspicion
from mahasiswa.store.store_errors import Changed
from mahasiswa.web.list_query import ListQuery
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import SEARCH

SUSPECTS_MAX = 50  # records that a check shows for each suspicion
TIDIED_MAX = 1000  # records that are tidied at once
TIDIED_MAX_CHARACTERS = 200_000  # of them, because other requests wait meanwhile (35 ms)


async def check(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/periksa: records that may be wrong. Nothing is refused because of it (specification 7.1)."""
    reader = store.reader(SEARCH)
    found = {
        suspicion: await reader.suspects(suspicion, SUSPECTS_MAX)
        for suspicion in get_args(Suspicion)
    }
    show = partial(
        pages.page,
        "check.html",
        headers=pages.not_stored,
        found=found,
        tidied_max=TIDIED_MAX,
        search=lambda nim: ListQuery(Query(nim, di="nim")).list_query,
    )
    return await request.rendered(SEARCH, show)


async def tidy_all(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/periksa: remove needless spaces from names and addresses, as one batch."""
    reader = store.reader(SEARCH)
    spaced = await request.while_connected(reader.suspects("spaces", TIDIED_MAX))
    untidy = await reader.find([record.nim for record in spaced.records])
    found = next(groups(untidy.values(), TIDIED_MAX_CHARACTERS))
    writes = [
        Write(old._replace(nama=tidy(old.nama), alamat=tidy(old.alamat)), digest(old))
        for old in found
    ]
    try:
        await store.write_all("tidy", writes)
    except Changed:
        return pages.error("locked")
    return pages.redirect_to("/mahasiswa/periksa")

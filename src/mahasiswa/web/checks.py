"""Handlers of the check of the whole list for records that may be wrong."""

from collections.abc import Sequence
from functools import partial
from typing import get_args

from starlette.responses import Response

from mahasiswa.record import Mahasiswa, Write, digest, tidy
from mahasiswa.store import Hits, Query, Store, Suspicion
from mahasiswa.store.store_errors import Changed
from mahasiswa.web.list_html import packed
from mahasiswa.web.list_query import ListQuery
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import SEARCH, groups

SUSPECTS_MAX = 50  # records that a check shows for each suspicion
TIDIED_MAX = 1000  # records that are tidied at once
TIDIED_MAX_CHARACTERS = 4_000_000  # of them, because other changes wait meanwhile


async def check(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/periksa: records that may be wrong. Nothing is refused because of it (specification 7.1)."""
    found: dict[Suspicion, Hits] = {}
    for suspicion in get_args(Suspicion):
        found[suspicion] = await store.reader(SEARCH).suspects(suspicion, SUSPECTS_MAX)
        request.count_page(len(packed(found[suspicion].records)))
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
    found = next(
        groups(untidy.values(), lambda record: len("".join(record)), TIDIED_MAX_CHARACTERS), []
    )
    request.count_page(len(packed(found)))
    writes = await request.slots.run(SEARCH, partial(_tidied, found))
    try:
        await store.write_all("tidy", writes)
    except Changed:
        return pages.error("locked")
    return pages.redirect_to("/mahasiswa/periksa")


def _tidied(records: Sequence[Mahasiswa]) -> Sequence[Write]:
    return [
        Write(old._replace(nama=tidy(old.nama), alamat=tidy(old.alamat)), digest(old))
        for old in records
    ]

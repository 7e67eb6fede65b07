"""Handlers of the list: specification 4.1, its searches and pages, the page to print it, and its downloads."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import cache, partial
from io import BytesIO

from starlette.responses import Response, StreamingResponse

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.sheets.xlsx_export import write_xlsx
from mahasiswa.store import Query, Reader, Store
from mahasiswa.store.store_errors import Unavailable
from mahasiswa.web import list_html
from mahasiswa.web.exports import export_records, print_records
from mahasiswa.web.list_query import ListQuery, is_list_query, query_of
from mahasiswa.web.pages import Frame, Pages
from mahasiswa.web.request import Request
from mahasiswa.work import LIST, PAGE, SEARCH, Busy

# Maximum rows that are read and sent at a time; fewer if texts are long (reader.AFTER_MAX_BYTES).
STREAM_ROWS = 1000


async def index(request: Request, store: Store, pages: Pages) -> Response:
    """GET / (specification 4.1): the kept page, one page of a search, or a list too long to keep as a stream."""
    if is_list_query(request.query_params):
        asked = ListQuery.of(request.query_params)
        return await request.while_connected(_page(request, asked, store, pages))
    if page := await request.service.cache.page():
        return page.respond(request.scope, request.sent)
    reader = store.reader(LIST)
    found = await reader.search(Query(), 0, 0)
    # Read before the head is sent, so a read that fails is answered with a page.
    records = await reader.after(None, STREAM_ROWS)
    frame = pages.list_frame(found.total, found.last)
    chunks = _stream(request, reader, pages, records, frame)
    return StreamingResponse(chunks, 200, pages.headers, "text/html")


async def print_list(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/cetak: the records of a search on one page, with the title and the columns that paper needs."""
    query = query_of(request.query_params)
    return await print_records(request, pages, partial(store.export, query), query)


async def template(_request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/templat.xlsx: an empty table that passes its own import."""
    headers = pages.download_headers("templat-mahasiswa.xlsx")
    return Response(_template(), headers=headers, media_type=EXPORTS[".xlsx"].media_type)


async def export(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.xlsx and .csv: all records, or those of a search. Each cell of a workbook is text."""
    records = partial(store.export, query_of(request.query_params))
    return await export_records(request, pages, records)


async def _page(request: Request, page: ListQuery, store: Store, pages: Pages) -> Response:
    kind = SEARCH if page.query.cari else PAGE
    found = await store.reader(kind).search(page.query, page.offset, page.per, page.change)
    shown = page.with_total(found.total)
    if shown.halaman != page.halaman:  # past the end: show the last page
        return await _page(request, shown, store, pages)
    if page.query.cari and not found.total and not page.change:
        with suppress(Busy, Unavailable):  # then the page offers no similar searches
            shown = shown._replace(spellings=await store.reader(SEARCH).spellings(page.query))
    packed = list_html.packed(found.records)
    request.count_page(len(packed))
    render = partial(pages.list_page, packed, len(found.records), found.last, shown)
    return await request.rendered(kind, render)


async def _stream(
    request: Request, reader: Reader, pages: Pages, records: Sequence[Mahasiswa], frame: Frame
) -> AsyncIterator[bytes]:
    """The page in chunks.

    Each chunk is a read of its own, so no transaction waits for a slow client.
    """
    before, after = frame
    yield before
    first = 1
    while records:
        render = partial(
            b"".join, list_html.format_bodies(pages.row, list_html.packed(records), first)
        )
        first += len(records)
        last = records[-1].nim
        records = ()  # none while the client takes the page
        yield await request.slots.run(LIST, render)
        records = await reader.after(last, STREAM_ROWS)
    yield after


@cache
def _template() -> bytes:
    file = BytesIO()
    write_xlsx([], file)
    return file.getvalue()

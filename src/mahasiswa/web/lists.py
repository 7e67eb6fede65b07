"""Handlers of the list: specification 4.1, its searches and pages, and the page to print it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice

from starlette.responses import Response

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Query, Reader, Store
from mahasiswa.store.errors import TookTooLong
from mahasiswa.store.threads import in_thread
from mahasiswa.web.list_html import BODY_ROWS, INLINE_MAX_CHARACTERS, format_bodies, printed_row, size_of
from mahasiswa.web.list_view import INLINE_ROWS, MAX_ROWS_PER_PAGE, Printout, View, asks_for_view, query_of
from mahasiswa.web.page_renderer import joined
from mahasiswa.web.pages import Frame, Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import FileStream, Stream, rendered_in_thread, unsent_file
from mahasiswa.work import EXPORT, LIST, SEARCH, Busy

STREAM_ROWS = 1000  # maximum rows that are read and sent at a time; fewer if texts are long (store.AFTER_MAX_BYTES)
SPELLINGS_OFFERED = 5  # maximum other spellings that a page offers


async def index(request: Request, store: Store, pages: Pages) -> Response:
    """GET / (specification 4.1), if the list cache does not answer it: one page of a search, or the list as a stream."""
    if asks_for_view(request.scope["query_string"]):
        view = View.of(request.query_params)
        page = _page if view.per <= INLINE_ROWS else _long_page
        return await page(request, view, store, pages)
    reader = store.reader(LIST)
    found = await reader.search(Query(), 0, 0)
    records = await reader.after(None, STREAM_ROWS)
    # Another client may have added the first record, or deleted the last one, since the count.
    frame = pages.list_frame(max(found.total, len(records)) if records else 0, found.last)
    return Stream(request, _stream(request, reader, pages, records, frame), pages.headers, "text/html")


async def print_list(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/cetak: the records of a search on one page, with the title and the columns that paper needs."""
    view = View(query_of(request.query_params), per=MAX_ROWS_PER_PAGE)
    return await _long_page(request, view, store, pages, Printout.of(request.query_params))


async def _page(request: Request, view: View, store: Store, pages: Pages) -> Response:
    found = await store.reader(SEARCH).search(view.query, view.offset, view.per)
    at_end = view.with_total(found.total)
    if at_end.halaman != view.halaman:  # past the end: show the last page
        return await _page(request, at_end, store, pages)
    size = size_of(found.records)
    request.count_answer(size)
    shown = await _with_spellings(at_end, store)

    def render() -> Response:
        frame = pages.list_frame(len(found.records), found.last, shown)
        rows = format_bodies(pages.row_format(shown), found.records, shown.offset + 1)
        body = joined(chain([frame.before], rows, [frame.after]))
        return Response(body, headers=pages.headers, media_type="text/html")

    return await rendered_in_thread(request, SEARCH, render) if size > INLINE_MAX_CHARACTERS else render()


async def _with_spellings(view: View, store: Store) -> View:
    """The first page of a search with other searches to offer. If there is no slot or time for them, it has none."""
    if view.query.cari and view.halaman == 1:
        with suppress(Busy, TookTooLong):
            found = await store.reader(SEARCH).spellings(view.query, SPELLINGS_OFFERED, is_found=view.total > 0)
            return view._replace(spellings=found)
    return view


async def _long_page(
    request: Request, view: View, store: Store, pages: Pages, printout: Printout | None = None
) -> Response:
    """A page of up to MAX_ROWS_PER_PAGE rows, to print. Like an export, it is read at one moment, in bounded memory."""
    row = printed_row(with_alamat=printout.with_alamat, empty=printout.kolom) if printout else pages.row_format(view)

    def write(records: Iterator[Mahasiswa]) -> View:
        total = 0
        while chunk := list(islice(records, BODY_ROWS)):
            wanted = chunk[max(0, view.offset - total) : max(0, view.offset + view.per - total)]
            file.writelines(format_bodies(row, wanted, max(view.offset, total) + 1))
            total += len(chunk)
        return view.with_total(total)

    with unsent_file() as file:
        at_end = await in_thread(store.reader(EXPORT).chunks(view.query), write)
        if at_end.halaman != view.halaman:  # past the end: show the last page
            file.close()
            return await _long_page(request, at_end, store, pages, printout)
        count = min(view.per, at_end.total - view.offset)
        if printout:
            around = pages.print_frame(at_end, count, printout)
        else:
            latest = (await store.reader(LIST).snapshot(0)).last
            around = pages.list_frame(count, latest, await _with_spellings(at_end, store))
        return FileStream(request, file, pages.headers, "text/html", around=around)


async def _stream(
    request: Request, reader: Reader, pages: Pages, records: Sequence[Mahasiswa], frame: Frame
) -> AsyncIterator[bytes]:
    """The page in chunks with one read each, so no transaction waits for a slow client."""
    yield frame.before
    first = 1
    while records:
        render = partial(b"".join, format_bodies(pages.row, records, first))
        is_long = size_of(records) > INLINE_MAX_CHARACTERS
        # Hold no records while the client takes the page.
        first, last, records = first + len(records), records[-1].nim, ()
        yield await request.limits.slots.run(LIST, render) if is_long else render()
        records = await reader.after(last, STREAM_ROWS)
    yield frame.after

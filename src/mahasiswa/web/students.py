"""The six routes of the specification (section 4), named by their action on a record."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import BinaryIO

from starlette.responses import Response, StreamingResponse

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.errors import EditConflict, Refused, StoreError, TookTooLong, Unavailable, Uncertain
from mahasiswa.store.history import Batch, Entry
from mahasiswa.store.threads import with_records
from mahasiswa.web.forms import Form, read_form
from mahasiswa.web.list_rows import BODY_ROWS, is_long
from mahasiswa.web.list_view import OFFERED_ROWS_PER_PAGE, View, asks_for_view
from mahasiswa.web.pages import Frame, Pages
from mahasiswa.web.request import Request
from mahasiswa.web.request_log import log_busy
from mahasiswa.web.responses import rendered_in_thread, sent_and_closed, unsent_file
from mahasiswa.wording import ProblemName
from mahasiswa.work import LIST, SEARCH, Busy

STREAM_ROWS = 1000
"""Rows that are read and sent at a time. The count above a longer list is "at least 1,000", because counting all rows
takes longer than sending the first ones."""

INLINE_ROWS = OFFERED_ROWS_PER_PAGE[-1]
"""Maximum rows of a page that is rendered on the event loop. A longer one is written to a file by a thread."""

NEAREST_OFFERED = 5
"""Maximum searches that a page offers if nothing was found."""


async def index(request: Request, store: Store, pages: Pages) -> Response:
    """GET / (specification 4.1), if the list cache does not answer it: one page of a search, or the list as a stream."""
    if asks_for_view(request.scope["query_string"]):
        view = View.of(request.query_params)
        if view.per <= INLINE_ROWS:
            return await request.while_connected(_found(request, view, store, pages))
        if request.method == "HEAD":
            return pages.head("text/html")
        return await request.while_connected(_long_page(view, store, pages))
    chunk = await store.after(None, STREAM_ROWS)
    if request.method == "HEAD":
        return pages.head("text/html")
    has_more = len(chunk) == STREAM_ROWS
    frame = pages.list_frame(len(chunk), await _latest(store), has_more=has_more)
    stream = _stream(request, store, pages, chunk, frame)
    return StreamingResponse(stream, headers=pages.headers, media_type="text/html")


async def _found(request: Request, view: View, store: Store, pages: Pages) -> Response:
    found = await store.search(view.query, view.offset, view.per)
    at_end = view.found(found.total)
    if at_end.halaman != view.halaman:  # past the end: show the last page
        found = await store.search(view.query, at_end.offset, view.per)
    render = partial(pages.found, await _with_nearest(at_end, store), found.records, found.last)
    return await rendered_in_thread(request, SEARCH, render) if is_long(found.records) else render()


async def _with_nearest(view: View, store: Store) -> View:
    """The view with searches to offer, if it found nothing. If there is no slot or time for them, it has none."""
    if view.query.cari and not view.total:
        with suppress(Busy, TookTooLong):
            return view._replace(nearest=await store.nearest(view.query.cari, NEAREST_OFFERED))
    return view


async def _long_page(view: View, store: Store, pages: Pages) -> Response:
    """A page of up to MAX_ROWS_PER_PAGE rows, to print. Like an export, it is read at one moment, in bounded memory."""

    def write(records: Iterator[Mahasiswa]) -> View:
        total = 0
        while chunk := list(islice(records, BODY_ROWS)):
            shown = chunk[max(0, view.offset - total) : max(0, view.offset + view.per - total)]
            if shown:
                file.write(pages.bodies(shown, max(view.offset, total) + 1, view))
            total += len(chunk)
        return view.found(total)

    with unsent_file() as file:
        at_end = await with_records(store, view.query, write)
        if at_end.halaman != view.halaman:  # past the end: show the last page
            file.close()
            return await _long_page(at_end, store, pages)
        count = min(view.per, at_end.total - view.offset)
        frame = pages.list_frame(count, await _latest(store), await _with_nearest(at_end, store))
    return StreamingResponse(_around(frame.before, file, frame.after), headers=pages.headers, media_type="text/html")


async def _around(before: bytes, file: BinaryIO, after: bytes) -> AsyncIterator[bytes]:
    yield before
    async for chunk in sent_and_closed(file):
        yield chunk
    yield after


async def _latest(store: Store) -> Entry | Batch | None:
    return (await store.snapshot(0)).last


async def _stream(
    request: Request, store: Store, pages: Pages, chunk: Sequence[Mahasiswa], frame: Frame
) -> AsyncIterator[bytes]:
    """The page in chunks with one read each, so no transaction waits for a slow client."""
    yield frame.before
    first = 1
    while chunk:
        format_chunk = partial(pages.bodies, chunk, first)
        yield await request.limits.slots.run(LIST, format_chunk) if is_long(chunk) else format_chunk()
        first += len(chunk)
        chunk = await store.after(chunk[-1].nim, STREAM_ROWS)
    yield frame.after


async def new(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/add (specification 4.2)."""
    if pages.place:
        return pages.add_form()
    return await pages.empty_add_form.respond(request.scope, request.limits.slots)


async def edit(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/edit/:nim (specification 4.3)."""
    record = None if request.nim is None else await store.get(request.nim)
    return pages.edit_form(record) if record else pages.error("no record")


async def create(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/add (specification 4.4)."""
    form = await read_form(request, Mahasiswa._fields)
    request.added_nim = nim = form.values["nim"]
    response = await _save(form, store.add, pages.add_form, pages)
    # A second click on the button repeats an addition that is stored.
    if nim is not None and response.status_code == 409 and await store.get(nim) == tuple(form.values.values()):
        return pages.already_stored(nim)
    return response


async def update(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/edit/:nim (specification 4.5). A nim in the body is ignored (4.5.1).

    Our own form sends `versi`, the digest of the record that it showed. Then only the fields that the form changed are
    written. If someone else has changed one of them since, nothing is written, and the page of the conflict follows. A
    client that sends no `versi` gets exactly the specification's behaviour.
    """
    nim = request.nim
    form = await read_form(request, ("nama", "alamat", "versi"))
    if nim is None:
        return pages.redirect
    versi = form.values.pop("versi")
    form.wrong.pop("versi", None)  # a malformed digest matches no record

    async def write(nama: str | None, alamat: str | None) -> None:
        await store.update(nim, nama, alamat, versi)

    try:
        return await _save(form, write, partial(pages.edit_again, nim, versi), pages)
    except EditConflict as conflict:
        return pages.changed(conflict)


async def destroy(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/delete/:nim (specification 4.6). A body is not read."""
    if request.nim is not None:
        try:
            await store.delete(request.nim)
        except (Unavailable, Uncertain, Busy) as error:
            return pages.error(unsaved(error))
    return pages.redirect


async def _save(
    form: Form, write: Callable[..., Awaitable[None]], show_form: Callable[..., Response], pages: Pages
) -> Response:
    """Attempt the write. The database is the only validator; its refusal becomes the message of the form."""
    values, wrong = form
    if wrong:
        return show_form(values, wrong)
    try:
        await write(**values)
    except Refused as refused:
        if refused.reason == "missing":
            return show_form(values, {field: "missing" for field, value in values.items() if value is None})
        return show_form(values, {refused.field: refused.reason})
    except (Unavailable, Uncertain, Busy) as error:
        return show_form(values, problem=unsaved(error))
    return pages.redirect


def unsaved(error: StoreError | Busy) -> ProblemName:
    """The problem to report for a change that failed."""
    if isinstance(error, Busy):
        log_busy(error)
        return "busy write"
    return "uncertain" if isinstance(error, Uncertain) else "not saved"

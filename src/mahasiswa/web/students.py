"""The six routes of the specification (section 4), named by their action on a record."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

from starlette.responses import Response

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.errors import Changed, EditConflict, Refused, TookTooLong, Unavailable, Uncertain
from mahasiswa.store.history import Batch, Entry
from mahasiswa.store.threads import with_records
from mahasiswa.web.failures import problem_of_failed_write
from mahasiswa.web.forms import Form, read_form
from mahasiswa.web.list_pages import Frame
from mahasiswa.web.list_rows import BODY_ROWS, INLINE_MAX_CHARACTERS, size_of
from mahasiswa.web.list_view import OFFERED_ROWS_PER_PAGE, View, asks_for_view
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import FileStream, Stream, rendered_in_thread, unsent_file
from mahasiswa.work import LIST, SEARCH, Busy

STREAM_ROWS = 1000
"""Maximum rows that are read and sent at a time; fewer if their texts are long (store.AFTER_MAX_BYTES). The count above
a longer list is "at least" the first of them, because counting all rows takes longer than sending the first ones."""

INLINE_ROWS = OFFERED_ROWS_PER_PAGE[-1]
"""Maximum rows of a page that is rendered on the event loop. A longer one is written to a file by a thread."""

NEAREST_OFFERED = 5
"""Maximum searches that a page offers if nothing was found."""


async def index(request: Request, store: Store, pages: Pages) -> Response:
    """GET / (specification 4.1), if the list cache does not answer it: one page of a search, or the list as a stream."""
    if asks_for_view(request.scope["query_string"]):
        view = View.of(request.query_params)
        if view.per <= INLINE_ROWS:
            return await request.while_connected(_search_page(request, view, store, pages))
        if request.method == "HEAD":
            return pages.head("text/html")
        return await request.while_connected(_long_page(request, view, store, pages))
    if request.method == "HEAD":
        return pages.head("text/html")
    records = await store.after(None, STREAM_ROWS)
    has_more = bool(records and await store.after(records[-1].nim, 1))
    frame = pages.list_frame(len(records), await _latest(store), has_more=has_more)
    return Stream(request, _stream(request, store, pages, records, frame), pages.headers, "text/html")


async def _search_page(request: Request, view: View, store: Store, pages: Pages) -> Response:
    found = await store.search(view.query, view.offset, view.per)
    at_end = view.with_total(found.total)
    if at_end.halaman != view.halaman:  # past the end: show the last page
        found = await store.search(view.query, at_end.offset, view.per)
    size = size_of(found.records)
    request.count_answer(size)
    render = partial(pages.search_page, await _with_nearest(at_end, store), found.records, found.last)
    return await rendered_in_thread(request, SEARCH, render) if size > INLINE_MAX_CHARACTERS else render()


async def _with_nearest(view: View, store: Store) -> View:
    """The view with searches to offer, if it found nothing. If there is no slot or time for them, it has none."""
    if view.query.cari and not view.total:
        with suppress(Busy, TookTooLong):
            return view._replace(nearest=await store.nearest(view.query.cari, NEAREST_OFFERED))
    return view


async def _long_page(request: Request, view: View, store: Store, pages: Pages) -> Response:
    """A page of up to MAX_ROWS_PER_PAGE rows, to print. Like an export, it is read at one moment, in bounded memory."""

    def write(records: Iterator[Mahasiswa]) -> View:
        total = 0
        while chunk := list(islice(records, BODY_ROWS)):
            wanted = chunk[max(0, view.offset - total) : max(0, view.offset + view.per - total)]
            file.writelines(pages.bodies(wanted, max(view.offset, total) + 1, view))
            total += len(chunk)
        return view.with_total(total)

    with unsent_file() as file:
        at_end = await with_records(store, view.query, write)
        if at_end.halaman != view.halaman:  # past the end: show the last page
            file.close()
            return await _long_page(request, at_end, store, pages)
        count = min(view.per, at_end.total - view.offset)
        frame = pages.list_frame(count, await _latest(store), await _with_nearest(at_end, store))
        return FileStream(request, file, pages.headers, "text/html", around=frame)


async def _latest(store: Store) -> Entry | Batch | None:
    return (await store.snapshot(0)).last


async def _stream(
    request: Request, store: Store, pages: Pages, records: Sequence[Mahasiswa], frame: Frame
) -> AsyncIterator[bytes]:
    """The page in chunks with one read each, so no transaction waits for a slow client."""
    yield frame.before
    first = 1
    while records:
        render = partial(b"".join, pages.bodies(records, first))
        is_long = size_of(records) > INLINE_MAX_CHARACTERS
        # Hold no records while the client takes the page.
        first, last, records = first + len(records), records[-1].nim, ()
        yield await request.limits.slots.run(LIST, render) if is_long else render()
        records = await store.after(last, STREAM_ROWS)
    yield frame.after


async def new(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/add (specification 4.2). With `lagi=1`, after the record `nim` was added, for the next one."""
    again = _wants_another(request)
    if not (again or pages.list_query):
        return await pages.empty_add_form.respond(request.scope, request.limits.slots)
    stored = await store.get(request.query_params.get("nim", "")) if again else None
    return pages.add_form({}, stored=stored, again=again)


async def edit(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/edit/:nim (specification 4.3)."""
    record = await _record(request, store)
    return pages.edit_form(record) if record else pages.error("no record")


async def create(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/add (specification 4.4). With `lagi=1` the redirect leads to an empty form."""
    form = await read_form(request, Mahasiswa._fields)
    request.added_nim = form.values["nim"]
    again = _wants_another(request)
    added = pages.add_another if again else pages.saved
    return await _save(form, store, store.add, partial(pages.add_form, again=again)) or added(request.added_nim or "")


async def update(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/edit/:nim (specification 4.5). A nim in the body is ignored (4.5.1).

    Our own form sends `versi`, the digest of the record that it showed. Then only the fields that the form changed are
    written. If someone else has changed one of them since, or has deleted the record, nothing is written, and the page
    of the conflict follows. A client that sends no `versi` gets exactly the specification's behaviour.
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
        return await _save(form, store, write, partial(pages.edit_again, nim, versi)) or pages.saved(nim)
    except EditConflict as conflict:
        return pages.changed(conflict)


async def destroy(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/delete/:nim (specification 4.6). A body is not read."""
    if request.nim is not None:
        try:
            await store.delete(request.nim)
        except (Unavailable, Uncertain, Busy) as error:
            return pages.error(problem_of_failed_write(error))
    return pages.redirect


async def choose_nim(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/nim/:nim: the form that gives a record another nim."""
    record = await _record(request, store)
    return pages.nim_form(record, {}) if record else pages.error("no record")


async def change_nim(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/nim/:nim: give a record another nim. Its texts are those that are stored."""
    form = await read_form(request, ("nim",))
    nim = form.values["nim"]
    if record := await _record(request, store):
        with suppress(Changed):  # someone else has deleted it, or given it another nim
            show = partial(pages.nim_form, record)
            return await _save(form, store, partial(store.rename, record.nim), show) or pages.saved(nim or "")
    # A second click on the button repeats a change that is made.
    return pages.saved(nim) if nim and await store.get(nim) else pages.error("no record")


async def _record(request: Request, store: Store) -> Mahasiswa | None:
    return None if request.nim is None else await store.get(request.nim)


def _wants_another(request: Request) -> bool:
    return request.query_params.get("lagi") == "1"


async def _save(
    form: Form, store: Store, write: Callable[..., Awaitable[None]], show_form: Callable[..., Response]
) -> Response | None:
    """Attempt the write. The database is the only validator; its refusal becomes the message of the form.

    None says that the write was made.
    """
    values, wrong = form
    if wrong:
        return show_form(values, wrong)
    try:
        await write(**values)
    except Refused as refused:
        if refused.reason == "missing":
            return show_form(values, {field: "missing" for field, value in values.items() if value is None})
        reason = {refused.field: refused.reason}
        if refused.reason == "duplicate":
            with suppress(Unavailable, Busy):  # then the form does not say whose nim it is
                return show_form(values, reason, stored=await store.get(values["nim"] or ""))
        return show_form(values, reason)
    except (Unavailable, Uncertain, Busy) as error:
        return show_form(values, problem=problem_of_failed_write(error))
    return None

"""The six routes of the specification (section 4), named by their action on a record."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import cast

from starlette.responses import Response, StreamingResponse

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.errors import Changed, Refused, StoreError, Unavailable, Uncertain
from mahasiswa.web.forms import Form, read_form
from mahasiswa.web.list_rows import pack
from mahasiswa.web.list_view import View, asks_for_view
from mahasiswa.web.pages import LONG_LIST_ROWS, Pages
from mahasiswa.web.request import Request
from mahasiswa.web.request_log import log_busy
from mahasiswa.wording import ProblemName
from mahasiswa.work import Busy

STREAM_ROWS = LONG_LIST_ROWS + 1
"""Rows that are read and sent at a time. The first chunk shows whether the list is a long one."""


async def index(request: Request, store: Store, pages: Pages) -> Response:
    """GET / (specification 4.1), if the list cache does not answer it: one page of a search, or the list as a stream."""
    if asks_for_view(request.scope["query_string"]):
        return await request.while_connected(_found(View.of(request.query_params), store, pages))
    chunk = await store.after(None, STREAM_ROWS)
    if request.method == "HEAD":
        return pages.head("text/html")
    return StreamingResponse(_stream(store, pages, chunk), headers=pages.headers, media_type="text/html")


async def _found(view: View, store: Store, pages: Pages) -> Response:
    found = await store.search(view.query, view.offset, view.per)
    at_end = view.found(found.total)
    if at_end.halaman != view.halaman:  # past the end: show the last page
        found = await store.search(view.query, at_end.offset, view.per)
    return pages.found(at_end, found.records)


async def _stream(store: Store, pages: Pages, chunk: Sequence[Mahasiswa]) -> AsyncIterator[bytes]:
    """The page in chunks with one read each, so no transaction waits for a slow client."""
    before, after = pages.list_frame(len(chunk))
    yield before
    first = 1
    while chunk:
        yield pages.rows(pack(chunk), first)
        first += len(chunk)
        chunk = await store.after(chunk[-1].nim, STREAM_ROWS)
    yield after


async def new(request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/add (specification 4.2)."""
    return await pages.empty_add_form.respond(request.scope, request.limits.slots)


async def edit(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/edit/:nim (specification 4.3)."""
    record = None if request.nim is None else await store.get(request.nim)
    return pages.edit_form(record) if record else pages.error("no record")


async def create(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/add (specification 4.4)."""
    form = await read_form(request, Mahasiswa._fields)
    request.added_nim = form.values["nim"]
    return await _save(form, store.add, pages.add_form, pages)


async def update(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/edit/:nim (specification 4.5). A nim in the body is ignored (4.5.1).

    Our own form sends `versi`, the digest of the record that it showed. If the record has changed since, nothing is
    overwritten. A client that sends no `versi` gets exactly the specification's behaviour.
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
    except Changed as changed:
        return pages.changed(cast("Mahasiswa", changed.current), form.values)


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

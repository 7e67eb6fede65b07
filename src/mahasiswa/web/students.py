"""The six routes of the specification (section 4), named by what they do to a record."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import cast
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mahasiswa.record import Mahasiswa, digest
from mahasiswa.store import Store
from mahasiswa.store.errors import Changed, Refused, StoreError, Unavailable, Uncertain
from mahasiswa.web.forms import Form, read_form
from mahasiswa.web.list_view import PARAMETERS, View
from mahasiswa.web.pages import LONG, Pages, pack

CHUNK = LONG + 1
"""Rows read and sent at a time; the first tells whether the list is a long one."""


async def index(request: Request, store: Store, pages: Pages) -> Response:
    """GET / (specification 4.1), as a stream: what the cache in front of this route does not keep."""
    if any(name in request.query_params for name in PARAMETERS):
        return await _found(request, store, pages)
    chunk = await store.after(None, CHUNK)
    if request.method == "HEAD":
        return pages.head("text/html")
    return StreamingResponse(_list(store, pages, chunk), headers=pages.headers, media_type="text/html")


async def _found(request: Request, store: Store, pages: Pages) -> Response:
    """A page of the records that were asked for. The first does not wait for the count; a late one is read backwards."""
    view = View.asked_for(request.query_params)
    if view.halaman == 1:
        total, records = await asyncio.gather(store.count(view.query), store.page(view.query, 0, view.per))
        return pages.found(view.found(total), records)
    view = view.found(await store.count(view.query))
    return pages.found(view, await store.page(view.query, view.offset, view.per))


async def _list(store: Store, pages: Pages, chunk: Sequence[Mahasiswa]) -> AsyncIterator[bytes]:
    """The page in pieces, one read each: no transaction waits for a slow client."""
    before, after = pages.list_frame(len(chunk))
    yield before
    first = 1
    while chunk:
        yield pages.rows(pack(chunk), first)
        first += len(chunk)
        chunk = await store.after(chunk[-1].nim, CHUNK)
    yield after


async def new(_request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/add (specification 4.2)."""
    return pages.add_form()


async def edit(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/edit/:nim (specification 4.3)."""
    nim = _nim(request)
    record = None if nim is None else await store.get(nim)
    return pages.edit_form(record, digest(record)) if record else pages.error("no record")


async def create(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/add (specification 4.4)."""
    form = await read_form(request, Mahasiswa._fields)
    request.scope["nim"] = form.values["nim"]  # for the log; other routes have it in their path
    return await _save(form, store.add, pages.add_form, pages)


async def update(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/edit/:nim (specification 4.5). A nim in the body is ignored.

    A form of ours says on which version of the record it was based; a client that does not gets what the
    specification says.
    """
    nim = _nim(request)
    form = await read_form(request, ("nama", "alamat", "versi"))
    if nim is None:
        return pages.redirect
    versi = form.values.pop("versi")
    form.wrong.pop("versi", None)  # no field of the form; a strange one matches no record

    async def write(nama: str | None, alamat: str | None) -> None:
        await store.update(nim, nama, alamat, versi)

    try:
        return await _save(form, write, partial(pages.edit_again, nim, versi), pages)
    except Changed as changed:
        return pages.changed(cast("Mahasiswa", changed.current), form.values)


async def destroy(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/delete/:nim (specification 4.6). A body is not read."""
    nim = _nim(request)
    if nim is not None:
        try:
            await store.delete(nim)
        except Refused:
            return pages.error("refused")
        except (Unavailable, Uncertain) as error:
            return pages.error(unsaved(error))
    return pages.redirect


async def healthy(_request: Request, store: Store, pages: Pages) -> Response:
    """GET /sehat: whether the store answers a read, for a probe."""
    await store.after(None, 1)
    return pages.healthy()


async def _save(
    form: Form, write: Callable[..., Awaitable[None]], show_form: Callable[..., Response], pages: Pages
) -> Response:
    """Attempt the write; the database is the only validator, and its refusal becomes the form's message."""
    values, wrong = form
    if wrong:
        return show_form(values, wrong)
    try:
        await write(**values)
    except Refused as refused:
        if refused.reason == "missing":
            return show_form(values, {field: "missing" for field, value in values.items() if value is None})
        if refused.field:
            return show_form(values, {refused.field: refused.reason})
        return show_form(values, problem="refused")
    except (Unavailable, Uncertain) as error:
        return show_form(values, problem=unsaved(error))
    return pages.redirect


def unsaved(error: StoreError) -> str:
    """The page that says what became of a change."""
    return "uncertain" if isinstance(error, Uncertain) else "not saved"


def _nim(request: Request) -> str | None:
    """The path's last segment, decoded once, strictly as UTF-8: None where it is none, and so no record's.

    The empty text is a nim too.
    """
    segment: str = request.scope["path"].rpartition("/")[2]
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()
    except UnicodeDecodeError:
        return None

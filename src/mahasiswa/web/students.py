"""The six routes of the specification (section 4), named by what they do to a record."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mahasiswa.record import Mahasiswa
from mahasiswa.store import Refused, Store, Unavailable
from mahasiswa.web.forms import Form, read_form
from mahasiswa.web.pages import Pages

CHUNK = 1000
"""Rows read and sent at a time."""


async def index(request: Request) -> Response:
    """GET / (specification 4.1), as a stream: what the cache in front of this route does not keep."""
    store, pages = _parts(request)
    chunk = await store.after(None, CHUNK)
    if request.method == "HEAD":
        return Response(headers=pages.headers, media_type="text/html")
    return StreamingResponse(_list(store, pages, chunk), headers=pages.headers, media_type="text/html")


async def _list(store: Store, pages: Pages, chunk: Sequence[Mahasiswa]) -> AsyncIterator[bytes]:
    """The page in pieces, one read each: no transaction waits for a slow client."""
    before, after = pages.list_frame(empty=not chunk)
    yield before
    first = 1
    while chunk:
        yield pages.rows(chunk, first)
        first += len(chunk)
        chunk = await store.after(chunk[-1].nim, CHUNK)
    yield after


async def new(request: Request) -> Response:
    """GET /mahasiswa/add (specification 4.2)."""
    _, pages = _parts(request)
    return pages.add_form()


async def edit(request: Request) -> Response:
    """GET /mahasiswa/edit/:nim (specification 4.3)."""
    store, pages = _parts(request)
    nim = _nim(request)
    record = None if nim is None else await store.get(nim)
    return pages.edit_form(record.nim, record._asdict()) if record else pages.error("no record")


async def create(request: Request) -> Response:
    """POST /mahasiswa/add (specification 4.4)."""
    store, pages = _parts(request)
    form = await read_form(request, Mahasiswa._fields)
    return await _save(form, store.add, pages.add_form, pages)


async def update(request: Request) -> Response:
    """POST /mahasiswa/edit/:nim (specification 4.5). A nim in the body is ignored."""
    store, pages = _parts(request)
    nim = _nim(request)
    form = await read_form(request, ("nama", "alamat"))
    if nim is None:
        return pages.redirect()
    return await _save(form, partial(store.update, nim), partial(pages.edit_form, nim), pages)


async def destroy(request: Request) -> Response:
    """POST /mahasiswa/delete/:nim (specification 4.6). A body is not read."""
    store, pages = _parts(request)
    nim = _nim(request)
    if nim is not None:
        try:
            await store.delete(nim)
        except Unavailable:
            return pages.error("not saved")
    return pages.redirect()


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
    except Unavailable:
        return show_form(values, problem="not saved")
    return pages.redirect()


def _parts(request: Request) -> tuple[Store, Pages]:
    return request.app.state.store, request.app.state.pages


def _nim(request: Request) -> str | None:
    """The path's nim; None where it is no text, and so no record's."""
    nim: str | None = request.path_params["nim"]
    return nim

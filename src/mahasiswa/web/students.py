"""Handlers that show or change one record (specification, section 4, and *Ganti NIM*), named by their action on it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from starlette.responses import Response

from mahasiswa.record import Mahasiswa, digest
from mahasiswa.store import Store
from mahasiswa.store.history_items import News
from mahasiswa.store.store_errors import Changed, EditConflict, Refused, Unavailable, Uncertain
from mahasiswa.web.list_query import UNKNOWN_DELETION, change_of
from mahasiswa.web.pages import Pages, Reply
from mahasiswa.web.request import Form
from mahasiswa.web.service import Request
from mahasiswa.work import RECORD, Busy


async def new(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/add (specification 4.2).

    With `lagi=1` it is the next form after the addition of `nim`.
    """
    again = request.adds_again
    if not (again or pages.list_query):
        return pages.empty_form("add").respond(request.scope)
    stored, addition = await _added(request, store) if again else (None, None)
    return pages.add_form({}, Reply(stored=stored), again=again, addition=addition)


async def edit(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/edit/:nim (specification 4.3)."""
    record = await store.reader(RECORD).get(request.parameter)
    return (
        pages.edit_form(record.nim, digest(record), record._asdict())
        if record
        else pages.error("no record")
    )


async def create(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/add (specification 4.4). With `lagi=1` the redirect leads to an empty form."""
    form = request.fields
    request.added_nim = form.values["nim"]
    again = request.adds_again
    saved = partial(pages.add_another if again else pages.saved, nim=form.values["nim"] or "")
    return await _save(
        request, store, form, store.add, show=partial(pages.add_form, again=again), saved=saved
    )


async def update(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/edit/:nim (specification 4.5). A nim in the body is ignored (4.5.1).

    Our own form sends `versi`, the digest of the record that it showed. Then only the fields that the form changed are
    written. If someone else has changed one of them since, or has deleted the record or changed its nim, nothing is
    written, and the page of the conflict follows. A client that sends no `versi` gets exactly the specification's behaviour.
    """
    nim = request.parameter
    form = request.fields
    versi = form.values.pop("versi")
    form.wrong.pop("versi", None)  # a malformed digest matches no record
    write = partial(store.update, nim, expected=versi)
    show = partial(pages.edit_form, nim, versi)
    try:
        return await _save(
            request, store, form, write, show=show, saved=partial(pages.saved, nim=nim)
        )
    except EditConflict as conflict:
        with suppress(Unavailable, Busy):  # then the page says only that the record is gone
            renamed = None if conflict.current else await store.reader(RECORD).renamed(nim)
            if renamed:
                return pages.edit_form(renamed.nim, versi, form.values, Reply(problem="renamed"))
        return pages.changed(conflict)


async def destroy(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/delete/:nim (specification 4.6). A body is ignored."""
    change = await store.delete(request.parameter)
    return pages.saved(change or UNKNOWN_DELETION)


async def choose_nim(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/nim/:nim: the form that gives a record another nim."""
    record = await store.reader(RECORD).get(request.parameter)
    return pages.nim_form(record, {}) if record else pages.error("no record")


async def change_nim(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/nim/:nim: give a record another nim. Its texts are those that are stored."""
    form = request.fields
    nim = form.values["nim"]
    if record := await store.reader(RECORD).get(request.parameter):
        with suppress(Changed):  # someone else has deleted it, or given it another nim
            show = partial(pages.nim_form, record)
            saved = partial(pages.saved, nim=nim or "")
            return await _save(
                request, store, form, partial(store.rename, record.nim), show=show, saved=saved
            )
    # A second click on the button repeats a change that is made.
    renamed = await store.reader(RECORD).renamed(request.parameter)
    is_done = renamed and renamed.nim == nim
    return pages.saved(None, nim or "") if is_done else pages.error("no record")


async def _added(request: Request, store: Store) -> tuple[Mahasiswa | None, News | None]:
    """The record that the form before this one has added, and the news about it, if the history has its entry.

    After a second click the address names no change. Then the newest entry may be that of the record.
    """
    reader = store.reader(RECORD)
    change = change_of(request.query_params)
    news = await reader.last(change)
    added = news.item.after if news and news.item.kind == "add" else None
    if change is None:
        stored = await reader.get(request.query_params.get("nim", ""))
        return stored, news if stored == added else None
    return added, news


async def _save(
    request: Request,
    store: Store,
    form: Form,
    write: Callable[..., Awaitable[str | None]],
    *,
    show: Callable[..., Response],
    saved: Callable[[str | None], Response],
) -> Response:
    """Attempt the write; return the answer that `saved` makes of it.

    The database is the only validator. Its refusal becomes the message of the form.
    """
    values, wrong = form
    if wrong:
        return show(values, Reply(wrong))
    try:
        change = await write(**values)
    except Refused as refused:
        if refused.reason == "missing":
            return show(
                values,
                Reply({field: "missing" for field, value in values.items() if value is None}),
            )
        reply = Reply({refused.field: refused.reason})
        if refused.reason == "duplicate":
            with suppress(Unavailable, Busy):  # then the form does not say whose nim it is
                reply = reply._replace(stored=await store.reader(RECORD).get(values["nim"] or ""))
        return show(values, reply)
    except (Unavailable, Uncertain, Busy) as error:
        return show(values, Reply(problem=request.problem_of(error)))
    return saved(change)

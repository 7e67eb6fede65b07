"""Handlers that show or change one record (specification, section 4, and *Ganti NIM*), named by their action on it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from starlette.responses import Response

from mahasiswa.record import digest
from mahasiswa.store import Store
from mahasiswa.store.store_errors import Changed, EditConflict, Refused, Unavailable, Uncertain
from mahasiswa.web.list_query import change_of
from mahasiswa.web.pages import Pages, Reply, Values
from mahasiswa.web.request import Request
from mahasiswa.work import RECORD, Busy


async def new(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/add (specification 4.2).

    With `lagi=1` it is the next form after the addition of `nim`.
    """
    again = request.adds_again
    reader = store.reader(RECORD)
    change = change_of(request.query_params)
    stored = news = None
    if again and change:
        news = await reader.last(change)
        stored = news and news.item.after
    elif again:  # a second click has added nothing
        stored = await reader.get(request.query_params.get("nim", ""))
    return pages.form("add", reply=Reply(stored=stored), again=again, news=news)


async def edit(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/edit/:nim (specification 4.3), and /mahasiswa/nim/:nim: the form that gives a record another nim."""
    record = await store.reader(RECORD).get(request.parameter)
    if record is None:
        return pages.error("no record")
    is_edit = request.path.startswith("/mahasiswa/edit/")
    return pages.form("edit" if is_edit else "nim", record._asdict(), versi=digest(record))


async def create(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/add (specification 4.4). With `lagi=1` the redirect leads to an empty form."""
    again = request.adds_again
    nim = request.added_nim = request.fields["nim"]
    saved = partial(pages.add_another if again else pages.saved, nim=nim or "")

    def show(typed: Values, reply: Reply) -> Response:
        # A second click on the button repeats an addition.
        if reply.wrong and reply.stored and reply.stored == tuple(typed.values()):
            return saved(None) if again else pages.page("stored.html", 409, nim=nim)
        return pages.form("add", typed=typed, reply=reply, again=again)

    return await _save(request, store, store.add, show, saved)


async def update(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/edit/:nim (specification 4.5). A nim in the body is ignored (4.5.1).

    Our own form sends `versi`, the digest of the record that it showed. Then only the fields that the form changed are
    written. If someone else has changed one of them since, or has deleted the record or changed its nim, nothing is
    written, and the page of the conflict follows. A client that sends no `versi` gets exactly the specification's behaviour.
    """
    nim = request.parameter
    values = request.fields
    versi = values.pop("versi")
    show = partial(pages.form, "edit", {"nim": nim}, versi=versi)
    write = partial(store.update, nim, expected=versi)
    try:
        return await _save(request, store, write, show, partial(pages.saved, nim=nim))
    except EditConflict as conflict:
        typed = conflict.edited._asdict()
        current = conflict.current
        if current:
            reply = Reply(problem="changed")
            return pages.form("edit", typed, reply=reply, versi=digest(current), conflict=conflict)
        if renamed := await store.reader(RECORD).renamed(nim):
            known = {"nim": renamed.nim}
            return pages.form("edit", known, values, Reply(problem="renamed"), versi=versi)
        return pages.form("deleted", typed, reply=Reply(problem="deleted"))


async def destroy(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/delete/:nim (specification 4.6). A body is ignored."""
    return pages.saved(await store.delete(request.parameter))


async def change_nim(request: Request, store: Store, pages: Pages) -> Response:
    """POST /mahasiswa/nim/:nim: give a record another nim. Its texts are those that are stored."""
    nim = request.fields["nim"]
    if record := await store.reader(RECORD).get(request.parameter):
        with suppress(Changed):  # someone else has deleted it, or given it another nim
            show = partial(pages.form, "nim", record._asdict())
            saved = partial(pages.saved, nim=nim or "")
            return await _save(request, store, partial(store.rename, record.nim), show, saved)
    # A second click on the button repeats a change that is made.
    renamed = await store.reader(RECORD).renamed(request.parameter)
    is_done = renamed and renamed.nim == nim
    return pages.saved(None, nim or "") if is_done else pages.error("no record")


async def _save(
    request: Request,
    store: Store,
    write: Callable[..., Awaitable[str | None]],
    show: Callable[..., Response],
    saved: Callable[[str | None], Response],
) -> Response:
    """Attempt the write of a form; return the answer that `saved` makes of it, or the form again.

    The database is the only validator. Its refusal becomes the message of the form.
    """
    values = request.fields
    try:
        return saved(await write(**values))
    except Refused as refused:
        reply = Reply({refused.field: refused.reason})
        if refused.reason == "duplicate":
            with suppress(Unavailable, Busy):  # then the form does not say whose nim it is
                reply = reply._replace(stored=await store.reader(RECORD).get(values["nim"] or ""))
    except (Unavailable, Uncertain, Busy) as error:
        reply = Reply(problem=request.problem_of(error))
    return show(typed=values, reply=reply)

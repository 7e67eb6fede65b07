"""The pages that several handlers render, or that are rendered again after each change, for one set of settings."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache, cached_property
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, digest
from mahasiswa.sheets.rules import SKIPPED
from mahasiswa.store import Hits
from mahasiswa.store.history_items import Item, News
from mahasiswa.store.store_errors import EditConflict
from mahasiswa.web.import_page import CHOICES, ImportPage, part_label, said
from mahasiswa.web.list_html import (
    format_bodies,
    latest_change,
    packed,
    row_format,
)
from mahasiswa.web.list_query import (
    HOME_QUERY,
    ListQuery,
    Printout,
    changed,
)
from mahasiswa.web.page_renderer import Frame, PageRenderer, with_rows
from mahasiswa.web.responses import CachedPage
from mahasiswa.web.routes import UploadPurpose

PLACEHOLDERS = {name: Markup(f"<!--{name}-->") for name in ("total", "latest", "today")}  # noqa: S704 - these names
"""Comments in list.html that stand for what each rendering inserts. No record can hold one, because `<` is escaped."""
ROWS = Markup("<!--rows-->")  # the same for the rows

placeholder = re.compile(rb"<!--(\w+)-->")

# The texts of a form by field; None for a field that was not sent.
Values = Mapping[str, str | None]


class Reply(NamedTuple):
    """The message of a form: the reason for each `wrong` field, a `problem` of the form, and who has the nim."""

    wrong: Mapping[str, str] = MappingProxyType({})
    problem: wording.ProblemName | None = None
    stored: Mahasiswa | None = None


NO_REPLY = Reply()


class Pages(PageRenderer):
    """The pages of the list, of one record, and of an upload."""

    def list_frame(self, count: int, latest: News | None, page: ListQuery | None = None) -> Frame:
        """The list page around its `count` rows, with the latest change; without `page` the list of specification 4.1."""
        if page:
            own = latest.item if latest and page.change else None
            before, after = self._frame(count, page, own)
        else:
            before, after = self._frames[min(count, 1)]
        values = {
            b"total": wording.number(page.total if page else count),
            b"latest": self.latest(latest, page),
            b"today": wording.date(self.today()),
        }
        return placeholder.sub(lambda found: values[found[1]].encode(), before), after

    def today(self) -> date:
        """The date in the time zone of the pages."""
        return datetime.now(self.timezone).date()

    def print_frame(
        self, page: ListQuery, count: int, printout: Printout, selection: str = ""
    ) -> Frame:
        """The page to print around its `count` rows.

        `selection` is the identifier of a selection, or blank.
        """
        today = wording.date(self.today())
        context = {"count": count, "page": page, "printout": printout, "today": today}
        return self._around_rows("print.html", selection=selection, **context)

    def list_page(self, page: ListQuery, found: Hits) -> Response:
        """One page of the list, or of a search."""
        count = len(found.records)
        frame = self.list_frame(count, found.last, page)
        row = row_format(self.prefix, page.list_query, is_ticked=page.has_ticks)
        rows = format_bodies(row, packed(found.records), page.offset + 1)
        return Response(with_rows(frame, rows), 200, self.headers, "text/html")

    def latest(self, news: News | None, page: ListQuery | None) -> Markup:
        """The person's own change, or the latest one. It stays in the window if the URL's fragment leads to a row.

        The warning of a change is shown with an own change. With the latest change it is shown only
        on the list of specification 4.1, because the redirect of an addition leads there.
        """
        if news is None:
            return Markup()
        is_own = page is not None and page.change is not None
        history = self.path("/mahasiswa/riwayat")
        left = page.left if page else 0
        line = latest_change(news.item, self.when(news.item), history, is_own=is_own, left=left)
        warning = ""
        if is_own or page is None:
            warning = self.warning(news, page.list_query if page else "")
        return Markup(f'<div class="news">{line}{warning}</div>')  # noqa: S704 - both are escaped

    def warning(self, news: News | None, list_query: str) -> Markup:
        """A warning if a change added a record that is like another one.

        Without `list_query` it may be the change of another person, so the sentence and the buttons name the record.
        """
        if not (news and (news.near or news.twin)):
            return Markup()
        return Markup(self.render("warning.html", news=news, list_query=list_query).decode())  # noqa: S704 - escaped

    @cache  # noqa: B019 - it lives as long as the process
    def empty_form(self, name: Literal["add"] | UploadPurpose) -> CachedPage:
        """The form of specification 4.2, or of an upload, before anything is typed. No record is in it, so it is kept."""
        form = self.add_form({}) if name == "add" else self.upload_form(name)
        return CachedPage(bytes(form.body), self.headers)

    def add_form(
        self,
        values: Values,
        reply: Reply = NO_REPLY,
        *,
        again: bool = False,
        addition: News | None = None,
    ) -> Response:
        """The form of specification 4.2. If `again` is true, Enter saves and leads to another empty form.

        In that case `reply` may have the record that was saved before. `addition` is the news
        about it, which may need a warning.
        """
        # A second click on the button repeats an addition.
        if reply.wrong and reply.stored and reply.stored == tuple(values.values()):
            nim = reply.stored.nim
            return self.add_another(None, nim) if again else self.page("stored.html", 409, nim=nim)
        warning = self.warning(addition, self.list_query or HOME_QUERY)
        return self._form("add", values, reply, again=again, warning=warning)

    def edit_form(
        self, nim: str, versi: str | None, values: Values, reply: Reply = NO_REPLY
    ) -> Response:
        """The form of specification 4.3. Its button carries the digest of the record that it shows."""
        return self._form("edit", {**values, "nim": nim}, reply, versi=versi)

    def changed(self, conflict: EditConflict) -> Response:
        """The edit form with the typed texts and a choice, if someone else changed the same field or deleted the record."""
        typed = conflict.edited._asdict()
        if conflict.current is None:
            return self._form("deleted", typed, Reply(problem="deleted"))
        reply = Reply(problem="changed")
        versi = digest(conflict.current)
        return self._form("edit", typed, reply, versi=versi, conflict=conflict)

    def nim_form(self, record: Mahasiswa, values: Values, reply: Reply = NO_REPLY) -> Response:
        """The form that gives a record another nim."""
        return self._form("nim", {**record._asdict(), **values}, reply, record=record)

    def saved(self, change: str | None, nim: str | None = None, left: int = 0) -> Response:
        """302 to the list page from which the form was opened, and there to the row of the nim.

        The page shows the change, and how many records it has `left` alone. If there is no such
        page, the redirect leads to exactly `/` (specification 4.4.2).
        """
        if not self.list_query:
            return self.redirect
        # The fragment is exactly the id of the row's nim. A nim may hold spaces, so both stay percent-encoded.
        fragment = "" if nim is None else f"#m-{quote(nim, safe='')}"
        return self.redirect_to(f"/{self.list_query}{changed(change, left)}{fragment}")

    def shown(self, change: str | None, left: int = 0) -> Response:
        """The same after a form of our own.

        If there is no such page, it leads to the first page of the list.
        """
        return self.at(self.list_query or HOME_QUERY).saved(change, left=left)

    def add_another(self, change: str | None, nim: str) -> Response:
        """302 to an empty form that says that the record with this nim is saved."""
        query = f"{self.list_query}&" if self.list_query else "?"
        path = f"/mahasiswa/add{query}lagi=1"
        added = quote(nim, safe="")
        return self.redirect_to(f"{path}&nim={added}{changed(change)}")

    def upload_form(
        self,
        purpose: UploadPurpose,
        message: str = "",
        status: int = 400,
        pasted: str = "",
    ) -> Response:
        """The page of a file or of pasted cells, with the fault of the last attempt."""
        context = {"purpose": purpose, "message": message, "pasted": pasted}
        return self.page("upload.html", status if message else 200, None, **context)

    def preview(self, page: ImportPage, status: int) -> Response:
        """The preview of an import."""
        context = {"said": said, "choices": CHOICES, "part_label": part_label, "reasons": SKIPPED}
        return self.page("preview.html", status, self.not_stored, preview=page, **context)

    def _frame(self, count: int, page: ListQuery | None = None, own: Item | None = None) -> Frame:
        """The list page around its rows, with PLACEHOLDERS.

        `own` is the person's own change, which may have removed the last hit of a search.
        """
        list_query = page.list_query if page else ""
        context = {"count": count, "page": page, "own": own, **PLACEHOLDERS}
        return self._around_rows("list.html", list_query=list_query, **context)

    def _around_rows(self, template: str, **context: object) -> Frame:
        before, _, after = self.render(template, rows=ROWS, **context).partition(ROWS.encode())
        return before, after

    @cached_property
    def _frames(self) -> Sequence[Frame]:
        """The list of specification 4.1 without and with rows. No record is in these frames, so they are rendered once."""
        return [self._frame(0), self._frame(1)]

    def _form(self, kind: str, values: Values, reply: Reply, **context: object) -> Response:
        status, _, alert = wording.PROBLEMS[reply.problem] if reply.problem else (200, "", "")
        if reply.wrong:
            status = 409 if "duplicate" in reply.wrong.values() else 400
        absent = dict.fromkeys(("versi", "conflict", "record", "again", "warning"))
        values = {field: values.get(field) for field in Mahasiswa._fields}
        alert = alert.replace("{nim}", values["nim"] or "")
        context = absent | reply._asdict() | context
        return self.page(
            "form.html", status, None, kind=kind, values=values, alert=alert, **context
        )

"""The pages that several handlers render, or that are rendered again after each change, for one set of settings."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.store import Query
from mahasiswa.store.history_items import News
from mahasiswa.web.list_html import format_bodies, row_format
from mahasiswa.web.list_query import HOME_QUERY, ListQuery, Printout, changed
from mahasiswa.web.page_renderer import PageRenderer, checked, sent
from mahasiswa.web.routes import UploadPurpose

Frame = tuple[bytes, bytes]  # a page before and after its rows

# The texts of a form by field; None for a field that was not sent.
Values = Mapping[str, str | None]
NONE: Values = MappingProxyType({})


class Reply(NamedTuple):
    """The message of a form: the reason for each `wrong` field, a `problem` of the form, and who has the nim."""

    wrong: Mapping[str, str] = MappingProxyType({})
    problem: wording.ProblemName | None = None
    stored: Mahasiswa | None = None


NO_REPLY = Reply()

placeholder = re.compile(rb"<!--(\w+)-->")


def _placeholder(name: str) -> Markup:
    """A comment that stands for what each rendering inserts. No record can hold one, because `<` is escaped."""
    return Markup(f"<!--{name}-->")  # noqa: S704 - these names


class Pages(PageRenderer):
    """The pages of the list, of one record, and of an upload."""

    def list_frame(self, count: int, news: News | None, page: ListQuery | None = None) -> Frame:
        """The list page around its `count` rows, with the latest change; without `page` the list of specification 4.1."""
        values = {
            "total": wording.number(page.total if page else count),
            "latest": self._latest(news, page),
            "today": wording.date(self.today()),
        }
        if page:
            shown = {"page": page, "news": news, "list_query": page.list_query}
            return self._around_rows("list.html", count=count, **shown, **values)
        pieces, after = self._frames[min(count, 1)]
        html = list(pieces)
        html[1::2] = [sent(values[name.decode()]) for name in pieces[1::2]]
        return b"".join(html), after

    def today(self) -> date:
        """The date in the time zone of the pages."""
        return datetime.now(self.timezone).date()

    def print_frame(
        self, query: Query, total: int, count: int, printout: Printout, selection: str
    ) -> Frame:
        """The page to print around its `count` rows, of `total` records.

        `selection` is the identifier of a selection, or blank.
        """
        return self._around_rows(
            "print.html",
            page=ListQuery(query, total=total),
            count=count,
            printout=printout,
            today=wording.date(self.today()),
            selection=selection,
        )

    def list_page(self, packed: bytes, count: int, news: News | None, page: ListQuery) -> Response:
        """One page of the list, or of a search, with these packed records."""
        row = row_format(self.prefix, page.list_query)
        frame = self.list_frame(count, news, page)
        body = with_rows(frame, row, packed, page.offset + 1)
        return Response(body, 200, self.headers, "text/html")

    def _latest(self, news: News | None, page: ListQuery | None) -> Markup:
        """The person's own change, or the latest one.

        The warning of a change is shown with an own change. With the latest change it is shown only
        on the list of specification 4.1, because the redirect of an addition leads there.
        """
        if news is None:
            return Markup()
        is_own = page is not None and page.change is not None
        warning = Markup()
        if news.nim is not None and (is_own or page is None):
            list_query = page.list_query if page else ""
            html = self.render("warning.html", news=news, list_query=list_query)
            warning = Markup(html.decode())  # noqa: S704 - a rendered template
        # One macro of a template is rendered faster than a template.
        line: Markup = self.changes.news(news.item, is_own, page.left if page else 0, warning)
        return line

    def form(
        self,
        kind: Literal["add", "edit", "deleted", "nim"],
        known: Values = NONE,
        typed: Values = NONE,
        reply: Reply = NO_REPLY,
        **context: object,
    ) -> Response:
        """A form for one record with the `typed` texts, and the `known` ones in the other fields.

        `context` may have `versi`, the digest of the record that the form shows, its `conflict`,
        and for the form of an addition `again`, if it leads to another empty form, and the `news`
        about the addition before it, of the record `reply.stored`.
        """
        status, _, alert = wording.PROBLEMS[reply.problem] if reply.problem else (200, "", "")
        if reply.wrong:
            status = 409 if "duplicate" in reply.wrong.values() else 400
        values = {field: {**known, **typed}.get(field) for field in Mahasiswa._fields}
        context = {
            **dict.fromkeys(("versi", "conflict", "again", "news")),
            **reply._asdict(),
            "kind": kind,
            "known": known,
            "values": values,
            "alert": alert.replace("{nim}", values["nim"] or ""),
            **context,
        }
        return self.page("form.html", status, None, **context)

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
        path = f"/mahasiswa/add{self.list_query or '?'}{'&' if self.list_query else ''}lagi=1"
        return self.redirect_to(f"{path}&nim={quote(nim, safe='')}{changed(change)}")

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

    def _around_rows(self, template: str, **context: object) -> Frame:
        rows = _placeholder("rows")
        before, _, after = self.render(template, rows=rows, **context).partition(rows.encode())
        return before, after

    @cached_property
    def _frames(self) -> Sequence[tuple[Sequence[bytes], bytes]]:
        """The list of specification 4.1 without and with rows. No record is in these frames, so they are rendered once.

        The part before the rows is split at its placeholders. Every second piece is the name of one.
        """
        values = {name: _placeholder(name) for name in ("total", "latest", "today")}
        shown = {"page": None, "news": None, "list_query": "", **values}
        frames = [self._around_rows("list.html", count=count, **shown) for count in (0, 1)]
        return [(placeholder.split(before), after) for before, after in frames]


def with_rows(frame: Frame, row: Sequence[bytes], packed: bytes, first: int) -> bytes:
    """A page around the rows of packed records; raise ProblemPage."""
    before, after = frame
    return checked(b"".join([before, *format_bodies(row, packed, first), after]))

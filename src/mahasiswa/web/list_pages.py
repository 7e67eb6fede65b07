"""Renders the list page: its frame, its rows, and one page of a search."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from markupsafe import Markup

from mahasiswa import wording
from mahasiswa.store.history import Batch, Entry
from mahasiswa.web.list_rows import RowFormat, row_of_page
from mahasiswa.web.list_view import EMPTY_COLUMNS_MAX, TITLE_MAX_CHARACTERS, Printout, View
from mahasiswa.web.page_renderer import PageRenderer

SLOTS = {name: Markup(f"<!--{name}-->") for name in ("total", "latest", "today", "rows")}  # noqa: S704 - these names
"""Marks in list.html for the parts that differ between versions of the data. No record can hold one: `<` is escaped."""

slot = re.compile(rb"<!--(\w+)-->")


class Frame(NamedTuple):
    """The list page before and after its rows."""

    before: bytes
    after: bytes


class ListPages(PageRenderer):
    """The list page."""

    def list_frame(self, count: int, latest: Entry | Batch | None, view: View | None = None) -> Frame:
        """The list page around its `count` rows; without `view` the list of specification 4.1.

        `latest` is the latest change.
        """
        *before, _, after = self._frame(count, view) if view else self._frames[min(count, 1)]
        values = {
            b"total": wording.number(view.total if view else count),
            b"latest": self.latest(latest, view.list_query if view else ""),
            b"today": wording.date(datetime.now(self.timezone)),
        }
        before[1::2] = [values[name].encode() for name in before[1::2]]
        return Frame(b"".join(before), after)

    def day(self) -> tuple[float, float]:
        """The beginning and the end of today, as `time.time()` counts: outside of it the date on the list is wrong."""
        today = datetime.now(self.timezone).replace(hour=0, minute=0, second=0, microsecond=0)
        return today.timestamp(), (today + timedelta(days=1)).timestamp()

    def row_format(self, view: View) -> RowFormat:
        """The row of a page. Its links lead back to that page."""
        return row_of_page(self.prefix, view.list_query, is_ticked=view.has_ticks)

    def print_frame(self, view: View, count: int, printout: Printout) -> Frame:
        """The page to print around its `count` rows."""
        today = wording.date(datetime.now(self.timezone))
        page = self.render(
            "print.html",
            count=count,
            view=view,
            printout=printout,
            empty_columns_max=EMPTY_COLUMNS_MAX,
            title_max_characters=TITLE_MAX_CHARACTERS,
            today=today,
            rows=SLOTS["rows"],
        )
        before, _, after = slot.split(page)
        return Frame(before, after)

    def _frame(self, count: int, view: View | None = None) -> list[bytes]:
        """The list page without its rows, cut at the slots: its pieces and, between them, the names of the slots."""
        list_query = view.list_query if view else ""
        page = self.render("list.html", count=count, view=view, list_query=list_query, **SLOTS)
        return slot.split(page)

    @cached_property
    def _frames(self) -> Sequence[list[bytes]]:
        """The frames of the list of specification 4.1 without and with rows. No record is in them, so they are rendered once."""
        return [self._frame(0), self._frame(1)]

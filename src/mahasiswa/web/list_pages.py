"""Renders the list page: its frame, its rows, and one page of a search."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.store import SLICE_RECORDS, Found, Query, Suspicion, folding
from mahasiswa.store.history import Batch, Entry
from mahasiswa.web.list_rows import CONFIRM, RowFormat, format_bodies, format_rows, row_of_page
from mahasiswa.web.list_view import EMPTY_COLUMNS_MAX, TITLE_MAX_CHARACTERS, Printout, View
from mahasiswa.web.page_renderer import PageRenderer, joined

SLOTS = {name: Markup(f"<!--{name}-->") for name in ("total", "latest", "today", "rows")}  # noqa: S704 - these names
"""Marks in list.html for the parts that differ between versions of the data. No record can hold one: `<` is escaped."""

odd_spaces = re.compile(f"^ +| +$|(?<= ) +|[{folding.ODD_SPACES}{folding.UNSEEN}]")
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

    def rows(self, packed: bytes, number: int) -> bytes:
        """The rows of a slice of the list. Slices are counted from 0."""
        return format_rows(self.row, packed, number * SLICE_RECORDS + 1)

    def bodies(self, records: Sequence[Mahasiswa], first: int) -> Iterator[bytes]:
        """The rows of records, numbered from `first`, in bodies."""
        return format_bodies(self.row, records, first)

    def row_format(self, view: View) -> RowFormat:
        """The row of a page. Its links lead back to that page."""
        return row_of_page(self.prefix, view.list_query, is_ticked=view.has_ticks)

    def search_page(self, view: View, records: Sequence[Mahasiswa], latest: Entry | Batch | None) -> Response:
        """One page of a search, or of the list in some order."""
        frame = self.list_frame(len(records), latest, view)
        rows = format_bodies(self.row_format(view), records, view.offset + 1)
        body = joined(chain([frame.before], rows, [frame.after]))
        return Response(body, headers=self.headers, media_type="text/html")

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

    def recap(self, counts: Mapping[int, Sequence[tuple[str, int]]], most: int) -> Response:
        """The page that counts records by at most `most` beginnings of their nim, for each length of it."""
        groups = {
            length: [(prefix.upper(), count, View(Query(prefix, di="nim"))) for prefix, count in prefixes]
            for length, prefixes in counts.items()
        }
        return self.page("recap.html", groups=groups, most=most)

    def check(self, found: Mapping[Suspicion, Found], tidied_max: int, *, was_changed: bool) -> Response:
        """The page of records that may be wrong; with `was_changed` after a change that someone else has made."""
        return self.page(
            "check.html",
            409 if was_changed else 200,
            self.not_stored,
            found=found,
            tidied_max=tidied_max,
            was_changed=was_changed,
            confirm=CONFIRM,
            place=lambda nim: View(Query(nim, di="nim")).at(1),
            marked=lambda text: odd_spaces.sub("\u2423", text),
        )

    @cached_property
    def to_check(self) -> Response:
        """302 to the check."""
        return Response(status_code=302, headers={"location": self.path("/mahasiswa/periksa"), **self.headers})

    def _frame(self, count: int, view: View | None = None) -> list[bytes]:
        """The list page without its rows, cut at the slots: its pieces and, between them, the names of the slots."""
        list_query = view.list_query if view else ""
        page = self.render("list.html", count=count, view=view, list_query=list_query, **SLOTS)
        return slot.split(page)

    @cached_property
    def _frames(self) -> Sequence[list[bytes]]:
        """The frames of the list of specification 4.1 without and with rows. No record is in them, so they are rendered once."""
        return [self._frame(0), self._frame(1)]

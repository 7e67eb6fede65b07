"""One page of the history: its search, its filter, and its URL, to which an undo leads back."""

from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple, Self, cast

from starlette.datastructures import QueryParams

from mahasiswa import wording
from mahasiswa.store import Query
from mahasiswa.store.history import Days, ItemKind
from mahasiswa.web.list_view import View


class HistoryView(NamedTuple):
    """One page of the history, or of one of its batches.

    `page` has the search and the number of the page. `tanggal` is a day in ISO 8601, or empty.
    """

    page: View
    batch: int | None = None
    jenis: ItemKind | None = None
    tanggal: str = ""

    @classmethod
    def of(cls, parameters: QueryParams, batch: int | None) -> Self:
        """Read a URL's query. An invalid value is replaced by its default."""
        asked = View.of(parameters)
        jenis = cast("ItemKind | None", parameters.get("jenis"))
        try:
            tanggal = date.fromisoformat(parameters.get("tanggal", "")).isoformat()
        except ValueError:
            tanggal = ""
        if not "1970" < tanggal < "9999":  # a day must begin and end within the years of datetime, in every time zone
            tanggal = ""
        jenis = jenis if jenis in wording.KINDS else None
        return cls(View(Query(asked.query.cari), asked.halaman), batch, jenis, tanggal)

    def days(self, timezone: tzinfo) -> Days | None:
        """The day of the filter in that time zone."""
        if not self.tanggal:
            return None
        midnight = datetime.combine(date.fromisoformat(self.tanggal), time(), timezone)
        return midnight, midnight + timedelta(days=1)

    @property
    def path(self) -> str:
        """The path of the page."""
        return "/mahasiswa/riwayat" + ("" if self.batch is None else f"/kelompok/{self.batch}")

    def at(self, halaman: int) -> str:
        """The URL query of another page with the same search and filter. It is never empty."""
        given = (("jenis", self.jenis), ("tanggal", self.tanggal))
        return self.page.at(halaman) + "".join(f"&{name}={value}" for name, value in given if value)

    @property
    def origin(self) -> str:
        """The URL query that a button of this page sends, so that its answer leads back to this page."""
        return self.at(self.page.halaman) + ("" if self.batch is None else f"&kelompok={self.batch}")

"""Finding, sorting and paging the list: all of its state lives in the URL."""

import math
from typing import NamedTuple, cast
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from mahasiswa.record import Field, Mahasiswa
from mahasiswa.store import Query

PARAMETERS = ("cari", "urut", "arah", "halaman", "per")
PER = 50
FEWEST, MOST = 10, 500
LONGEST_SEARCH = 255


class View(NamedTuple):
    """A page of what a query finds; `halaman` counts from 1."""

    query: Query
    halaman: int = 1
    per: int = PER
    total: int = 0

    @classmethod
    def asked_for(cls, parameters: QueryParams) -> "View":
        """Read a URL's query. A value that cannot be is corrected."""
        per = min(max(_whole(parameters, "per", PER), FEWEST), MOST)
        return cls(query_asked_for(parameters), _whole(parameters, "halaman", 1), per)

    def found(self, total: int) -> "View":
        """Return this view of that many records, at its last page where it was past the end."""
        last = max(1, math.ceil(total / self.per))
        return self._replace(total=total, halaman=min(self.halaman, last))

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, math.ceil(self.total / self.per))

    @property
    def offset(self) -> int:
        """How many records stand before this page."""
        return (self.halaman - 1) * self.per

    def at(self, halaman: int) -> str:
        """The URL query of another page."""
        return self._url(self.query, halaman)

    def sorted_by(self, field: Field) -> str:
        """The URL query of the first page in that order; the other way round where it is in that order already."""
        turned = field == self.query.urut and self.query.arah == "naik"
        return self._url(self.query._replace(urut=field, arah="turun" if turned else "naik"), 1)

    @property
    def export(self) -> str:
        """The URL query of an export of the same records in the same order; empty for all of them."""
        values = {name: value for name, value in self.query._asdict().items() if value != getattr(Query(), name)}
        return "?" + urlencode(values) if values else ""

    def _url(self, query: Query, halaman: int) -> str:
        values = {**query._asdict(), "halaman": halaman, "per": self.per}
        usual = {**Query()._asdict(), "per": PER}
        return "?" + urlencode({name: value for name, value in values.items() if value != usual.get(name)})


def query_asked_for(parameters: QueryParams) -> Query:
    """Read `cari`, `urut` and `arah`, each corrected where it cannot be."""
    cari = parameters.get("cari", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    urut, arah = parameters.get("urut", ""), parameters.get("arah", "")
    return Query(
        cari,
        cast("Field", urut) if urut in Mahasiswa._fields else "nim",
        "turun" if arah == "turun" else "naik",
    )


def _whole(parameters: QueryParams, name: str, otherwise: int) -> int:
    text = parameters.get(name, "")
    # Nine digits are past any end already; Python refuses to read thousands of them.
    return max(1, int(text[:9])) if text.isascii() and text.isdigit() else otherwise

"""Search, sort order and paging of the list, and the layout of a printout, as the URL's query or a form has them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from mahasiswa.digits import whole_number
from mahasiswa.record import Field
from mahasiswa.store import Query
from mahasiswa.store.history_items import item_key

# Our own links lead to the first page of all records, because it is short for any list.
HOME_QUERY = "?halaman=1"
DEFAULT_ROWS_PER_PAGE = 50
MIN_ROWS_PER_PAGE = 10
MAX_ROWS_PER_PAGE = 500
OFFERED_ROWS_PER_PAGE = (50, 100, MAX_ROWS_PER_PAGE)
PRINTED_MAX_ROWS = 10_000
SEARCH_MAX_CHARACTERS = 255
TITLE_MAX_CHARACTERS = 200
LETTERHEAD_MAX_LINES = 3  # of a printout
EMPTY_COLUMNS_MAX = 31  # of a printout: one for each day of a month

FIELDS: Mapping[str, Field] = {field: field for field in get_args(Field)}
DEFAULTS = {**Query()._asdict(), "halaman": 1, "per": DEFAULT_ROWS_PER_PAGE}


class ListQuery(NamedTuple):
    """One page of the `total` records of a query. `halaman` is its number, counted from 1.

    `spellings` are other searches with the number of their records. `change` is the key of the
    item of the history that a redirect to this page names (`changed`), and `left` the number of
    records that this undo has left alone. No link of the page has them.
    """

    query: Query
    halaman: int = 1
    per: int = DEFAULT_ROWS_PER_PAGE
    total: int = 0
    spellings: Sequence[tuple[str, int]] = ()
    change: str | None = None
    left: int = 0

    @classmethod
    def of(cls, parameters: QueryParams) -> "ListQuery":
        """Read a URL's query. An invalid value is replaced by its default."""
        per = whole_number(parameters.get("per", "")) or DEFAULT_ROWS_PER_PAGE
        return cls(
            query_of(parameters),
            whole_number(parameters.get("halaman", "")) or 1,
            min(max(per, MIN_ROWS_PER_PAGE), MAX_ROWS_PER_PAGE),
            change=change_of(parameters),
            left=whole_number(parameters.get("dibiarkan", "")) or 0,
        )

    def with_total(self, total: int) -> "ListQuery":
        """This query of `total` records, on its last page if it was past the end."""
        page = self._replace(total=total)
        return page._replace(halaman=min(self.halaman, page.last))

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, math.ceil(self.total / self.per))

    @property
    def offset(self) -> int:
        """The number of records before this page."""
        return (self.halaman - 1) * self.per

    def at(self, halaman: int = 1, **changes: str) -> str:
        """The URL query of another page or search, rebuilt from parsed values.

        It is never empty, because `/` alone is the whole list.
        """
        query = {**self.query._asdict(), **changes}
        return _url_query({**query, "halaman": halaman, "per": self.per}) or HOME_QUERY

    @property
    def list_query(self) -> str:
        """The URL query of this page."""
        return self.at(self.halaman)

    def with_rows(self, per: int) -> str:
        """The URL query of the page of `per` rows that contains the first row of this page."""
        return self._replace(per=per).at(self.offset // per + 1)

    @property
    def export(self) -> str:
        """The URL query for an export or a printout of the same records in the same order; empty for all records."""
        return _url_query(self.query._asdict())


class Printout(NamedTuple):
    """The layout of a printed list: its texts by name, its letterhead, and the titles of its empty columns.

    `kota`, `jabatan`, `nama` and `nip` stand in the signature below the list, if they are not
    blank. `kolom` are the titles as they were typed. A number makes so many columns.
    """

    texts: Mapping[str, str]
    kop: Sequence[str]
    titles: Sequence[str]
    with_alamat: bool

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "Printout":
        """Read a URL's query. An invalid value is replaced by its default."""
        names = ("judul", "kolom", "kota", "jabatan", "nama", "nip")
        texts = {name: _line(parameters.get(name, "")) for name in names}
        kop = filter(None, map(_line, parameters.get("kop", "").splitlines()))
        titles = texts["kolom"].split(",") if texts["kolom"] else []
        count = whole_number(texts["kolom"])
        if count is not None:
            titles = list(map(str, range(1, count + 1)[:EMPTY_COLUMNS_MAX]))
        titles = [title.strip() for title in titles[:EMPTY_COLUMNS_MAX]]
        is_with_alamat = parameters.get("tanpa") != "alamat"
        return cls(texts, list(kop)[:LETTERHEAD_MAX_LINES], titles, is_with_alamat)


def is_list_query(parameters: QueryParams) -> bool:
    """Whether a URL's query holds one of DEFAULTS. Every other query, such as `utm_source=…`, asks for the list."""
    return any(name in DEFAULTS for name in parameters)


def change_of(parameters: QueryParams) -> str | None:
    """The key of the change that a redirect names, or None if it names none."""
    key = parameters.get("perubahan")
    return None if key is None else item_key(key)


def changed(change: str | None, left: int = 0) -> str:
    """The end of a URL's query that names a change, and how many records it has left alone."""
    alone = f"&dibiarkan={left}" if left else ""
    return f"&perubahan={change}{alone}" if change else ""


def query_of(parameters: QueryParams) -> Query:
    """Read `cari`, `di`, `urut` and `arah`. An invalid value is replaced by its default."""
    return Query(
        cari=_line(parameters.get("cari", ""), SEARCH_MAX_CHARACTERS),
        di=FIELDS.get(parameters.get("di", ""), ""),
        urut=FIELDS.get(parameters.get("urut", ""), "nim"),
        arah="turun" if parameters.get("arah") == "turun" else "naik",
    )


def _url_query(parameters: Mapping[str, Any]) -> str:
    given = {name: value for name, value in parameters.items() if value != DEFAULTS[name]}
    return "?" + urlencode(given) if given else ""


def _line(text: str, maximum: int = TITLE_MAX_CHARACTERS) -> str:
    return text.replace("\0", "").strip()[:maximum]

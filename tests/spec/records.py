"""The records a test adds: their nims are like no other's, and they are gone when the test is over."""

from typing import NamedTuple, Self
from uuid import uuid4

import httpx
from harness import Page, Row, Site


class Record(NamedTuple):
    """A record as a test added it."""

    nim: str
    nama: str
    alamat: str


class Records:
    """The records of one test. The list may hold others, in any order: a test looks at its own alone."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._nims: list[str] = []

    def new_nim(self, form: str = "{}") -> str:
        """Return a nim that no record has, written into `form`; what is stored under it is deleted after the test."""
        return self.forget(form.format(uuid4().hex))

    def forget(self, nim: str) -> str:
        """Have the record of this nim deleted after the test."""
        self._nims.append(nim)
        return nim

    def add(self, nama: str = "Siti Aminah", alamat: str = "Jalan Kaliurang 5") -> Record:
        """Add a record of a new nim."""
        record = Record(self.new_nim(), nama, alamat)
        assert self._site.add(*record).status_code == 302
        return record

    def add_in_vain(self, **fields: str) -> httpx.Response | None:
        """Send an addition that must fail; how is not specified, so there may be no answer at all."""
        try:
            return self._site.post(self._site.path("/mahasiswa/add"), fields)
        except httpx.HTTPError:
            return None

    def listed(self, nim: str) -> Record | None:
        """Return the record of this nim as the list shows it, or None."""
        page = self._site.list()
        if nim not in [name.strip() for name in page.nims]:
            return None
        return Record(*texts(the_row(page, nim))[1:4])

    def edit_page(self, nim: str) -> Page:
        """Return the edit page of this nim."""
        return self._site.page(self._site.path("/mahasiswa/edit/", nim))

    def stored(self, nim: str) -> Record:
        """Return the record of this nim as its edit form holds it: there no template adds white space."""
        values = self.edit_page(nim).record_form.values
        return Record(values["nim"], values["nama"], values["alamat"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for nim in self._nims:
            self._site.delete(nim)


def the_row(page: Page, nim: str) -> Row:
    """Return the one row of this nim, whatever white space a template puts around it; it must be there."""
    found = [row for row in page.table if texts(row)[1:2] == [nim]]
    assert len(found) == 1, f"{nim} stands {len(found)} times in the list"
    return found[0]


def texts(row: Row) -> list[str]:
    """Return the texts of a row's cells without white space around them."""
    return [cell.strip() for cell in row.cells]

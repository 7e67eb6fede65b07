"""Keeps track of the records that a test adds: their nims are unique, and they are deleted after the test."""

from uuid import uuid4

from harness import Page, Site
from processes import Closing
from visitor import Part

from mahasiswa.record import Mahasiswa as Record

TEXT_INPUT = "input:is(:not([type]), [type=text])"


class Records(Closing):
    """The records of one test. The list may hold other records in any order, so a test looks only at its own."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._nims: list[str] = []

    def new_nim(self, form: str = "{}") -> str:
        """Return a nim that no record has, inserted into `form`. Its record is deleted after the test."""
        return self.forget(form.format(uuid4().hex))

    def forget(self, nim: str) -> str:
        self._nims.append(nim)
        return nim

    def add(self, nama: str = "Siti Aminah", alamat: str = "Jalan Kaliurang 5") -> Record:
        record = Record(self.new_nim(), nama, alamat)
        self._site.stores(*record)
        return record

    def listed(self, nim: str) -> Record | None:
        """Return the record of this nim as the list shows it, or None if it is not listed."""
        page = self._site.list()
        if nim not in [name.strip() for name in page.nims]:
            return None
        return Record(*texts(the_row(page, nim))[1:4])

    def stored(self, nim: str) -> Record:
        """Return the record of this nim as its edit form holds it. Unlike the list, a form adds no white space."""
        fields = self._site.page(self._site.path("/mahasiswa/edit/", nim)).record_form.fields
        return Record(fields["nim"], fields["nama"], fields["alamat"])

    def close(self) -> None:
        for nim in self._nims:
            self._site.delete(nim)


def the_row(page: Page, nim: str) -> Part:
    """Return the one row of this nim, ignoring white space around it. Fail unless there is exactly one."""
    found = [row for row in page.table if texts(row)[1:2] == [nim]]
    assert len(found) == 1, f"{nim} stands {len(found)} times in the list"
    return found[0]


def texts(row: Part) -> list[str]:
    return [cell.strip() for cell in row.cells]

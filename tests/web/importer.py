"""Uploads a file or a text as staff do, and reads the pages of an import or of a selection: `Importer`."""

from urllib.parse import urlsplit

import httpx
import pytest
from harness import Page, Site, led_to, page_of
from spreadsheets import Record, as_records

from mahasiswa.sheets.rules import PROBLEMS

IMPORT, SELECT = "/mahasiswa/impor", "/mahasiswa/pilih"
KEPT: list[Record] = as_records("2301|Ani|Solo", "2302|Budi|Bantul", "2303|Citra|Klaten")


class Preview(Page):
    """The page of a stage, as a person reads it. `path` is its address."""

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of lines that are not zero."""
        numbers = [int(text.replace(".", "")) for text in self.texts(".summary dd")]
        counts = zip(self.texts(".summary dt"), numbers, strict=True)
        return {name: number for name, number in counts if number}

    @property
    def alert(self) -> str:
        return " ".join(self.texts("[role=alert]"))

    @property
    def buttons(self) -> dict[str, str]:
        """The buttons of the form by their values, without the hidden one."""
        shown = "main form button[name=aksi]:not([hidden])"
        return dict(zip(self.values(shown), map(str.strip, self.texts(shown)), strict=True))

    @property
    def fields(self) -> dict[str, str]:
        """The fields that a browser sends if nothing is typed."""
        return self.form("versi").fields

    def lines(self, part: str) -> list[tuple[str, ...]]:
        """The cells of the lines in a part: baru, berubah or sama."""
        return [tuple(row.texts("td")) for row in self.parts(f"#{part} tbody tr")]


class Importer:
    """Uploads to the form of an import or of a selection, and reads the pages that follow."""

    def __init__(self, site: Site, path: str = IMPORT) -> None:
        self.site, self.path = site, path

    def send(self, data: bytes | str, name: str = "daftar.csv") -> httpx.Response:
        """Send the form as a browser does, with a file, or with a text that is pasted."""
        is_file = isinstance(data, bytes)
        file, text = ((name, data), "") if is_file else (("", ""), data)
        return self.site.post(
            self.site.path(self.path), files={"berkas": file}, data={"tempel": text}
        )

    def upload(self, data: bytes | str, name: str = "daftar.csv") -> Preview:
        """Send a file or a text; the response must lead to a preview."""
        return self.open(led_to(self.send(data, name)))

    def open(self, target: str) -> Preview:
        """Open the address of a preview."""
        return self.shown(self.site.get(target), 200)

    def shown(self, answer: httpx.Response, status: int = 409) -> Preview:
        """Return the preview of an answer with this status, or the page that refuses a file: its `alert` says why."""
        page = page_of(answer, status)
        return Preview(page.html, page.url)

    def press(self, preview: Preview, action: str, **typed: str) -> httpx.Response:
        """Press a button of a preview, by its value, after changing some fields."""
        return self.site.submit(preview.form("versi"), **typed, aksi=action)

    def pressed(self, preview: Preview, action: str, **typed: str) -> Preview:
        """The same; the response must lead to a preview."""
        return self.open(led_to(self.press(preview, action, **typed)))

    def accepted(self, preview: Preview) -> Preview:
        """Call the columns and all doubts right."""
        if [*preview.buttons] == ["baca"]:
            preview = self.pressed(preview, "baca")
        for problem in PROBLEMS:
            if f"benar:{problem}" in preview.buttons:
                preview = self.pressed(preview, f"benar:{problem}")
        return preview

    def save(self, preview: Preview, action: str = "simpan") -> None:
        assert led_to(self.press(preview, action)) == self.site.path("/") + "?halaman=1"


@pytest.fixture
def importer(site: Site) -> Importer:
    return Importer(site)

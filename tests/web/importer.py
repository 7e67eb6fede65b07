"""Uploads a file or a text as staff do, and presses the buttons of an import or of a selection: `Importer`."""

import httpx
import pytest
from harness import Page, Site, led_to

from mahasiswa.sheets.rules import PROBLEMS

IMPORT, SELECT = "/mahasiswa/impor", "/mahasiswa/pilih"


def counts(preview: Page) -> dict[str, int]:
    """Return the numbers of lines that are not zero."""
    numbers = [int(text.replace(".", "")) for text in preview.texts(".summary dd")]
    named = zip(preview.texts(".summary dt"), numbers, strict=True)
    return {name: number for name, number in named if number}


class Importer:
    """Uploads to the form of an import or of a selection, and sends the forms of the pages that follow."""

    def __init__(self, site: Site, path: str = IMPORT) -> None:
        self.site, self.path = site, path

    def send(self, data: bytes | str, name: str = "daftar.csv") -> httpx.Response:
        """Send the form as a browser does, with a file, or with a text that is pasted."""
        file, text = ((name, data), "") if isinstance(data, bytes) else (("", ""), data)
        return self.site.post(
            self.site.path(self.path), files={"berkas": file}, data={"tempel": text}
        )

    def upload(self, data: bytes | str, name: str = "daftar.csv") -> Page:
        """Send a file or a text; the response must lead to a preview."""
        return self.site.page(led_to(self.send(data, name)))

    def press(self, preview: Page, action: str, **typed: str) -> httpx.Response:
        """Press a button of a preview, by its value, after changing some fields."""
        return self.site.submit(preview.form("versi"), **typed, aksi=action)

    def pressed(self, preview: Page, action: str, **typed: str) -> Page:
        """The same; the response must lead to a preview."""
        return self.site.page(led_to(self.press(preview, action, **typed)))

    def accepted(self, preview: Page) -> Page:
        """Call the columns and all doubts right."""
        for action in ("baca", *map("benar:{}".format, PROBLEMS)):
            if preview.css(f"button[value='{action}']"):
                preview = self.pressed(preview, action)
        return preview

    def save(self, preview: Page, action: str = "simpan") -> None:
        assert led_to(self.press(preview, action)) == self.site.path("/") + "?halaman=1"


@pytest.fixture
def importer(site: Site) -> Importer:
    return Importer(site)

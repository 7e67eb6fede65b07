"""Uploads a file or a text as staff do, and presses the buttons of an import or of a selection."""

import httpx
from harness import Page, Site, led_to

from mahasiswa.sheets.rules import PROBLEMS

IMPORT, SELECT = "/mahasiswa/impor", "/mahasiswa/pilih"


def counts(preview: Page) -> dict[str, int]:
    """Return the numbers of lines that are not zero."""
    numbers = [int(text.replace(".", "")) for text in preview.texts(".summary dd")]
    named = zip(preview.texts(".summary dt"), numbers, strict=True)
    return {name: number for name, number in named if number}


def post_upload(
    site: Site, data: bytes | str, name: str = "daftar.csv", path: str = IMPORT
) -> httpx.Response:
    """Send the form of an import or of a selection as a browser does, with a file, or with a text that is pasted."""
    file, text = ((name, data), "") if isinstance(data, bytes) else (("", ""), data)
    return site.post(site.path(path), files={"berkas": file}, data={"tempel": text})


def uploaded(site: Site, data: bytes | str, name: str = "daftar.csv", path: str = IMPORT) -> Page:
    """Send a file or a text, and return its preview."""
    return site.page(led_to(post_upload(site, data, name, path)))


def press(site: Site, preview: Page, action: str, **typed: str) -> httpx.Response:
    """Press a button of a preview, by its value, after changing some fields."""
    return site.submit(preview.form("versi"), **typed, aksi=action)


def pressed(site: Site, preview: Page, action: str, **typed: str) -> Page:
    """Press a button, and return the preview that follows."""
    return site.page(led_to(press(site, preview, action, **typed)))


def accepted(site: Site, preview: Page) -> Page:
    """Call the columns and all doubts right."""
    for action in ("baca", *map("benar:{}".format, PROBLEMS)):
        if preview.css(f"button[value='{action}']"):
            preview = pressed(site, preview, action)
    return preview


def save(site: Site, preview: Page, action: str = "simpan") -> None:
    assert led_to(press(site, preview, action)) == site.path("/") + "?halaman=1"


def import_file(site: Site, data: bytes, name: str = "daftar.csv") -> None:
    """Upload a file, call all doubts right, and save."""
    save(site, accepted(site, uploaded(site, data, name)))

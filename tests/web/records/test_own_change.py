"""The message after a change is about the change of that person, on both engines, also if others make changes meanwhile."""

import re
from collections.abc import Callable

import httpx
import pytest
from engines import EACH_ENGINE
from harness import Form, Page, Service, Site
from spreadsheets import HEADER, csv
from web.history.test_history import HISTORY, MOMENT
from web.importer import accepted, press, uploaded

from mahasiswa.record import Mahasiswa

pytestmark = EACH_ENGINE

SITI = Mahasiswa("5500000001", "Siti Aminah", "Sleman")
NEAR = Mahasiswa("55OO000001", "Siti Aminah", "Solo")
PLACE = "?cari=siti&per=10"
KEY = r"[?&]perubahan=\d+-\d{16}(?=#|$)"


def line(page: Page) -> str:
    """Return the line about a change, without its moment and its link."""
    return re.sub(rf" {MOMENT}( · Riwayat)?$", "", "".join(page.texts("p.latest")))


def warning(page: Page) -> list[str]:
    """Return the sentence of the warning and the texts of its links and of its button."""
    return [text.strip() for text in page.texts(".warning > span, .warning a, .warning button")]


def undo_button(page: Page) -> Form:
    (form,) = [form for form in page.forms if "/perubahan/" in form.target]
    return form


def save(site: Site, path: str, **typed: str) -> str:
    """Send a form; return the address of its redirect, as `named` does."""
    return named(site.post(path, data=typed))


def named(answer: httpx.Response) -> str:
    """Return the address of a redirect, which must name a change, as a browser asks for it."""
    location = answer.headers["location"]
    assert re.search(KEY, location), location
    return str(location.partition("#")[0])


def save_import(site: Site) -> str:
    return named(press(site, accepted(site, uploaded(site, csv(HEADER, NEAR))), "simpan"))


# A change, the text of the page after it, and the change by which somebody else reverses it, if there is one.
CHANGES: dict[str, tuple[Callable[[Site], str], str, Callable[[Site], object] | None]] = {
    "an addition": (
        lambda site: save(site, f"/mahasiswa/add{PLACE}", **NEAR._asdict()),
        "Siti Aminah (55OO000001) ditambah",
        lambda site: site.delete(NEAR[0]),
    ),
    "an edit": (
        lambda site: save(site, f"/mahasiswa/edit/{SITI[0]}{PLACE}", nama="Siti", alamat="Solo"),
        "Siti (5500000001) diubah",
        lambda site: site.edit(*SITI),
    ),
    "a deletion": (
        lambda site: save(site, f"/mahasiswa/delete/{SITI[0]}{PLACE}"),
        "Siti Aminah (5500000001) dihapus",
        lambda site: site.add(*SITI),
    ),
    "another nim": (
        lambda site: save(site, f"/mahasiswa/nim/{SITI[0]}{PLACE}", nim="7"),
        "NIM Siti Aminah diganti dari 5500000001 menjadi 7",
        lambda site: site.post("/mahasiswa/nim/7", data={"nim": SITI[0]}),
    ),
    "an import": (
        save_import,
        "Siti Aminah (55OO000001) diimpor",
        lambda site: site.delete(NEAR[0]),
    ),
    "an undo on the list": (
        lambda site: save(site, undo_button(site.list()).target),
        "penambahan Siti Aminah (5500000001) dibatalkan",
        None,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_page_after_a_change_shows_that_change(
    site: Site, service: Service, change: str
) -> None:
    """Others change other records, the same record, and a batch before it is opened. No link of the page names a change.

    If somebody else has reversed it, there is no warning and no button, because the record is no longer as after it.
    """
    site.add("5500000O01", "Siti Aminah", "Bantul")
    site.add(*SITI)  # near, so that the list offers to take it back
    make, said, reverse = CHANGES[change]
    target = make(site)
    with service.site() as other:
        other.add("99", "Budi", "Solo")
        if reverse:
            reverse(other)
            assert not warning(site.page(target))
        other.edit(SITI[0], "Sitti", "Klaten")
    page = site.page(target)
    assert line(page) == f"Perubahan Anda: {said}"
    assert "perubahan=" not in page.html
    without = re.sub(KEY, "", target)
    assert line(site.page(without)).startswith("Terakhir: ")
    assert not warning(site.page(without)), "it would be about the change of someone else"


def test_the_warning_and_its_buttons_are_those_of_the_own_addition(
    site: Site, service: Service
) -> None:
    """Somebody else adds a record that is nearly the same. Each person sees the own one, and takes back the own one."""
    site.add("5500000O01", "Ani", "Solo")
    mine = save(site, f"/mahasiswa/add{PLACE}&lagi=1", **SITI._asdict())
    with service.site() as other:
        theirs = save(other, "/mahasiswa/add?lagi=1", **NEAR._asdict())
        for visitor, target, record in ((site, mine, SITI), (other, theirs, NEAR)):
            page = visitor.page(target)
            said, *_ = page.texts("main [role=status]")
            assert said == f"Siti Aminah ({record[0]}) tersimpan."
            assert warning(page)[1:] == ["Edit", "Ganti NIM", "Batalkan penambahan"]
            assert "NIM ini mirip dengan 5500000" in warning(page)[0]
    button = undo_button(site.page(mine))
    assert site.submit(button).headers["location"].startswith(f"/{PLACE}&perubahan=")
    assert site.nims == ["5500000O01", NEAR[0]]


def test_the_whole_list_names_the_record_of_its_warning(site: Site) -> None:
    """The redirect of the specification's form names nothing, so the sentence and each button say whose record it is."""
    site.add(*SITI)
    assert site.add(*NEAR).headers["location"] == "/"
    page = site.list()
    assert warning(page) == [
        "NIM Siti Aminah (55OO000001) mirip dengan 5500000001 (Siti Aminah).",
        *("Edit 55OO000001", "Ganti NIM 55OO000001", "Batalkan penambahan 55OO000001"),
    ]
    button = undo_button(page)
    site.add("99", "Budi", "Solo")
    assert site.page(save(site, button.target)).nims == [SITI[0], "99"]


def test_a_search_whose_last_hit_is_gone_says_why(site: Site) -> None:
    """It offers no other spelling, because the search was right. Without its own change the page is as usual."""
    site.add(*SITI)
    site.add("550", "Ani", "Solo")
    for path, typed, said in (
        ("nim", {"nim": "7"}, "Tidak ada lagi yang cocok dengan “5500000001”."),
        ("delete", {}, "Data dihapus. Tidak ada lagi yang cocok dengan “5500000001”."),
    ):
        target = save(site, f"/mahasiswa/{path}/{SITI[0]}?cari={SITI[0]}", **typed)
        assert site.page(target).texts(".empty") == [said]
        assert "Periksa angkanya." in site.page(re.sub(KEY, "", target)).texts(".empty")[0]
        site.add(*SITI)


@pytest.mark.parametrize("state", ["another moment", "malformed"])
def test_a_change_that_cannot_be_shown_is_not_shown(site: Site, state: str) -> None:
    """Neither is the change of somebody else in its place. The page of the history and the next form are alike."""
    target = save(site, f"/mahasiswa/add{PLACE}&lagi=1", **SITI._asdict())
    key = re.findall(r"\d+-\d+", target)[-1]
    key = {"another moment": f"{key}1", "malformed": "x"}[state]
    form = f"/mahasiswa/add{PLACE}&lagi=1&nim=5500000001"
    for address in (f"/{PLACE}", f"{HISTORY}?halaman=1", form):
        page = site.page(f"{address}&perubahan={key}")
        assert not page.texts(".latest, .warning, main > [role=status], .record [role=status]")

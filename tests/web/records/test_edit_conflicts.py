"""Two people edit the same record: changes of different fields are both kept, others are a conflict."""

import re

import httpx
import pytest
from apsw import Connection
from harness import Page, Site, led_to, page_of
from stores import refill
from web.browser import Window

CHANGED = "Data ini sudah berubah sejak halaman ini dibuka. Pilih data mana yang dipakai."
NIM = "20/1"
PATH = "/mahasiswa/edit/20%2F1"
SITI = ("Siti", "Sleman")
BROKEN = ("Siti", "Jl. Merdeka 1\nRT 03")

Texts = tuple[str, str]


@pytest.fixture
def siti(site: Site, other: Connection) -> Site:
    refill(other, [(NIM, *SITI)])
    return site


def version(page: Page) -> str:
    (version,) = page.values("form button[type=submit][name=versi]")
    return version


def save(site: Site, versi: str, nama: str, alamat: str) -> httpx.Response:
    """Send the edit form with a version, as a browser does, which removes line breaks."""
    texts = {
        name: re.sub("[\r\n]", "", text) for name, text in (("nama", nama), ("alamat", alamat))
    }
    return site.post(PATH, data={"nim": NIM, **texts, "versi": versi})


def compared(page: Page) -> list[list[str]]:
    """Return the cells of the conflict's table: headings, then each field's label and texts."""
    return [list(row.cells) for row in page.parts("table.compare tr")]


def stored(site: Site) -> tuple[str, ...]:
    ((nim, *texts),) = site.records
    assert nim == NIM
    return tuple(texts)


def test_the_version_of_an_edit_form_stands_in_its_button_and_depends_only_on_the_texts(
    siti: Site,
) -> None:
    """The form has no hidden input (specification 4.3.2). Texts that are divided differently have different versions."""
    page = siti.page(PATH)
    assert page.form("alamat").values("input", "name") == ["nim", "nama", "alamat"]
    assert not siti.page("/mahasiswa/add").css("button[name]")
    seen = []
    for texts in (("ab", "c"), ("a", "bc"), SITI):
        siti.edit(NIM, *texts)
        seen.append(version(siti.page(PATH)))
    assert len(set(seen)) == 3
    assert seen[-1] == version(page)


def test_an_edit_with_an_empty_version_is_always_saved(siti: Site) -> None:
    """A deleted record is a 302 and stays away (specification 4.5.2)."""
    siti.edit(NIM, "Lain", "Lain")
    assert led_to(save(siti, "", "Saya", "Bantul")) == "/"
    assert stored(siti) == ("Saya", "Bantul")
    siti.delete(NIM)
    assert led_to(save(siti, "", "Saya", "Bantul")) == "/"
    assert siti.list().rows == []


SLEMAN, KLATEN, BOTH = "Siti|Sleman", "Siti|Klaten", "Siti Aminah|Klaten"
MERGED: dict[str, tuple[str, list[str], str, str]] = {
    "none": (SLEMAN, [], BOTH, BOTH),
    "of the other field": (SLEMAN, [KLATEN], "Siti Aminah|Sleman", BOTH),
    "the same, as a double click": (SLEMAN, [BOTH], BOTH, BOTH),
    "undone": (SLEMAN, ["Lain|Lain", SLEMAN], "Saya|Bantul", "Saya|Bantul"),
    "the same without its line break": (
        SLEMAN,
        ["Siti A.\n|Sleman"],
        "Siti A.|Solo",
        "Siti A.\n|Solo",
    ),
    "of a text with a line break": (
        "|".join(BROKEN),
        [KLATEN],
        f"Siti A.|{BROKEN[1]}",
        "Siti A.|Klaten",
    ),
}
"""Texts that the form showed, the changes of others, the texts that are sent, and those that are stored then."""


@pytest.mark.parametrize(("shown", "theirs", "sent", "merged"), MERGED.values(), ids=MERGED)
def test_changes_that_do_not_contradict_each_other_are_all_kept(
    siti: Site, shown: str, theirs: list[str], sent: str, merged: str
) -> None:
    """A field that only one person changed gets that text, and the answer is the redirect."""
    siti.edit(NIM, *shown.split("|"))
    versi = version(siti.page(PATH))
    for texts in theirs:
        siti.edit(NIM, *texts.split("|"))
    assert led_to(save(siti, versi, *sent.split("|"))) == "/"
    assert "|".join(stored(siti)) == merged


@pytest.mark.parametrize(
    ("theirs", "sent", "typed"),
    [
        # Saving offers the newest text of a field that the form did not change.
        (("Siti Aminah", "Klaten"), ("Siti Saya", "Sleman"), ("Siti Saya", "Klaten")),
        (("S.\nAminah", "<b>Klaten</b>\r\n"), ("Siti Saya", "Bantul"), ("Siti Saya", "Bantul")),
    ],
)
def test_a_conflict_shows_every_text_that_saving_would_change_and_saves_nothing(
    siti: Site, theirs: Texts, sent: Texts, typed: Texts
) -> None:
    """It is 409 with the old, the newest and the typed texts, the typed ones in the form, and both ways to continue."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, *theirs)
    page = page_of(save(siti, versi, *sent), 409)
    assert page.texts("h1, h2, h3") == ["Edit Data Mahasiswa"]
    assert page.texts("[role=alert]") == [CHANGED]
    head, *rows = compared(page)
    assert head[1:] == ["Semula", "Data terbaru", "Isian Anda"]
    fields = zip(("Nama", "Alamat"), SITI, theirs, typed, strict=True)
    assert rows == [list(texts) for texts in fields if texts[2] != texts[3]]
    (form,) = page.forms
    shown = tuple(form.fields.values())
    assert shown == (NIM, *typed)
    assert form.submit == "Simpan isian saya"
    assert form.target == PATH
    assert page.target("Gunakan data terbaru") == PATH
    assert stored(siti) == theirs
    # The button of this page has the version that the page shows, so sending it again overwrites that version.
    led_to(siti.submit(form, versi=version(page)))
    assert stored(siti) == typed


def test_a_browser_saves_another_field_and_leaves_unusual_texts_as_they_are(
    window: Window, siti: Site
) -> None:
    """A browser removes line breaks from a field; a change of another field leaves them in the stored text."""
    for alamat in ("\r\nAni\nBudi", "\tAni  ", "👩🏽‍🎓 e\u0301 \u00e9\x85\u2028"):
        siti.edit(NIM, "\rSiti\n", alamat)
        window.goto(PATH)
        window.fill("input[name=nama]", "Siti A.")
        with window.expect_navigation():
            window.get_by_role("button", name="Simpan", exact=True).click()
        assert stored(siti) == ("Siti A.", alamat)

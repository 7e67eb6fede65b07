"""Two people edit the same record, on both engines: changes of different fields are both kept, others are a conflict."""

import re

import httpx
import pytest
from browser import Window
from engines import service_on_each_engine  # noqa: F401 - fixtures
from harness import Page, Site, led_to
from visitor import page_of, texts_in

CHANGED = "Data ini sudah berubah sejak halaman ini dibuka. Pilih data mana yang dipakai."
NIM = "20/1"
PATH = "/mahasiswa/edit/20%2F1"
SITI = ("Siti", "Sleman")
BROKEN = ("Siti", "Jl. Merdeka 1\nRT 03")

Texts = tuple[str, str]


@pytest.fixture
def siti(site: Site) -> Site:
    site.add(NIM, *SITI)
    return site


def version(page: Page) -> str:
    (version,) = page.values("form button[type=submit][name=versi]")
    return version


def save(site: Site, versi: str, nama: str, alamat: str) -> httpx.Response:
    """Send the edit form with a version, as a browser does, which removes line breaks."""
    texts = {
        name: re.sub("[\r\n]", "", text) for name, text in (("nama", nama), ("alamat", alamat))
    }
    return site.post(PATH, {"nim": NIM, **texts, "versi": versi})


def conflict(answer: httpx.Response) -> Page:
    return page_of(answer, 409)


def compared(page: Page) -> list[list[str]]:
    """Return the cells of the conflict's table: headings, then each field's label and texts."""
    return [texts_in(row, "th, td") for row in page.tree.css("table.compare tr")]


def stored(site: Site) -> tuple[str, ...]:
    ((nim, *texts),) = site.records
    assert nim == NIM
    return tuple(texts)


def test_the_version_of_an_edit_form_stands_in_its_button_and_depends_only_on_the_texts(
    siti: Site,
) -> None:
    """The form has no hidden input (specification 4.3.2). Texts that are divided differently have different versions."""
    page = siti.page(PATH)
    assert [field["name"] for field in page.record_form.inputs] == ["nim", "nama", "alamat"]
    assert re.fullmatch("[A-Za-z0-9_-]{22}", version(page))
    assert not siti.page("/mahasiswa/add").tree.css("button[name]")
    seen = []
    for texts in ("ab|c", "a|bc", "|abc", "abc|", "a:1|c", "a|1:c", "|".join(SITI)):
        siti.edit(NIM, *texts.split("|"))
        seen.append(version(siti.page(PATH)))
    assert len(set(seen)) == 7
    assert seen[-1] == version(page)


def test_an_edit_with_an_empty_version_is_always_saved(siti: Site) -> None:
    """Each text is stored as it was sent (specification 4.5.1). A deleted record is a 302 and stays away (4.5.2)."""
    siti.edit(NIM, *BROKEN)
    assert save(siti, "", *BROKEN).status_code == 302
    assert stored(siti) == ("Siti", "Jl. Merdeka 1RT 03")
    siti.delete(NIM)
    assert led_to(save(siti, "", "Saya", "Bantul")) == "/"
    assert siti.list().rows == []


SLEMAN, KLATEN, BOTH = "Siti|Sleman", "Siti|Klaten", "Siti Aminah|Klaten"
MERGED: dict[str, tuple[str, list[str], str, str]] = {
    "none": (SLEMAN, [], BOTH, BOTH),
    "of the other field": (SLEMAN, [KLATEN], "Siti Aminah|Sleman", BOTH),
    "but the form has none": (SLEMAN, [BOTH], SLEMAN, BOTH),
    "partly the same": (SLEMAN, [KLATEN], BOTH, BOTH),
    "the same, as a double click": (SLEMAN, [BOTH], BOTH, BOTH),
    "undone": (SLEMAN, ["Lain|Lain", SLEMAN], "Saya|Bantul", "Saya|Bantul"),
    "the same without its line break": (
        SLEMAN,
        ["Siti A.\n|Sleman"],
        "Siti A.|Solo",
        "Siti A.\n|Solo",
    ),
    "only a line break": (SLEMAN, ["Siti\n|Sleman"], SLEMAN, "Siti\n|Sleman"),
    "none, and the form replaces a line break": (
        "|".join(BROKEN),
        [],
        "Siti|Jl. 1, RT 03",
        "Siti|Jl. 1, RT 03",
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
    ("theirs", "sent", "labels"),
    [
        (("Siti Aminah", "Sleman"), ("Siti Saya", "Sleman"), "Nama"),
        # Saving offers the newest text of a field that the form did not change.
        (("Siti Aminah", "Klaten"), ("Siti Saya", "Sleman"), "Nama"),
        (("S.\nAminah", "<b>Klaten</b>\r\n"), ("Siti Saya", "Bantul"), "Nama Alamat"),
    ],
)
def test_a_conflict_shows_every_text_that_saving_would_change_and_saves_nothing(
    siti: Site, theirs: Texts, sent: Texts, labels: str
) -> None:
    """It is 409 with the old, the newest and the typed texts, the typed ones in the form, and both ways to continue."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Siti A.", "Sleman")
    siti.edit(NIM, *theirs)
    page = conflict(save(siti, versi, *sent))
    assert page.headings == ["Edit Data Mahasiswa"]
    assert page.texts("[role=alert]") == [CHANGED]
    rows = [
        list(texts)
        for texts in zip(("Nama", "Alamat"), SITI, theirs, sent, strict=True)
        if texts[0] in labels
    ]
    assert [compared(page)[0][1:], *compared(page)[1:]] == [
        ["Semula", "Data terbaru", "Isian Anda"],
        *rows,
    ]
    (form,) = page.forms
    typed = (sent[0], sent[1] if "Alamat" in labels else theirs[1])
    assert form.values == {"nim": NIM, "nama": typed[0], "alamat": typed[1]}
    assert (form.target, form.submit, page.target("Gunakan data terbaru")) == (
        PATH,
        "Simpan isian saya",
        PATH,
    )
    assert stored(siti) == theirs
    # The button of this page has the version that the page shows, so sending it again overwrites that version.
    assert version(page) == version(siti.page(PATH))
    siti.accepts(form, versi=version(page))
    assert stored(siti) == typed


@pytest.mark.parametrize("service", ["sqlite"], indirect=True)  # a browser sees no engine
def test_a_browser_saves_another_field_and_leaves_unusual_texts_as_they_are(
    window: Window, siti: Site
) -> None:
    """A browser removes line breaks from a field; a change of another field leaves them in the stored text."""
    for alamat in (
        "Ani\nBudi",
        "\r\nAni\r\n",
        "\tAni\t",
        "  Ani  ",
        "👩🏽‍🎓 e\u0301 \u00e9",
        "\x0b\x85\u2028",
    ):
        siti.edit(NIM, "\rSiti\n", alamat)
        window.open(PATH)
        window.type(nama="Siti A.")
        window.save()
        assert stored(siti) == ("Siti A.", alamat)

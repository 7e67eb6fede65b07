"""Two people edit the same record: nobody's change is lost unseen, and a client that says nothing notices nothing."""

import re
import threading

import httpx
import pytest
from browser import OpenWindow, Window, install_node_modules, start_chromium, window_opener
from harness import Page, Service, Site
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import expect
from spreadsheets import Database, another_program, own_database, own_service, own_site

# The fixtures, which pytest finds by these names.
__all__ = [
    "another_program",
    "install_node_modules",
    "own_database",
    "own_service",
    "own_site",
    "start_chromium",
    "window_opener",
]

CHANGED = "Data ini sudah diubah orang lain sejak Anda membukanya. Perubahan Anda belum disimpan."
NIM = "20/1"
PATH = "/mahasiswa/edit/20%2F1"
TEXTS = {
    "plain": "Ani",
    "a line feed": "Ani\nBudi",
    "a carriage return": "Ani\rBudi",
    "both": "\r\nAni\r\n",
    "a tab": "\tAni\t",
    "spaces": "  Ani  ",
    "markup": "<b>&amp;\"'</b>",
    "beyond the first plane": "👩🏽‍🎓 e\u0301 \u00e9",
    "nothing": "",
}


@pytest.fixture
def siti(site: Site, other: Database) -> Site:
    """Visit a list of one record."""
    other.fill([(NIM, "Siti", "Sleman")])
    return site


def version(page: Page) -> str:
    """Return what the form's button carries."""
    (button,) = page.tree.css("form button[type=submit]")
    assert button.attributes["name"] == "versi"
    return str(button.attributes["value"])


def save(site: Site, versi: str, nama: str, alamat: str) -> httpx.Response:
    """Send the edit form with the version its button carries."""
    return site.post(PATH, {"nim": NIM, "nama": nama, "alamat": alamat, "versi": versi})


def compared(page: Page) -> dict[str, tuple[str, str]]:
    """Return, by the field's label, the newest text and one's own, as the conflict's page shows them."""
    rows = page.tree.css("table.compare tbody tr")
    return {row.css("th")[0].text(): (row.css("td")[0].text(), row.css("td")[1].text()) for row in rows}


def stored(site: Site) -> tuple[str, ...]:
    """Return the one record."""
    (row,) = site.list().rows
    return row[1:]


# ---- the form


def test_the_form_has_its_three_inputs_and_a_version_on_its_button(siti: Site) -> None:
    """Nothing is hidden in it (specification 4.3.2): the button alone says which version it was opened with."""
    page = siti.page(PATH)
    (form,) = page.forms
    assert [(field.name, field.type) for field in form.inputs] == [(name, "text") for name in ("nim", "nama", "alamat")]
    assert re.fullmatch("[A-Za-z0-9_-]{22}", version(page))
    (add,) = siti.page("/mahasiswa/add").tree.css("form button[type=submit]")
    assert "name" not in add.attributes


def test_the_version_stands_for_the_texts(siti: Site, other: Database) -> None:
    """The same texts have the same version, whenever and by whomever they were written; others have another."""
    first = version(siti.page(PATH))
    siti.edit(NIM, "Siti A.", "Sleman")
    second = version(siti.page(PATH))
    siti.edit(NIM, "Siti", "Sleman")
    assert version(siti.page(PATH)) == first != second
    # No two records share one, also where their texts only lie otherwise in the two fields.
    seen = set()
    for nama, alamat in [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("a:1", "c"), ("a", "1:c")]:
        other.fill([(NIM, nama, alamat)])
        seen.add(version(siti.page(PATH)))
    assert len(seen) == 6


def test_an_edit_alone_is_saved(siti: Site) -> None:
    """Where nobody else did anything, the version changes nothing; again and again."""
    for nama in ("Siti A.", "Siti B.", "Siti"):
        answer = save(siti, version(siti.page(PATH)), nama, "Klaten")
        assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
        assert stored(siti) == (NIM, nama, "Klaten")


@pytest.mark.parametrize("alamat", TEXTS.values(), ids=TEXTS)
def test_no_text_makes_a_conflict_of_its_own(siti: Site, other: Database, alamat: str) -> None:
    """A browser alters line ends, so what was opened is told by the version and not by a copy of the texts."""
    other.fill([(NIM, "Siti", alamat)])
    answer = save(siti, version(siti.page(PATH)), "Siti A.", re.sub("[\r\n]", "", alamat))
    assert answer.status_code == 302
    assert stored(siti) == (NIM, "Siti A.", re.sub("[\r\n]", "", alamat))


@given(st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_no_text_at_all_makes_one(site: Site, other: Database, nama: str, alamat: str) -> None:
    """Whatever another program has stored, but NUL, which ends a text there."""
    nama, alamat = nama.replace("\0", ""), alamat.replace("\0", "")
    other.fill([(NIM, nama, alamat)])
    assert save(site, version(site.page(PATH)), "Siti", "Sleman").status_code == 302
    assert stored(site) == (NIM, "Siti", "Sleman")


# ---- the conflict


@pytest.mark.parametrize("theirs", [("Siti Aminah", "Sleman"), ("Siti", "Klaten"), ("S.\nAminah", "<b>Klaten</b>\r\n")])
def test_both_are_shown_and_nothing_is_saved(siti: Site, theirs: tuple[str, str]) -> None:
    """409, theirs beside yours, your texts still in the fields, and the two ways on."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, *theirs)
    answer = save(siti, versi, "Siti Saya", "Bantul & <Sleman>")
    assert answer.status_code == 409
    page = Page(answer.text, siti.origin + PATH)
    assert page.headings == ["Edit Data Mahasiswa"]
    assert [alert.text() for alert in page.tree.css("[role=alert]")] == [CHANGED]
    assert compared(page) == {"Nama": (theirs[0], "Siti Saya"), "Alamat": (theirs[1], "Bantul & <Sleman>")}
    (form,) = page.forms
    assert form.values == {"nim": NIM, "nama": "Siti Saya", "alamat": "Bantul & <Sleman>"}
    assert (form.target, form.submit) == (PATH, "Simpan perubahan saya")
    (link,) = [link for link in page.links if link.text == "Gunakan data terbaru"]
    assert link.target == PATH
    assert stored(siti) == (NIM, *theirs)
    # The second press is about the version that this page has shown.
    assert version(page) == version(siti.page(PATH))
    assert save(siti, version(page), "Siti Saya", "Bantul").status_code == 302
    assert stored(siti) == (NIM, "Siti Saya", "Bantul")


def test_a_third_person_is_noticed_too(siti: Site) -> None:
    """Where the record changes again before the second press, the page comes again with the newest texts."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Orang kedua", "Sleman")
    second = Page(save(siti, versi, "Saya", "Bantul").text, siti.origin + PATH)
    siti.edit(NIM, "Orang ketiga", "Klaten")
    answer = save(siti, version(second), "Saya", "Bantul")
    assert answer.status_code == 409
    assert compared(Page(answer.text, PATH)) == {"Nama": ("Orang ketiga", "Saya"), "Alamat": ("Klaten", "Bantul")}
    assert stored(siti) == (NIM, "Orang ketiga", "Klaten")


def test_another_program_is_someone_else(siti: Site, other: Database) -> None:
    """Whoever changes the record, by whatever way."""
    versi = version(siti.page(PATH))
    other.run("UPDATE mahasiswa SET alamat = 'Klaten'")
    assert save(siti, versi, "Saya", "Sleman").status_code == 409
    assert stored(siti) == (NIM, "Siti", "Klaten")


def test_a_second_click_is_nobody_else(siti: Site) -> None:
    """The same form sent twice, as by a double click: the record is what it says, and that is no conflict."""
    versi = version(siti.page(PATH))
    assert save(siti, versi, "Siti A.", "Klaten").status_code == 302
    assert save(siti, versi, "Siti A.", "Klaten").status_code == 302
    assert stored(siti) == (NIM, "Siti A.", "Klaten")


def test_there_and_back_is_no_change(siti: Site) -> None:
    """A record that is again what was opened is saved: the version stands for the texts."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Lain", "Lain")
    siti.edit(NIM, "Siti", "Sleman")
    assert save(siti, versi, "Saya", "Bantul").status_code == 302


def test_only_one_of_many_at_once_is_saved(siti: Site, service: Service) -> None:
    """The version is compared inside the write's transaction: of those who press together, one wins."""
    versi = version(siti.page(PATH))
    with service.site() as prompt:
        answers = together(service, [{"nama": f"Orang {n}", "alamat": "Sleman", "versi": versi} for n in range(12)])
        assert sorted(answers.values()) == [302] + [409] * 11
        (winner,) = [nama for nama, status in answers.items() if status == 302]
        assert stored(prompt) == (NIM, winner, "Sleman")


def together(service: Service, forms: list[dict[str, str]]) -> dict[str, int]:
    """Send forms at the same time; return the status that each nama got."""
    barrier = threading.Barrier(len(forms))
    answers: dict[str, int] = {}

    def send(form: dict[str, str]) -> None:
        with service.site() as site:
            site.get("/mahasiswa/add")  # the connection is open
            barrier.wait(10)
            answers[form["nama"]] = site.post(PATH, form).status_code

    threads = [threading.Thread(target=send, args=(form,)) for form in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# ---- what is not a conflict


def test_a_client_without_a_version_gets_the_specification(siti: Site) -> None:
    """Its change is made, whatever happened since, and answered with the redirect of 4.5."""
    siti.page(PATH)
    siti.edit(NIM, "Orang lain", "Klaten")
    answer = siti.post(PATH, {"nim": NIM, "nama": "Saya", "alamat": "Bantul"})
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
    assert stored(siti) == (NIM, "Saya", "Bantul")
    assert siti.post(PATH, {"nama": "Saya", "alamat": "Solo", "versi": ""}).status_code == 302
    assert stored(siti) == (NIM, "Saya", "Solo")


def test_a_record_removed_meanwhile_is_the_specifications_redirect(siti: Site) -> None:
    """As for any record that is not there: 302, and it does not come back."""
    versi = version(siti.page(PATH))
    siti.delete(NIM)
    answer = save(siti, versi, "Saya", "Bantul")
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    assert siti.list().rows == []


@pytest.mark.parametrize("versi", ["x", "0" * 22, "' OR 1=1 --", "é" * 22, "x" * 10_000])
def test_a_version_of_nobodys_is_a_conflict(siti: Site, versi: str) -> None:
    """What is no version of this record cannot be the one it has."""
    assert save(siti, versi, "Saya", "Bantul").status_code == 409
    assert stored(siti) == (NIM, "Siti", "Sleman")


def test_a_form_that_lacks_a_field_after_a_conflict(siti: Site) -> None:
    """A damaged form that also comes too late: a page, nothing saved, and no word that nobody wrote."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Orang lain", "Klaten")
    answer = siti.post(PATH, {"nama": "Saya", "versi": versi})
    assert answer.status_code in {400, 409}
    assert ">None<" not in answer.text
    assert stored(siti) == (NIM, "Orang lain", "Klaten")


def test_a_form_refused_keeps_its_version(siti: Site) -> None:
    """A form that comes again for another reason is still about the version it was opened with."""
    versi = version(siti.page(PATH))
    answer = siti.post(PATH, {"nama": "Saya", "alamat": "a\0b", "versi": versi})
    assert answer.status_code == 400
    assert version(Page(answer.text, PATH)) == versi
    siti.edit(NIM, "Orang lain", "Klaten")
    assert save(siti, version(Page(answer.text, PATH)), "Saya", "Bantul").status_code == 409


# ---- in a browser


def open_beside(open_window: OpenWindow, site: Site) -> Window:
    """Open the form, type into it, and let someone else change the record meanwhile; press Simpan."""
    window = open_window()
    assert window.open(PATH) == 200
    window.type(nama="Siti Saya", alamat="Bantul")
    site.edit(NIM, "Siti Aminah", "Klaten")
    window.save()
    expect(window.page.get_by_role("alert")).to_have_text(CHANGED)
    return window


def test_taking_the_newest(open_window: OpenWindow, siti: Site) -> None:
    """“Gunakan data terbaru” opens the form as the record is now, ready to be saved."""
    window = open_beside(open_window, siti)
    cells = window.page.get_by_role("cell").all_inner_texts()
    assert cells == ["Siti Aminah", "Siti Saya", "Klaten", "Bantul"]
    expect(window.page.get_by_label("Nama")).to_have_value("Siti Saya")
    with window.leaving():
        window.page.get_by_role("link", name="Gunakan data terbaru").click()
    expect(window.page.get_by_label("Nama")).to_have_value("Siti Aminah")
    expect(window.page.get_by_label("Alamat")).to_have_value("Klaten")
    expect(window.page.get_by_role("alert")).to_have_count(0)
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")
    window.type(alamat="Klaten Utara")
    window.save()
    assert window.cells() == [[NIM, "Siti Aminah", "Klaten Utara"]]


def test_saving_mine(open_window: OpenWindow, siti: Site) -> None:
    """“Simpan perubahan saya” writes what was typed, also where it was changed once more on that page."""
    window = open_beside(open_window, siti)
    window.type(alamat="Bantul Kota")
    with window.leaving():
        window.page.get_by_role("button", name="Simpan perubahan saya").click()
    assert window.cells() == [[NIM, "Siti Saya", "Bantul Kota"]]
    assert window.posts == [PATH, PATH]


def test_enter_sends_the_version_too(open_window: OpenWindow, siti: Site) -> None:
    """A form that is sent by the keyboard is sent by its button."""
    window = open_window()
    window.open(PATH)
    window.type(nama="Siti Saya")
    siti.edit(NIM, "Siti Aminah", "Klaten")
    with window.leaving():
        window.page.get_by_label("Nama").press("Enter")
    expect(window.page.get_by_role("alert")).to_have_text(CHANGED)
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


def test_a_browser_saves_any_text_without_a_conflict(open_window: OpenWindow, other: Database) -> None:
    """A browser takes line ends out of a field; that is its person's change, and nobody else's."""
    window = open_window()
    for alamat in TEXTS.values():
        other.fill([(NIM, "Siti", alamat)])
        window.open(PATH)
        if not alamat:
            window.type(alamat="Sleman")
        window.type(nama="Siti A.")
        window.save()
        assert window.cells() == [[NIM, "Siti A.", re.sub("[\r\n]", "", alamat) or "Sleman"]]

"""Two people edit the same record: a conflict is shown, and no change is overwritten without notice.

A client that sends no version gets exactly the specification.
"""

import re
import threading

import httpx
import pytest
from browser import OpenWindow, Window
from harness import Page, Service, Site
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import expect
from spreadsheets import Database, another_program, own_database, own_service, own_site

# The fixtures, which pytest finds by these names.
__all__ = ["another_program", "own_database", "own_service", "own_site"]

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
    """Visit a list with the one record Siti."""
    other.fill([(NIM, "Siti", "Sleman")])
    return site


def version(page: Page) -> str:
    """Return the version in the button of the edit form."""
    (button,) = page.tree.css("form button[type=submit]")
    assert button.attributes["name"] == "versi"
    return str(button.attributes["value"])


def save(site: Site, versi: str, nama: str, alamat: str) -> httpx.Response:
    """Send the edit form with a version."""
    return site.post(PATH, {"nim": NIM, "nama": nama, "alamat": alamat, "versi": versi})


def compared(page: Page) -> dict[str, tuple[str, str]]:
    """Return the table of the conflict page: for each label the stored text and the text that was sent."""
    rows = page.tree.css("table.compare tbody tr")
    return {row.css("th")[0].text(): (row.css("td")[0].text(), row.css("td")[1].text()) for row in rows}


def stored(site: Site) -> tuple[str, ...]:
    """Return the only record."""
    (row,) = site.list().rows
    return row[1:]


# ---- the form


def test_the_edit_form_has_three_inputs_and_a_version_in_its_button(siti: Site) -> None:
    """The edit form has no hidden input (specification 4.3.2); only its button holds the version of the record."""
    page = siti.page(PATH)
    (form,) = page.forms
    assert [(field.name, field.type) for field in form.inputs] == [(name, "text") for name in ("nim", "nama", "alamat")]
    assert re.fullmatch("[A-Za-z0-9_-]{22}", version(page))
    (add,) = siti.page("/mahasiswa/add").tree.css("form button[type=submit]")
    assert "name" not in add.attributes


def test_the_version_depends_only_on_the_texts_of_the_record(siti: Site, other: Database) -> None:
    """Equal texts have equal versions, whoever wrote them, and different texts have different versions."""
    first = version(siti.page(PATH))
    siti.edit(NIM, "Siti A.", "Sleman")
    second = version(siti.page(PATH))
    siti.edit(NIM, "Siti", "Sleman")
    assert version(siti.page(PATH)) == first != second
    # The same characters, divided differently between the two fields, have different versions.
    seen = set()
    for nama, alamat in [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("a:1", "c"), ("a", "1:c")]:
        other.fill([(NIM, nama, alamat)])
        seen.add(version(siti.page(PATH)))
    assert len(seen) == 6


def test_an_edit_without_a_concurrent_change_is_saved(siti: Site) -> None:
    """If the record has not changed since the form was opened, each edit is saved."""
    for nama in ("Siti A.", "Siti B.", "Siti"):
        answer = save(siti, version(siti.page(PATH)), nama, "Klaten")
        assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
        assert stored(siti) == (NIM, nama, "Klaten")


@pytest.mark.parametrize("alamat", TEXTS.values(), ids=TEXTS)
def test_line_ends_that_a_browser_removes_are_no_conflict(siti: Site, other: Database, alamat: str) -> None:
    """A browser removes line ends from a field; the version still matches, so the edit is saved."""
    other.fill([(NIM, "Siti", alamat)])
    answer = save(siti, version(siti.page(PATH)), "Siti A.", re.sub("[\r\n]", "", alamat))
    assert answer.status_code == 302
    assert stored(siti) == (NIM, "Siti A.", re.sub("[\r\n]", "", alamat))


@given(st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_no_stored_text_causes_a_conflict_by_itself(site: Site, other: Database, nama: str, alamat: str) -> None:
    """A record with any texts except NUL, stored by another program, can be edited without a conflict."""
    nama, alamat = nama.replace("\0", ""), alamat.replace("\0", "")
    other.fill([(NIM, nama, alamat)])
    assert save(site, version(site.page(PATH)), "Siti", "Sleman").status_code == 302
    assert stored(site) == (NIM, "Siti", "Sleman")


# ---- the conflict


@pytest.mark.parametrize("theirs", [("Siti Aminah", "Sleman"), ("Siti", "Klaten"), ("S.\nAminah", "<b>Klaten</b>\r\n")])
def test_a_conflict_shows_both_versions_and_saves_nothing(siti: Site, theirs: tuple[str, str]) -> None:
    """A conflict is answered with 409, both texts, the typed texts in the form, and both ways to continue."""
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
    # The button of this page has the version that the page shows, so sending it again overwrites that version.
    assert version(page) == version(siti.page(PATH))
    assert save(siti, version(page), "Siti Saya", "Bantul").status_code == 302
    assert stored(siti) == (NIM, "Siti Saya", "Bantul")


def test_a_second_change_by_others_is_a_second_conflict(siti: Site) -> None:
    """If the record changes again before the conflict is answered, another conflict shows the newest texts."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Orang kedua", "Sleman")
    second = Page(save(siti, versi, "Saya", "Bantul").text, siti.origin + PATH)
    siti.edit(NIM, "Orang ketiga", "Klaten")
    answer = save(siti, version(second), "Saya", "Bantul")
    assert answer.status_code == 409
    assert compared(Page(answer.text, PATH)) == {"Nama": ("Orang ketiga", "Saya"), "Alamat": ("Klaten", "Bantul")}
    assert stored(siti) == (NIM, "Orang ketiga", "Klaten")


def test_a_change_by_another_program_is_a_conflict(siti: Site, other: Database) -> None:
    """A record that another program has changed in the database is a conflict, too."""
    versi = version(siti.page(PATH))
    other.run("UPDATE mahasiswa SET alamat = 'Klaten'")
    assert save(siti, versi, "Saya", "Sleman").status_code == 409
    assert stored(siti) == (NIM, "Siti", "Klaten")


def test_the_same_edit_sent_twice_is_no_conflict(siti: Site) -> None:
    """If the same form is sent twice, as by a double click, both are answered with the redirect."""
    versi = version(siti.page(PATH))
    assert save(siti, versi, "Siti A.", "Klaten").status_code == 302
    assert save(siti, versi, "Siti A.", "Klaten").status_code == 302
    assert stored(siti) == (NIM, "Siti A.", "Klaten")


def test_a_change_that_was_reversed_is_no_conflict(siti: Site) -> None:
    """If a record was changed and changed back, an older form is saved, because the texts are the same."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Lain", "Lain")
    siti.edit(NIM, "Siti", "Sleman")
    assert save(siti, versi, "Saya", "Bantul").status_code == 302


def test_only_one_of_many_concurrent_edits_is_saved(siti: Site, service: Service) -> None:
    """The version is compared inside the write's transaction, so one of several concurrent edits is saved."""
    versi = version(siti.page(PATH))
    answers = send_together(service, [{"nama": f"Orang {n}", "alamat": "Sleman", "versi": versi} for n in range(12)])
    assert sorted(answers.values()) == [302] + [409] * 11
    (winner,) = [nama for nama, status in answers.items() if status == 302]
    assert stored(siti) == (NIM, winner, "Sleman")


def send_together(service: Service, forms: list[dict[str, str]]) -> dict[str, int]:
    """Send forms at the same time; return the status for each nama."""
    barrier = threading.Barrier(len(forms))
    answers: dict[str, int] = {}

    def send(form: dict[str, str]) -> None:
        with service.site() as site:
            site.get("/mahasiswa/add")  # opens the connection before the barrier
            barrier.wait(10)
            answers[form["nama"]] = site.post(PATH, form).status_code

    threads = [threading.Thread(target=send, args=(form,)) for form in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# ---- no conflict


def test_an_edit_without_a_version_is_always_saved(siti: Site) -> None:
    """An edit without a version, or with an empty one, is saved and redirected (specification 4.5)."""
    siti.page(PATH)
    siti.edit(NIM, "Orang lain", "Klaten")
    answer = siti.post(PATH, {"nim": NIM, "nama": "Saya", "alamat": "Bantul"})
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
    assert stored(siti) == (NIM, "Saya", "Bantul")
    assert siti.post(PATH, {"nama": "Saya", "alamat": "Solo", "versi": ""}).status_code == 302
    assert stored(siti) == (NIM, "Saya", "Solo")


def test_an_edit_of_a_record_deleted_meanwhile_redirects(siti: Site) -> None:
    """An edit of a deleted record is answered with 302 (specification 4.5.2) and does not create it again."""
    versi = version(siti.page(PATH))
    siti.delete(NIM)
    answer = save(siti, versi, "Saya", "Bantul")
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    assert siti.list().rows == []


@pytest.mark.parametrize("versi", ["x", "0" * 22, "' OR 1=1 --", "é" * 22, "x" * 10_000])
def test_an_edit_with_an_invalid_version_is_a_conflict(siti: Site, versi: str) -> None:
    """A text that is no version never matches the record, so it is a conflict."""
    assert save(siti, versi, "Saya", "Bantul").status_code == 409
    assert stored(siti) == (NIM, "Siti", "Sleman")


def test_an_edit_with_a_missing_field_and_an_old_version_is_refused(siti: Site) -> None:
    """A form that lacks a field and has an old version is refused, and the page never shows the word None."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Orang lain", "Klaten")
    answer = siti.post(PATH, {"nama": "Saya", "versi": versi})
    assert answer.status_code in {400, 409}
    assert ">None<" not in answer.text
    assert stored(siti) == (NIM, "Orang lain", "Klaten")


def test_a_refused_edit_keeps_its_version(siti: Site) -> None:
    """A form that is refused for another reason keeps its version, so a later conflict is still noticed."""
    versi = version(siti.page(PATH))
    answer = siti.post(PATH, {"nama": "Saya", "alamat": "a\0b", "versi": versi})
    assert answer.status_code == 400
    assert version(Page(answer.text, PATH)) == versi
    siti.edit(NIM, "Orang lain", "Klaten")
    assert save(siti, version(Page(answer.text, PATH)), "Saya", "Bantul").status_code == 409


# ---- in a browser


def cause_a_conflict(open_window: OpenWindow, site: Site) -> Window:
    """Open the form and type into it, change the record by another client, then press Simpan."""
    window = open_window()
    assert window.open(PATH) == 200
    window.type(nama="Siti Saya", alamat="Bantul")
    site.edit(NIM, "Siti Aminah", "Klaten")
    window.save()
    expect(window.page.get_by_role("alert")).to_have_text(CHANGED)
    return window


def test_a_person_can_take_the_newest_texts_after_a_conflict(open_window: OpenWindow, siti: Site) -> None:
    """“Gunakan data terbaru” opens the form with the stored texts, and saving it works."""
    window = cause_a_conflict(open_window, siti)
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


def test_a_person_can_save_the_typed_texts_after_a_conflict(open_window: OpenWindow, siti: Site) -> None:
    """“Simpan perubahan saya” saves the texts in the form, including changes made on the conflict page."""
    window = cause_a_conflict(open_window, siti)
    window.type(alamat="Bantul Kota")
    with window.leaving():
        window.page.get_by_role("button", name="Simpan perubahan saya").click()
    assert window.cells() == [[NIM, "Siti Saya", "Bantul Kota"]]
    assert window.posts == [PATH, PATH]


def test_an_edit_form_sent_by_enter_has_its_version(open_window: OpenWindow, siti: Site) -> None:
    """A form that is sent with the Enter key includes the version, so a conflict is noticed."""
    window = open_window()
    window.open(PATH)
    window.type(nama="Siti Saya")
    siti.edit(NIM, "Siti Aminah", "Klaten")
    with window.leaving():
        window.page.get_by_label("Nama").press("Enter")
    expect(window.page.get_by_role("alert")).to_have_text(CHANGED)
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


def test_a_browser_saves_unusual_texts_without_a_conflict(open_window: OpenWindow, other: Database) -> None:
    """A browser removes line ends from a field, and saving such a form is no conflict."""
    window = open_window()
    for alamat in TEXTS.values():
        other.fill([(NIM, "Siti", alamat)])
        window.open(PATH)
        if not alamat:
            window.type(alamat="Sleman")
        window.type(nama="Siti A.")
        window.save()
        assert window.cells() == [[NIM, "Siti A.", re.sub("[\r\n]", "", alamat) or "Sleman"]]

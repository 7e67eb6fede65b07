"""Two people edit the same record: changes of different fields are both kept, and changes of one field are a conflict.

A client that sends no version gets exactly the specification.
"""

import re
import threading
from itertools import chain
from pathlib import Path

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

CHANGED = "Data ini sudah diubah orang lain sejak Anda membukanya. Pilih data mana yang dipakai."
NIM = "20/1"
PATH = "/mahasiswa/edit/20%2F1"
VERSION_OF_1_0_0 = "RdG6VEGIUp742bM3gS8VNA"
"""The version that the form of 1.0.0 sends for the record Siti: one digest of the whole record."""

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


def compared(page: Page) -> dict[str, dict[str, str]]:
    """Return the table of the conflict page: for each label the texts by the heading of their column."""
    _, *columns = [cell.text() for cell in page.tree.css("table.compare thead th")]
    return {
        row.css("th")[0].text(): dict(zip(columns, [cell.text() for cell in row.css("td")], strict=True))
        for row in page.tree.css("table.compare tbody tr")
    }


def newest_and_typed(page: Page) -> dict[str, tuple[str, str]]:
    """Return for each label in the table of the conflict page the stored text and the typed text."""
    return {label: (texts["Data terbaru"], texts["Isian Anda"]) for label, texts in compared(page).items()}


def as_sent(text: str) -> str:
    """Return a text as a browser sends it from a single-line input."""
    return re.sub("[\r\n]", "", text)


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
    """Equal texts have equal versions, also if another program wrote them. Different texts have different versions."""
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
def test_line_breaks_that_a_browser_removes_stay_in_the_stored_text(siti: Site, other: Database, alamat: str) -> None:
    """A browser removes line breaks from a field; a form that changes only the other field leaves them stored."""
    other.fill([(NIM, "Siti", alamat)])
    answer = save(siti, version(siti.page(PATH)), "Siti A.", as_sent(alamat))
    assert answer.status_code == 302
    assert stored(siti) == (NIM, "Siti A.", alamat)


def test_an_edit_of_a_text_with_line_breaks_replaces_it(siti: Site, other: Database) -> None:
    """If the form changes a text that has line breaks, the new text is stored as it was sent."""
    other.fill([(NIM, "Siti", "Jl. Merdeka 1\nRT 03")])
    assert save(siti, version(siti.page(PATH)), "Siti", "Jl. Merdeka 1, RT 03").status_code == 302
    assert stored(siti) == (NIM, "Siti", "Jl. Merdeka 1, RT 03")


def test_an_edit_without_a_version_replaces_line_breaks(siti: Site, other: Database) -> None:
    """A client that sends no version gets exactly the texts that it sent (specification 4.5.1)."""
    other.fill([(NIM, "Siti", "Jl. Merdeka 1\nRT 03")])
    siti.edit(NIM, "Siti", "Jl. Merdeka 1RT 03")
    assert stored(siti) == (NIM, "Siti", "Jl. Merdeka 1RT 03")


@given(st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_no_stored_text_causes_a_conflict_by_itself(site: Site, other: Database, nama: str, alamat: str) -> None:
    """A record with any texts except NUL, stored by another program, can be edited without a conflict."""
    nama, alamat = nama.replace("\0", ""), alamat.replace("\0", "")
    other.fill([(NIM, nama, alamat)])
    assert save(site, version(site.page(PATH)), "Siti", "Sleman").status_code == 302
    assert stored(site) == (NIM, "Siti", "Sleman")


# ---- changes of different fields


def test_changes_of_different_fields_by_two_people_are_both_kept(siti: Site) -> None:
    """One person changes the address, another the name in a form that was opened before: both changes are stored."""
    versi = version(siti.page(PATH))
    assert save(siti, versi, "Siti", "Klaten").status_code == 302
    answer = save(siti, versi, "Siti Aminah", "Sleman")
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


@pytest.mark.parametrize("alamat", ["Jl. Merdeka 1\nRT 03", "\r\nJl. Merdeka 1", "Sleman"])
def test_a_form_that_changes_the_name_keeps_a_newer_address(siti: Site, other: Database, alamat: str) -> None:
    """A newer text stays, although the form sends the older one without the line breaks that a browser removes."""
    other.fill([(NIM, "Siti", alamat)])
    versi = version(siti.page(PATH))
    other.run("UPDATE mahasiswa SET alamat = 'Klaten'")
    assert save(siti, versi, "Siti Aminah", as_sent(alamat)).status_code == 302
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


def test_the_same_change_by_two_people_is_no_conflict(siti: Site) -> None:
    """If both people typed the same address, a further change of the name is stored."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Siti", "Klaten")
    assert save(siti, versi, "Siti Aminah", "Klaten").status_code == 302
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


def test_a_form_that_changes_nothing_keeps_newer_texts(siti: Site) -> None:
    """A form that is saved as it was opened does not overwrite newer texts."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Siti Aminah", "Klaten")
    assert save(siti, versi, "Siti", "Sleman").status_code == 302
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


def test_a_conflict_offers_the_newest_text_of_a_field_that_the_form_did_not_change(siti: Site) -> None:
    """The conflict is about the field that both changed; saving the page's form does not undo the other change."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Siti Aminah", "Klaten")
    answer = save(siti, versi, "Siti Saya", "Sleman")
    assert answer.status_code == 409
    page = Page(answer.text, siti.origin + PATH)
    assert newest_and_typed(page) == {"Nama": ("Siti Aminah", "Siti Saya")}
    (form,) = page.forms
    assert form.values == {"nim": NIM, "nama": "Siti Saya", "alamat": "Klaten"}
    assert save(siti, version(page), form.values["nama"], form.values["alamat"]).status_code == 302
    assert stored(siti) == (NIM, "Siti Saya", "Klaten")


def test_a_conflict_shows_what_the_field_was(siti: Site) -> None:
    """The column Semula has the text that the form showed, also after several changes by others."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Siti A.", "Sleman")
    siti.edit(NIM, "Siti Aminah", "Klaten")
    page = Page(save(siti, versi, "Siti Saya", "Sleman").text, siti.origin + PATH)
    assert compared(page) == {"Nama": {"Semula": "Siti", "Data terbaru": "Siti Aminah", "Isian Anda": "Siti Saya"}}


def test_a_conflict_without_a_history_shows_two_texts(tmp_path: Path) -> None:
    """With HISTORY_DAYS=0 the column Semula is absent."""
    with Service(tmp_path / "x.db", {"HISTORY_DAYS": "0"}) as service, service.site() as site:
        site.add(NIM, "Siti", "Sleman")
        versi = version(site.page(PATH))
        site.edit(NIM, "Siti Aminah", "Sleman")
        page = Page(save(site, versi, "Siti Saya", "Sleman").text, site.origin + PATH)
    assert compared(page) == {"Nama": {"Data terbaru": "Siti Aminah", "Isian Anda": "Siti Saya"}}


def test_a_conflict_shows_every_text_that_saving_would_change(siti: Site) -> None:
    """A change of the form that is no conflict is in the table too, because taking the newest texts would drop it."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Siti Aminah", "Sleman")
    page = Page(save(siti, versi, "Siti Saya", "Bantul").text, siti.origin + PATH)
    assert newest_and_typed(page) == {"Nama": ("Siti Aminah", "Siti Saya"), "Alamat": ("Sleman", "Bantul")}


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
    assert newest_and_typed(page) == {"Nama": (theirs[0], "Siti Saya"), "Alamat": (theirs[1], "Bantul & <Sleman>")}
    (form,) = page.forms
    assert form.values == {"nim": NIM, "nama": "Siti Saya", "alamat": "Bantul & <Sleman>"}
    assert (form.target, form.submit) == (PATH, "Simpan isian saya")
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
    shown = newest_and_typed(Page(answer.text, PATH))
    assert shown == {"Nama": ("Orang ketiga", "Saya"), "Alamat": ("Klaten", "Bantul")}
    assert stored(siti) == (NIM, "Orang ketiga", "Klaten")


def test_a_change_by_another_program_is_a_conflict(siti: Site, other: Database) -> None:
    """A field that another program has changed in the database is a conflict, too."""
    versi = version(siti.page(PATH))
    other.run("UPDATE mahasiswa SET alamat = 'Klaten'")
    assert save(siti, versi, "Siti", "Bantul").status_code == 409
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
    (winner,) = [nama for (nama, _), status in answers.items() if status == 302]
    assert stored(siti) == (NIM, winner, "Sleman")


def test_concurrent_edits_of_different_fields_are_both_saved(siti: Site, service: Service) -> None:
    """Of several concurrent edits, one of each field is saved, and none takes back the other."""
    versi = version(siti.page(PATH))
    names = [{"nama": f"Orang {n}", "alamat": "Sleman"} for n in range(6)]
    addresses = [{"nama": "Siti", "alamat": f"Kota {n}"} for n in range(6)]
    forms = [{**form, "versi": versi} for form in chain(*zip(names, addresses, strict=True))]
    answers = send_together(service, forms)
    assert sorted(answers.values()) == [302] * 2 + [409] * 10
    (nama,) = [nama for (nama, alamat), status in answers.items() if status == 302 and alamat == "Sleman"]
    (alamat,) = [alamat for (nama, alamat), status in answers.items() if status == 302 and nama == "Siti"]
    assert stored(siti) == (NIM, nama, alamat)


def send_together(service: Service, forms: list[dict[str, str]]) -> dict[tuple[str, str], int]:
    """Send forms at the same time; return the status for each pair of nama and alamat."""
    barrier = threading.Barrier(len(forms))
    answers: dict[tuple[str, str], int] = {}

    def send(form: dict[str, str]) -> None:
        with service.site() as site:
            site.get("/mahasiswa/add")  # opens the connection before the barrier
            barrier.wait(10)
            answers[form["nama"], form["alamat"]] = site.post(PATH, form).status_code

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


@pytest.mark.parametrize("versi", ["x", "0" * 22, VERSION_OF_1_0_0, "' OR 1=1 --", "é" * 22, "x" * 10_000])
def test_an_edit_with_an_invalid_version_is_a_conflict(siti: Site, versi: str) -> None:
    """A text that is no version matches no text of the record, so each field that differs is a conflict."""
    answer = save(siti, versi, "Saya", "Sleman")
    assert answer.status_code == 409
    assert newest_and_typed(Page(answer.text, PATH)) == {"Nama": ("Siti", "Saya")}
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
    assert cells == ["Siti", "Siti Aminah", "Siti Saya", "Sleman", "Klaten", "Bantul"]
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
    """“Simpan isian saya” saves the texts in the form, including changes made on the conflict page."""
    window = cause_a_conflict(open_window, siti)
    window.type(alamat="Bantul Kota")
    with window.leaving():
        window.page.get_by_role("button", name="Simpan isian saya").click()
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


def test_a_double_click_on_save_stores_an_addition_once_and_says_so(open_window: OpenWindow, siti: Site) -> None:
    """The browser shows the answer to the second request: either that the record is stored, or the list."""
    window = open_window()
    window.open("/mahasiswa/add")
    window.type(nim="2", nama="Ani", alamat="Klaten")
    window.page.get_by_role("button", name="Simpan").dblclick()
    said = window.page.get_by_text("Data ini sudah tersimpan.")
    expect(said.or_(window.page.get_by_role("heading", name="List Data Mahasiswa"))).to_be_visible()
    assert [row[1:] for row in siti.list().rows] == [("2", "Ani", "Klaten"), (NIM, "Siti", "Sleman")]


def test_a_browser_saves_another_field_and_leaves_unusual_texts_as_they_are(
    open_window: OpenWindow, site: Site, other: Database
) -> None:
    """A browser removes line breaks from a field; a change of another field leaves them in the stored text."""
    window = open_window()
    for alamat in TEXTS.values():
        other.fill([(NIM, "Siti", alamat)])
        window.open(PATH)
        if not alamat:
            window.type(alamat="Sleman")
        window.type(nama="Siti A.")
        window.save()
        assert stored(site) == (NIM, "Siti A.", alamat or "Sleman")

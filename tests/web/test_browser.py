"""Browser tests of a person's actions: add, edit, delete, correct a refused form, and use unusual texts."""

from functools import partial
from urllib.parse import quote, urlsplit

import pytest
from browser import CONFIRMATION, Network, OpenWindow, Window
from every_page import SITI
from harness import Service, Site
from playwright.sync_api import expect

NIMS = {
    "slashes": ["20/456839/TK/50663", "a%2Fb", "a/../b", "//a", "/"],
    "marks": ["+ % & ; / ? # \" ' < > \\ = : @", "  spaces  12 34  ", "👩🏽‍🎓🇮🇩", "\u200f12\u202e34\u202c\u200e"],
}


@pytest.mark.parametrize("network", ["answers", "hangs"])
def test_a_person_adds_edits_and_deletes_records(network: Network, open_window: OpenWindow, service: Service) -> None:
    """Records are added, listed, edited and deleted, and still stored after the service has restarted."""
    window = open_window(network)
    page = window.page
    window.open("/")
    expect(page.get_by_text("Belum ada data mahasiswa.")).to_be_visible()
    window.add(*SITI)
    window.add("1105", "Budi Santoso", "Bantul")
    assert window.cells() == [["1105", "Budi Santoso", "Bantul"], list(SITI)]
    page.get_by_role("row", name="Siti").get_by_role("link", name="Edit").click()
    expect(page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
    assert page.get_by_label("NIM").input_value() == "2207"
    window.type(nama="Siti Aminah Putri", alamat="Klaten")
    window.save()
    page.get_by_role("row", name="Budi").get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(1)
    service.restart()
    window.open("/")
    assert window.cells() == [["2207", "Siti Aminah Putri", "Klaten"]]
    expect(window.rows.locator("td").first).to_have_text("1")


def test_an_accepted_confirmation_deletes_the_record(window: Window, site: Site) -> None:
    """Delete asks once, with the text of the specification, and sends one POST."""
    site.add(*SITI)
    window.open("/")
    window.page.get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(0)
    assert (window.dialogs, window.posts) == ([CONFIRMATION], ["/mahasiswa/delete/2207"])


def test_a_dismissed_confirmation_deletes_nothing(window: Window, site: Site) -> None:
    """Delete asks once, and if the person dismisses the question, nothing is sent."""
    site.add(*SITI)
    window.answer = False
    window.open("/")
    window.page.get_by_role("button", name="Delete").click()
    window.open("/")
    assert (window.dialogs, window.posts) == ([CONFIRMATION], [])
    assert window.cells() == [list(SITI)]


@pytest.mark.parametrize("field", ["nim", "nama", "alamat"])
def test_an_add_form_with_an_empty_field_is_not_sent(field: str, window: Window) -> None:
    """The browser does not send an incomplete form and puts the focus into the empty field."""
    window.open("/mahasiswa/add")
    window.type(**dict(zip(("nim", "nama", "alamat"), SITI, strict=True)) | {field: ""})
    window.page.get_by_role("button", name="Simpan").click()
    expect(window.page.locator(f"input:invalid[name={field}]")).to_be_focused()
    window.open("/")
    assert (window.posts, window.cells()) == ([], [])


@pytest.mark.parametrize("field", ["nama", "alamat"])
def test_an_edit_form_with_an_emptied_field_is_not_sent(field: str, window: Window, site: Site) -> None:
    """The browser does not send an edit form whose nama or alamat was emptied."""
    site.add(*SITI)
    window.open("/mahasiswa/edit/2207")
    window.type(**{field: ""})
    window.page.get_by_role("button", name="Simpan").click()
    expect(window.page.locator(f"input:invalid[name={field}]")).to_be_focused()
    window.open("/")
    assert (window.posts, window.cells()) == ([], [list(SITI)])


def test_a_refresh_after_a_change_only_requests_the_list(window: Window) -> None:
    """After each change the browser is at the address of the list, and a refresh sends one GET."""
    window.open("/")
    for change in (partial(window.add, *SITI), partial(edit_the_record, window), partial(delete_the_record, window)):
        change()
        assert len(window.posts) == 1
        assert urlsplit(window.page.url).path == "/"
        before = window.cells()
        window.requests.clear()
        window.reload()
        assert window.requests == ["GET /"]
        assert window.cells() == before


def test_a_duplicate_nim_can_be_corrected_in_the_form(window: Window, site: Site) -> None:
    """The form keeps the typed texts, explains the duplicate nim at its field, focuses it, and can be sent again."""
    site.add("20/4 5", "Siti", "Sleman")
    window.open("/mahasiswa/add")
    window.type(nim="20/4 5", nama=' "Budi" & <b>', alamat="Bantul ")
    window.save()
    nim = window.page.get_by_label("NIM")
    assert [field.input_value() for field in window.page.locator("input[type=text]").all()] == [
        "20/4 5",
        ' "Budi" & <b>',
        "Bantul ",
    ]
    expect(nim).to_be_focused()
    expect(nim).to_have_accessible_description(
        "NIM ini sudah terdaftar. Periksa kembali, atau buka data dengan NIM ini."
    )
    expect(window.page.locator("[aria-invalid=true]")).to_have_count(1)
    expect(nim).to_have_attribute("aria-invalid", "true")
    expect(window.page.locator("#" + str(nim.get_attribute("aria-describedby")))).to_be_visible()
    window.type(nim="20/4 6")
    window.save()
    assert window.cells() == [["20/4 5", "Siti", "Sleman"], ["20/4 6", ' "Budi" & <b>', "Bantul "]]


def test_a_duplicate_nim_links_to_the_existing_record(window: Window, site: Site) -> None:
    """The message about a duplicate nim has a link to the edit page of the existing record."""
    site.add("20/4 5", "Siti", "Sleman")
    window.open("/mahasiswa/add")
    window.type(nim="20/4 5", nama="Budi", alamat="Bantul")
    window.save()
    window.page.get_by_role("link", name="buka data dengan NIM ini").click()
    expect(window.page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
    assert window.page.get_by_label("Nama").input_value() == "Siti"


@pytest.mark.parametrize("nims", NIMS.values(), ids=NIMS)
def test_any_nim_is_edited_by_its_link_and_deleted_by_its_button(nims: list[str], window: Window, site: Site) -> None:
    """The browser keeps unusual texts exactly, and the link and the button change only their own record."""
    neighbours = [["12 34", "Tetangga", "Solo"], ["a", "Tetangga", "Solo"], ["b", "Tetangga", "Solo"]]
    for record in neighbours:
        site.add(*record)
    window.open("/")
    for nim in nims:
        window.requests.clear()
        window.add(nim, f"Nama {nim}", f"{nim} Alamat")
        window.row(nim).get_by_role("link", name="Edit").click()
        expect(window.page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
        values = window.page.locator("input[type=text]").evaluate_all("inputs => inputs.map(input => input.value)")
        assert values == [nim, f"Nama {nim}", f"{nim} Alamat"]
        window.type(nama=nim)
        window.save()
        assert sorted(window.cells()) == sorted([*neighbours, [nim, nim, f"{nim} Alamat"]])
        window.row(nim).get_by_role("button", name="Delete").click()
        expect(window.rows).to_have_count(3)
        assert window.cells() == neighbours
        segment = quote(nim, safe="")
        assert window.posts == ["/mahasiswa/add", f"/mahasiswa/edit/{segment}", f"/mahasiswa/delete/{segment}"]


def test_records_are_added_edited_and_deleted_without_scripts(open_window: OpenWindow) -> None:
    """A browser without scripts can add, edit and delete; it only does not ask before deleting."""
    window = open_window(java_script_enabled=False)
    window.open("/")
    window.add(*SITI)
    edit_the_record(window)
    expect(window.page.get_by_role("cell", name="Klaten")).to_be_visible()
    delete_the_record(window)
    assert (window.posts[2:], window.dialogs) == (["/mahasiswa/delete/2207"], [])


def edit_the_record(window: Window) -> None:
    """Edit the only record of the list."""
    window.page.get_by_role("link", name="Edit").click()
    window.type(alamat="Klaten")
    window.save()


def delete_the_record(window: Window) -> None:
    """Delete the only record of the list."""
    window.page.get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(0)

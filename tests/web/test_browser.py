"""Browser tests of a person's actions: add, edit, delete, correct a refused form, and use unusual texts."""

from functools import partial
from urllib.parse import quote, urlsplit

from browser import CONFIRMATION, OpenWindow, Window
from every_page import SITI
from harness import Service, Site
from playwright.sync_api import expect

# tests/spec/test_texts.py sends many more without a browser.
NIMS = ["a/../b", "+ % & ; / ? # \" ' < > \\ = : @", "  spaces  \u200f12\u202e34\u202c\u200e 👩🏽‍🎓🇮🇩"]


def test_a_person_adds_edits_and_deletes_records(open_window: OpenWindow, service: Service) -> None:
    """Records are added, listed, edited and deleted while the CDN hangs, and still stored after a restart."""
    window = open_window("hangs")
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


def test_delete_asks_before_it_sends_anything(window: Window, site: Site) -> None:
    """The question has the text of the specification. If it is dismissed, nothing is sent; otherwise one POST."""
    site.add(*SITI)
    window.answer = False
    window.open("/")
    window.page.get_by_role("button", name="Delete").click()
    window.open("/")
    assert (window.dialogs, window.posts) == ([CONFIRMATION], [])
    window.answer = True
    window.page.get_by_role("button", name="Delete").click()
    expect(window.rows).to_have_count(0)
    assert (window.dialogs, window.posts) == ([CONFIRMATION] * 2, ["/mahasiswa/delete/2207"])


def test_a_form_with_an_empty_field_is_not_sent(window: Window, site: Site) -> None:
    """The browser does not send an incomplete form and puts the focus into the empty field."""
    site.add(*SITI)
    texts = dict(zip(("nim", "nama", "alamat"), ("1105", "Budi", "Bantul"), strict=True))
    for path, fields in (("/mahasiswa/add", ("nim", "nama", "alamat")), ("/mahasiswa/edit/2207", ("nama", "alamat"))):
        for empty in fields:
            window.open(path)
            window.type(**{field: "" if field == empty else texts[field] for field in fields})
            window.page.get_by_role("button", name="Simpan", exact=True).click()
            expect(window.page.locator(f"input:invalid[name={empty}]")).to_be_focused()
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
        "NIM ini sudah terdaftar atas nama Siti. Periksa kembali, atau buka data dengan NIM ini."
    )
    expect(window.page.locator("[aria-invalid=true]")).to_have_count(1)
    expect(nim).to_have_attribute("aria-invalid", "true")
    expect(window.page.locator("#" + str(nim.get_attribute("aria-describedby")))).to_be_visible()
    window.type(nim="20/4 6")
    window.save()
    assert window.cells() == [["20/4 5", "Siti", "Sleman"], ["20/4 6", ' "Budi" & <b>', "Bantul "]]
    window.page.go_back()
    window.page.get_by_role("link", name="buka data dengan NIM ini").click()
    expect(window.page.get_by_role("heading", name="Edit Data Mahasiswa")).to_be_visible()
    assert window.page.get_by_label("Nama").input_value() == "Siti"


def test_any_nim_is_edited_by_its_link_and_deleted_by_its_button(window: Window, site: Site) -> None:
    """The browser keeps unusual texts exactly, and the link and the button change only their own record."""
    neighbours = [["12 34", "Tetangga", "Solo"], ["a", "Tetangga", "Solo"], ["b", "Tetangga", "Solo"]]
    for record in neighbours:
        site.add(*record)
    window.open("/")
    for nim in NIMS:
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

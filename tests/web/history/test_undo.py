"""Taking changes back by HTTP on either engine: each kind of change, conflicts, a part of an import, a NIM, near NIMs."""

import httpx
import pytest
from engines import empty_list, run_elsewhere, service_on_each_engine  # noqa: F401 - fixtures
from form_answers import assert_error
from harness import Form, Page, Service, Site, led_to
from selectolax.lexbor import LexborNode
from spreadsheets import HEADER, Importer, csv, numbered
from stores import url_of
from visitor import fields, page_of, texts_in
from web.history.test_history import HISTORY, line
from web.records.test_one_record import refused

from mahasiswa.store.engines import engine_of

SITI = ("2300018001", "Siti Aminah", "Sleman")
FORMER = ("00", "Nama", "Bantul")
ROWS = numbered(60, "Nama {}", nim="{:02}")


@pytest.fixture
def imported(site: Site) -> str:
    """Import ROWS into a list with FORMER; return the target of the page of that batch."""
    site.add(*FORMER)
    importer = Importer(site)
    importer.save(importer.upload(csv(HEADER, *ROWS)), "perbarui")
    return site.page(HISTORY).targets("Lihat rinciannya")[0]


def assert_restored(answer: httpx.Response, target: str = f"{HISTORY}?halaman=1") -> None:
    """Check that the answer is the redirect to the page of the history that the button stood on."""
    assert led_to(answer) == target


def nevertheless(page: Page, site: Site) -> httpx.Response:
    (versi,), (form,) = page.values("main form button[name=versi]"), page.posts
    assert (form.submit, form.inputs) == ("Tetap kembalikan", ())
    return site.submit(form, versi=versi)


def both(cell: LexborNode) -> str:
    """Return the two texts of a cell with a bar between them, or the one word that stands there."""
    return " | ".join(texts_in(cell, "bdi, .hint"))


@pytest.mark.usefixtures("imported")
def test_each_change_is_taken_back_by_its_button(site: Site) -> None:
    """The exact texts come back. The second request of a double click changes nothing. An undo is undone alike."""
    edited = (SITI[0], " Siti\r\nA. ", "")
    site.add(*SITI)
    site.edit(*edited)
    site.delete(SITI[0])
    deleted, changed, added, whole, *_ = site.page(HISTORY).posts
    for button, records in (
        (deleted, [*ROWS, edited]),
        (changed, [*ROWS, SITI]),
        (added, ROWS),
        (whole, [FORMER]),
    ):
        for _ in range(2):
            assert_restored(site.submit(button))
            assert site.records == sorted(records)
    for button in site.page(HISTORY).posts[:2]:
        assert_restored(site.submit(button))
    assert site.records == sorted([*ROWS, SITI])
    assert site.page(HISTORY).texts("tbody strong")[:2] == ["Dikembalikan", "Dibatalkan"]


NUMBERS = ["0", "9" * 18, "9" * 19, "-1", "x", "", "1%00", "%D9%A3", "1.0", "%FF", ":id"]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_change_that_is_not_in_the_history_is_404(site: Site, number: str) -> None:
    """A change that has expired, or never was, is answered with a page that says so, and so is its own page."""
    site.add(*SITI)
    gone = "Perubahan ini tidak ada lagi di riwayat, jadi tidak dapat dikembalikan."
    for method, path in (("POST", "perubahan"), ("POST", "kelompok"), ("GET", "kelompok")):
        assert_error(site.send(method, f"{HISTORY}/{path}/{number}"), site, 404, gone)
    assert site.records == [SITI]


@pytest.fixture
def changed(site: Site) -> list[Form]:
    """Change a record twice; return the buttons of its latest change, of the one before, and of its addition."""
    site.add(*SITI)
    site.edit(SITI[0], "Siti Aminah", "Klaten")
    site.edit(SITI[0], "Siti <b>", "Klaten")
    return site.page(HISTORY).posts[:3]


def test_an_undo_of_a_record_that_has_changed_since_shows_both_and_asks(
    site: Site, changed: list[Form]
) -> None:
    """“Tetap kembalikan” overwrites the texts that the page shows. Newer ones are asked about again."""
    for versi in ("-", "x", "0" * 22, "é", "x" * 10_000):
        assert site.submit(changed[1], versi=versi).status_code == 409
    first = refused(site.submit(changed[1]), site)
    alert = "Data ini sudah berubah lagi sejak perubahan itu. Pilih data mana yang dipakai."
    assert first.texts("[role=alert]") == [alert]
    assert first.texts("tbody td") == ["Siti <b>", "Siti Aminah", "Klaten", "Sleman"]
    assert first.target("Gunakan data terbaru") == f"{HISTORY}?halaman=1"
    assert site.records == [(SITI[0], "Siti <b>", "Klaten")]
    site.edit(SITI[0], "Siti lagi", "Bantul")
    second = refused(nevertheless(first, site), site)
    assert second.texts("tbody td") == ["Siti lagi", "Siti Aminah", "Bantul", "Sleman"]
    assert site.records == [(SITI[0], "Siti lagi", "Bantul")]
    assert_restored(nevertheless(second, site))
    assert site.records == [SITI]


REFUSED = "INSERT INTO mahasiswa VALUES ('..', 'Siti', 'Solo'); DELETE FROM mahasiswa"
WITHOUT_RULES = {
    "sqlite": f"PRAGMA ignore_check_constraints = ON; {REFUSED}",
    "postgres": f"""
ALTER TABLE mahasiswa DROP CONSTRAINT nim_unaddressable; {REFUSED};
ALTER TABLE mahasiswa ADD CONSTRAINT nim_unaddressable CHECK (nim NOT IN ('.', '..'))""",
}


def test_an_undo_of_a_record_that_the_table_refuses_is_a_conflict(
    site: Site, service: Service
) -> None:
    """Another program had stored it without the rules of the table. The page says which field breaks one."""
    engine = "postgres" if str(service.database).startswith("postgres") else "sqlite"
    run_elsewhere(service.database, WITHOUT_RULES[engine])
    answer = site.submit(site.page(HISTORY).posts[0])
    assert_error(
        answer, site, 409, "NIM data itu melanggar aturan daftar, jadi tidak ada yang dikembalikan."
    )
    assert site.records == []


def test_an_undo_that_would_add_or_remove_a_record_asks_too(
    site: Site, changed: list[Form]
) -> None:
    """An edited record was deleted since, or an added one was edited. The page tells the effect of the undo."""
    _, edited, added = changed
    page = refused(site.submit(added), site)
    assert page.texts("tbody td") == ["Siti <b>", "tidak ada", "Klaten", "tidak ada"]
    assert "Jika dikembalikan, data ini dihapus dari daftar." in page.html
    assert_restored(nevertheless(page, site))
    assert site.records == []
    page = refused(site.submit(edited), site)
    assert page.texts("tbody td") == ["sudah dihapus", "Siti Aminah", "sudah dihapus", "Sleman"]
    assert_restored(nevertheless(page, site))
    assert site.records == [SITI]


@pytest.mark.parametrize("button", ["edit", "addition", "first replacement"])
def test_an_undo_of_a_record_whose_nim_was_replaced_leads_to_the_record(
    site: Site, changed: list[Form], button: str
) -> None:
    """The record is not gone: it has another nim, perhaps the second one. Its form says so, and nothing is changed."""
    for nim, new in (SITI[0], "2300018998"), ("2300018998", "2300018999"):
        site.accepts(site.page(f"/mahasiswa/nim/{nim}").posts[0], nim=new)
    forms = {
        "edit": changed[1],
        "addition": changed[2],
        "first replacement": site.page(HISTORY).posts[1],
    }
    page = refused(site.submit(forms[button]), site)
    (alert,) = page.texts("[role=alert]")
    assert alert.startswith(
        "NIM data ini sudah diganti menjadi 2300018999, jadi perubahan itu tidak dibatalkan."
    )
    (form,) = page.posts
    assert (form.action, form.submit) == ("/mahasiswa/edit/2300018999", "Simpan")
    assert site.records == [("2300018999", "Siti <b>", "Klaten")]
    site.accepts(form, nama="Siti Aminah")
    assert site.records == [("2300018999", "Siti Aminah", "Klaten")]


def test_an_undo_of_an_import_names_the_record_whose_nim_was_replaced(
    site: Site, imported: str
) -> None:
    """It would stay in the list. The others are taken back by a button of their own."""
    site.accepts(site.page("/mahasiswa/nim/07").posts[0], nim="70")
    page = refused(site.submit(site.page(imported).posts[0]), site)
    (alert,) = page.texts("[role=alert]")
    assert alert.startswith("1 data sudah berubah lagi sejak perubahan itu")
    (row,) = page.tree.css("tbody tr")
    assert [both(cell) for cell in row.css("td")][:2] == ["07", "tidak ada lagi"]
    (part,) = page.posts
    assert_restored(site.submit(part, sebagian="1"), f"{imported}?halaman=1")
    assert site.nims == ["00", "70"]


def test_the_history_shows_the_rest_of_a_changed_nim(
    site: Site, service: Service, changed: list[Form]
) -> None:
    """The new nim was forgotten, so only the entry of the old one is left, which cannot be undone."""
    site.accepts(site.page(f"/mahasiswa/nim/{SITI[0]}").posts[0], nim="2300018998")
    assert engine_of(url_of(service.database)).forget("2300018998")
    for query in ("", "?jenis=nim", f"?cari={SITI[0]}"):
        assert "NIM diganti" in site.page(HISTORY + query).texts("tbody")[0]
    assert site.submit(changed[1]).status_code == 409


def test_the_unchanged_rows_of_an_import_are_taken_back_together(
    site: Site, service: Service, imported: str
) -> None:
    """The page of the conflict lists at most 50 others. The click decides which rows are unchanged, and only once."""
    whole, *_ = site.page(imported).posts
    assert whole.submit == "Batalkan impor (60 data)"
    site.edit("07", "Nama <b>", "Solo")
    site.edit("08", "", "Solo")
    site.delete("09")  # as it was before the import, so this is no conflict
    site.delete("00")
    page = refused(site.submit(whole), site)
    (alert,) = page.texts("[role=alert]")
    assert alert.startswith(
        "3 data sudah berubah lagi sejak perubahan itu, jadi tidak ada yang dikembalikan."
    )
    rows = {
        tuple(map(both, row.css("td"))): texts_in(row, "a") for row in page.tree.css("tbody tr")
    }
    assert rows == {
        ("00", "tidak ada lagi", "Nama | Bantul", ""): [],
        ("07", "Nama <b> | Solo", "tidak ada", ""): ["Edit"],
        ("08", "kosong | Solo", "tidak ada", ""): ["Edit"],
    }
    assert len(site.records) == 58
    (part,) = page.posts
    assert part.submit == "Kembalikan 56 data yang belum berubah"
    site.edit("10", "Nama Lain", "Solo")  # after the page was shown
    for _ in range(2):
        assert_restored(site.submit(part, sebagian="1"), f"{imported}?halaman=1")
        assert site.nims == ["07", "08", "10"]
        assert line(site.page(imported)) == "perubahan 55 mahasiswa dibatalkan"
    newest = site.page(HISTORY).posts[0]
    assert newest.submit == "Ulangi perubahan (55 data)"
    site.accepts(newest)
    assert len(site.records) == 58
    run_elsewhere(service.database, "UPDATE mahasiswa SET nama = 'Lain'")
    page = refused(site.submit(whole), site)
    assert len(page.tree.css("tbody tr")) == 50
    assert "50 data pertama ditampilkan." in page.html


def test_one_row_of_an_import_is_taken_back(site: Site, imported: str) -> None:
    """Each row has a button, which leads back to its page. The button of the whole import counts the rest.

    Without a rest there is a sentence in the place of the button.
    """
    site.edit("51", "Nama Baru", "Solo")
    second = f"{imported}?halaman=2"
    _, first_row, second_row, *_ = site.page(second).posts
    assert first_row.submit == "Batalkan penambahan"
    assert_restored(site.submit(first_row), second)
    assert line(site.page(second)) == "penambahan Nama 50 (50) dibatalkan"
    for target in (imported, HISTORY):
        page = site.page(target)
        assert "58 dari 60 data masih dapat dikembalikan." in page.texts("main")[0]
        assert "Kembalikan 58 data yang belum berubah" in [form.submit for form in page.posts]
    assert_restored(nevertheless(refused(site.submit(second_row), site), site), second)
    whole, *_ = site.page(imported).posts
    site.edit("10", "Nama Lain", "Solo")
    assert_restored(site.submit(whole, sebagian="1"), f"{imported}?halaman=1")
    assert site.records == [FORMER, ("10", "Nama Lain", "Solo")]
    for target in (imported, HISTORY):
        page = site.page(target)
        assert not [form for form in page.posts if "belum berubah" in form.submit]
        assert page.texts(".act .hint, .head .hint") == [
            "Semua datanya sudah dikembalikan atau berubah lagi."
        ]
    edit, redo = "Batalkan perubahan", "Ulangi perubahan (1 data)"
    newest = [form.submit for form in site.page(HISTORY).posts][:5]
    assert newest == ["Ulangi perubahan (57 data)", edit, redo, redo, edit]


@pytest.mark.usefixtures("imported")
def test_the_history_of_one_nim_has_its_line_of_an_import_and_of_a_bulk_delete(site: Site) -> None:
    """Both texts, a button for that record alone, and a link to the batch."""
    preview = site.post("/mahasiswa/pilih/centang", [("nim[]", "03"), ("nim[]", "04")])
    site.accepts(page_of(preview).form("/mahasiswa/pilih/simpan"))
    target = f"{HISTORY}?cari=03"
    page = site.page(target)
    assert [row.css("td strong")[0].text() for row in page.tree.css("tbody tr")][:2] == [
        "Dihapus",
        "Diimpor",
    ]
    assert page.texts("td[data-label=Sebelum]")[:2] == ["Nama 3Solo", "tidak ada"]
    links = [link.text for link in page.links if link.text.startswith("Lihat semua")]
    assert links[:2] == ["Lihat semua 2 data", "Lihat semua 60 data"]
    deleted, *_ = page.posts
    assert deleted.submit == "Kembalikan data yang dihapus"
    assert_restored(site.submit(deleted), target)
    assert ("03" in site.nims, "04" in site.nims) == (True, False)


def change_nim(site: Site, nim: str) -> Form:
    """Add SITI and give it another NIM; return the button that takes this back."""
    site.add(*SITI)
    site.post(f"/mahasiswa/nim/{SITI[0]}", {"nim": nim})
    return site.page(HISTORY).posts[0]


def test_a_changed_nim_is_taken_back_whole_or_not_at_all(site: Site) -> None:
    """It is one line with both NIMs. If either has changed since, nothing is restored, and no part is offered."""
    back = change_nim(site, "2300018002")
    assert line(site.list()) == "NIM Siti Aminah diganti dari 2300018001 menjadi 2300018002"
    row = site.page(HISTORY).tree.css("tbody tr")[0]
    assert texts_in(row, "strong, bdi") == [
        "NIM diganti",
        "Siti Aminah",
        SITI[0],
        "2300018002",
    ]
    batch = back.target.partition("?")[0]
    assert (
        [form.submit for form in site.page(batch).posts]
        == [back.submit]
        == ["Batalkan penggantian NIM"]
    )
    site.edit("2300018002", "Siti A.", "Sleman")
    for sent in ({}, {"sebagian": "1"}):
        assert not refused(site.post(back.target, sent), site).posts
    assert site.records == [("2300018002", "Siti A.", "Sleman")]
    site.edit("2300018002", "Siti Aminah", "Sleman")
    site.accepts(back)
    assert site.records == [SITI]
    assert line(site.list()) == "NIM Siti Aminah diganti dari 2300018002 menjadi 2300018001"


LATER = {
    "changed again": ("/mahasiswa/nim/2", {"nim": "3"}, [("3", *SITI[1:])]),
    "removed": ("/mahasiswa/delete/2", {}, []),
    "the old nim of another record": ("/mahasiswa/add", fields(SITI), [("2", *SITI[1:]), SITI]),
}


@pytest.mark.parametrize("later", LATER)
def test_an_older_change_of_a_nim_makes_no_second_record_and_removes_none(
    site: Site, later: str
) -> None:
    """An undo of the change is refused after a later change of either NIM."""
    path, typed, records = LATER[later]
    back = change_nim(site, "2")
    site.post(path, typed)
    assert site.submit(back).status_code == 409
    assert site.records == records


# A stored NIM, and a new NIM.
NEAR = [
    *("23000186002|23000186002 ", "23000186002| 23000186002", " 23000186002|23000186002"),
    *("23000186002 |23000186002", " 23000703|23000703 ", "23000703 | 23000703"),
    *("23000186002|23O00186002", "23000186002|23000l86002", "23000I86002|23000186002"),
    *("23O00186002|23000186002", "0230000703|230000703", "230000703|00230000703"),
    *("23-00018-602|2300018602", "2300018602|23\u201100018\u2212602", "23000703|23.000-703"),
    *("23000703|\uff12\uff13000703", "23000703|\u0662\u0663000703", "H1A020045|h1a 020 045"),
]


@pytest.mark.parametrize("pair", NEAR)
def test_an_addition_that_may_be_a_duplicate_is_named_at_once(site: Site, pair: str) -> None:
    """The list and the own page name the other record, which offers to change the NIM and to take the addition back."""
    stored, typed = pair.split("|")
    site.add(stored, "Rizki <b>", "Solo")
    place = "?cari=rizki&per=10"
    own = site.post(f"/mahasiswa/add{place}", fields((typed, "Rizki <b>", "Solo")))
    nims = [nim.replace(" ", "␣") if nim.strip() != nim else nim for nim in (typed, stored)]
    near = f"mirip dengan {nims[1]} (Rizki <b>)."
    assert site.list().texts(".warning > span") == [f"NIM Rizki <b> ({nims[0]}) {near}"]
    page = site.page(own.headers["location"].partition("#")[0])
    named = f"“{nims[0]}”" if "␣" in nims[0] else "ini"
    assert page.texts(".warning > span") == [f"NIM {named} {near}"]
    assert site.path("/mahasiswa/nim/", typed) + place in page.targets("Ganti NIM")
    assert_restored(site.submit(page.form("Batalkan penambahan")), f"/{place}")
    assert site.records == [(stored, "Rizki <b>", "Solo")]
    assert not site.list().tree.css(".warning")


def test_an_addition_with_the_name_and_address_of_another_record_is_named(site: Site) -> None:
    """In capitals or not. Another address, or a NIM that is one slip away from another one, is usual."""
    site.add("2300018001", "Siti", "Solo")
    for record in (
        ("2400017002", "Siti", "Bantul"),
        ("2300018002", "Budi", "Solo"),
        ("2300018003", "Siti", "Jakarta"),
    ):
        site.add(*record)
        assert not site.list().tree.css(".warning"), record
    site.add("2600015004", "SITI", "solo")
    assert site.list().texts(".warning span") == [
        "SITI (2600015004) dengan alamat yang sama sudah ada (2300018001)."
    ]
    assert site.list().texts(".warning button") == ["Batalkan penambahan 2600015004"]


def test_a_usual_addition_has_no_warning(site: Site) -> None:
    """Neighbouring NIMs are not near, and neither are two without digits. No other text is doubted."""
    for nim in ("2300018001", "2300018002", "230001800", "0", "00", "-", "Siti"):
        site.add(nim, f"Siti {nim}", "23001")
        assert site.list().texts(".news") == site.list().texts(".latest"), nim

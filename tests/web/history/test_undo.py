"""Taking changes back by HTTP on either engine: each kind of change, a part of an import, a NIM, near NIMs."""

import httpx
import pytest
from engines import EACH_ENGINE
from harness import Form, Service, Site, led_to, page_of
from spreadsheets import HEADER, csv, numbered
from stores import execute
from web.history.test_history import HISTORY, line
from web.importer import accepted, save, uploaded

from mahasiswa.record import Mahasiswa

pytestmark = EACH_ENGINE

SITI = Mahasiswa("2300018001", "Siti Aminah", "Sleman")
FORMER = ("00", "Nama", "Bantul")
ROWS = numbered(60, "Nama {}", nim="{:02}")


@pytest.fixture
def imported(site: Site) -> str:
    """Import ROWS into a list with FORMER; return the target of the page of that batch."""
    site.add(*FORMER)
    save(site, accepted(site, uploaded(site, csv(HEADER, *ROWS))), "perbarui")
    return site.page(HISTORY).target("Lihat rinciannya")


def assert_restored(answer: httpx.Response, target: str = f"{HISTORY}?halaman=1") -> None:
    """Check that the answer is the redirect to the page of the history that the button stood on."""
    assert led_to(answer) == target


def assert_changed_again(answer: httpx.Response, history: str) -> None:
    """Check that nothing was restored, and that the page leads to the history of the record."""
    said = "Data ini sudah berubah lagi sejak perubahan itu, jadi tidak ada yang dibatalkan."
    page = page_of(answer, 409)
    assert said in page.html
    assert page.target("Riwayat data ini") == history


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


KEYS = ["9" * 18 + "-1", "9" * 19 + "-1"]


@pytest.mark.parametrize("key", KEYS)
def test_a_change_that_is_not_in_the_history_is_404(site: Site, key: str) -> None:
    """A change that has expired, or never was, is answered with a page that says so, and so is its own page."""
    site.add(*SITI)
    gone = "Perubahan ini tidak ada lagi di riwayat, jadi tidak dapat dikembalikan."
    for method, path in (("POST", "perubahan"), ("GET", "kelompok")):
        assert gone in page_of(site.request(method, f"{HISTORY}/{path}/{key}"), 404).html
    assert site.records == [SITI]


@pytest.fixture
def changed(site: Site) -> list[Form]:
    """Change a record twice; return the buttons of its latest change, of the one before, and of its addition."""
    site.add(*SITI)
    site.edit(SITI[0], "Siti Aminah", "Klaten")
    site.edit(SITI[0], "Siti <b>", "Klaten")
    return site.page(HISTORY).posts[:3]


def test_a_record_that_has_changed_since_is_left_alone(site: Site, changed: list[Form]) -> None:
    """It was edited, deleted, or added again. If it is as before the change, nothing is done. The newest change can be taken back, and then the one before."""
    newest, edited, added = changed
    history = f"{HISTORY}?cari={SITI[0]}"
    for button in (edited, added):
        assert_changed_again(site.submit(button), history)
    site.delete(SITI[0])
    for button in (newest, edited):
        assert_changed_again(site.submit(button), history)
    led_to(site.submit(added))  # the record is not in the list, as before its addition
    assert site.records == []
    site.add(SITI[0], "Siti <b>", "Klaten")
    for button in (newest, edited):
        assert_restored(site.submit(button))
    assert site.records == [SITI]


def test_the_records_of_an_import_that_have_not_changed_since_are_taken_back(
    site: Site, service: Service, imported: str
) -> None:
    """The click decides which they are, and only once. The page says how many were left, not those that were removed meanwhile; if all are, it is refused."""
    whole, *_ = site.page(imported).posts
    assert whole.submit == "Batalkan impor (60 data)"
    site.edit("07", "Nama <b>", "Solo")
    site.post("/mahasiswa/nim/08", data={"nim": "80"})
    for target in (imported, HISTORY):
        page = site.page(target)
        assert "58 dari 60 data masih dapat dikembalikan." in page.texts("main")[0]
        assert page.form("Kembalikan 58 data yang belum berubah")
    site.edit("10", "Nama Lain", "Solo")  # after the page was shown
    answer = site.submit(whole)
    assert answer.headers["location"].startswith(f"{imported}?halaman=1&perubahan=")
    page = site.page(answer.headers["location"])
    said = "57 data dikembalikan. 2 data lain sudah berubah lagi dan dibiarkan."
    assert said in line(page)
    hint = "Semua datanya sudah dikembalikan atau berubah lagi."
    for target in (imported, HISTORY):
        assert site.page(target).texts(".act .hint, .head .hint") == [hint]
    assert_restored(site.submit(whole), f"{imported}?halaman=1")
    assert site.nims == ["00", "07", "10", "80"]
    redo = site.page(HISTORY).posts[0]
    assert redo.submit == "Ulangi perubahan (57 data)"
    led_to(site.submit(redo))
    assert len(site.records) == 60
    execute(service.database, "UPDATE mahasiswa SET nama = 'Lain'")
    assert_changed_again(site.submit(redo), HISTORY)


@pytest.mark.usefixtures("imported")
def test_the_history_of_one_nim_has_its_line_of_an_import_and_of_a_bulk_delete(site: Site) -> None:
    """Both texts, a button for that record alone, and a link to the batch."""
    ticked = site.post("/mahasiswa/pilih/centang", data={"nim[]": ["03", "04"]})
    led_to(site.submit(site.page(led_to(ticked)).form("versi"), aksi="hapus"))
    target = f"{HISTORY}?cari=03"
    page = site.page(target)
    assert page.texts("td strong")[:2] == ["Dihapus", "Diimpor"]
    assert page.texts("td[data-label=Sebelum]")[:2] == ["Nama 3Solo", "tidak ada"]
    assert page.target("Lihat semua 60 data")
    both = site.page(page.target("Lihat semua 2 data"))
    assert len(both.css("tbody tr")) == 2
    deleted, *_ = page.posts
    assert deleted.submit == "Kembalikan data yang dihapus"
    assert_restored(site.submit(deleted), target)
    assert "03" in site.nims
    assert "04" not in site.nims


def change_nim(site: Site, nim: str) -> Form:
    """Add SITI and give it another NIM; return the button that takes this back."""
    site.add(*SITI)
    site.post(f"/mahasiswa/nim/{SITI[0]}", data={"nim": nim})
    return site.page(HISTORY).posts[0]


def test_a_changed_nim_is_taken_back_whole(site: Site) -> None:
    """It is one line with both NIMs, and one button, which its own page has too. A double click does it once."""
    back = change_nim(site, "2300018002")
    assert line(site.list()) == "NIM Siti Aminah diganti dari 2300018001 menjadi 2300018002"
    row = site.page(HISTORY).parts("tbody tr")[0]
    nims = [SITI[0], "2300018002"]
    assert row.texts("strong, bdi") == ["NIM diganti", "Siti Aminah", *nims]
    batch = back.target.replace("perubahan", "kelompok").partition("?")[0]
    assert [form.submit for form in site.page(batch).posts] == ["Batalkan penggantian NIM"]
    for _ in range(2):
        assert_restored(site.submit(back))
        assert site.records == [SITI]
    assert line(site.list()) == "NIM Siti Aminah diganti dari 2300018002 menjadi 2300018001"


LATER = {
    "edited": ("/mahasiswa/edit/2", {"nama": "Siti A.", "alamat": "Solo"}, [("2", "Siti A.", "Solo")]),
    "the old nim of another record": ("/mahasiswa/add", SITI._asdict(), [("2", *SITI[1:]), SITI]),
}  # fmt: skip


@pytest.mark.parametrize("later", LATER)
def test_a_changed_nim_is_not_taken_back_in_part(site: Site, later: str) -> None:
    """After a later change of either NIM, an undo would make a second record, or remove the only one."""
    path, typed, records = LATER[later]
    back = change_nim(site, "2")
    site.post(path, data=typed)
    assert_changed_again(site.submit(back), f"{HISTORY}?cari=2")
    assert site.records == records


# A stored NIM, and a new NIM.
NEAR = [
    *("23000186002|23000186002 ", "23000703| 23000703", "23000186002|23O00186002"),
    *("0230000703|230000703", "23-00018-602|2300018602", "H1A020045|h1a 020 045"),
]


@pytest.mark.parametrize("pair", NEAR)
def test_an_addition_that_may_be_a_duplicate_is_named_at_once(site: Site, pair: str) -> None:
    """The list and the own page name the other record, which offers to change the NIM and to take the addition back."""
    stored, typed = pair.split("|")
    site.add(stored, "Rizki <b>", "Solo")
    place = "?cari=rizki&per=10"
    own = site.post(
        f"/mahasiswa/add{place}", data={"nim": typed, "nama": "Rizki <b>", "alamat": "Solo"}
    )
    shown = typed.replace(" ", "␣") if typed.strip() != typed else typed
    near = f"mirip dengan {stored} (Rizki <b>)."
    assert site.list().texts(".warning > span") == [f"NIM Rizki <b> ({shown}) {near}"]
    page = site.page(own.headers["location"].partition("#")[0])
    named = f"“{shown}”" if "␣" in shown else "ini"
    assert page.texts(".warning > span") == [f"NIM {named} {near}"]
    renaming = site.path("/mahasiswa/nim/", typed) + place
    assert ("Ganti NIM", renaming) in page.links
    assert_restored(site.submit(page.form("Batalkan penambahan")), f"/{place}")
    assert site.records == [(stored, "Rizki <b>", "Solo")]
    assert not site.list().css(".warning")


def test_an_addition_with_the_name_and_address_of_another_record_is_named(site: Site) -> None:
    """In capitals or not. Another address, or a NIM that is a neighbour, or without digits, is usual."""
    for record in (
        ("2300018001", "Siti", "Solo"),
        ("2300018002", "Siti", "Jakarta"),
        ("230001800", "Budi", "Solo"),
        ("-", "Rini", "23001"),
        ("0", "Joko", "23001"),
    ):
        site.add(*record)
        assert not site.list().css(".warning"), record
    site.add("2600015004", "SITI", "solo")
    assert site.list().texts(".warning span") == [
        "SITI (2600015004) dengan alamat yang sama sudah ada (2300018001)."
    ]
    assert site.list().texts(".warning button") == ["Batalkan penambahan 2600015004"]

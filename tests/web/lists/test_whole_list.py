"""Pages over the whole list on both engines: one field, ticks, check, printout, and the removal of found records."""

import pytest
from engines import EACH_ENGINE
from harness import Service, Site, led_to
from spreadsheets import as_records, numbered
from stores import execute
from web.lists.test_find import follow

from mahasiswa.store.folding import SEARCHED_CHARACTERS
from mahasiswa.web.checks import TIDIED_MAX
from mahasiswa.web.list_query import EMPTY_COLUMNS_MAX

pytestmark = EACH_ENGINE

STUDENTS = as_records(
    "2300180001|Siti Aminah|Jl. Kaliurang No. 5, Sleman",
    "23.00190002|Nuraini|Jalan Parangtritis, Bantul",
    "2400180003|Nur Aini Rahayu|Jln Wates, Kulon Progo",
    "24-00180004|Muhammad Rizki|Makassar",
    "2400200005|Muhamad Budi|Bantul 2300",
    "A1/7|Eko|Solo",
)

TITLES = "table thead tr:not(.paper) th"


@pytest.fixture
def students(site: Site) -> Site:
    for record in STUDENTS:
        site.add(*record)
    return site


def test_a_search_of_one_field_goes_along_to_every_use_of_it(students: Site) -> None:
    """The list, the paging, both exports, the printout and the preview of a deletion have the same records."""
    page = students.page("/?cari=23&di=nim&urut=nama")
    nims = ["23.00190002", "2300180001"]
    assert page.nims == nims
    assert page.texts("select[name=di] option[selected]") == ["NIM berawalan"]
    assert page.target("Unduh CSV") == "/mahasiswa/ekspor.csv?cari=23&urut=nama&di=nim"
    csv = students.get(page.target("Unduh CSV")).text
    assert csv.count("\r\n") == 3
    assert follow(students, page, "Siapkan cetakan").nims == nims
    (hits,) = [form for form in page.forms if "/hasil" in form.target]
    preview = students.page(led_to(students.submit(hits)))
    assert [row.cells[0] for row in preview.table] == nims


def test_nothing_found_in_one_field_offers_all_fields(students: Site) -> None:
    empty = students.page("/?cari=2300&di=nama")
    assert empty.texts(".empty")[0].endswith("“2300”. Periksa angkanya. Cari di semua kolom")
    nims = ["23.00190002", "2300180001", "2400200005"]
    assert follow(students, empty, "Cari di semua kolom").nims == nims


def test_ticked_rows_are_shown_in_a_preview(students: Site) -> None:
    """Only paged views have ticks. The preview has exactly the ticked rows; test_selection.py removes them."""
    odd = ("20/1 %&\"'\u00e9", "Odd", "Solo")
    students.add(*odd)
    plain = "[type=checkbox], tbody th, [aria-describedby], [data-tanya]"
    assert not students.list().css(plain)
    page = students.page("/?urut=nama&arah=turun")
    form = page.form("Pilih yang dicentang")
    assert {*page.values("td [type=checkbox]", "form")} == {"pilih"}
    ticks = {"nim[]": page.values("td [type=checkbox]")[1:3]}
    assert page.nims[1] == odd[0]
    preview = students.page(led_to(students.post(form.target, data=ticks)))
    rows = preview.parts("#ditemukan tbody tr")
    assert [row.texts("td")[0] for row in rows] == page.nims[1:3]


def test_a_printout_has_the_title_and_the_columns_that_were_chosen(students: Site) -> None:
    """Its form keeps the search. An invalid value is replaced by its default, and too many columns by the most."""
    page = students.page("/mahasiswa/cetak?cari=23&di=nim&urut=nama&judul=Kelas+%3Cb%3E&kolom=3")
    assert page.texts("h1, h2, h3") == ["Kelas <b>"]
    assert page.texts(TITLES) == ["No", "NIM", "Nama", "Alamat", "1", "2", "3"]
    row = ("1", "23.00190002", "Nuraini", "Jalan Parangtritis, Bantul", "", "", "")
    assert page.table[0].cells == row
    kept = {"cari": "23", "urut": "nama", "arah": "naik", "di": "nim", "judul": "Kelas <b>"}
    assert kept.items() <= page.form("judul").fields.items()
    titled = students.page(
        "/mahasiswa/cetak?cari=23&kolom=Hadir,+Tanda+tangan,&kota=Sleman&jabatan=Wali+Kelas&nama=Drs.+Agus"
        "&nip=1965+01&kop=Dinas%0D%0A%0D%0ASMP+1+%0D%0AJl.+Mawar%0D%0ASleman&tanpa=alamat"
    )
    assert titled.texts(TITLES)[2:] == ["Nama", "Hadir", "Tanda tangan", ""]
    city, *signed = titled.texts(".signature p")
    assert city[:8] == "Sleman, "
    assert signed == ["Wali Kelas", "Drs. Agus", "NIP 1965 01"]
    assert titled.texts(".letterhead p") == ["Dinas", "SMP 1", "Jl. Mawar"]
    assert len(students.page(titled.target("Cetak seluruh daftar")).rows) == len(STUDENTS)
    plain = students.page("/mahasiswa/cetak?judul=%00&kolom=+99+")
    assert plain.texts("h1, h2, h3") == ["Daftar Mahasiswa"]
    assert len(plain.css(TITLES)) == 4 + EMPTY_COLUMNS_MAX


SUSPECTS = {
    "NIM yang mirip": ["2300190001", "230019000l"],
    "Nama dan alamat sama, NIM berbeda": ["2400180003", "2400180009"],
    "Spasi berlebih": ["2400180006", "2300190008 "],
}


def test_the_check_lists_records_that_may_be_wrong(site: Site) -> None:
    """Each is listed with its reason and can be edited, renamed and removed there; a right list has none."""
    for record in as_records("2300190001|Ani|Solo", "2400180003|Citra|Klaten", "9|Dewi|Hadi Putra"):
        site.add(*record)
    nothing = site.page("/mahasiswa/periksa")
    assert "Tidak ada yang janggal." in nothing.html
    assert "mungkin keliru" not in nothing.html
    for record in as_records(
        *("230019000l|Budi|Solo", "2400180009|citra.|KLATEN"),
        *("2400180006|Dewi  Sari|Solo", "2300190008 |Joko|Solo"),
    ):
        site.add(*record)
    page = follow(site, site.page("/?halaman=1"), "Periksa daftar")
    found = {}
    for section in page.parts("section"):
        heading = section.texts("h2")[0].rpartition(" (")[0]
        found[heading] = [nim.replace("␣", " ") for nim in section.texts("th[scope=row]")]
    assert found == SUSPECTS
    assert "Dewi ␣Sari" in page.html
    row = page.table[-2]
    assert [link.text for link in row.links] == ["Edit", "Ganti NIM"]
    assert [site.get(link.target).status_code for link in row.links] == [200, 200]
    led_to(site.submit(row.forms[0]))
    assert "2400180006" not in site.nims


def test_stray_spaces_are_tidied_as_one_batch_that_can_be_taken_back(
    site: Site, service: Service
) -> None:
    """Names and addresses are tidied, a NIM is not, and a second press changes nothing.

    A text is tidied however many nims have spaces. A single space is not needless, also as the last character that a
    check looks at.
    """
    cut_at_space = ("y", "y" * (SEARCHED_CHARACTERS - 1) + " z", "Solo")
    nims = numbered(TIDIED_MAX, nim=" {}")
    untidy = as_records("x | Ani  Sari\t|Jl.\u00a0Mawar\u200b 5", "z|Budi|Solo ")
    rows = ", ".join(map(str, [*nims, cut_at_space]))
    execute(service.database, f"INSERT INTO mahasiswa VALUES {rows}")
    for record in untidy:
        site.add(*record)
    form = site.page("/mahasiswa/periksa").form("Rapikan 1.000 data pertama")
    for _ in range(2):
        assert led_to(site.submit(form)) == "/mahasiswa/periksa"
    tidied = as_records("x |Ani Sari|Jl. Mawar 5", "z|Budi|Solo")
    assert [*site.records][TIDIED_MAX:] == [tidied[0], cut_at_space, tidied[1]]
    assert "2 mahasiswa dirapikan" in site.list().html
    led_to(site.submit(site.page("/mahasiswa/riwayat").form("Batalkan perapian (2 data)")))
    assert [*site.records][TIDIED_MAX:] == [untidy[0], cut_at_space, untidy[1]]
    execute(service.database, "DELETE FROM mahasiswa")

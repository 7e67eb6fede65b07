"""Pages over the whole list on both engines: one field, ticks, check, printout, and the removal of found records."""

import pytest
from engines import run_elsewhere, service_on_each_engine  # noqa: F401 - fixtures
from harness import Service, Site, led_to
from spreadsheets import (
    as_records,
    numbered,
)
from visitor import texts_in
from web.history.test_history import import_all
from web.lists.test_find import follow

from mahasiswa.store.folding import SEARCHED_CHARACTERS
from mahasiswa.web.checks import TIDIED_MAX

STUDENTS = as_records(
    "2300180001|Siti Aminah|Jl. Kaliurang No. 5, Sleman",
    "23.00190002|Nuraini|Jalan Parangtritis, Bantul",
    "2400180003|Nur Aini Rahayu|Jln Wates, Kulon Progo",
    "24-00180004|Muhammad Rizki|Makassar",
    "2400200005|Muhamad Budi|Bantul 2300",
    "A1/7|Eko|Solo",
)


@pytest.fixture
def students(site: Site) -> Site:
    for record in STUDENTS:
        site.add(*record)
    return site


def test_a_search_of_one_field_goes_along_to_every_use_of_it(students: Site) -> None:
    """The list, the paging, both exports, the printout and the preview of a deletion have the same records."""
    page = students.page("/?cari=23&di=nim&urut=nama")
    assert page.nims == ["23.00190002", "2300180001"]
    assert page.texts("select[name=di] option[selected]") == ["NIM berawalan"]
    assert page.target("Unduh CSV") == "/mahasiswa/ekspor.csv?cari=23&urut=nama&di=nim"
    assert students.get(page.target("Unduh CSV")).text.count("\r\n") == 3
    assert follow(students, page, "Siapkan cetakan").nims == page.nims
    (hits,) = [form for form in page.forms if "/hasil" in form.target]
    preview = students.page(led_to(students.post(hits.target, {})))
    assert "Hapus 2 mahasiswa" in preview.html
    students.accepts(preview.form("versi"), aksi="hapus")
    assert "23.00190002" not in students.nims
    assert len(students.nims) == 4


def test_nothing_found_in_one_field_offers_all_fields_and_other_spellings(students: Site) -> None:
    """One word is not told to try one word. Other spellings have their number."""
    empty = students.page("/?cari=2300&di=nama")
    assert empty.texts(".empty")[0].endswith("“2300”. Periksa angkanya. Cari di semua kolom")
    assert follow(students, empty, "Cari di semua kolom").nims == [
        "23.00190002",
        "2300180001",
        "2400200005",
    ]
    assert "Coba satu kata saja, atau periksa" in students.page("/?cari=siti+makassar").html
    assert "Makassar" in students.page("/?cari=makasarr&di=alamat").texts(".empty a")


def test_ticked_rows_are_shown_in_a_preview(students: Site) -> None:
    """Only paged views have ticks. The preview has exactly the ticked rows; test_selection.py removes them."""
    odd = ("20/1 %&\"'\u00e9", "Odd", "Solo")
    students.add(*odd)
    assert not students.list().tree.css(
        "[type=checkbox], tbody th, [aria-describedby], [data-tanya]"
    )
    page = students.page("/?urut=nama&arah=turun")
    form = page.form("Pilih yang dicentang")
    assert "hapus baris yang dicentang di halaman ini." in page.html
    assert {*page.values("td [type=checkbox]", "form")} == {"pilih"}
    chosen = page.values("td [type=checkbox]")[1:3]
    assert page.nims[1] == odd[0]
    chosen_rows = students.post(form.target, [("nim[]", tick) for tick in chosen])
    preview = students.page(led_to(chosen_rows))
    assert [texts_in(row, "td")[0] for row in preview.tree.css("#ditemukan tbody tr")] == page.nims[
        1:3
    ]


def test_a_printout_has_the_title_and_the_columns_that_were_chosen(students: Site) -> None:
    """Its form keeps the search. An invalid value is replaced by its default, and too many columns by the most."""
    page = students.page("/mahasiswa/cetak?cari=23&di=nim&urut=nama&judul=Kelas+%3Cb%3E&kolom=3")
    assert page.headings == ["Kelas <b>"]
    assert page.columns == ["No", "NIM", "Nama", "Alamat", "1", "2", "3"]
    assert page.table[0].cells == (
        "1",
        "23.00190002",
        "Nuraini",
        "Jalan Parangtritis, Bantul",
        "",
        "",
        "",
    )
    assert page.form("judul").values == {
        "cari": "23", "urut": "nama", "arah": "naik", "di": "nim", "judul": "Kelas <b>", "kolom": "3",
        "kota": "", "jabatan": "", "nama": "", "nip": "",
    }  # fmt: skip
    titled = students.page(
        "/mahasiswa/cetak?cari=23&kolom=Hadir,+Tanda+tangan,&kota=Sleman&jabatan=Wali+Kelas&nama=Drs.+Agus"
        "&nip=1965+01&kop=Dinas%0D%0A%0D%0ASMP+1+%0D%0AJl.+Mawar%0D%0ASleman"
    )
    assert titled.columns[4:] == ["Hadir", "Tanda tangan", ""]
    city, *signed = titled.texts(".signature p")
    assert (city[:8], signed) == ("Sleman, ", ["Wali Kelas", "Drs. Agus", "NIP 1965 01"])
    assert titled.texts(".letterhead p") == ["Dinas", "SMP 1", "Jl. Mawar"]
    assert titled.form("judul").values["kolom"] == "Hadir, Tanda tangan,"
    assert titled.texts("#kop")[0].split("\n")[-3:] == ["Dinas", "SMP 1", "Jl. Mawar"]
    assert len(students.page(titled.target("Cetak seluruh daftar")).rows) == len(STUDENTS)
    without = students.page("/mahasiswa/cetak?tanpa=alamat&kolom=&judul=%00")
    assert (without.headings, without.columns) == (["Daftar Mahasiswa"], ["No", "NIM", "Nama"])
    assert len(without.rows) == len(STUDENTS)
    assert len(students.page("/mahasiswa/cetak?kolom=999999999999").columns) == 4 + 31
    assert students.page("/mahasiswa/cetak?kolom=+5+").columns[4:] == ["1", "2", "3", "4", "5"]


SUSPECTS = {
    "NIM yang mirip": ["23-00190001", "230019000l", "2300190001", "2300190001 "],
    "Nama dan alamat sama, NIM berbeda": [
        *("2400180003", "2400180009", "2400180014"),
        *("2400180015", "2400180016", "2400180017"),
    ],
    "Spasi berlebih": [
        *(" 240018001", "2300190001 ", "2400180006"),
        *("2400180007", "2400180008", "2400180009"),
    ],
}


def test_the_check_lists_records_that_may_be_wrong(site: Site) -> None:
    """Each is listed with its reason and can be edited, renamed and removed there; a right list has none."""
    import_all(site, *numbered(60, "Nama {}", "Jl. Mawar No. 5", nim="25001800{:02}"))
    nothing = site.page("/mahasiswa/periksa")
    assert "Tidak ada yang janggal." in nothing.html
    assert "mungkin keliru" not in nothing.html
    for record in as_records(
        *("2300190001|Ani|Solo", "230019000l|Budi|Solo", "2300190001 |Joko|Solo"),
        *("23\u201000190001|Rini|Solo", "2400180014|Citra.|Klaten"),
        *("2400180003|Citra|Klaten", "2400180009|citra |KLATEN", "2400180006|Dewi  Sari|Solo"),
        *("2400180007|Eko|Solo\u00a0", "2400180008|Fi\u200btri|Bantul", " 240018001|Gita|Bantul"),
        *("2400180015|Nur\u2019aini|Solo", "2400180016|Nur'aini|Solo", "2400180017|Nuráini|Solo"),
        *("24A0180011|TONO 2|Solo", "9|Dewi|Hadi Putra"),  # nothing is wrong with them
    ):
        site.add(*record)
    page = follow(site, site.page("/?halaman=1"), "Periksa daftar")
    found = {
        section.css("h2")[0].text().rpartition(" (")[0]: sorted(
            cell.text().replace("\u2010", "-") for cell in section.css("th[scope=row]")
        )
        for section in page.tree.css("section")
    }
    assert found == {
        heading: sorted(nim.replace(" ", "␣") for nim in nims) for heading, nims in SUSPECTS.items()
    }
    assert "Dewi ␣Sari" in page.html
    (row,) = [row for row in page.table if row.cells[0] == "2400180006"]
    assert [link.text for link in row.links] == ["Edit", "Ganti NIM"]
    assert [site.get(link.target).status_code for link in row.links] == [200, 200]
    site.accepts(row.forms[0])
    assert "2400180006" not in site.nims


def test_stray_spaces_are_tidied_as_one_batch_that_can_be_taken_back(site: Site) -> None:
    """Names and addresses are tidied, a NIM is not, and a second press changes nothing."""
    untidy = as_records("1 | Ani  Sari\t|Jl.\u00a0Mawar\u200b 5", "2|Budi|Solo ", "3|Citra|Klaten")
    for record in untidy:
        site.add(*record)
    form = site.page("/mahasiswa/periksa").form("Rapikan semua")
    for _ in range(2):
        assert led_to(site.submit(form)) == "/mahasiswa/periksa"
    tidied = as_records("1 |Ani Sari|Jl. Mawar 5", "2|Budi|Solo", "3|Citra|Klaten")
    assert site.records == tidied
    assert "2 mahasiswa dirapikan" in site.list().html
    site.accepts(site.page("/mahasiswa/riwayat").form("Batalkan perapian (2 data)"))
    assert site.records == untidy


def test_a_text_is_tidied_however_many_nims_have_spaces(service: Service, site: Site) -> None:
    """Another program stored them. A single space is not needless, also as the last character that a check looks at."""
    rows = [
        *numbered(TIDIED_MAX, nim=" {}"),
        ("x", "Budi ", "Solo"),
        ("y", "y" * (SEARCHED_CHARACTERS - 1) + " z", "Solo"),
    ]
    run_elsewhere(service.database, f"INSERT INTO mahasiswa VALUES {', '.join(map(str, rows))}")
    site.accepts(site.page("/mahasiswa/periksa").form("Rapikan 1.000 data pertama"))
    assert "Spasi berlebih (1.000)" in site.page("/mahasiswa/periksa").headings
    assert site.list().row("x").cells[2] == "Budi"
    run_elsewhere(service.database, "DELETE FROM mahasiswa")

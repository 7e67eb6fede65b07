"""The columns of a sheet are found by its header."""

import pytest

from mahasiswa import sheets
from mahasiswa.sheets.cells import SheetRow


def first_row(*lines: str) -> SheetRow:
    return next(iter(sheets.read_text("\n".join(line.replace("|", "\t") for line in lines))))


@pytest.mark.parametrize(
    "header",
    [
        "NIM|Nama|Alamat",
        "npm|NAMA MAHASISWA|alamat rumah",
        "N.I.M.|Nama  Lengkap *|Alamat Lengkap :",
        " No. Mahasiswa |nama|ALAMAT",
        "Nomor Induk Mahasiswa (wajib)|Nama|Alamat (sesuai KTP)",
        "NIM/NPM|Nama Mahasiswa|Alamat Tinggal",
        "NIPD|Nama|Alamat",
        "Nomor Pokok Mahasiswa|Nama|Alamat Rumah",
    ],
)
def test_columns_are_found_by_the_names_that_people_use(header: str) -> None:
    assert first_row(header, "0123|Ani|Jl. A") == (2, "0123", "Ani", "Jl. A")


def test_columns_are_found_in_any_order_among_others() -> None:
    assert first_row("No|Alamat|Prodi|Nama|Kelas|NIM", "1|Jl. A|TI|Ani|A|0123") == (2, "0123", "Ani", "Jl. A")


def test_of_several_possible_columns_the_best_name_wins() -> None:
    row = first_row("NISN|NIS|Alamat KTP|Nama|NIM|Alamat", "9|8|K|Ani|0123|Jl. A")
    assert row == (2, "0123", "Ani", "Jl. A")


def test_the_header_may_stand_below_a_title() -> None:
    row = first_row("DAFTAR MAHASISWA|||", "|Angkatan 2020||", "", "No|NIM|Nama|Alamat", "1|0123|Ani|Jl. A")
    assert row == (5, "0123", "Ani", "Jl. A")


def test_a_header_may_have_two_rows() -> None:
    """In the ministry's school list the second row names the columns below a merged cell `Data Ayah`."""
    row = first_row("No|Nama|NIPD|Alamat|Data Ayah|", "||||Nama|NIK", "1|Ani|0123|Jl. A|Budi|9")
    assert row == (3, "0123", "Ani", "Jl. A")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Nama|Alamat\nAni|A", "Kolom NIM tidak ditemukan"),
        ("Kode|Nama|Alamat\n1|Ani|A", "Kolom NIM tidak ditemukan"),
        ("NIM|Prodi|Kelas\n1|TI|A", "Kolom Nama dan Alamat tidak ditemukan"),
        ("1|0123|Ani|A", "Judul kolom tidak ditemukan"),
        ("0123|Ani", "Judul kolom tidak ditemukan"),
        ("NIM|Nama|Nama|Alamat\n1|Ani|Ayah|A", "Kolom Nama ada dua (kolom B dan C)"),
        ("NIM" + "|x" * 26 + "|NIM|Nama\n1", "Kolom NIM ada dua (kolom A dan AB)"),
    ],
)
def test_columns_that_cannot_be_found_are_refused(text: str, message: str) -> None:
    with pytest.raises(sheets.SheetError) as caught:
        first_row(*text.split("\n"))
    assert str(caught.value).startswith(message)


def test_a_sheet_with_only_a_header_has_no_rows() -> None:
    assert list(sheets.read_text("NIM\tNama\tAlamat\n")) == []

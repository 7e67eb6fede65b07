"""Rows of a sheet become records: cells are cleaned or refused, or get a warning."""

from math import inf, nan

import pytest

from mahasiswa import sheets, wording
from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.sheets.columns import BadCell, Cell


def one(nim: Cell, nama: Cell = "Ani", alamat: Cell = "Jl. A") -> sheets.Answer:
    (answer,) = sheets.check([(7, nim, nama, alamat)])
    return answer


def row(nim: Cell, nama: Cell = "Ani", alamat: Cell = "Jl. A") -> sheets.Row:
    answer = one(nim, nama, alamat)
    assert isinstance(answer, sheets.Row), answer
    return answer


def problem(nim: Cell, nama: Cell = "Ani", alamat: Cell = "Jl. A") -> str:
    answer = one(nim, nama, alamat)
    assert isinstance(answer, sheets.InvalidRow), answer
    return answer.message


@pytest.mark.parametrize(
    "nim",
    [
        "0123",
        "20/456839/TK/50663",
        "A11.2019.12345",
        "H1A-020",
        "123E45",
        "x",
        "ab'c",
        "ä1",
        "=1",
        "-5",
        "#1",
        "9" * NIM_MAX_CHARACTERS,
    ],
)
def test_an_ordinary_nim_is_not_changed(nim: str) -> None:
    assert row(nim) == (7, nim, "Ani", "Jl. A", (), ())


@pytest.mark.parametrize(
    ("nim", "clean", "notes"),
    [
        ("'0123", "0123", ["Tanda petik di awal NIM dihapus."]),
        ("’0123", "0123", ["Tanda petik di awal NIM dihapus."]),
        (" 0123\t", "0123", ["Spasi di awal atau akhir NIM dihapus."]),
        ("\u00a00123\u200b", "0123", ["Spasi di awal atau akhir NIM dihapus."]),
        (" ' 0123", "0123", ["Spasi di awal atau akhir NIM dihapus.", "Tanda petik di awal NIM dihapus."]),
    ],
)
def test_spaces_and_apostrophes_are_removed_from_a_nim_and_reported(nim: str, clean: str, notes: list[str]) -> None:
    assert row(nim) == (7, clean, "Ani", "Jl. A", tuple(notes), ())


@pytest.mark.parametrize(("number", "nim"), [(123, "123"), (123.0, "123"), (0.0, "0"), (999999999999999.0, "9" * 15)])
def test_a_numeric_nim_becomes_digits(number: float, nim: str) -> None:
    assert row(number).nim == nim


@pytest.mark.parametrize("nim", ["1,23457E+11", "1.23E+11", "1E+11", "1.2e11", "2E-5", " '1,23457E+11 "])
def test_a_rounded_nim_is_refused_with_advice(nim: str) -> None:
    assert problem(nim).startswith("Baris 7: NIM ")
    assert "dibulatkan" in problem(nim)
    assert "format kolom NIM menjadi Teks" in problem(nim)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (1e15, "lebih dari 15 digit"),
        (12345678901234567890, "lebih dari 15 digit"),
        (inf, "lebih dari 15 digit"),
        (1.5, "NIM 1,5 bukan bilangan bulat"),
        (-5.0, "bukan bilangan bulat positif"),
        (nan, "bukan bilangan bulat positif"),
        (True, "TRUE, bukan teks"),
        (BadCell("date", "2020-01-02"), "tanggal atau waktu (2020-01-02)"),
        (BadCell("error", "#REF!"), "kesalahan rumus (#REF!)"),
        (BadCell("formula", ""), "rumus tanpa hasil"),
        (BadCell("long", ""), "terlalu panjang"),
        (None, "NIM kosong"),
        ("  ", "NIM kosong"),
        ("'", "NIM kosong"),
        (".", "tidak boleh hanya"),
        ("..", "tidak boleh hanya"),
        ("x" * (NIM_MAX_CHARACTERS + 1), "lebih dari 255 karakter"),
        ("9" * (NIM_MAX_CHARACTERS + 1), "lebih dari 255 karakter"),
        ("1\0", "karakter NUL"),
    ],
)
def test_an_impossible_nim_is_refused(cell: Cell, words: str) -> None:
    assert words in problem(cell)


@pytest.mark.parametrize("text", ["'Ain", "=1+1", " Ani ", "a\r\nb", "1.23E+11", "ÿ", "Ä", "!", "a\u00a0"])
def test_nama_and_alamat_are_not_changed(text: str) -> None:
    assert row("1", text, text)[2:4] == (text, text)


@pytest.mark.parametrize("blank", [None, "", "  ", "\u00a0", "\n"])
def test_a_blank_nama_or_alamat_is_none(blank: str | None) -> None:
    assert row("1", blank, blank)[2:4] == (None, None)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (BadCell("date", "2020-05-12"), "Alamat terbaca sebagai tanggal"),
        (BadCell("error", "#N/A"), "Alamat berisi kesalahan rumus (#N/A)"),
        (BadCell("formula", ""), "Alamat berisi rumus tanpa hasil"),
        (False, "Alamat berisi FALSE"),
        (12.5, "Alamat terbaca sebagai angka (12,5)"),
        (1e20, "Alamat terbaca sebagai angka (1E+20)"),
        ("a\0", "Alamat berisi karakter NUL"),
    ],
)
def test_an_alamat_that_is_not_text_is_refused(cell: Cell, words: str) -> None:
    assert words in problem("1", "Ani", cell)


def test_a_whole_number_as_alamat_becomes_digits() -> None:
    assert row("1", "Ani", 12.0).alamat == "12"


def test_every_problem_of_a_row_is_reported_at_once() -> None:
    message = problem(1.5, BadCell("date", "2020-01-02"), BadCell("error", "#N/A"))
    assert [word in message for word in ("NIM 1,5", "Nama terbaca sebagai tanggal", "#N/A")] == [True] * 3


@pytest.mark.parametrize("text", ["##", "####", "##########"])
def test_a_cell_of_number_signs_is_refused(text: str) -> None:
    """A spreadsheet shows them instead of a number if the column is too narrow."""
    assert "Lebarkan kolomnya" in problem(text)
    assert "Nama berisi “####”" in problem("1", text)
    assert row("1", "#1", "Blok #").nama == "#1"


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (("NIM", "Nama", "Alamat"), wording.ASIDE_HEADER),
        (("Npm", "NAMA MAHASISWA", None), wording.ASIDE_HEADER),
        (("DAFTAR MAHASISWA", None, None), wording.ASIDE_TITLE),
        (("Kelas X IPA 1", " ", None), wording.ASIDE_TITLE),
        ((None, None, "Sleman, 12 Juli 2025"), wording.ASIDE_TITLE),
        (("Total", "45", None), wording.ASIDE_TOTAL),
        ((None, "Jumlah siswa: 45", 45), wording.ASIDE_TOTAL),
        (("Jumlah 45", None, None), wording.ASIDE_TOTAL),
        ((None, "Mengetahui,", None), wording.ASIDE_SIGNATURE),
        (("Kepala  Sekolah", None, "Wali Kelas"), wording.ASIDE_SIGNATURE),
        (("NIP. 19650101 199003 1 002", None, "NIP. 1970"), wording.ASIDE_SIGNATURE),
    ],
)
def test_a_row_that_is_no_student_is_set_aside(cells: tuple[Cell, Cell, Cell], reason: str) -> None:
    answer = one(*cells)
    assert isinstance(answer, sheets.Skipped)
    assert answer.reason == reason


@pytest.mark.parametrize(
    "cells",
    [
        ("Alamat", "Nama", "NIM"),
        ("123", "Total Wijaya", "Jl. Kepala Sekolah"),
        ("TAMU", "Ani", "Solo"),
        ("NIP1", "Ani", "Solo"),
        ("Totalindo", "Ani", "Solo"),
        (7, "Mengetahui", None),
        ("7", None, None),
        ("X IPA", "Ani", None),
        ("TAMU", "Total", "Kepala Sekolah"),
    ],
)
def test_a_row_that_may_be_a_student_is_not_set_aside(cells: tuple[Cell, Cell, Cell]) -> None:
    assert isinstance(one(*cells), sheets.Row)


def test_everything_below_a_signature_is_set_aside_until_a_student_follows() -> None:
    rows = [
        ("1", "A", "S"),
        (None, "Mengetahui,", None),
        (None, "Drs. Agus", "Siti"),
        ("2", "B", "S"),
        (None, "C", "S"),
    ]
    answers = sheets.check((number, *cells) for number, cells in enumerate(rows, 2))
    assert [type(answer).__name__ for answer in answers] == ["Row", "Skipped", "Skipped", "Row", "InvalidRow"]


def test_a_row_that_is_identical_to_an_earlier_one_is_set_aside() -> None:
    """Blank cells, and characters that are removed from a NIM, do not count."""
    rows: list[sheets.SheetRow] = [
        (2, "1", "Ani", None),
        (3, "'1", "Ani", " "),
        (4, 1, "Ani", None),
        (5, "2", "é", "S"),
        (6, "2", "é", "S"),
    ]
    assert [type(answer) for answer in sheets.check(rows)] == [
        sheets.Row, sheets.Skipped, sheets.Skipped, sheets.Row, sheets.Skipped
    ]  # fmt: skip


def test_a_repeated_nim_makes_both_rows_invalid() -> None:
    """Neither row is written, because only a person can tell which one is right. Both messages name both rows."""
    first, other, second = sheets.check([(2, "0123", "Ani", "A"), (3, "0124", "B", "B"), (9, "'0123", "Ana", "A")])
    assert isinstance(other, sheets.Row)
    assert isinstance(first, sheets.InvalidRow)
    assert isinstance(second, sheets.InvalidRow)
    problem = wording.NIM_TWICE.format(nim="0123", first=2, second=9)
    assert [first.message, second.message] == [f"Baris 2: {problem}", f"Baris 9: {problem}"]
    assert second.twin == 2


def test_a_repeated_nim_is_found_across_batches() -> None:
    cleaner = sheets.Cleaner()
    assert [type(answer) for answer in cleaner.clean([(2, "1", "Ani", "A")])] == [sheets.Row]
    (second,) = cleaner.clean([(900_000, "1", "Ana", "A")])
    assert isinstance(second, sheets.InvalidRow)
    assert (second.number, second.twin) == (900_000, 2)


def test_a_nim_shorter_by_its_leading_zeros_gets_a_warning() -> None:
    rows = sheets.check(
        [(2, "0912345", "A", "A"), (3, "1012345", "B", "B"), (4, 912346, "C", "C"), (5, "X1", "D", "D")]
    )
    warned = [answer for answer in rows if isinstance(answer, sheets.Row) and answer.warnings]
    assert [(answer.number, answer.nim) for answer in warned] == [(4, "912346")]
    assert "NIM 912346 lebih pendek dari NIM lainnya (7 digit)" in warned[0].warnings[0]


def test_nims_of_different_lengths_get_no_warning() -> None:
    rows = sheets.check([(2, "1", "A", "A"), (3, "12", "B", "B"), (4, "ABC", "C", "C")])
    assert [answer.warnings for answer in rows if isinstance(answer, sheets.Row)] == [(), (), ()]


def test_a_nim_that_ends_in_point_zero_gets_a_warning() -> None:
    assert "berakhiran “.0”" in row("12345.0").warnings[0]
    assert row("12345.0").nim == "12345.0"


def test_a_repeated_nim_is_found_if_its_first_row_is_invalid_for_another_reason() -> None:
    first, second = sheets.check([(2, "0123", "Ani", BadCell("error", "#N/A")), (9, "0123", "Ani", "A")])
    assert isinstance(first, sheets.InvalidRow)
    assert isinstance(second, sheets.InvalidRow)
    assert second.message == f"Baris 9: {wording.NIM_TWICE.format(nim='0123', first=2, second=9)}"

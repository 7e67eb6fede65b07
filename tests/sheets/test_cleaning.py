"""Rows of a sheet become records: cells are cleaned or refused, or get a warning."""

from math import inf, nan

import pytest

from mahasiswa import sheets, wording
from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.sheets.cells import BadCell, Cell, SheetRow
from mahasiswa.sheets.cleaning import RowResult, clean_all

ROW, INVALID, SKIPPED = sheets.CleanedRow, sheets.InvalidRow, sheets.SkippedRow


def one(nim: Cell, nama: Cell = "Ani", alamat: Cell = "Jl. A") -> RowResult:
    (result,) = clean_all([(7, nim, nama, alamat)])
    return result


def row(nim: Cell, nama: Cell = "Ani", alamat: Cell = "Jl. A") -> sheets.CleanedRow:
    result = one(nim, nama, alamat)
    assert isinstance(result, ROW), result
    return result


def problem(nim: Cell, nama: Cell = "Ani", alamat: Cell = "Jl. A") -> str:
    result = one(nim, nama, alamat)
    assert isinstance(result, INVALID), result
    return result.problem


ORDINARY = ["0123", "20/456839/TK/50663", "A11.2019.12345", "H1A-020", "123E45", "x", "ab'c", "ä1", "=1", "-5", "#1"]


@pytest.mark.parametrize("nim", [*ORDINARY, "9" * NIM_MAX_CHARACTERS])
@pytest.mark.parametrize("text", ["Ani", "'Ain", "=1+1", " Ani ", "a\r\nb", "1.23E+11", "ÿ", "Ä", "!", "a\u00a0", "#1"])
def test_an_ordinary_row_is_not_changed(nim: str, text: str) -> None:
    assert one(nim, "Ani", text) == (7, nim, "Ani", text, (), ())


@pytest.mark.parametrize(
    ("nim", "clean", "notes"),
    [
        ("'0123", "0123", [wording.APOSTROPHE_REMOVED]),
        ("’0123", "0123", [wording.APOSTROPHE_REMOVED]),
        (" 0123\t", "0123", [wording.SPACES_REMOVED]),
        ("\u00a00123\u200b", "0123", [wording.SPACES_REMOVED]),
        (" ' 0123", "0123", [wording.SPACES_REMOVED, wording.APOSTROPHE_REMOVED]),
        (123, "123", []),
        (123.0, "123", []),
        (0.0, "0", []),
        (999999999999999.0, "9" * 15, []),
    ],
)
def test_a_nim_loses_spaces_and_apostrophes_and_a_number_becomes_digits(
    nim: Cell, clean: str, notes: list[str]
) -> None:
    """The characters that were removed are reported."""
    assert row(nim) == (7, clean, "Ani", "Jl. A", tuple(notes), ())


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (inf, "NIM ini berupa angka lebih dari 15 digit"),
        (nan, "bukan bilangan bulat positif"),
        (BadCell("long", ""), "terlalu panjang"),
        ("x" * (NIM_MAX_CHARACTERS + 1), "lebih dari 255 karakter"),
        ("1\0", "karakter NUL"),
    ],
)
def test_a_nim_that_few_files_can_hold_is_refused(cell: Cell, words: str) -> None:
    assert words in problem(cell)
    assert "Alamat berisi karakter NUL" in problem("1", "Ani", "a\0")


@pytest.mark.parametrize("blank", [None, "", "  ", "\u00a0", "\n"])
def test_a_blank_nama_or_alamat_is_none(blank: str | None) -> None:
    assert one("1", blank, blank) == (7, "1", None, None, (), ())


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (("NIM", "Nama", "Alamat"), wording.SKIPPED_HEADER),
        (("Npm", "NAMA MAHASISWA", None), wording.SKIPPED_HEADER),
        (("DAFTAR MAHASISWA", None, None), wording.SKIPPED_TITLE),
        (("Kelas X IPA 1", " ", None), wording.SKIPPED_TITLE),
        ((None, None, "Sleman, 12 Juli 2025"), wording.SKIPPED_TITLE),
        (("Total", "45", None), wording.SKIPPED_TOTAL),
        ((None, "Jumlah siswa: 45", 45), wording.SKIPPED_TOTAL),
        (("Jumlah 45", None, None), wording.SKIPPED_TOTAL),
        ((None, "Mengetahui,", None), wording.SKIPPED_SIGNATURE),
        (("Kepala  Sekolah", None, "Wali Kelas"), wording.SKIPPED_SIGNATURE),
        (("NIP. 19650101 199003 1 002", None, "NIP. 1970"), wording.SKIPPED_SIGNATURE),
        (("NIP.19650101", "Ani", "Solo"), wording.SKIPPED_SIGNATURE),
    ],
)
def test_a_row_that_is_no_student_is_skipped(cells: tuple[Cell, Cell, Cell], reason: str) -> None:
    result = one(*cells)
    assert isinstance(result, SKIPPED)
    assert result.reason == reason


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
def test_a_row_that_may_be_a_student_is_not_skipped(cells: tuple[Cell, Cell, Cell]) -> None:
    assert isinstance(one(*cells), ROW)


def types_of(*rows: tuple[Cell, Cell, Cell]) -> list[type]:
    return [type(result) for result in clean_all((number, *cells) for number, cells in enumerate(rows, 2))]


def test_everything_below_a_signature_is_skipped_until_a_student_follows() -> None:
    rows = ("1", "A", "S"), (None, "Mengetahui,", None), (None, "Drs. Agus", "Siti"), ("2", "B", "S"), (None, "C", "S")
    assert types_of(*rows) == [ROW, SKIPPED, SKIPPED, ROW, INVALID]


def test_a_row_that_is_identical_to_an_earlier_one_is_skipped() -> None:
    """Blank cells, and characters that are removed from a NIM, do not count."""
    rows = ("1", "Ani", None), ("'1", "Ani", " "), (1, "Ani", None), ("2", "é", "S"), ("2", "é", "S")
    assert types_of(*rows) == [ROW, SKIPPED, SKIPPED, ROW, SKIPPED]


@pytest.mark.parametrize("alamat", ["A", BadCell("error", "#N/A")], ids=["valid", "invalid for another reason"])
def test_a_repeated_nim_makes_both_rows_invalid(alamat: Cell) -> None:
    """Only a person can tell which one is right. Both problems name both rows."""
    rows: list[SheetRow] = [(2, "0123", "Ani", alamat), (3, "0124", "B", "B"), (9, "'0123", "Ana", "A")]
    first, other, second = clean_all(rows)
    assert isinstance(other, ROW)
    assert isinstance(first, INVALID)
    assert isinstance(second, INVALID)
    assert (second.problem, second.twin) == (wording.NIM_TWICE.format(nim="0123", first="baris 2", second="baris 9"), 2)
    assert alamat != "A" or first.problem == second.problem


def test_a_nim_shorter_by_its_leading_zeros_gets_a_warning() -> None:
    """NIMs of different lengths get none."""
    rows: list[SheetRow] = [
        (2, "0912345", "A", "A"),
        (3, "1012345", "B", "B"),
        (4, 912346, "C", "C"),
        (5, "X1", "D", "D"),
    ]
    warnings = [result.warnings for result in clean_all(rows) if isinstance(result, ROW)]
    assert [bool(of_row) for of_row in warnings] == [False, False, True, False]
    assert "NIM ini lebih pendek dari NIM lainnya (7 digit)" in warnings[2][0]
    assert [result[-1] for result in clean_all([(2, "1", "A", "A"), (3, "12", "B", "B"), (4, "ABC", "C", "C")])] == [
        ()
    ] * 3


def test_a_nim_that_ends_in_point_zero_gets_a_warning() -> None:
    assert "berakhiran “.0”" in row("12345.0").warnings[0]
    assert row("12345.0").nim == "12345.0"

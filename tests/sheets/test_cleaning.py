"""Rows of a sheet become records: cells are cleaned or refused, or get a warning."""

from itertools import product
from math import inf, nan

import pytest

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets import row_questions
from mahasiswa.sheets.cells import BadCell, Cell
from mahasiswa.sheets.cleaning import RowResult, clean_all

ROW, INVALID = sheets.CleanedRow, sheets.RejectedRow


def one(nim: Cell, nama: Cell = "Ani", alamat: Cell = "Jl. A") -> RowResult:
    (result,) = clean_all([(7, (nim, nama, alamat))])
    return result


ORDINARY = [
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
]


@pytest.mark.parametrize("nim", [*ORDINARY, "9" * NIM_MAX_CHARACTERS])
@pytest.mark.parametrize(
    "text", ["Ani", "'Ain", "=1+1", " Ani ", "a\r\nb", "1.23E+11", "ÿ", "Ä", "!", "a\u00a0", "#1"]
)
def test_an_ordinary_row_is_not_changed(nim: str, text: str) -> None:
    assert one(nim, "Ani", text) == ROW(7, nim, "Ani", text)


APOSTROPHE, SPACES = wording.APOSTROPHE_REMOVED, wording.SPACES_REMOVED
CLEANED: list[tuple[Cell, str, list[str]]] = [
    *((nim, "0123", [APOSTROPHE]) for nim in ("'0123", "’0123")),
    *((nim, "0123", [SPACES]) for nim in (" 0123\t", "\u00a00123\u200b")),
    (" ' 0123", "0123", [SPACES, APOSTROPHE]),
    *((nim, f"{nim:.0f}", []) for nim in (123, 123.0, 0.0, 999999999999999.0)),
]


@pytest.mark.parametrize(("nim", "clean", "notes"), CLEANED)
def test_a_nim_loses_spaces_and_apostrophes_and_a_number_becomes_digits(
    nim: Cell, clean: str, notes: list[str]
) -> None:
    """The characters that were removed are reported."""
    assert one(nim) == ROW(
        7, clean, "Ani", "Jl. A", tuple(notes), uncleaned=str(nim) if notes else ""
    )


ODD_CELLS: list[tuple[Cell, Cell, str]] = [
    *(
        (inf, "A", "NIM ini berupa angka lebih dari 15 digit"),
        (nan, "A", "bukan bilangan bulat positif"),
    ),
    *(
        (BadCell("long", ""), "A", "terlalu panjang"),
        ("1\0", "A", "karakter NUL"),
        ("1", "a\0", "Alamat berisi karakter NUL"),
    ),
]


@pytest.mark.parametrize(("nim", "alamat", "words"), ODD_CELLS)
def test_a_cell_that_few_files_can_hold_is_refused(nim: Cell, alamat: Cell, words: str) -> None:
    result = one(nim, "Ani", alamat)
    assert isinstance(result, INVALID)
    assert not result.is_skipped
    assert words in result.problem


ROWS: dict[str | None, list[tuple[Cell, Cell, Cell]]] = {
    wording.SKIPPED_HEADER: [("NIM", "Nama", "Alamat"), ("Npm", "NAMA MAHASISWA", None)],
    wording.SKIPPED_TITLE: [
        *(
            ("DAFTAR MAHASISWA", None, None),
            ("Kelas X IPA 1", " ", None),
            (None, None, "Sleman, 12 Juli 2025"),
        )
    ],
    wording.SKIPPED_TOTAL: [
        ("Total", "45", None),
        (None, "Jumlah siswa: 45", 45),
        ("Jumlah 45", None, None),
    ],
    wording.SKIPPED_SIGNATURE: [
        *(
            (None, "Mengetahui,", None),
            ("Kepala  Sekolah", None, "Wali Kelas"),
            ("NIP.19650101", "Ani", "Solo"),
        ),
        ("NIP. 19650101 199003 1 002", None, "NIP. 1970"),
    ],
    None: [
        *(
            ("Alamat", "Nama", "NIM"),
            ("123", "Total Wijaya", "Jl. Kepala Sekolah"),
            ("TAMU", "Ani", "Solo"),
        ),
        *(
            ("NIP1", "Ani", "Solo"),
            ("Totalindo", "Ani", "Solo"),
            (7, "Mengetahui", None),
            ("7", None, None),
        ),
        *(("X IPA", "Ani", None), ("TAMU", "Total", "Kepala Sekolah")),
    ],
}


@pytest.mark.parametrize(
    ("cells", "reason"), [(cells, reason) for reason, rows in ROWS.items() for cells in rows]
)
def test_a_row_is_skipped_only_if_it_is_no_student(
    cells: tuple[Cell, Cell, Cell], reason: str | None
) -> None:
    result = one(*cells)
    assert (getattr(result, "is_skipped", False), getattr(result, "problem", None)) == (
        reason is not None,
        reason,
    )


def test_a_plain_row_needs_no_further_check() -> None:
    """No check of a single row, which leaves the plain rows out, would find anything in one."""
    damages: tuple[Cell, ...] = (
        "03-Jul",
        "&amp;",
        "\\'",
        "é",
        "â€™",
        "\ufffd",
        "\n23000182;Ani",
        "*a*",
        "_a_",
        "1. a",
        "NULL",
        0,
    )
    nims: tuple[Cell, ...] = (
        "23000181",
        "2.300.018",
        "2300O181",
        "NIM. 230001",
        "23000181-",
        "23000181 Siti",
        23000181,
    )
    rows = product(nims, ("Siti", *damages), ("Jl. A", *damages), ((), (wording.HIDDEN_ROWS,)))
    plain = [
        cells for *texts, notes in rows if row_questions._is_plain_row(cells := (*texts, *notes))
    ]
    assert ("23000181", "Siti", "Jl. A") in plain
    for check in row_questions._CHECKS:
        assert check.sees_all or not check.find([*enumerate(plain)]), check.name

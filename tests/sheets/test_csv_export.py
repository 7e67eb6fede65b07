"""Downloads: what is written opens right, and comes back to the byte."""

import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mahasiswa import sheets
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.xlsx_export import CELL_MAX_UTF16_UNITS, SHEET_MAX_RECORDS, write_template, write_xlsx

# What cleaning leaves alone: a text that is not blank, a NIM without anything around it that is none of the refused ones.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(str.strip)
digits = st.text("0123456789", min_size=1, max_size=20)
nims = (digits | texts).filter(
    lambda nim: (
        isinstance(sheets.check([(1, nim, "N", "A")])[0], sheets.Row)
        and sheets.check([(1, nim, "N", "A")])[0][1] == nim
    )
)
awkward = st.sampled_from(
    [
        "=1+1",
        "'=1",
        "''",
        "'",
        "a\rb",
        "a\r\nb",
        "\tx",
        "\n.",
        "_x000D_",
        "_x005F_x0041_",
        "<r>x</r>",
        "<r><t>a</r>",
        "1.23E+11",
        "007",
        "2020-01-02",
        "#N/A",
        ' "q"; ',
        "\u2028x",
        "\x0b.\x1f",
        "sep=;",
        "＝1",
        "&amp;",
        "]]>",
        "_x",
    ]
)
records = st.builds(Mahasiswa, nims, texts | awkward, texts | awkward)
tables = st.lists(records, max_size=12, unique_by=lambda record: record.nim)

AWKWARD = [Mahasiswa("'1"[1:], "_x005F_x0041_", "<r>&</r>"), Mahasiswa("=1", "a\r\nb\rc\td", " \x01_x0001_ ")]


def back(data: bytes) -> list[Mahasiswa]:
    with sheets.read(io.BytesIO(data)) as table:
        answers = sheets.check(table)
    assert [answer for answer in answers if not isinstance(answer, sheets.Row)] == []
    return [
        Mahasiswa(answer.nim, answer.nama or "", answer.alamat or "")
        for answer in answers
        if isinstance(answer, sheets.Row)
    ]


def as_csv(rows: list[Mahasiswa]) -> bytes:
    return b"".join(sheets.csv_chunks(rows))


def as_xlsx(rows: list[Mahasiswa]) -> bytes:
    file = io.BytesIO()
    write_xlsx(rows, file)
    return file.getvalue()


@given(tables)
@example(AWKWARD)
@settings(max_examples=300, deadline=None)
def test_csv_comes_back_to_the_byte(rows: list[Mahasiswa]) -> None:
    assert back(as_csv(rows)) == rows


@given(tables)
@example(AWKWARD)
@settings(max_examples=40, deadline=None)
def test_xlsx_comes_back_to_the_byte(rows: list[Mahasiswa]) -> None:
    """Or is refused, where XML has no way to hold a text."""
    if any("\ufffe" in text or "\uffff" in text for row in rows for text in row):
        with pytest.raises(sheets.NotCarried):
            as_xlsx(rows)
    else:
        assert back(as_xlsx(rows)) == rows


def test_many_records_come_back_in_both_formats() -> None:
    rows = [Mahasiswa(f"{number:010}", f"Nama {number}", f"Jl. {number}; No. 1") for number in range(5_000)]
    assert back(as_csv(rows)) == rows
    assert back(as_xlsx(rows)) == rows


def test_csv_is_what_an_indonesian_excel_opens() -> None:
    rows = [Mahasiswa("007", "Ani; B", 'Jl. "A"'), Mahasiswa("8", "=1+1", "-"), Mahasiswa("9", "'Ain", "＋62\n")]
    assert as_csv(rows).decode("utf-8-sig").split("\r\n") == [
        "NIM;Nama;Alamat",
        '007;"Ani; B";"Jl. ""A"""',
        "8;'=1+1;'-",
        "9;''Ain;\"'＋62\n\"",
        "",
    ]


@pytest.mark.parametrize("first", "=+-@\t\r\n'＝＋－＠")
def test_a_formula_is_guarded_in_csv(first: str) -> None:
    assert f"'{first}x" in as_csv([Mahasiswa("1", "Ani", f"{first}x")]).decode()


def test_csv_is_written_as_the_records_come() -> None:
    """A chunk is ready long before the last record is read."""
    read = []

    def endless() -> Iterator[Mahasiswa]:
        number = 0
        while True:
            number += 1
            read.append(number)
            yield Mahasiswa(str(number), "Ani", "A")

    chunks = sheets.csv_chunks(endless())
    assert next(chunks) == "\ufeffNIM;Nama;Alamat\r\n".encode()
    assert next(chunks).startswith(b"1;Ani;A\r\n")
    assert len(read) < 1_001


def test_xlsx_looks_as_excel_users_expect() -> None:
    """Every cell is text, also for the one who types the next; the header stays in sight and filters."""
    data = as_xlsx(
        [Mahasiswa("007", "=1+1", "1.23E+11" + "x" * 40), Mahasiswa("12345678901234567890", "http://a.b", "A")]
    )
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    assert [[cell.value for cell in row] for row in sheet.iter_rows()] == [
        ["NIM", "Nama", "Alamat"],
        ["007", "=1+1", "1.23E+11" + "x" * 40],
        ["12345678901234567890", "http://a.b", "A"],
    ]
    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr"}
    assert {cell.number_format for cell in cells} == {"@"}
    assert [cell.font.b for cell in cells] == [True] * 3 + [False] * 6
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:C3"
    assert [sheet.column_dimensions[name].width > wide for name, wide in (("A", 20), ("B", 14), ("C", 48))] == [
        True
    ] * 3


@pytest.mark.parametrize("text", ["x" * CELL_MAX_UTF16_UNITS, "😀" * (CELL_MAX_UTF16_UNITS // 2)])
def test_the_longest_cell_that_excel_holds(text: str) -> None:
    rows = [Mahasiswa("1", "Ani", text)]
    assert back(as_xlsx(rows)) == rows


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Mahasiswa("9", "Ani", "x" * (CELL_MAX_UTF16_UNITS + 1)), "Alamat untuk NIM 9 lebih dari 32.767 karakter"),
        (Mahasiswa("9", "😀" * (CELL_MAX_UTF16_UNITS // 2 + 1), "A"), "Nama untuk NIM 9 lebih dari 32.767 karakter"),
        (Mahasiswa("9", "A\uffff", "A"), "Nama untuk NIM 9 berisi karakter yang tidak dapat disimpan"),
    ],
)
def test_what_excel_cannot_hold_is_said_before_a_byte_is_written(row: Mahasiswa, words: str) -> None:
    file = io.BytesIO()
    before = set(Path(tempfile.gettempdir()).glob("mahasiswa-*"))
    with pytest.raises(sheets.NotCarried, match=words):
        write_xlsx([Mahasiswa("1", "Ani", "A")] * 100 + [row], file)
    assert file.getvalue() == b""
    assert set(Path(tempfile.gettempdir()).glob("mahasiswa-*")) <= before


def test_more_records_than_excel_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real limit, lowered, for a million rows take half a minute to write."""
    assert SHEET_MAX_RECORDS == 2**20 - 1
    monkeypatch.setattr("mahasiswa.sheets.xlsx_export.SHEET_MAX_RECORDS", 10)
    write_xlsx([Mahasiswa("1", "Ani", "A")] * 10, io.BytesIO())
    with pytest.raises(sheets.NotCarried, match="batas Excel"):
        write_xlsx([Mahasiswa("1", "Ani", "A")] * 11, io.BytesIO())


@pytest.mark.parametrize("write", [write_template, lambda file: write_xlsx([], file)], ids=["template", "no records"])
def test_the_template_passes_its_own_import(write: Callable[[io.BytesIO], None]) -> None:
    """Empty it has no row that is wrong, and what a person fills in stays as it was typed."""
    file = io.BytesIO()
    write(file)
    assert back(file.getvalue()) == []
    workbook = openpyxl.load_workbook(io.BytesIO(file.getvalue()))
    workbook["Mahasiswa"].append(["0123", "Ani", "Jl. A"])
    filled = io.BytesIO()
    workbook.save(filled)
    assert back(filled.getvalue()) == [Mahasiswa("0123", "Ani", "Jl. A")]
    assert workbook["Mahasiswa"].column_dimensions["A"].number_format == "@"

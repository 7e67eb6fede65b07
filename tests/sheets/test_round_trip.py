"""Records that are exported are imported again without any change to their texts."""

import io
import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from naughty import NAUGHTY, NAUGHTY_NIMS
from spreadsheets import reading

from mahasiswa import sheets
from mahasiswa.record import UNADDRESSABLE_NIMS, Mahasiswa
from mahasiswa.sheets.cleaning import clean_all

# The texts and nims that an import does not clean or refuse.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(str.strip)
digits = st.text("0123456789", min_size=1, max_size=20)
nims = (digits | texts).filter(lambda nim: clean_all([(1, nim, "N", "A")]) == [(1, nim, "N", "A", (), ())])
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

AWKWARD = [Mahasiswa("1", "_x005F_x0041_", "<r>&</r>"), Mahasiswa("=1", "a\r\nb\rc\td", " \x01_x0001_ ")]


def imported(data: bytes) -> list[Mahasiswa]:
    """The records that an import reads. No row may be invalid."""
    with reading(data) as table:
        rows = clean_all(table)
    assert [row for row in rows if not isinstance(row, sheets.CleanedRow)] == []
    return [Mahasiswa(row.nim, row.nama or "", row.alamat or "") for row in rows if isinstance(row, sheets.CleanedRow)]


FORMULA = re.compile('(?:^|[,;\t\r\n])"*[=+@＝＋－＠-]')

separators_and_guards = st.text("',;=+-@\t\r\n\"aé １＝", max_size=12)
any_text = (
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12) | separators_and_guards
)
any_nim = (any_text | st.sampled_from(NAUGHTY_NIMS)).filter(lambda nim: nim not in UNADDRESSABLE_NIMS)
any_records = st.lists(
    st.builds(Mahasiswa, any_nim, any_text | st.sampled_from(NAUGHTY), any_text | st.sampled_from(NAUGHTY)),
    max_size=8,
    unique_by=lambda record: record.nim,
)


def as_csv(rows: list[Mahasiswa]) -> bytes:
    file = io.BytesIO()
    sheets.write_csv(rows, file)
    return file.getvalue()


def as_xlsx(rows: list[Mahasiswa]) -> bytes:
    file = io.BytesIO()
    sheets.write_xlsx(rows, file)
    return file.getvalue()


def test_csv_has_the_format_that_an_indonesian_excel_opens() -> None:
    """Apostrophes stand before formulas, and before a NIM that an import would change."""
    rows = [
        Mahasiswa("007", "Ani; B", 'Jl. "A"'),
        Mahasiswa("8", "=1+1", "-"),
        Mahasiswa("9", "'Ain", "＋62\n"),
        Mahasiswa("1.23E+11", "", "a,=b"),
        Mahasiswa("A11.2019.12345", "  ", "a\tb"),
    ]
    assert as_csv(rows).decode("utf-8-sig").split("\r\n") == [
        "NIM;Nama;Alamat",
        '007;"Ani; B";"Jl. ""A"""',
        "8;'=1+1;'-",
        "9;''Ain;\"'＋62\n\"",
        '\'1.23E+11;"";"a,\'=b"',
        'A11.2019.12345;"  ";"a\tb"',
        "",
    ]


@given(any_records)
@example([Mahasiswa(nim, text, text) for nim, text in zip(NAUGHTY_NIMS, NAUGHTY, strict=False)])
@example(
    [Mahasiswa("NIM", "Nama", "Alamat"), Mahasiswa(" 1", "", " "), Mahasiswa("1", "\r", "\n"), Mahasiswa("", "a", "b")]
)
@example([Mahasiswa("1", "Budi,=1+1,x", "Budi\t=1+1"), Mahasiswa("2", "a;b\r\n3;c", "d"), Mahasiswa("3,", "'=", ",'=")])
@settings(max_examples=300, deadline=None)
def test_any_records_come_back_from_csv_unchanged(rows: list[Mahasiswa]) -> None:
    """A NIM is not cleaned, and a blank text is not a cell without a text: nothing differs, in any list."""
    assert imported(as_csv(rows)) == rows


@given(any_records)
@settings(max_examples=300, deadline=None)
def test_no_separator_or_quote_in_csv_stands_before_a_formula(rows: list[Mahasiswa]) -> None:
    """So no program sees a formula, wherever it splits a line."""
    assert not FORMULA.search(as_csv(rows).decode("utf-8-sig"))


@given(tables)
@example(AWKWARD)
@settings(max_examples=40, deadline=None)
def test_records_exported_as_xlsx_are_imported_unchanged(rows: list[Mahasiswa]) -> None:
    """U+FFFE and U+FFFF are refused, because XML cannot hold them. A row of numbers may be those of columns."""
    assume(not any(row.nama.isdigit() for row in rows))
    if any("\ufffe" in text or "\uffff" in text for row in rows for text in row):
        with pytest.raises(sheets.NotCarried):
            as_xlsx(rows)
    else:
        assert imported(as_xlsx(rows)) == rows

"""Records that are exported are imported again without any change to their texts."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mahasiswa import sheets
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.xlsx_export import CELL_MAX_UTF16_UNITS

# The texts and nims that an import does not clean or refuse.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(str.strip)
digits = st.text("0123456789", min_size=1, max_size=20)
nims = (digits | texts).filter(lambda nim: sheets.check([(1, nim, "N", "A")]) == [(1, nim, "N", "A", (), ())])
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
    with sheets.read(io.BytesIO(data)) as table:
        rows = sheets.check(table)
    assert [row for row in rows if not isinstance(row, sheets.Row)] == []
    return [Mahasiswa(row.nim, row.nama or "", row.alamat or "") for row in rows if isinstance(row, sheets.Row)]


def as_csv(rows: list[Mahasiswa]) -> bytes:
    return b"".join(sheets.csv_chunks(rows))


def as_xlsx(rows: list[Mahasiswa]) -> bytes:
    file = io.BytesIO()
    sheets.write_xlsx(rows, file)
    return file.getvalue()


@given(tables)
@example(AWKWARD)
@settings(max_examples=300, deadline=None)
def test_records_exported_as_csv_are_imported_unchanged(rows: list[Mahasiswa]) -> None:
    assert imported(as_csv(rows)) == rows


@given(tables)
@example(AWKWARD)
@settings(max_examples=40, deadline=None)
def test_records_exported_as_xlsx_are_imported_unchanged(rows: list[Mahasiswa]) -> None:
    """U+FFFE and U+FFFF are refused, because XML cannot hold them."""
    if any("\ufffe" in text or "\uffff" in text for row in rows for text in row):
        with pytest.raises(sheets.NotCarried):
            as_xlsx(rows)
    else:
        assert imported(as_xlsx(rows)) == rows


def test_five_thousand_records_are_imported_unchanged_from_both_formats() -> None:
    rows = [Mahasiswa(f"{number:010}", f"Nama {number}", f"Jl. {number}; No. 1") for number in range(5_000)]
    assert imported(as_csv(rows)) == rows
    assert imported(as_xlsx(rows)) == rows


@pytest.mark.parametrize("text", ["x" * CELL_MAX_UTF16_UNITS, "😀" * (CELL_MAX_UTF16_UNITS // 2)])
def test_the_longest_text_of_an_excel_cell_is_imported_unchanged(text: str) -> None:
    rows = [Mahasiswa("1", "Ani", text)]
    assert imported(as_xlsx(rows)) == rows

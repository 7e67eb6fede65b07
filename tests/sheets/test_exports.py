"""Records that are exported are read by other programs, and imported again without any change to their texts."""

import csv
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hostile import HOSTILE
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.cells import text_of
from mahasiswa.sheets.delimited import _unguard
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.sheets.read import tables_of
from mahasiswa.sheets.xlsx_export import SHEET_MAX_RECORDS, NotCarried, write_xlsx

ROWS = [
    Mahasiswa("007", "=1+1", "1.23E+11" + "x" * 40),
    Mahasiswa("12345678901234567890", "http://a.b", "A"),
]
NOT_CARRIED = re.compile("[\ufffe\uffff]|(^|\0)<r>|_x[0-9a-fA-F]{4}[_\x01-\x1f]")
FORMULA = re.compile('(?:^|[,;\t\r\n])"*[=+@＝＋－＠-]')

any_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
any_text = any_text | st.text("',;=+-@\t\r\n\"aé １＝", max_size=12) | st.sampled_from(HOSTILE)
# Parts of texts that a reader of CSV may take for titles, separators, quotes, or letters of another program.
parts = ["; ", '"', "|", " ", "0", "nim", "Nama", ",alamat", "\tnama", "\n", "&amp", "\\'", '="']
any_text = any_text | st.lists(st.sampled_from(parts), max_size=6).map("".join)
# A row of blank texts is no row for an import.
filled_text = any_text.filter(str.strip)


def records(
    nim: st.SearchStrategy[str], text: st.SearchStrategy[str]
) -> st.SearchStrategy[list[Mahasiswa]]:
    filled = st.builds(Mahasiswa, nim, text, text).filter(lambda record: any(record[1:]))
    return st.lists(filled, max_size=8, unique_by=lambda record: record.nim)


def as_csv(rows: list[Mahasiswa]) -> bytes:
    file = io.BytesIO()
    EXPORTS[".csv"].write(rows, file)
    return file.getvalue()


def as_xlsx(rows: list[Mahasiswa]) -> bytes:
    file = io.BytesIO()
    write_xlsx(rows, file)
    return file.getvalue()


def read_back(data: bytes) -> list[Mahasiswa]:
    """The cells below the titles, as the import reads them."""
    ((table, rows),) = tables_of(io.BytesIO(data))
    assume(table.header == 1)
    return [
        Mahasiswa._make([*map(text_of, cells), "", ""][:3]) for number, cells in rows if number > 1
    ]


@given(any_text)
@example("'\"'=")
@example(",\t\t\r\r\n=")
@settings(max_examples=1000)
def test_the_rule_of_csv_inverts_itself_for_any_text(text: str) -> None:
    """No separator or quote stands before a formula, so no program sees one, wherever it splits a line."""
    data = as_csv([Mahasiswa("1", text, text)]).decode("utf-8-sig")
    assert not FORMULA.search(data)
    _, row = csv.reader(io.StringIO(data, newline=""), delimiter=";")
    assert [_unguard("", cell) for cell in row] == ["1", text, text]


@given(records(filled_text, any_text))
@example(
    [
        Mahasiswa("1", "Budi,=1+1,x", "Budi\t=1+1"),
        Mahasiswa("2", "a;b\r\n3;c", "d"),
        Mahasiswa("3,", "'=", ",'="),
    ]
)
@example([Mahasiswa("1", "&\xa0", "&copy")])
@example([Mahasiswa("1", "&amp", "a"), Mahasiswa("2", "\\'", "a")])
@example([Mahasiswa("1", "", "\n&ap;\n")])
@example([Mahasiswa("0", " 0", "0"), Mahasiswa("1", "; ", "0")])
@example([Mahasiswa("0", "; ", " 0")])
@example([Mahasiswa("5", "\n\nnim\tnama", "a")])
@example([Mahasiswa("1", "nim|nama\n| \n1", "|")])
@example([Mahasiswa(";", "_", ";"), Mahasiswa('";', "@", "a")])
@settings(max_examples=100)
def test_records_exported_as_csv_are_read_unchanged(rows: list[Mahasiswa]) -> None:
    """The cells are compared, because the rules of an import clean texts."""
    assert read_back(as_csv(rows)) == rows


@given(records(filled_text, any_text))
@example([Mahasiswa("1", "_x005F_", "<b>&</b>"), Mahasiswa("=1", "a\r\nb\rc\td", " \x01_x0001_ ")])
@example([Mahasiswa("1", "_x005F_x0041_", "a")])
@example([Mahasiswa("1", "a", "<r>&</r>")])
@settings(max_examples=20)
def test_records_exported_as_xlsx_are_read_unchanged(rows: list[Mahasiswa]) -> None:
    """Or they are refused: texts that XML or XlsxWriter cannot hold."""
    try:
        data = as_xlsx(rows)
    except NotCarried:
        assert NOT_CARRIED.search("\0".join(map("\0".join, rows)))
    else:
        assert read_back(data) == rows


def test_excel_marks_no_cell_as_a_number_stored_as_text() -> None:
    """Otherwise it shows a green corner at every nim. openpyxl does not show the mark."""
    with zipfile.ZipFile(io.BytesIO(as_xlsx(ROWS))) as package:
        (ignored,) = ET.fromstring(package.read("xl/worksheets/sheet1.xml")).iterfind(
            "{*}ignoredErrors/{*}ignoredError"
        )
        # LibreOffice and Google Drive refuse a ZIP file that says it needs version 4.5 for 64 bits.
        assert {part.extract_version for part in package.infolist()} == {20}
    assert ignored.attrib == {"sqref": f"A1:C{SHEET_MAX_RECORDS + 1}", "numberStoredAsText": "1"}


def test_more_records_than_an_excel_sheet_holds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit is lowered, because a million rows take five seconds to write."""
    assert SHEET_MAX_RECORDS == 2**20 - 1
    monkeypatch.setattr("mahasiswa.sheets.xlsx_export.SHEET_MAX_RECORDS", 10)
    write_xlsx([Mahasiswa("1", "Ani", "A")] * 10, io.BytesIO())
    with pytest.raises(NotCarried, match="batas Excel"):
        write_xlsx([Mahasiswa("1", "Ani", "A")] * 11, io.BytesIO())


def test_an_export_that_is_interrupted_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a name in the folder for temporary files nor an open file, whose space would stay taken."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def interrupted() -> Iterator[Mahasiswa]:
        yield from ROWS
        assert any(tmp_path.iterdir())
        raise KeyboardInterrupt

    file = io.BytesIO()
    with pytest.raises(KeyboardInterrupt):
        write_xlsx(interrupted(), file)
    opened = [
        name
        for fd in Path("/dev/fd").iterdir()
        if (name := os.path.realpath(fd)).startswith(str(tmp_path))
    ]
    assert list(tmp_path.iterdir()) == []
    assert opened == []
    assert file.getvalue() == b""

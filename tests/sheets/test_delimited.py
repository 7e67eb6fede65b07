"""CSV files and pasted cells of many programs are read."""

import io
import re
import threading

import pytest

from mahasiswa import sheets, wording
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, BadCell, SheetRow
from mahasiswa.sheets.cleaning import clean_all
from mahasiswa.sheets.errors import Stopped

ROWS = [(2, "0123", "Ani", "Jl. Melati 1"), (3, "0124", "Budi", "Jl. Mawar 2")]


def rows_of(data: bytes) -> list[SheetRow]:
    with sheets.read(io.BytesIO(data)) as table:
        return list(table)


def pasted(text: str) -> list[SheetRow]:
    return list(sheets.read_text(text))


@pytest.mark.parametrize("separator", [";", ",", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_separator_of_csv_is_found(separator: str, line_end: str) -> None:
    lines = ["NIM;Nama;Alamat", "0123;Ani;Jl. Melati 1", "0124;Budi;Jl. Mawar 2"]
    assert rows_of(line_end.join(lines).replace(";", separator).encode()) == ROWS


def test_three_csv_columns_without_a_header_are_read_in_order() -> None:
    """Commas in every address do not make the comma the separator."""
    data = b"0123;Ani;Jl. A, No. 5, Kota\n0124;Budi;Jl. B, No. 6, Kota\n"
    assert rows_of(data) == [(1, "0123", "Ani", "Jl. A, No. 5, Kota"), (2, "0124", "Budi", "Jl. B, No. 6, Kota")]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252", pytest.param("be", id="utf-16 big endian")]
)
def test_the_encoding_of_csv_is_found(encoding: str) -> None:
    text = "NIM;Nama;Alamat\r\n1;Zoë Müller;Jl. “Café”\r\n"
    data = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "be" else text.encode(encoding)
    assert rows_of(data) == [(2, "1", "Zoë Müller", "Jl. “Café”")]


def test_windows_1252_is_found_late_in_a_long_csv_file() -> None:
    """The first byte that is not UTF-8 may come after megabytes of ASCII."""
    data = b"NIM;Nama;Alamat\n" + b"".join(b"%d;Nama;Alamat\n" % number for number in range(200_000)) + b"x;Zo\xeb;A\n"
    with sheets.read(io.BytesIO(data), sheets.COMMAND_LINE) as table:
        assert list(table)[-1] == (200_002, "x", "Zoë", "A")


def test_a_csv_cell_may_hold_quotes_and_line_breaks() -> None:
    """A cell with line breaks belongs to one row, and blank rows are counted, as in Excel."""
    data = b'NIM,Nama,Alamat\r\n1,"Ani ""A"", S.T.","Jl. Melati\r\nNo. 1"\r\n\r\n,,\r\n2,Budi,B\r\n'
    assert rows_of(data) == [(2, "1", 'Ani "A", S.T.', "Jl. Melati\r\nNo. 1"), (5, "2", "Budi", "B")]


def test_a_first_line_may_declare_the_separator() -> None:
    assert rows_of(b"sep=|\r\nNIM|Nama|Alamat\r\n1|Ani;|A,B\r\n") == [(2, "1", "Ani;", "A,B")]


def test_a_quote_that_never_ends_is_refused() -> None:
    data = b'NIM;Nama;Alamat\n1;Ani;A\n2;Budi;"B\n3;Citra;C\n'
    with pytest.raises(sheets.SheetError, match=re.escape(wording.OPEN_QUOTE.format(row=3))):
        rows_of(data)


def test_a_quote_that_never_ends_is_refused_in_a_huge_file() -> None:
    data = b'NIM;Nama;Alamat\n1;Ani;"A\n' + b"2;Budi;B\n" * 50_000
    with pytest.raises(sheets.SheetError, match=re.escape(wording.OPEN_QUOTE.format(row=2))):
        rows_of(data)


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("count", [1, 20])
def test_a_csv_cell_over_131072_characters_is_refused(quote: str, count: int) -> None:
    """The message does not speak of a quote that never ends, even if the cell has quotes and line breaks."""
    cell = quote + "x" * (CELL_MAX_CHARACTERS * count + 1) + quote
    message = wording.CELL_OVER_LIMIT.format(row=3, limit="131.072")
    for end in ("", "\n", '\n3;"Citra";C\n'):
        with pytest.raises(sheets.SheetError, match=re.escape(message)):
            rows_of(f"NIM;Nama;Alamat\n1;Ani;A\n2;{cell};B{end}".encode())


def test_a_csv_cell_of_131072_characters_is_read() -> None:
    assert rows_of(b"NIM;Nama;Alamat\n1;Ani;" + b"x" * CELL_MAX_CHARACTERS)[0][3] == "x" * CELL_MAX_CHARACTERS


@pytest.mark.parametrize(
    "data", ["1;" * 600_000, '"\n";' * 300_000, ";" * 20_000], ids=["cells", "lines", "blank cells"]
)
def test_a_csv_row_that_is_too_long_is_too_big(data: str) -> None:
    with pytest.raises(sheets.TooBig, match=re.escape(wording.TOO_HEAVY)):
        rows_of(data.encode())
    with pytest.raises(sheets.TooBig, match=re.escape(wording.TOO_HEAVY)):
        pasted(data)


@pytest.mark.parametrize("line", ["\n", ";;\n", "\t\t\n"])
def test_more_rows_than_excel_has_are_too_many_even_if_they_are_blank(line: str) -> None:
    text = "NIM;Nama;Alamat\n".replace(";", line[0].strip("\n") or ";") + line * 1_049_000 + "1;A;B\n"
    with pytest.raises(sheets.TooBig, match=r"1\.048\.576"):
        pasted(text)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_reading_stops_when_it_is_told_to(separator: str) -> None:
    text = f"NIM{separator}Nama{separator}Alamat\n" + f"1{separator}Ani{separator}A\n" * 9_000
    stop = threading.Event()
    with sheets.read(io.BytesIO(text.encode()), stop=stop) as table:
        next(iter(table))
        stop.set()
        with pytest.raises(Stopped):
            list(table)
    with pytest.raises(Stopped):
        list(sheets.read_text(text, stop=stop))


@pytest.mark.parametrize("data", [b"", b"  \r\n", b"\xef\xbb\xbf", b"\xff\xfe", b";;\r\n;;\r\n"])
def test_an_empty_csv_file_is_refused(data: bytes) -> None:
    with pytest.raises(sheets.SheetError, match=re.escape(wording.EMPTY if data else wording.EMPTY_FILE)):
        rows_of(data)


@pytest.mark.parametrize(
    "data",
    [b"%PDF-1.7\n\0\1\2", b"\x89PNG\r\n\x1a\n\0\0\0\r", b"\xff\xfea\0\x00\xd8b\0", b"NIM;Nama;Alamat\n1;A;\x81\n"],
    ids=["pdf", "png", "half a character of UTF-16", "a byte that Windows-1252 lacks"],
)
def test_a_file_that_is_not_text_is_refused(data: bytes) -> None:
    with pytest.raises(sheets.SheetError, match=re.escape(wording.NOT_A_SPREADSHEET)):
        rows_of(data)


@pytest.mark.parametrize(
    "page", [b"<p>NIM", b"<?xml version='1.0'?><Workbook><Row/></Workbook>", b"<", b"<!-- <table>"]
)
def test_a_web_page_without_a_table_is_refused_with_advice(page: bytes) -> None:
    """The message says how to make a real workbook of it."""
    with pytest.raises(sheets.SheetError):
        rows_of(page)


HEAD = "<table><tr><th>NIM<th>Nama<th>Alamat"


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        (f"{HEAD}<tr><td>01<td>Ani<td>Solo</table>", [(2, "01", "Ani", "Solo")]),
        (f"<p>SIAKAD<table><tr><td>Judul</table>{HEAD}<tr><td>01<td>A<td>S", [(3, "01", "A", "S")]),
        (
            f"{HEAD}</tr><tr><td> 0 1\r\n2 <td>A <b>B</b> C<td>x<br>y&nbsp;&amp;&#233;</td></tr>",
            [(2, "0 1 2", "A B C", "x\ny &é")],
        ),
        (f"{HEAD}<tr><td>01<td colspan=2>A<tr><td>02<td>B<td>C", [(2, "01", "A", None), (3, "02", "B", "C")]),
        (f"{HEAD}<tr><td>01<td rowspan=2>A<td>S<tr><td>02<td>T", [(2, "01", "A", "S"), (3, "02", None, "T")]),
        (f"{HEAD}<tr><td>01<td colspan=x>A<td rowspan=-1>S", [(2, "01", "A", "S")]),
        (f"{HEAD}<tr><td>01<td>A<td>S&B", [(2, "01", "A", "S&B")]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
def test_the_tables_of_a_web_page_are_read(page: str, rows: list[SheetRow], encoding: str) -> None:
    """Many academic systems name a web page `.xls`."""
    assert rows_of(page.encode(encoding)) == rows


def test_a_file_over_16_mib_is_too_big() -> None:
    with pytest.raises(sheets.TooBig, match="16 MB"):
        rows_of(b"x" * (sheets.UPLOAD_MAX_BYTES + 1))


def test_a_csv_file_over_10000_rows_is_too_big() -> None:
    """Blank rows do not count. The command line has no limit."""
    data = b"NIM;Nama;Alamat\n\n" + b"".join(b"%d;N;A\n" % number for number in range(10_000))
    assert len(rows_of(data)) == 10_000
    with pytest.raises(sheets.TooBig, match=r"10\.000"):
        rows_of(data + b"x;N;A\n")
    with sheets.read(io.BytesIO(data + b"x;N;A\n"), sheets.COMMAND_LINE) as table:
        assert len(list(table)) == 10_001


def test_a_csv_file_stays_open() -> None:
    file = io.BytesIO(b"1;Ani;A\n")
    with sheets.read(file) as table:
        assert list(table) == [(1, "1", "Ani", "A")]
    assert not file.closed


def test_the_guard_of_our_export_is_removed_and_other_apostrophes_stay() -> None:
    data = "\ufeffNIM;Nama;Alamat\r\n'=1+1;'-;''x\r\n'＝1;'Ain;Nur'aini\r\n1;\"A,'=1\";'a,=1\r\n".encode()
    assert rows_of(data) == [(2, "=1+1", "-", "'x"), (3, "＝1", "'Ain", "Nur'aini"), (4, "1", "A,=1", "'a,=1")]


@pytest.mark.parametrize(
    "start",
    ["", "NIM;Nama;Alamat\r\n", "\ufeffNIM,Nama,Alamat\r\n", "\ufeffnim;nama;alamat\r\n", "\ufeffNIM;Nama;Alamat\n"],
)
def test_a_file_that_does_not_begin_like_our_export_keeps_its_apostrophes(start: str) -> None:
    separator = "," if "NIM," in start else ";"
    data = (start + separator.join(["1", "'=x", "''x"]) + "\r\n").encode()
    assert [row[1:] for row in rows_of(data)] == [("1", "'=x", "''x")]


def test_our_export_may_be_saved_again_by_excel() -> None:
    """Excel quotes fewer cells. A blank cell is one without a text, and spaces around a NIM are removed."""
    data = b"\xef\xbb\xbfNIM;Nama;Alamat\r\n 1 ;Ani, S.Kom.;'+62\r\n2;;\r\n;;\r\n3\r\n"
    assert rows_of(data) == [(2, " 1 ", "Ani, S.Kom.", "+62"), (3, "2", "", ""), (5, "3", None, None)]
    with sheets.read(io.BytesIO(data)) as table:
        answers = clean_all(table)
    assert [answer[1:4] for answer in answers] == [("1", "Ani, S.Kom.", "+62"), ("2", None, None), ("3", None, None)]


def test_a_column_that_csv_lacks_reads_as_blank() -> None:
    assert rows_of(b"NIM;Nama\n1;'=x\n2\n") == [(2, "1", "'=x", None), (3, "2", None, None)]


def test_cells_pasted_from_excel_are_read() -> None:
    """Excel puts a cell in quotes if it holds a line break, and leaves all other quotes as they are."""
    text = 'NIM\tNama\tAlamat\r\n0123\t"Ani" S.T.\t"Jl. ""Melati""\r\nNo. 1"\r\n\r\n0124\tBudi "B\tB\r\n'
    assert pasted(text) == [(2, "0123", '"Ani" S.T.', 'Jl. "Melati"\nNo. 1'), (4, "0124", 'Budi "B', "B")]


def test_pasted_rows_may_lack_a_header_and_the_last_cell() -> None:
    assert pasted("1\tAni\tA\n2\tBudi\t") == [(1, "1", "Ani", "A"), (2, "2", "Budi", None)]


def test_quotes_in_pasted_cells_take_linear_time() -> None:
    """A text of 500,000 quotes would take hours if each of them were searched for its end."""
    text = "1\tAni\t" + '"a' * 500_000
    assert pasted(text) == [(1, "1", "Ani", BadCell("long", ""))]
    assert len(pasted("\n".join(['"1\tAni\t"A'] * 10_000))) == 10_000


def test_pasted_csv_is_read() -> None:
    assert pasted('NIM;Nama;Alamat\n1;Ani;"A\nB"') == [(2, "1", "Ani", "A\nB")]


def test_pasted_white_space_is_refused() -> None:
    with pytest.raises(sheets.SheetError, match=re.escape(wording.EMPTY_PASTE)):
        pasted(" \r\n\t")


def test_a_pasted_lone_surrogate_is_refused() -> None:
    with pytest.raises(sheets.SheetError, match=re.escape(wording.BROKEN_PASTE)):
        pasted("1\tAni\t\ud83d")

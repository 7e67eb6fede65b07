"""CSV files as they come, and cells pasted from a spreadsheet."""

import io
from pathlib import Path

import pytest

from mahasiswa import sheets

ROWS = [(2, "0123", "Ani", "Jl. Melati 1"), (3, "0124", "Budi", "Jl. Mawar 2")]


def rows_of(data: bytes) -> list[sheets.Raw]:
    with sheets.read(io.BytesIO(data)) as table:
        return list(table)


def pasted(text: str) -> list[sheets.Raw]:
    return list(sheets.read_text(text))


@pytest.mark.parametrize("separator", [";", ",", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_separator_is_found_by_itself(separator: str, line_end: str) -> None:
    lines = ["NIM;Nama;Alamat", "0123;Ani;Jl. Melati 1", "0124;Budi;Jl. Mawar 2"]
    assert rows_of(line_end.join(lines).replace(";", separator).encode()) == ROWS


def test_without_a_header_three_columns_count_in_their_order() -> None:
    """Commas in the addresses do not make the comma the separator."""
    data = b"0123;Ani;Jl. A, No. 5, Kota\n0124;Budi;Jl. B, No. 6, Kota\n"
    assert rows_of(data) == [(1, "0123", "Ani", "Jl. A, No. 5, Kota"), (2, "0124", "Budi", "Jl. B, No. 6, Kota")]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252", pytest.param("be", id="utf-16 big endian")]
)
def test_the_encoding_is_found_by_itself(encoding: str) -> None:
    text = "NIM;Nama;Alamat\r\n1;Zoë Müller;Jl. “Café”\r\n"
    data = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "be" else text.encode(encoding)
    assert rows_of(data) == [(2, "1", "Zoë Müller", "Jl. “Café”")]


def test_windows_1252_late_in_a_long_file() -> None:
    """The first byte that is not UTF-8 may stand megabytes into the file."""
    data = b"NIM;Nama;Alamat\n" + b"".join(b"%d;Nama;Alamat\n" % number for number in range(200_000)) + b"x;Zo\xeb;A\n"
    with sheets.read(io.BytesIO(data), sheets.COMMAND_LINE) as table:
        assert list(table)[-1] == (200_002, "x", "Zoë", "A")


def test_quotes_and_line_breaks_in_cells() -> None:
    """A cell with line breaks is one row, and blank rows count, as in Excel."""
    data = b'NIM,Nama,Alamat\r\n1,"Ani ""A"", S.T.","Jl. Melati\r\nNo. 1"\r\n\r\n,,\r\n2,Budi,B\r\n'
    assert rows_of(data) == [(2, "1", 'Ani "A", S.T.', "Jl. Melati\r\nNo. 1"), (5, "2", "Budi", "B")]


def test_the_separator_that_a_first_line_declares() -> None:
    assert rows_of(b"sep=|\r\nNIM|Nama|Alamat\r\n1|Ani;|A,B\r\n") == [(2, "1", "Ani;", "A,B")]


def test_a_quote_never_closed_swallows_no_rows() -> None:
    data = b'NIM;Nama;Alamat\n1;Ani;A\n2;Budi;"B\n3;Citra;C\n'
    with pytest.raises(sheets.OpenQuote, match="Baris 3: "):
        rows_of(data)


def test_a_quote_never_closed_in_a_huge_file() -> None:
    data = b'NIM;Nama;Alamat\n1;Ani;"A\n' + b"2;Budi;B\n" * 50_000
    with pytest.raises(sheets.OpenQuote, match="Baris 2: "):
        rows_of(data)


@pytest.mark.parametrize("data", [b"", b"  \r\n", b"\xef\xbb\xbf", b"\xff\xfe", b";;\r\n;;\r\n"])
def test_an_empty_file(data: bytes) -> None:
    with pytest.raises(sheets.Empty):
        rows_of(data)


@pytest.mark.parametrize(
    "data",
    [b"%PDF-1.7\n\0\1\2", b"\x89PNG\r\n\x1a\n\0\0\0\r", b"\xff\xfea\0\x00\xd8b\0", b"NIM;Nama;Alamat\n1;A;\x81\n"],
    ids=["pdf", "png", "half a character of UTF-16", "a byte that Windows-1252 lacks"],
)
def test_no_text_at_all(data: bytes) -> None:
    with pytest.raises(sheets.NotASpreadsheet):
        rows_of(data)


def test_a_web_page_named_xls() -> None:
    """What many academic systems call Excel; the message says how to make it a real one."""
    with pytest.raises(sheets.NotASpreadsheet, match="halaman web"):
        rows_of(b"\r\n<html><table><tr><td>NIM</td></tr></table></html>")


def test_the_limit_of_bytes() -> None:
    with pytest.raises(sheets.TooLarge, match="16 MB"):
        rows_of(b"x" * ((16 << 20) + 1))


def test_the_limit_of_rows() -> None:
    """Ten thousand are fine, blank ones not counted; one more is not. The command line has no limit."""
    data = b"NIM;Nama;Alamat\n\n" + b"".join(b"%d;N;A\n" % number for number in range(10_000))
    assert len(rows_of(data)) == 10_000
    with pytest.raises(sheets.TooManyRows, match=r"10\.000"):
        rows_of(data + b"x;N;A\n")
    with sheets.read(io.BytesIO(data + b"x;N;A\n"), sheets.COMMAND_LINE) as table:
        assert len(list(table)) == 10_001


def test_a_path_and_a_file_that_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"1;Ani;A\n")
    with sheets.read(path) as table:
        assert list(table) == [(1, "1", "Ani", "A")]
    with path.open("rb") as file:
        with sheets.read(file) as table:
            next(iter(table))
        assert file.read(1) in (b"", b"1")


def test_our_own_guard_is_taken_off_and_other_apostrophes_stay() -> None:
    data = "'=1+1;'-;''x\n'＝1;'Ain;Nur'aini\n".encode()
    assert rows_of(data) == [(1, "=1+1", "-", "'x"), (2, "＝1", "'Ain", "Nur'aini")]


def test_a_column_that_a_csv_lacks_reads_as_blank() -> None:
    assert rows_of(b"NIM;Nama\n1;'=x\n2\n") == [(2, "1", "=x", None), (3, "2", None, None)]


def test_cells_pasted_from_excel() -> None:
    """Excel puts a cell in quotes where it holds a line break, and leaves all other quotes as they are."""
    text = 'NIM\tNama\tAlamat\r\n0123\t"Ani" S.T.\t"Jl. ""Melati""\r\nNo. 1"\r\n\r\n0124\tBudi "B\tB\r\n'
    assert pasted(text) == [(2, "0123", '"Ani" S.T.', 'Jl. "Melati"\nNo. 1'), (4, "0124", 'Budi "B', "B")]


def test_pasted_rows_without_a_header_and_with_a_blank_end() -> None:
    assert pasted("1\tAni\tA\n2\tBudi\t") == [(1, "1", "Ani", "A"), (2, "2", "Budi", None)]


def test_a_huge_pasted_cell_costs_little() -> None:
    """Each quote that opens a cell is looked at once, however long the text."""
    text = "1\tAni\t" + '"a' * 500_000
    assert pasted(text) == [(1, "1", "Ani", '"a' * 500_000)]
    assert len(pasted("\n".join(['"1\tAni\t"A'] * 10_000))) == 10_000


def test_pasted_csv() -> None:
    assert pasted('NIM;Nama;Alamat\n1;Ani;"A\nB"') == [(2, "1", "Ani", "A\nB")]


def test_nothing_pasted() -> None:
    with pytest.raises(sheets.Empty):
        pasted(" \r\n\t")


def test_half_a_surrogate_pair_pasted() -> None:
    with pytest.raises(sheets.NotASpreadsheet, match="karakter yang rusak"):
        pasted("1\tAni\t\ud83d")

"""CSV files and pasted cells of many programs are read."""

import re
from collections.abc import Iterable

import pytest
from spreadsheets import reading

from mahasiswa import wording
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.cells import CELL_MAX_CHARACTERS, Cell, SheetRow

Row = tuple[int, Cell, Cell, Cell]
"""The number of a row, and its NIM, Nama and Alamat."""


def flat(rows: Iterable[SheetRow]) -> list[Row]:
    return [(number, *cells) for number, cells in rows]  # type: ignore[misc]  # three cells


def rows_of(data: bytes) -> list[Row]:
    with reading(data) as table:
        return flat(table.rows)


def pasted(text: str) -> list[Row]:
    return flat(sheets.read_text(text.encode()).rows)


EXPORT = "\ufeffNIM;Nama;Alamat\r\n"

FILES: dict[str, tuple[str, list[Row]]] = {
    "three columns without a header, and commas in every address": (
        "0123;Ani;Jl. A, No. 5, Kota\n0124;Budi;Jl. B, No. 6, Kota\n",
        [(1, "0123", "Ani", "Jl. A, No. 5, Kota"), (2, "0124", "Budi", "Jl. B, No. 6, Kota")],
    ),
    "quotes, line breaks in a cell, and blank rows, which are counted as in Excel": (
        'NIM,Nama,Alamat\r\n1,"Ani ""A"", S.T.","Jl. Melati\r\nNo. 1"\r\n\r\n,,\r\n2,Budi,B\r\n',
        [(2, "1", 'Ani "A", S.T.', "Jl. Melati\r\nNo. 1"), (5, "2", "Budi", "B")],
    ),
    "apostrophes, of which one is removed before each possible formula": (
        EXPORT + "'=1+1;'-;''x\r\n''＝1;'Ain;Nur'aini\r\n1;\"A,'=1\";'a,=1\r\n",
        [(2, "=1+1", "-", "''x"), (3, "'＝1", "'Ain", "Nur'aini"), (4, "1", "A,=1", "'a,=1")],
    ),
    "an export of ours with other separators": (
        EXPORT.replace(";", ",") + "23,'=x,''@\r\n",
        [(2, "23", "=x", "'@")],
    ),
}


@pytest.mark.parametrize(("text", "rows"), FILES.values(), ids=FILES)
def test_a_csv_file_is_read(text: str, rows: list[Row]) -> None:
    assert rows_of(text.encode()) == rows


def test_windows_1252_is_found_late_in_a_long_csv_file() -> None:
    """The first byte that is not UTF-8 may come after megabytes of ASCII."""
    data = (
        b"NIM;Nama;Alamat\n"
        + b"".join(b"%d;Nama;Alamat\n" % number for number in range(200_000))
        + b"x;Zo\xeb;A\n"
    )
    with reading(data, is_upload=False) as table:
        assert flat(table.rows)[-1] == (200_002, "x", "Zoë", "A")


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("count", [1, 20])
def test_a_csv_cell_over_131072_characters_is_refused(quote: str, count: int) -> None:
    """The message does not speak of a quote that never ends, even if the cell has quotes and line breaks."""
    cell = quote + "x" * (CELL_MAX_CHARACTERS * count + 1) + quote
    message = wording.CELL_OVER_LIMIT.format(row=3, limit="131.072")
    for end in ("", "\n", '\n3;"Citra";C\n'):
        with pytest.raises(sheets.SheetError, match=re.escape(message)):
            rows_of(f"NIM;Nama;Alamat\n1;Ani;A\n2;{cell};B{end}".encode())


@pytest.mark.parametrize(
    "data", ["1;" * 600_000, '"\n";' * 300_000, ";" * 20_000], ids=["cells", "lines", "blank cells"]
)
def test_a_csv_row_that_is_too_long_is_too_big(data: str) -> None:
    with pytest.raises(sheets.TooBig, match=re.escape(wording.TOO_HEAVY)):
        rows_of(data.encode())
    with pytest.raises(sheets.TooBig, match=re.escape(wording.TOO_HEAVY)):
        pasted(data)


@pytest.mark.torture
@pytest.mark.parametrize("line", ["\n", ";;\n", "\t\t\n"])
def test_more_rows_than_excel_has_are_too_many_even_if_they_are_blank(line: str) -> None:
    text = (
        "NIM;Nama;Alamat\n".replace(";", line[0].strip("\n") or ";") + line * 1_049_000 + "1;A;B\n"
    )
    with pytest.raises(sheets.TooBig, match=r"1\.048\.576"):
        pasted(text)


HEAD = "<table><tr><th>NIM<th>Nama<th>Alamat"
CELLS = f"{HEAD}</tr><tr><td> 0 1\r\n2 <td>A <b>B</b> C<td>x<br>y&nbsp;&amp;&#233;</td></tr>"


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        (f"{HEAD}<tr><td>01<td>Ani<td>Solo</table>", [(2, "01", "Ani", "Solo")]),
        (f"<p>SIAKAD<table><tr><td>Judul</table>{HEAD}<tr><td>01<td>A<td>S", [(3, "01", "A", "S")]),
        (CELLS, [(2, "0 1 2", "A B C", "x\ny &é")]),
        (
            f"{HEAD}<tr><td>01<td colspan=2>A<tr><td>02<td>B<td>C",
            [(2, "01", "A", None), (3, "02", "B", "C")],
        ),
        (
            f"{HEAD}<tr><td>01<td rowspan=2>A<td>S<tr><td>02<td>T",
            [(2, "01", "A", "S"), (3, "02", None, "T")],
        ),
        (f"{HEAD}<tr><td>01<td colspan=x>A<td rowspan=-1>S", [(2, "01", "A", "S")]),
        (f"{HEAD}<tr><td>01<td>A<td>S&B", [(2, "01", "A", "S&B")]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
def test_the_tables_of_a_web_page_are_read(page: str, rows: list[Row], encoding: str) -> None:
    """Many academic systems name a web page `.xls`."""
    assert rows_of(page.encode(encoding)) == rows


@pytest.mark.parametrize("character", ["a", "é", "€", "😀"])
def test_a_pasted_cell_may_have_131072_characters_of_any_length(character: str) -> None:
    cell = character * CELL_MAX_CHARACTERS
    assert pasted(f'NIM\tNama\tAlamat\n1\t{cell}\t"\t{cell[1:]}"\n') == [
        (2, "1", cell, "\t" + cell[1:])
    ]
    with pytest.raises(
        sheets.SheetError, match=re.escape(wording.CELL_OVER_LIMIT.format(row=2, limit="131.072"))
    ):
        pasted(f"NIM\tNama\tAlamat\n1\taa{cell}\tSolo\n")

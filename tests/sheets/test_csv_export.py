"""The CSV file that is exported."""

from collections.abc import Iterator

import pytest

from mahasiswa import sheets
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.csv_export import CHUNK_ROWS


def as_csv(rows: list[Mahasiswa]) -> str:
    return b"".join(sheets.csv_chunks(rows)).decode("utf-8-sig")


def test_csv_has_the_format_that_an_indonesian_excel_opens() -> None:
    rows = [Mahasiswa("007", "Ani; B", 'Jl. "A"'), Mahasiswa("8", "=1+1", "-"), Mahasiswa("9", "'Ain", "＋62\n")]
    assert as_csv(rows).split("\r\n") == [
        "NIM;Nama;Alamat",
        '007;"Ani; B";"Jl. ""A"""',
        "8;'=1+1;'-",
        "9;''Ain;\"'＋62\n\"",
        "",
    ]


@pytest.mark.parametrize("first", "=+-@\t\r\n'＝＋－＠")
def test_a_text_like_a_formula_gets_an_apostrophe_in_csv(first: str) -> None:
    assert f"'{first}x" in as_csv([Mahasiswa("1", "Ani", f"{first}x")])


@pytest.mark.parametrize("separator", [",", ";", "\t", "\n", "\r"])
@pytest.mark.parametrize("first", "=+-@＝＋－＠'")
def test_a_formula_after_any_separator_gets_an_apostrophe_in_csv(first: str, separator: str) -> None:
    assert f'"Budi{separator}\'{first}x"' in as_csv([Mahasiswa("1", "Ani", f"Budi{separator}{first}x")])


@pytest.mark.parametrize("text", ["a,b", "a\tb", "a;b", 'a"b', "a\nb", "a\rb", "", "  "])
def test_a_text_with_a_separator_a_quote_or_a_line_break_has_quotes_in_csv(text: str) -> None:
    """A blank text has them too, so that it differs from a blank cell."""
    quoted = '"' + text.replace('"', '""') + '"'
    assert as_csv([Mahasiswa("1", text, "x")]).endswith(f"1;{quoted};x\r\n")
    assert as_csv([Mahasiswa("1", "x", text)]).endswith(f"1;x;{quoted}\r\n")


@pytest.mark.parametrize("nim", [" 1", "1 ", "1.23E+11", "NIM", "'1", "\u200b1"])
def test_a_nim_that_an_import_would_change_gets_an_apostrophe_in_csv(nim: str) -> None:
    assert as_csv([Mahasiswa(nim, "Ani", "A")]).endswith(f"\r\n'{nim};Ani;A\r\n")


@pytest.mark.parametrize("nim", ["0123", "A11.2019.12345", "20/456839/TK/50663", "1E5", "x", "ab'c", "2019-001", "1.0"])
def test_an_ordinary_nim_has_no_apostrophe_in_csv(nim: str) -> None:
    assert as_csv([Mahasiswa(nim, "Ani", "A")]).endswith(f"\r\n{nim};Ani;A\r\n")


def test_csv_is_written_while_the_records_are_read() -> None:
    """A chunk is complete as soon as its records are read."""
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
    assert len(read) == CHUNK_ROWS

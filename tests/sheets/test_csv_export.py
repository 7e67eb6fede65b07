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

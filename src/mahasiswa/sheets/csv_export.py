"""Writes records as CSV that an Indonesian Excel opens correctly and that our import reads back unchanged."""

from collections.abc import Iterable
from typing import BinaryIO

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.csv_form import START, line


def write_csv(records: Iterable[Mahasiswa], file: BinaryIO) -> None:
    """Write the records to a file: UTF-8 with a byte order mark, `;` between cells, CRLF after rows.

    `csv_form` describes the quotes, and the apostrophes before texts that a spreadsheet would take for formulas.
    """
    file.write(START)
    file.writelines(line(record).encode() for record in records)

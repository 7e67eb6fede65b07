"""Writes records as CSV that an Indonesian Excel opens correctly and that our import reads back unchanged."""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.delimited import GUARD, GUARDED
from mahasiswa.wording import HEADER

CHUNK_ROWS = 500


def write_csv(records: Iterable[Mahasiswa], file: BinaryIO) -> None:
    """Write the records to a file."""
    file.writelines(csv_chunks(records))


def csv_chunks(records: Iterable[Mahasiswa]) -> Iterator[bytes]:
    """The records as CSV, CHUNK_ROWS at a time: UTF-8 with a byte order mark, `;` between cells, CRLF after rows.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, which our import removes again.
    """
    records = iter(records)
    yield codecs.BOM_UTF8 + _encoded([HEADER])
    while batch := list(islice(records, CHUNK_ROWS)):
        yield _encoded([_guarded(record) for record in batch])


def _encoded(rows: list[tuple[str, str, str]]) -> bytes:
    joined = "".join([f"{nim};{nama};{alamat}\r\n" for nim, nama, alamat in rows])
    # A cell with a separator, a quote or a line break needs Python's writer, which takes three times as long.
    marks = (joined.count(";") - len(rows), joined.count("\r"), joined.count("\n"))
    if marks != (len(rows),) * 3 or '"' in joined:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=";", lineterminator="\r\n").writerows(rows)
        joined = text.getvalue()
    return joined.encode()


def _guarded(record: tuple[str, str, str]) -> tuple[str, str, str]:
    nim, nama, alamat = record
    if nim[:1] in GUARDED or nama[:1] in GUARDED or alamat[:1] in GUARDED:
        return _guard(nim), _guard(nama), _guard(alamat)
    return record


def _guard(text: str) -> str:
    return GUARD + text if text[:1] in GUARDED else text

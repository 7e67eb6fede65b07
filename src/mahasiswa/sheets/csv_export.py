"""Writes records as CSV that an Indonesian Excel opens correctly and that our import reads back unchanged."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import BinaryIO, cast

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.csv_form import JOINED_MAX_CHARACTERS, START, lines

CHUNK_ROWS = 500


def write_csv(records: Iterable[Mahasiswa | bytes], file: BinaryIO) -> None:
    """Write the records to a file. See `csv_chunks`."""
    file.writelines(csv_chunks(records))


def csv_chunks(records: Iterable[Mahasiswa | bytes]) -> Iterator[bytes]:
    """The records as CSV, up to CHUNK_ROWS at a time: UTF-8 with a byte order mark, `;` between cells, CRLF after rows.

    `csv_form` describes the quotes, and the apostrophes before texts that a spreadsheet would take for formulas. Bytes
    among the records are lines for which `csv_form.is_ordinary` is true.
    """
    yield START
    for is_joined, group in groupby(records, lambda record: isinstance(record, bytes)):
        if is_joined:
            yield from cast("Iterator[bytes]", group)
            continue
        while batch := list(islice(cast("Iterator[Mahasiswa]", group), CHUNK_ROWS)):
            rows = lines(batch)
            if sum(map(len, rows)) > JOINED_MAX_CHARACTERS:
                yield from map(str.encode, rows)
            else:
                yield "".join(rows).encode()

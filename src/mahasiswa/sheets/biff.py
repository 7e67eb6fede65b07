"""Reads a BIFF sheet without an OLE container, as PHP programs write it under the name `.xls`."""

import struct
from collections.abc import Iterator

from mahasiswa.sheets.cells import Cell, Refused, Row
from mahasiswa.wording import DAMAGED

_NUMBER, _LABEL = 0x0203, 0x0204
# Records of cells that these programs do not write: formulas, shared texts and short numbers.
_OTHER_CELLS = {0x0006, 0x00BD, 0x00BE, 0x00D6, 0x00FD, 0x0205, 0x027E}


def biff_rows(data: bytes) -> Iterator[Row]:
    """The rows of the sheet. Raises Refused if it has other cells than numbers and texts."""
    rows: dict[int, dict[int, Cell]] = {}
    at = 0
    while at + 10 <= len(data):
        kind, length, row, column, _ = struct.unpack_from("<HHHHH", data, at)
        content = data[at + 10 : at + 4 + length]
        at += 4 + length
        if kind in _OTHER_CELLS:
            raise Refused(DAMAGED)
        if kind == _NUMBER:
            (rows.setdefault(row, {})[column],) = struct.unpack("<d", content)
        elif kind == _LABEL:
            rows.setdefault(row, {})[column] = content[2:].decode("windows-1252", "replace")
    for row, cells in sorted(rows.items()):
        yield row + 1, [cells.get(column) for column in range(max(cells) + 1)]

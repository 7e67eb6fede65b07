"""Compares the NIMs of a file with the stored records, for a bulk delete."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.carried_file import CarriedFile, CleanedFile, raw_rows
from mahasiswa.sheets.cells import SheetRow, Verbatim
from mahasiswa.sheets.cleaning import NimCell
from mahasiswa.sheets.column_cells import IN_ORDER
from mahasiswa.sheets.columns import Columns
from mahasiswa.sheets.kept_sheets import Sheet
from mahasiswa.sheets.plan import NAMA_MAX_CHARACTERS, Neighbours


class FoundRow(NamedTuple):
    """A row of the file whose NIM is stored. `nama` is the beginning of the name in the file if it is another one."""

    number: int
    record: Mahasiswa
    nama: str = ""


def file_of_nims(nims: Iterable[str]) -> CleanedFile:
    """A file of these NIMs, which are taken as they are."""
    rows: list[SheetRow] = [(number, Verbatim(nim), None, None) for number, nim in enumerate(nims, 1)]
    file = CarriedFile("", [""], [Sheet("", raw_rows(rows))], [], Columns(IN_ORDER, []), has_all_cells=False)
    return CleanedFile(file, rows, [])


def compare_nims(
    cells: Iterable[NimCell], existing: Mapping[str, Mahasiswa], near: Collection[Mahasiswa]
) -> tuple[list[FoundRow], list[NimCell]]:
    """The rows whose NIM is stored, and the others, each with the likely reason.

    `near` are stored records. One of them may be meant by a NIM that is not stored.
    """
    neighbours = Neighbours(near)
    found: list[FoundRow] = []
    missing: list[NimCell] = []
    for cell in cells:
        if cell.problem:
            missing.append(cell)
        elif record := existing.get(cell.nim):
            is_other = cell.nama and _letters(cell.nama) != _letters(record.nama)
            found.append(FoundRow(cell.number, record, cell.nama[:NAMA_MAX_CHARACTERS] if is_other else ""))
        else:
            message, meant = neighbours.look(cell)
            if meant:
                message = wording.NEAR_RECORD.format(nim=meant.nim, nama=meant.nama[:NAMA_MAX_CHARACTERS])
            elif not message and len(cell.nim.split()) > 1:
                message = wording.SEVERAL_NIMS
            missing.append(cell._replace(problem=message))
    return found, missing


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))

"""A bulk delete: a list of NIMs, compared with the stored records, which the browser carries like an import."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.cell_rules import clean_nim
from mahasiswa.sheets.cells import Cell, SheetRow, cell_text, in_input, is_blank
from mahasiswa.sheets.plan import Neighbours
from mahasiswa.sheets.sheet_errors import SheetError
from mahasiswa.sheets.signed_field import Signer, pack, unpack

NAMA_MAX_CHARACTERS = 60  # of a name in a notice about another record


class NimCell(NamedTuple):
    """The NIM in a row of a list of NIMs. If a spreadsheet has damaged it, `problem` says so in Indonesian."""

    number: int  # as Excel shows it
    nim: str  # the text of the cell if there is a problem
    problem: str = ""
    nama: str = ""  # blank if the file has no names


class Deletion(NamedTuple):
    """The rows of a list of NIMs that were found among the stored records, and the others with the likely reason."""

    # A cell has the beginning of its name only if the record has another one.
    found: list[tuple[NimCell, Mahasiswa]]
    missing: list[tuple[NimCell, str]]


def nims_of(nims: Iterable[str]) -> list[NimCell]:
    """A list of NIMs that are stored, which are taken as they are."""
    return [NimCell(number, nim) for number, nim in enumerate(nims, 1)]


def clean_nims(rows: Iterable[SheetRow]) -> list[NimCell]:
    """Each NIM of a file once, at its first row. A row without a NIM is left out. Raises SheetError if that leaves none."""
    filled = (row for row in rows if not is_blank(row[1][:1]))
    return _each_once(
        _nim_cell(number, cell, cell_text(nama)) for number, (cell, nama, *_) in filled
    )


def compare_nims(
    cells: Iterable[NimCell], existing: Mapping[str, Mahasiswa], near: Collection[Mahasiswa]
) -> Deletion:
    """Sort the rows into those whose NIM is stored and the others. `near` may have nearly equal NIMs."""
    neighbours = Neighbours(near)
    deletion = Deletion([], [])
    for cell in cells:
        if cell.problem:
            deletion.missing.append((cell, cell.problem))
        elif record := existing.get(cell.nim):
            is_other = _letters(cell.nama) != _letters(record.nama)
            shown = cell._replace(nama=cell.nama[:NAMA_MAX_CHARACTERS] if is_other else "")
            deletion.found.append((shown, record))
        else:
            message, meant = neighbours.look(cell.number, cell.nim)
            if meant:
                message = wording.NEAR_RECORD.format(
                    nim=meant.nim, nama=meant.nama[:NAMA_MAX_CHARACTERS]
                )
            elif not message and len(cell.nim.split()) > 1:
                message = wording.SEVERAL_NIMS
            deletion.missing.append((cell, message))
    return deletion


def dump_deletion(deletion: Deletion, signer: Signer) -> str:
    """The field of a preview, with the NIMs that it shows. Raises SheetError if it is too large."""
    found, missing = ([cell for cell, _ in rows] for rows in (deletion.found, deletion.missing))
    return pack([found, missing], "deletion 2", signer)


def load_deletion(field: str, signer: Signer) -> tuple[list[NimCell], list[NimCell]]:
    """The rows that a preview has shown as found, and the others. Raises SheetError as `load` does."""
    found, missing = unpack(field, "deletion 2", signer)
    return [NimCell(*cell) for cell in found], [NimCell(*cell) for cell in missing]


def repaired_nims(
    cells: Iterable[NimCell], typed: Mapping[int, str], skipped: Collection[int]
) -> list[NimCell]:
    """The rows with the NIMs that a person has typed, by the number of the row, without those skipped or cleared."""
    repaired = []
    for cell in cells:
        nim = typed.get(cell.number)
        if cell.number in skipped:
            continue
        if nim is None or nim == in_input(cell.nim):  # a stored NIM may be blank
            repaired.append(cell)
        elif nim.strip():
            repaired.append(_nim_cell(cell.number, nim, cell.nama))
    return _each_once(repaired)


def _nim_cell(number: int, cell: Cell, nama: str) -> NimCell:
    nim, problem, _ = clean_nim(cell)
    return NimCell(number, cell_text(cell) if problem else nim, problem, nama)


def _each_once(cells: Iterable[NimCell]) -> list[NimCell]:
    first: dict[str, NimCell] = {}
    for cell in cells:
        first.setdefault(cell.nim, cell)
    if not first:
        raise SheetError(wording.NO_NIMS_READ)
    return list(first.values())


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))

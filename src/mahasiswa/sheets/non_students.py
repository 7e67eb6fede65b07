"""Recognises rows of a sheet that are not students: titles, totals, repeated headers and blocks of signatures."""

import re
from collections.abc import Sequence
from itertools import pairwise

from mahasiswa import wording
from mahasiswa.sheets.cells import Cell, Verbatim, cell_text, has_digit, is_blank
from mahasiswa.sheets.columns import HEADER_MAX_CHARACTERS, is_repeated_header

_is_total = re.compile(
    r"(?:sub\s?-?total|total|jumlah|rata-rata|keterangan|catatan|dicetak|laki-laki|perempuan)\b"
).match
_column_number = re.compile(r"\(?([0-9]{1,2})\)?").fullmatch
_is_signature = re.compile(
    r"(?:mengetahui|menyetujui|mengesahkan|kepala (?:sekolah|madrasah|program|jurusan|tata|bagian)|wali kelas|dekan"
    r"|rektor|ketua (?:program|prodi|jurusan|kelas)|tata usaha|nip\b|ttd\b|tanda tangan)"
).match


class NonStudents:
    """Decides row by row, because everything below `Mengetahui,` belongs to the signatures until a student follows."""

    def __init__(self) -> None:
        self.in_signatures = False

    def reason(self, cells: Sequence[Cell]) -> str | None:
        """The reason to skip a row, in Indonesian, or None for a row that may be a student."""
        nim, *others = cells
        if any(isinstance(cell, Verbatim) for cell in cells):
            return None
        if is_repeated_header(cells) or _are_column_numbers(cells):
            return wording.SKIPPED_HEADER
        text = _folded(nim)
        is_alone = is_blank(others)
        is_student = has_digit(text) and not is_alone and not _is_signature(text) and not _is_total(text)
        if is_student or not (nim is None or isinstance(nim, str)):
            self.in_signatures = False
            return None
        # A student's name or address may begin with these words, too, but then no cell is blank.
        texts = [text, *(map(_folded, others) if is_blank((nim,)) or any(is_blank((cell,)) for cell in others) else ())]
        if any(map(_is_signature, texts)):
            self.in_signatures = True
        if self.in_signatures and not (has_digit(text) and not _is_signature(text)):
            return wording.SKIPPED_SIGNATURE
        if any(map(_is_total, texts)):
            return wording.SKIPPED_TOTAL
        is_title = is_alone and " " in text and text[:1].isalpha()
        return wording.SKIPPED_TITLE if is_title or is_blank(cells[:2]) else None


def is_skipped_nim(nim: str) -> bool:
    """Whether a row with this NIM is skipped, for any Nama and Alamat."""
    text = _folded(nim)
    return bool(_is_signature(text) or _is_total(text))


def _are_column_numbers(cells: Sequence[Cell]) -> bool:
    """Whether a row numbers the columns, such as `(2)`, `(3)`, `(4)`: the name of a student is no number."""
    matches = [_column_number(cell_text(cell)) for cell in cells if not is_blank((cell,))]
    numbers = [int(match[1]) for match in matches if match]
    return 1 < len(numbers) == len(matches) and all(first < second for first, second in pairwise(numbers))


def _folded(cell: Cell) -> str:
    """The beginning of a text, in lower case and with single spaces."""
    return " ".join(cell[:HEADER_MAX_CHARACTERS].casefold().split()) if isinstance(cell, str) else ""

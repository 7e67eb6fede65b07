"""The limits for reading a file, and the choice of a person who reads it again."""

from collections.abc import Sequence
from dataclasses import dataclass

from mahasiswa.sheets.cells import FieldColumns

UPLOAD_MAX_BYTES = 16 << 20
UPLOAD_MAX_ROWS = 10_000  # of a file or of pasted cells that a person previews


@dataclass(frozen=True)
class ReadLimits:
    """Limits for reading one file. None is no limit. The last three are for the process that reads a workbook."""

    file_bytes: int | None
    rows: int | None  # rows that are not blank
    lines: int | None  # lines of a CSV file or of pasted cells, also blank ones
    output_bytes: int | None  # maximum output of the process
    memory_bytes: int
    seconds: float
    keeps_all_cells: bool = False  # all cells of a small file are kept, so that a person can choose other columns


WEB = ReadLimits(
    file_bytes=UPLOAD_MAX_BYTES,
    rows=UPLOAD_MAX_ROWS,
    lines=1_048_576,  # as in Excel
    output_bytes=32 << 20,
    memory_bytes=512 << 20,
    seconds=20,
    keeps_all_cells=True,
)
COMMAND_LINE = ReadLimits(file_bytes=None, rows=None, lines=None, output_bytes=None, memory_bytes=2 << 30, seconds=600)


@dataclass(frozen=True)
class Choice:
    """The sheets and the columns that a person has chosen. If there are none, the program finds them.

    With `nim_only` no other column is needed, and Alamat is left blank.
    """

    sheets: Sequence[str] = ()
    columns: FieldColumns | None = None
    nim_only: bool = False


NO_CHOICE = Choice()

"""The kinds of files that records are exported to, and the child process `python -P -m mahasiswa.sheets.export FOLDER TITLE…`.

The child packs a workbook. Packing would hold the interpreter's lock of the worker. Each line of standard input is a JSON array of
records, and the workbook is written to standard output. FOLDER is for temporary files, and each TITLE is that of a column.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.csv_form import write_csv
from mahasiswa.sheets.xlsx_export import NotCarried, write_xlsx
from mahasiswa.system.child import bound

MEMORY_MAX_BYTES = 256 << 20
PROCESSOR_MAX_SECONDS = 300
FILE_MAX_BYTES = 1 << 30
NOT_CARRIED = 3  # exit code; standard output has the sentence for the person instead of a workbook
DISK_FULL = 5  # exit code


class Export(NamedTuple):
    """A kind of file. A workbook `needs_child`, because packing it holds the interpreter's lock."""

    media_type: str
    write: Callable[[Iterable[Mahasiswa], BinaryIO], int]
    needs_child: bool


EXPORTS: Mapping[str, Export] = {
    ".xlsx": Export(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        write_xlsx,
        needs_child=True,
    ),
    ".csv": Export("text/csv", write_csv, needs_child=False),
}


def main() -> None:
    bound(MEMORY_MAX_BYTES, PROCESSOR_MAX_SECONDS, FILE_MAX_BYTES)
    _, tempfile.tempdir, *titles = sys.argv
    try:
        write_xlsx(_records(), sys.stdout.buffer, titles)
        sys.stdout.buffer.flush()
    except NotCarried as error:
        sys.stdout.buffer.write(str(error).encode())
        sys.stdout.flush()
        sys.exit(NOT_CARRIED)
    except OSError:
        # An orderly exit would write the rest of the buffer, and fail with another code.
        os._exit(DISK_FULL)


def _records() -> Iterator[Sequence[str]]:
    for line in sys.stdin.buffer:
        yield from json.loads(line)


if __name__ == "__main__":
    main()

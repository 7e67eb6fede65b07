"""The kinds of files that records are exported to, by the end of their names."""

from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO, NamedTuple

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.csv_form import write_csv
from mahasiswa.sheets.xlsx_export import write_xlsx


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

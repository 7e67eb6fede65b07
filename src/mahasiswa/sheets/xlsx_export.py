"""Writes records as xlsx, every cell as text.

It stands apart from what the package exports, for XlsxWriter takes 40 ms to import, also in the child that only reads.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from xlsxwriter import Workbook  # type: ignore[import-untyped]
from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

from mahasiswa import wording
from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.csv_export import HEADER
from mahasiswa.sheets.errors import NotCarried

EXCEL_CELL = 32_767  # UTF-16 units, as Excel counts
EXCEL_ROWS = 1_048_575  # below the header

_NARROWEST, _WIDEST = 14, 60  # characters
_HINTS = (
    "Ketik NIM apa adanya. Kolom ini berformat Teks, jadi nol di depan dan angka panjang tidak berubah.",
    "Nama lengkap mahasiswa.",
    "Alamat lengkap mahasiswa.",
)


def write_xlsx(rows: Iterable[Mahasiswa], file: BinaryIO) -> None:
    """Writes the records to a file, in constant memory; its bytes come only after the last record.

    Raises NotCarried, before a byte is written, where Excel cannot hold a text or so many records.
    """
    with _sheet(file) as sheet:
        widths = [_NARROWEST] * len(HEADER)
        last = 0
        for last, record in enumerate(rows, 1):
            if last > EXCEL_ROWS:
                raise NotCarried(wording.TOO_MANY_FOR_EXCEL.format(limit=wording.number(EXCEL_ROWS)))
            for column, text in enumerate(record):
                if len(text) > widths[column]:
                    widths[column] = min(len(text), _WIDEST)
                if not text.isascii() or len(text) > EXCEL_CELL:
                    _refuse_what_excel_cannot_hold(record, column)
                sheet.write_string(last, column, text)
        sheet.finish(last, widths)


def write_template(file: BinaryIO) -> None:
    """Writes an empty table to fill in: its columns are text, so Excel alters no NIM; a hint shows at each cell.

    It has no example row, which would end up among the records.
    """
    with _sheet(file) as sheet:
        for column, (title, hint) in enumerate(zip(HEADER, _HINTS, strict=True)):
            message = {"validate": "any", "input_title": title, "input_message": hint}
            sheet.data_validation(1, column, EXCEL_ROWS, column, message)
        sheet.finish(0, [20, 36, 60])


class _Sheet(Worksheet):  # type: ignore[misc]
    """A worksheet whose texts come back as they were, also where XlsxWriter 3.3 would alter them."""

    def begin(self, heading: Any, text: Any) -> None:  # noqa: ANN401 - formats of an untyped library
        self._text_format = text
        self.set_column(0, len(HEADER) - 1, _NARROWEST, text)
        self.freeze_panes(1, 0)
        for column, title in enumerate(HEADER):
            self.write_string(0, column, title, heading)

    def finish(self, last: int, widths: list[int]) -> None:
        for column, width in enumerate(widths):
            self.set_column(column, column, width + 2, self._text_format)
        self.autofilter(0, 0, last, len(HEADER) - 1)
        # No green corner at each NIM: they are numbers stored as text on purpose.
        self.ignore_errors({"number_stored_as_text": f"A1:C{EXCEL_ROWS + 1}"})

    def abandon(self) -> None:
        """Closes the temporary file of the rows."""
        self._opt_close()

    @staticmethod
    def _escape_control_characters(data: str) -> str:
        # XlsxWriter's own misses the second of two escapes that share an underscore, as in `_x005F_x0041_`.
        data = re.sub(r"_(?=x[0-9a-fA-F]{4}_)", "_x005F_", data)
        return re.sub(r"[\x00-\x08\x0b-\x1f]", lambda match: f"_x{ord(match[0]):04X}_", data)

    def _xml_rich_inline_string(self, string: str, attributes: list[tuple[str, str]]) -> None:
        # XlsxWriter takes a text `<r>…</r>` for markup of its own, and would write it into the XML as it is.
        self._xml_inline_string(string, None, attributes)


@contextmanager
def _sheet(file: BinaryIO) -> Iterator[_Sheet]:
    """A worksheet with its header. The file is written when all went well; the temporary files always go."""
    with tempfile.TemporaryDirectory(prefix="mahasiswa-") as directory:
        options = {"constant_memory": True, "tmpdir": directory, "use_zip64": True}
        workbook = Workbook(file, options)
        sheet: _Sheet = workbook.add_worksheet("Mahasiswa", _Sheet)
        try:
            sheet.begin(
                workbook.add_format({"bold": True, "num_format": "@"}), workbook.add_format({"num_format": "@"})
            )
            yield sheet
        except BaseException:
            sheet.abandon()
            raise
        workbook.close()


def _refuse_what_excel_cannot_hold(record: Mahasiswa, column: int) -> None:
    text = record[column]
    if _NO_XML.search(text):
        raise NotCarried(wording.CELL_NOT_CARRIED.format(field=HEADER[column], nim=record.nim[:40]))
    if len(text.encode("utf-16-le")) // 2 > EXCEL_CELL:
        limit = wording.number(EXCEL_CELL)
        raise NotCarried(wording.CELL_TOO_LONG.format(field=HEADER[column], nim=record.nim[:40], limit=limit))


# Neither XML nor its escape in a workbook, `_xFFFE_`, brings these through.
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")

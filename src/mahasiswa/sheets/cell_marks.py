"""Finds the cells of an .xlsx or .ods sheet that python-calamine reads differently from how they are shown.

calamine reads an error (#N/A), or a formula that was never calculated, as empty text. It reads a number with the format
00000000 without its leading zeros. All three would become a wrong NIM without a warning, so the XML is read once more.
"""

import posixpath
import re
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, BinaryIO, TypeAlias
from xml.parsers import expat

from mahasiswa.sheets.cells import BadCell

Mark: TypeAlias = BadCell | int
"""An error or a formula without a result, or the number of digits that a number is filled up to with zeros."""

Marks: TypeAlias = dict[int, dict[int, Mark]]
"""Marks by row and column, both counted from 0."""

ERROR_MAX_CHARACTERS = 20

ZERO_FORMAT_MAX_DIGITS = 64

REPEATED_MAX_CELLS = 1000
"""Maximum marks for one repeated cell of .ods, in each direction. More of them mean a column that is filled to its end."""

REFERENCE_MAX_LETTERS = 4
"""Excel's last column is XFD. A number made of a million letters would take minutes."""

READ_BYTES = 1 << 16


def cell_marks(file: BinaryIO, sheet: str) -> Marks:
    """The marks of a sheet by name. There are none if the file is not .xlsx or .ods.

    calamine has read the file already. A fault in it that only this second reading finds is no reason to refuse it.
    """
    try:
        with zipfile.ZipFile(file) as package:
            if "xl/workbook.xml" in package.namelist():
                return _xlsx_marks(package, sheet)
            if "content.xml" in package.namelist():
                return _ods_marks(package, sheet)
            return {}
    except (zipfile.BadZipFile, KeyError, ValueError, expat.ExpatError):
        return {}


def _xlsx_marks(package: zipfile.ZipFile, sheet: str) -> Marks:
    path = _path_of_sheet(package, sheet)
    zero_formats = _zero_formats(package)
    if not zero_formats and not _contains(package.open(path), _XLSX_ERROR_OR_FORMULA):
        return {}
    parser = _XlsxSheet(zero_formats)
    _parse(package.open(path), parser.start, parser.end, parser.data)
    return parser.marks


def _ods_marks(package: zipfile.ZipFile, sheet: str) -> Marks:
    if not _contains(package.open("content.xml"), _ODS_ERROR_OR_FORMULA_OR_ZERO):
        return {}
    parser = _OdsSheet(sheet)
    _parse(package.open("content.xml"), parser.start, parser.end, parser.data)
    return parser.marks


_XLSX_ERROR_OR_FORMULA = re.compile(rb"""t=["']e["']|<(?:\w+:)?f[\s>/]""")
_ODS_ERROR_OR_FORMULA_OR_ZERO = re.compile(rb"""value-type=["']error["']|:formula=|:p>0[0-9]""")
_PATTERN_MAX_BYTES = 64


def _contains(part: IO[bytes], pattern: re.Pattern[bytes]) -> bool:
    """Whether a pattern occurs in a part. This search is a hundred times faster than a parser."""
    tail = b""
    with part:
        while chunk := part.read(READ_BYTES):
            if pattern.search(tail + chunk):
                return True
            tail = chunk[-_PATTERN_MAX_BYTES:]
    return False


def _parse(
    part: IO[bytes],
    start: Callable[[str, Mapping[str, str]], None],
    end: Callable[[str], None] = lambda _: None,
    data: Callable[[str], None] = lambda _: None,
) -> None:
    """Call `start` and `end` with each tag, without its prefix. Refuse entities: a workbook needs none."""

    def refuse(*_: object) -> None:
        raise ValueError("the XML declares an entity")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition(":")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition(":")[2])
    parser.CharacterDataHandler = data
    with part:
        while chunk := part.read(READ_BYTES):
            parser.Parse(chunk, False)  # noqa: FBT003 - its only form
        parser.Parse(b"", True)  # noqa: FBT003 - as above


def _path_of_sheet(package: zipfile.ZipFile, sheet: str) -> str:
    """The path of an .xlsx sheet's part: the workbook maps its name to an id, and the relations map that to the path."""
    identifiers: dict[str, str] = {}
    targets: dict[str, str] = {}

    def workbook(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "sheet":
            prefixed = {name.rpartition(":")[2]: value for name, value in attributes.items() if ":" in name}
            identifiers[attributes["name"]] = prefixed["id"]

    def relations(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    _parse(package.open("xl/workbook.xml"), workbook)
    _parse(package.open("xl/_rels/workbook.xml.rels"), relations)
    return posixpath.normpath(posixpath.join("/xl", targets[identifiers[sheet]])).lstrip("/")


def _zero_formats(package: zipfile.ZipFile) -> dict[str, int]:
    """The number of digits to which a style fills numbers with zeros, by the style's index in an .xlsx cell."""
    if "xl/styles.xml" not in package.namelist():
        return {}
    formats: dict[str, int] = {}
    styles: list[int] = []
    inside = ""

    def style(tag: str, attributes: Mapping[str, str]) -> None:
        nonlocal inside
        if tag in ("cellStyleXfs", "cellXfs"):
            inside = tag
        elif tag == "numFmt" and re.fullmatch(f"0{{2,{ZERO_FORMAT_MAX_DIGITS}}}", attributes["formatCode"]):
            formats[attributes["numFmtId"]] = len(attributes["formatCode"])
        elif tag == "xf" and inside == "cellXfs":
            styles.append(formats.get(attributes.get("numFmtId", ""), 0))

    _parse(package.open("xl/styles.xml"), style)
    return {str(index): digits for index, digits in enumerate(styles) if digits}


class _XlsxSheet:
    """Collects the marks of an .xlsx sheet from the events of its XML."""

    def __init__(self, zero_formats: dict[str, int]) -> None:
        self.marks: Marks = {}
        self._zero_formats = zero_formats
        self._row = self._column = -1
        self._kind = self._style = ""
        self._formula = self._in_value = False
        self._value = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "c":
            self._column = _column_index(attributes["r"]) if "r" in attributes else self._column + 1
            self._kind = attributes.get("t", "n")
            self._style = attributes.get("s", "")
            self._formula = False
            self._value = ""
        elif tag == "row":
            self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
            self._column = -1
        elif tag == "f":
            self._formula = True
        elif tag == "v":
            self._in_value = True

    def data(self, text: str) -> None:
        if self._in_value and len(self._value) < ERROR_MAX_CHARACTERS:
            self._value += text

    def end(self, tag: str) -> None:
        if tag == "v":
            self._in_value = False
        elif tag == "c":
            mark = self._mark()
            if mark is not None:
                self.marks.setdefault(self._row, {})[self._column] = mark

    def _mark(self) -> Mark | None:
        if self._kind == "e":
            return BadCell("error", self._value[:ERROR_MAX_CHARACTERS])
        # A formula whose result is an empty text has the kind "str".
        if self._formula and not self._value and self._kind != "str":
            return BadCell("formula", "")
        return self._zero_formats.get(self._style) if self._kind == "n" and self._value else None


class _OdsSheet:
    """Collects the marks of one sheet from the events of content.xml, which holds all sheets."""

    def __init__(self, sheet: str) -> None:
        self.marks: Marks = {}
        self._sheet = sheet
        self._inside = False
        self._row = self._column = 0
        self._rows = 1
        self._cell: Mapping[str, str] = {}
        self._text = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "table":
            self._inside = attributes.get("table:name") == self._sheet
            self._row = 0
        elif tag == "table-row":
            self._rows = int(attributes.get("table:number-rows-repeated", "1"))
            self._column = 0
        elif tag in ("table-cell", "covered-table-cell"):
            self._cell = attributes
            self._text = ""

    def data(self, text: str) -> None:
        if self._inside and len(self._text) < ZERO_FORMAT_MAX_DIGITS:
            self._text += text

    def end(self, tag: str) -> None:
        if tag == "table-row":
            self._row += self._rows
        elif tag in ("table-cell", "covered-table-cell"):
            columns = int(self._cell.get("table:number-columns-repeated", "1"))
            mark = self._mark() if self._inside else None
            if mark is not None:
                for row in range(self._row, self._row + min(self._rows, REPEATED_MAX_CELLS)):
                    for column in range(self._column, self._column + min(columns, REPEATED_MAX_CELLS)):
                        self.marks.setdefault(row, {})[column] = mark
            self._column += columns

    def _mark(self) -> Mark | None:
        if self._cell.get("calcext:value-type") == "error":
            return BadCell("error", self._text[:ERROR_MAX_CHARACTERS])
        kind = self._cell.get("office:value-type")
        if kind is None and "table:formula" in self._cell:
            return BadCell("formula", "")
        if kind == "float" and re.fullmatch("0[0-9]+", self._text):
            return len(self._text)
        return None


def _column_index(reference: str) -> int:
    """27 for `AB12`."""
    column = 0
    for letter in reference[:REFERENCE_MAX_LETTERS]:
        if not letter.isalpha():
            break
        column = column * 26 + ord(letter.upper()) - ord("A") + 1
    return column - 1

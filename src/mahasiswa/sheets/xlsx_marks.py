"""Finds the cells of an .xlsx sheet that python-calamine gives as something else than what Excel shows.

An error (#N/A) and a formula that nobody has calculated come as empty text, and a number with the format 00000000 comes
without its leading zeros: all three would turn into a wrong NIM in silence. The sheet is searched for them once more, as a
stream.
"""

import posixpath
import re
import zipfile
from collections.abc import Mapping
from typing import IO, BinaryIO

from mahasiswa.sheets.columns import BadCell
from mahasiswa.sheets.markup import FORGIVEN, Mark, Marks, holds, parse

_WORTH_READING = re.compile(rb"""t=["']e["']|<(?:\w+:)?f[\s>/]""")


def xlsx_marks(file: BinaryIO, sheet: str) -> Marks:
    """The marks of a sheet, none where the file is no .xlsx."""
    try:
        with zipfile.ZipFile(file) as package:
            path = _path_of(package, sheet)
            if path is None:
                return {}
            widths = _zero_filled_styles(package)
            if not widths and not holds(_WORTH_READING, package.open(path)):
                return {}
            return _Finder(widths).read(package.open(path))
    except FORGIVEN:
        return {}


def _path_of(package: zipfile.ZipFile, sheet: str) -> str | None:
    if "xl/workbook.xml" not in package.namelist():
        return None
    identifiers: dict[str, str] = {}
    targets: dict[str, str] = {}

    def workbook(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "sheet":
            named = {name.rpartition(":")[2]: value for name, value in attributes.items() if ":" in name}
            identifiers[attributes["name"]] = named["id"]

    def relations(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    parse(package.open("xl/workbook.xml"), workbook)
    parse(package.open("xl/_rels/workbook.xml.rels"), relations)
    return posixpath.normpath(posixpath.join("/xl", targets[identifiers[sheet]])).lstrip("/")


def _zero_filled_styles(package: zipfile.ZipFile) -> dict[str, int]:
    """How many digits a style fills a number up to, by the style's index as a cell names it."""
    if "xl/styles.xml" not in package.namelist():
        return {}
    formats: dict[str, int] = {}
    styles: list[int] = []
    inside = ""

    def style(tag: str, attributes: Mapping[str, str]) -> None:
        nonlocal inside
        if tag in ("cellStyleXfs", "cellXfs"):
            inside = tag
        elif tag == "numFmt" and re.fullmatch("0{2,64}", attributes["formatCode"]):
            formats[attributes["numFmtId"]] = len(attributes["formatCode"])
        elif tag == "xf" and inside == "cellXfs":
            styles.append(formats.get(attributes.get("numFmtId", ""), 0))

    parse(package.open("xl/styles.xml"), style)
    return {str(index): width for index, width in enumerate(styles) if width}


class _Finder:
    """Gathers the marks of one sheet while its XML goes by."""

    def __init__(self, widths: dict[str, int]) -> None:
        self._widths = widths
        self._marks: Marks = {}
        self._row = self._column = -1
        self._kind = self._style = ""
        self._formula = self._in_value = False
        self._value = ""

    def read(self, part: IO[bytes]) -> Marks:
        parse(part, self._start, self._end, self._data)
        return self._marks

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "c":
            self._column = _column(attributes["r"]) if "r" in attributes else self._column + 1
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

    def _data(self, text: str) -> None:
        if self._in_value and len(self._value) < _LONGEST_ERROR:
            self._value += text

    def _end(self, tag: str) -> None:
        if tag == "v":
            self._in_value = False
        elif tag == "c":
            mark = self._mark()
            if mark is not None:
                self._marks.setdefault(self._row, {})[self._column] = mark

    def _mark(self) -> Mark | None:
        if self._kind == "e":
            return BadCell("error", self._value[:_LONGEST_ERROR])
        # A formula whose result is an empty text says that it is a text.
        if self._formula and not self._value and self._kind != "str":
            return BadCell("formula", "")
        return self._widths.get(self._style) if self._kind == "n" and self._value else None


_LONGEST_ERROR = 20


def _column(reference: str) -> int:
    """27 for `AB12`."""
    column = 0
    for letter in reference:
        if not letter.isalpha():
            break
        column = column * 26 + ord(letter.upper()) - ord("A") + 1
    return column - 1

"""Scans the XML of an .xlsx for what python-calamine does not tell.

These are errors, formulas without a result, formats that show zeros, damaged indexes of shared texts,
and hidden rows and columns. calamine reads an error as an empty text, a number without its format, and the first text of the file
for an index such as -1. The XML may be malicious, so only a process with limits reads an upload.
"""

import re
import string
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from typing import BinaryIO, NamedTuple
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

from mahasiswa.digits import is_digits
from mahasiswa.sheets.cells import DAMAGED, ERROR, FORMULA

_are_zeros = re.compile("0{2,}").fullmatch
# A number with such a format is not shown as it is stored: `00.00` or `"23000"00000`.
_adds_digits = re.compile(r"""0{2,}(?![.E])|"[^"]*[0-9]|\\[0-9]""").match
_may_have_marks = re.compile(
    rb"""hidden=|t=["']e|<(?:\w+:)?f[\s/>]|t=["']s["'][^>]*>\s*<(?:\w+:)?v[^>]*>(?![0-9]+<)"""
).search


class Marks(NamedTuple):
    """The cells whose texts are others, and the rows and columns that Excel hides. All are counted from 0."""

    cells: dict[tuple[int, int], str]
    rows: set[int]
    columns: set[int]


class Scan:
    """The XML of a workbook, if it is an .xlsx. Raises the errors of a damaged file."""

    def __init__(self, file: BinaryIO) -> None:
        is_package = zipfile.is_zipfile(file)
        self._package = zipfile.ZipFile(file) if is_package else zipfile.ZipFile(BytesIO(), "w")

    def marks(self, sheet: str) -> Marks:
        marks = Marks({}, set(), set())
        path = self._paths.get(sheet, "")
        # `re` is six times as fast as a parser.
        if path and (any(self._formats) or _may_have_marks(self._package.read(path))):
            for part in self._parts(path, "}c", "}row", "}col"):
                is_hidden = part.get("hidden") in ("1", "true")
                if part.tag.endswith("}c"):
                    text = self._text(part)
                    if text is not None:
                        marks.cells[_place(part.attrib["r"])] = text
                elif is_hidden and part.tag.endswith("}row"):
                    marks.rows.add(int(part.attrib["r"]) - 1)
                elif is_hidden:
                    marks.columns.update(
                        range(int(part.attrib["min"]) - 1, int(part.attrib["max"]))
                    )
        return marks

    def _text(self, cell: ET.Element) -> str | None:
        """The text of a cell that calamine reads in another way."""
        value = cell.findtext("{*}v", "")
        match cell.get("t", "n"):
            case "s" if not is_digits(value):
                return DAMAGED
            case "e":
                return value + ERROR
            case "n" if value:
                code = self._formats[int(cell.get("s", 0))]
                if _are_zeros(code) and is_digits(value):
                    return value.zfill(len(code))
                return value + DAMAGED if code else None
            case "n" if cell.find("{*}f") is not None:
                return FORMULA
        return None

    @cached_property
    def _formats(self) -> Sequence[str]:
        """For each style the code of its format, without that for negative numbers, if it adds digits."""
        codes = {
            part.get("numFmtId"): code.split(";")[0]
            for part in self._parts("xl/styles.xml", "}numFmt")
            if _adds_digits(code := part.get("formatCode", ""))
        }
        styles = [style for part in self._parts("xl/styles.xml", "}cellXfs") for style in part]
        return [codes.get(style.get("numFmtId"), "") for style in styles] or [""]

    @cached_property
    def _paths(self) -> Mapping[str, str]:
        """The path of each sheet: the workbook maps its name to an id, and the relations map that to the path."""
        relations = self._parts("xl/_rels/workbook.xml.rels", "}Relationship")
        targets = {part.get("Id"): part.attrib["Target"] for part in relations}
        return {
            part.attrib["name"]: urljoin("/xl/", targets[value])[1:]
            for part in self._parts("xl/workbook.xml", "}sheet")
            for key, value in part.items()
            if key.endswith("}id")
        }

    def _parts(self, path: str, *ends: str) -> Iterator[ET.Element]:
        """The elements whose tags have these ends, each when it has ended. It is cleared after its use."""
        if path in self._package.namelist():
            with self._package.open(path) as file:
                for _, element in ET.iterparse(file):  # noqa: S314 - see the module
                    if element.tag.endswith(ends):
                        yield element
                        element.clear()


def _place(reference: str) -> tuple[int, int]:
    """The row and the column of a cell such as `AB12`, counted from 0."""
    # Importing the function of xlsxwriter would take a third of the time in which a child starts.
    row = reference.lstrip(string.ascii_uppercase)
    column = 0
    for letter in reference.removesuffix(row):
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(row) - 1, column - 1

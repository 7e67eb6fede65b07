"""Scans the XML of an .xlsx for what python-calamine does not tell.

These are errors, formulas without a result, formats that show zeros, damaged indexes of shared texts,
and hidden rows and columns. calamine reads an error as an empty text, a number without its format, and the first text of the file
for an index such as -1. The XML may be malicious, so only a process with limits reads an upload.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from typing import BinaryIO, NamedTuple
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

from xlsxwriter.utility import xl_cell_to_rowcol  # type: ignore[import-untyped]

from mahasiswa.digits import is_digits
from mahasiswa.sheets.cells import ROW_MAX_CELLS, Bad, Cell

_are_zeros = re.compile("0{2,}").fullmatch
# A number with such a format is not shown as it is stored: `00.00` or `"23000"00000`.
_adds_digits = re.compile(r"""0{2,}(?![.E])|"[^"]*[0-9]|\\[0-9]""").match
_may_have_marks = re.compile(
    rb"""hidden=|t=["']e|<(?:\w+:)?f[\s/>]|t=["']s["'][^>]*>\s*<(?:\w+:)?v[^>]*>(?![0-9]+<)"""
).search
_STYLES = "xl/styles.xml"


class Marks(NamedTuple):
    """What must be read in another way: cells by row and column from 0, and hidden rows from 1, and hidden columns from 0."""

    cells: dict[tuple[int, int], Cell]
    rows: set[int]
    columns: set[int]


class Scan:
    """The XML of a workbook, if it is an .xlsx. Raises the errors of a damaged file."""

    def __init__(self, file: BinaryIO) -> None:
        is_package = zipfile.is_zipfile(file)
        self._package = zipfile.ZipFile(file) if is_package else zipfile.ZipFile(BytesIO(), "w")

    def marks(self, sheet: str) -> Marks:
        marks = Marks({}, set(), set())
        if not self._paths:
            return marks
        path = self._paths[sheet]
        # `re` is six times as fast as a parser.
        if not _may_have_marks(self._package.read(path)) and not any(self._formats):
            return marks
        for part in self._parts(path, "}row", "}col"):
            if part.get("hidden") in ("1", "true") and part.tag.endswith("}row"):
                marks.rows.add(int(part.attrib["r"]))
            elif part.get("hidden") in ("1", "true"):
                last = min(int(part.attrib["max"]), ROW_MAX_CELLS)
                marks.columns.update(range(int(part.attrib["min"]) - 1, last))
            for cell in part:
                mark = self._mark(cell)
                if mark is not None:
                    marks.cells[xl_cell_to_rowcol(cell.attrib["r"])] = mark
        return marks

    def _mark(self, cell: ET.Element) -> Cell:
        value = cell.findtext("{*}v", "")
        match cell.get("t", "n"):
            case "s" if not is_digits(value):
                return self._texts.get(value.strip(), Bad("damaged", ""))
            case "e":
                return Bad("error", value)
            case "n" if value:
                code = self._formats[int(cell.get("s", 0))]
                if _are_zeros(code) and is_digits(value):
                    return value.zfill(len(code))
                return Bad("damaged", value) if code else None
            case "n" if cell.find("{*}f") is not None:
                return Bad("formula", "")
        return None

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        """The shared texts by their indexes."""
        items = self._parts("xl/sharedStrings.xml", "}si")
        return {str(index): "".join(item.itertext()) for index, item in enumerate(items)}

    @cached_property
    def _formats(self) -> Sequence[str]:
        """For each style the code of its format, without that for negative numbers, if it adds digits."""
        codes = {
            part.get("numFmtId"): code.split(";")[0]
            for part in self._parts(_STYLES, "}numFmt")
            if _adds_digits(code := part.get("formatCode", ""))
        }
        styles = [style for part in self._parts(_STYLES, "}cellXfs") for style in part]
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

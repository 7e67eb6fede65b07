"""Scans the XML of an .xlsx sheet for what python-calamine does not tell.

These are errors, formulas without a result, formats that show zeros, damaged indexes of shared texts,
and hidden rows and columns. calamine reads an error as an empty text, a number without its format, and the first text of the file
for an index such as -1. The XML may be malicious, so only a process with limits reads an upload.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple
from xml.etree import ElementTree as ET

from xlsxwriter.utility import xl_cell_to_rowcol  # type: ignore[import-untyped]

from mahasiswa.sheets.cells import ROW_MAX_CELLS, Bad, Cell

_are_zeros = re.compile("0{2,}").fullmatch
# A number with such a format is not shown as it is stored: `00.00` or `"23000"00000`.
_adds_digits = re.compile(r"""0{2,}(?![.E])|"[^"]*[0-9]|\\[0-9]""").match
_may_have_marks = re.compile(
    rb"""hidden=|t=["']e|<(?:\w+:)?f[\s/>]|t=["']s["'][^>]*>\s*<(?:\w+:)?v[^>]*>(?![0-9]+<)"""
).search


class Marks(NamedTuple):
    """The cells that must be read in another way, by row and column from 0, and the hidden rows and columns."""

    cells: dict[int, dict[int, Cell]]
    rows: set[int]
    columns: set[int]


def scan(file: BinaryIO, sheet: str) -> Marks:
    """The marks of a sheet; none for another kind of workbook. Raises the errors of a damaged file."""
    marks = Marks({}, set(), set())
    if not zipfile.is_zipfile(file):
        return marks
    with zipfile.ZipFile(file) as package:
        if "xl/workbook.xml" not in package.namelist():
            return marks
        formats = _formats(package)
        path = _path_of(package, sheet)
        # `re` is ten times as fast as a parser.
        if not any(formats) and not _may_have_marks(package.read(path)):
            return marks
        for part in _parts(package, path, "}c", "}row", "}col"):
            if part.tag.endswith("}c"):
                mark = _mark(part, formats, package)
                if mark is not None:
                    row, column = xl_cell_to_rowcol(part.attrib["r"])
                    marks.cells.setdefault(row, {})[column] = mark
            elif part.get("hidden") in ("1", "true"):
                first = part.get("min") or part.attrib["r"]
                last = min(int(part.get("max", first)), int(first) + ROW_MAX_CELLS)
                hidden = marks.columns if "min" in part.attrib else marks.rows
                hidden.update(range(int(first) - 1, last))
    return marks


def _mark(cell: ET.Element, formats: Sequence[str], package: zipfile.ZipFile) -> Cell:
    kind = cell.get("t", "n")
    texts = {part.tag[-2:]: part.text or "" for part in cell}  # by }v and }f
    value = texts.get("}v", "")
    if kind == "s" and not value.isdecimal():
        return _text_at(value.strip(), package)
    if kind == "e":
        return Bad("error", value)
    if kind != "n" or not value:
        return Bad("formula", "") if kind == "n" and "}f" in texts else None

    code = formats[int(cell.get("s", 0))]
    if _are_zeros(code) and value.isdecimal():
        return value.zfill(len(code))
    return Bad("damaged", value) if code else None


def _text_at(index: str, package: zipfile.ZipFile) -> Cell:
    """The shared text with this index, which had blanks around it, or a damaged cell."""
    for at, item in enumerate(_parts(package, "xl/sharedStrings.xml", "}si")):
        if str(at) == index:
            return "".join(item.itertext())
    return Bad("damaged", "")


def _formats(package: zipfile.ZipFile) -> Sequence[str]:
    """The code of the format of each style, without that for negative numbers."""
    codes: dict[str | None, str] = {}
    for part in _parts(package, "xl/styles.xml", "}numFmt", "}cellXfs"):
        code = part.get("formatCode", "").split(";")[0]
        codes[part.get("numFmtId")] = code if _adds_digits(code) else ""
        if part.tag.endswith("cellXfs"):
            return [codes.get(style.get("numFmtId"), "") for style in part]
    return [""]


def _path_of(package: zipfile.ZipFile, sheet: str) -> str:
    """The path of a sheet: the workbook maps its name to an id, and the relations map that to the path."""
    sheets = _parts(package, "xl/workbook.xml", "}sheet")
    ids = [value for of in sheets if of.get("name") == sheet for value in of.attrib.values()]
    relations = _parts(package, "xl/_rels/workbook.xml.rels", "}Relationship")
    target = next(of.attrib["Target"] for of in relations if of.get("Id") in ids)
    return "xl/" + target.removeprefix("/xl/")


def _parts(package: zipfile.ZipFile, path: str, *ends: str) -> Iterator[ET.Element]:
    """The elements whose tags have these ends, each when it has ended. It is cleared after its use."""
    if path not in package.namelist():
        return
    with package.open(path) as file:
        for _, element in ET.iterparse(file):  # noqa: S314 - see the module
            if element.tag.endswith(ends):
                yield element
                element.clear()

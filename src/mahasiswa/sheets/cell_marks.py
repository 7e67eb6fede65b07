"""Finds the cells of an .xlsx or .ods sheet that python-calamine reads differently from how they are shown.

calamine reads an error (#N/A), or a formula that was never calculated, as empty text. It reads a number without its
format, such as 00000000. All three would become a wrong NIM without a warning, so the XML is read once more.
The XML of an upload may be malicious, so a helper process with limits reads it.
"""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, TypeVar
from xml.etree import ElementTree as ET

from xlsxwriter.utility import xl_cell_to_rowcol  # type: ignore[import-untyped]

from mahasiswa.sheets.cells import EXACT_DIGITS, BadCell, digits_in

T = TypeVar("T")

# A text is a number as its format shows it.
Mark = BadCell | str
Marks = dict[int, dict[int, Mark]]  # by row and column, both counted from 0

ERROR_MAX_CHARACTERS = 20
ZERO_FORMAT_MAX_DIGITS = 64  # of .ods
FORMAT_MAX_CHARACTERS = 64  # of .xlsx
# Maximum repetitions of one cell of .ods in each direction. More mean that a column is filled to
# its end.
REPEATED_MAX_CELLS = 1000

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_CALCEXT = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"
# `re` finds these a hundred times as fast as a parser, because each begins with a fixed text.
_XLSX_ERROR_OR_FORMULA = (rb"""t=["']e["']""", rb"<f[\s>/]", rb":f[\s>/]")
_ODS_ERROR_OR_FORMULA_OR_ZERO = (
    rb"""value-type=["']error["']""",
    rb":formula=",
    rb":p>0[0-9]",
    rb":s/>0[0-9]",
)


# The parts of a format: digits, and texts in quotes or escaped characters. Others show nothing: a space as wide as a
# character, a language, and the formats for negative numbers and texts.
_parts = re.compile(r"""#*0|#+|General|-|"[^"]*"|\\.|_.|\[\$-[\w-]+\]|;.*""", re.DOTALL).findall
# A # behind a 0, or before a text and a 0, may show nothing.
_are_all_shown = re.compile("#*0(?: 0)*|#+|General").fullmatch
_start_tags = re.compile(rb"<(?:\w+:)?(row|col)\b([^<>]{0,2000})").finditer
_is_hidden = re.compile(rb"""\bhidden=["'](?:1|true)["']""").search
_number_in = re.compile(rb"""\b(?:r|min|max)=["'](\d{1,7})["']""").findall


def cell_marks(file: BinaryIO, sheet: str, width: int) -> tuple[Marks, list[int], list[int]]:
    """The marks of a sheet of a .xlsx or .ods file, its hidden rows from 1, and its hidden columns up to `width` from 0.

    calamine has read the file, so a fault found here refuses nothing.
    """
    try:
        with zipfile.ZipFile(file) as package:
            names = package.namelist()
            if "xl/workbook.xml" in names:
                xml = package.read(_path_of_sheet(package, sheet))
                return _xlsx_marks(package, xml), *_hidden_parts(xml, width)
            marks = _ods_marks(package, sheet) if "content.xml" in names else {}
            return marks, [], []
    except (zipfile.BadZipFile, KeyError, ValueError, ET.ParseError):
        return {}, [], []


def _hidden_parts(xml: bytes, width: int) -> tuple[list[int], list[int]]:
    rows: list[int] = []
    columns: list[int] = []
    for tag in _start_tags(xml) if b"hidden=" in xml else ():
        if _is_hidden(tag[2]) and (numbers := [*map(int, _number_in(tag[2]))]):
            if tag[1] == b"col":
                columns += range(min(numbers) - 1, min(max(numbers), width))
            else:
                rows += numbers[:1]
    return rows, columns


def _xlsx_marks(package: zipfile.ZipFile, xml: bytes) -> Marks:
    formats = _formats(package)
    if not formats and not any(re.search(pattern, xml) for pattern in _XLSX_ERROR_OR_FORMULA):
        return {}
    marks: Marks = {}
    number = 0
    for row in _ended(xml, "row"):
        number = int(row.get("r", number + 1))
        column = -1
        for cell in row:
            reference = cell.get("r")
            column = xl_cell_to_rowcol(reference)[1] if reference else column + 1
            if (mark := _xlsx_mark(cell, formats)) is not None:
                marks.setdefault(number - 1, {})[column] = mark
    return marks


def _xlsx_mark(cell: ET.Element, formats: dict[str, Sequence[str]]) -> Mark | None:
    parts = {_name(part): part.text or "" for part in cell}
    kind, value = cell.get("t", "n"), parts.get("v", "")
    if kind == "e":
        return BadCell("error", value[:ERROR_MAX_CHARACTERS])
    # A formula whose result is an empty text has the kind "str".
    if "f" in parts and not value and kind != "str":
        return BadCell("formula", "")
    is_number = kind == "n" and value.isdigit() and len(value) <= EXACT_DIGITS
    places = formats.get(cell.get("s", ""))
    return _shown(value, places) if is_number and places else None


def _shown(number: str, places: Sequence[str]) -> str:
    """A number as its format shows it.

    Each place 0 takes a digit; the first takes all that are left.
    """
    left = places.count("0")
    digits = list(number.zfill(left))
    shown: list[str] = []
    for place in reversed(places):
        if place != "0":
            shown.append(place.strip('"').removeprefix("\\"))
            continue
        left -= 1
        shown.append(digits.pop() if left else "".join(digits))
    return "".join(reversed(shown))


def _path_of_sheet(package: zipfile.ZipFile, sheet: str) -> str:
    """The path of an .xlsx sheet's part: the workbook maps its name to an id, and the relations map that to the path."""
    sheets = _parsed(package, "xl/workbook.xml").iterfind(".//{*}sheet")
    attributes = next((entry.attrib for entry in sheets if entry.get("name") == sheet), {})
    # The namespace differs between transitional and strict .xlsx.
    (identifier,) = (value for name, value in attributes.items() if name.endswith("}id"))
    relations = _parsed(package, "xl/_rels/workbook.xml.rels")
    targets = {relation.get("Id"): relation.attrib["Target"] for relation in relations}
    return posixpath.normpath(posixpath.join("/xl", targets[identifier])).lstrip("/")


def _formats(package: zipfile.ZipFile) -> dict[str, Sequence[str]]:
    """The places of formats such as 00000000 or "23000"00000, by the index of the style in an .xlsx cell."""
    if "xl/styles.xml" not in package.namelist():
        return {}
    styles = _parsed(package, "xl/styles.xml")
    places = {
        of.get("numFmtId"): _places_of(of.attrib["formatCode"])
        for of in styles.iterfind("{*}numFmts/{*}numFmt")
    }
    found = [places.get(style.get("numFmtId")) for style in styles.iterfind("{*}cellXfs/*")]
    return {str(index): of_style for index, of_style in enumerate(found) if of_style}


def _places_of(code: str) -> Sequence[str]:
    """The places of a format that shows several digits, each place 0 one of the number; none for any other format."""
    code = code[:FORMAT_MAX_CHARACTERS]
    parts = _parts(code)
    digits = [part for part in parts if part[0] in "#0G"]
    if "".join(parts) != code or not _are_all_shown(" ".join(digits)):
        return ()
    places = ["0" if part in digits else part for part in parts if part[0] not in "_[;"]
    return places if digits_in("".join(places)) > 1 else ()


def _ods_marks(package: zipfile.ZipFile, sheet: str) -> Marks:
    xml = package.read("content.xml")
    if not any(re.search(pattern, xml) for pattern in _ODS_ERROR_OR_FORMULA_OR_ZERO):
        return {}
    marks: Marks = {}
    number = 0
    for element in _ended(xml, "table-row", "table"):
        if element.tag == _TABLE + "table":
            if element.get(_TABLE + "name") == sheet:
                return marks
            marks, number = {}, 0
            continue
        of_row: dict[int, Mark] = {}
        column = 0
        for cell in element:
            column = _repeat(of_row, column, cell, "columns", _ods_mark(cell))
        number = _repeat(marks, number, element, "rows", of_row)
    return {}


def _repeat(marks: dict[int, T], at: int, element: ET.Element, parts: str, mark: T | None) -> int:
    """Put the mark of a row or of a cell into `marks`, as often as it is repeated. Return the place behind it."""
    repeated = int(element.get(f"{_TABLE}number-{parts}-repeated", "1"))
    if mark:
        marks.update(dict.fromkeys(range(at, at + min(repeated, REPEATED_MAX_CELLS)), mark))
    return at + repeated


def _ods_mark(cell: ET.Element) -> Mark | None:
    text = "".join(cell.itertext()).strip()
    if cell.get(_CALCEXT + "value-type") == "error":
        return BadCell("error", text[:ERROR_MAX_CHARACTERS])
    kind = cell.get(_OFFICE + "value-type")
    if kind is None and _TABLE + "formula" in cell.attrib:
        return BadCell("formula", "")
    is_filled = kind == "float" and re.fullmatch(f"0[0-9]{{1,{ZERO_FORMAT_MAX_DIGITS}}}", text)
    return text if is_filled else None


def _parsed(package: zipfile.ZipFile, part: str) -> ET.Element:
    return ET.fromstring(package.read(part))  # noqa: S314 - a helper with limits reads an upload


def _ended(xml: bytes, *names: str) -> Iterator[ET.Element]:
    """The elements with these names, each when it has ended. The caller must not keep one, because it is cleared then."""
    for _, element in ET.iterparse(io.BytesIO(xml)):  # noqa: S314 - as above
        if _name(element) in names:
            yield element
            element.clear()


def _name(element: ET.Element) -> str:
    """The name of an element without its namespace, which differs between transitional and strict .xlsx."""
    return element.tag.rpartition("}")[2]

"""The little XML that both kinds of zipped workbooks need, as a stream."""

import re
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, TypeAlias
from xml.parsers import expat

from mahasiswa.sheets.columns import BadCell

# What a cell is beside its value: an error or an uncalculated formula, or the digits to which leading zeros fill it up.
Mark: TypeAlias = BadCell | int
Marks: TypeAlias = dict[int, dict[int, Mark]]  # by row and column, both counted from 0

# What calamine forgives in a file it has read is no reason to refuse the file.
FORGIVEN = (zipfile.BadZipFile, KeyError, ValueError, expat.ExpatError)

_CHUNK = 1 << 16


def holds(pattern: re.Pattern[bytes], part: IO[bytes]) -> bool:
    """Whether a short pattern occurs: a search for bytes is a hundred times quicker than a parse."""
    tail = b""
    with part:
        while chunk := part.read(_CHUNK):
            if pattern.search(tail + chunk):
                return True
            tail = chunk[-64:]
    return False


def parse(
    part: IO[bytes],
    start: Callable[[str, Mapping[str, str]], None],
    end: Callable[[str], None] = lambda _: None,
    data: Callable[[str], None] = lambda _: None,
) -> None:
    """Calls `start` with each tag, without its prefix, and its attributes. A declared entity is refused."""

    def refuse(*_: object) -> None:
        raise ValueError("a workbook needs no entities")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition(":")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition(":")[2])
    parser.CharacterDataHandler = data
    with part:
        while chunk := part.read(_CHUNK):
            parser.Parse(chunk, False)  # noqa: FBT003 - its only form
        parser.Parse(b"", True)  # noqa: FBT003

"""Finds the NIM, and the name beside it, in a line of a selection: `1. 2300018101 Siti`, `Siti (2300018101)`."""

import re
from collections.abc import Mapping, Sequence

from mahasiswa.sheets.columns import part_of

FORMS_MAX = 12  # parts of a line that are looked for as NIMs

_words = re.compile(r"[^\s,;|:=()\[\]]+").findall
_has_digit = re.compile("[0-9]").search
_AROUND = " .-–*_•'\""
# The number before a NIM as in `1.2300018101`, and the name behind it as in `2300018101-Siti`.
_without_attached = re.compile(r"^[0-9]{1,3}\.(?=[0-9]{5})|[-–_][^\W\d].*").sub


def forms_of(line: str) -> Sequence[str]:
    """The texts that may be the NIM of a line: the whole line, then each word with a digit, without the punctuation around it."""
    words = [word.strip(_AROUND) for word in _words(line) if _has_digit(word)]
    bare = [_without_attached("", word) for word in words]
    return list(dict.fromkeys([line, *words, *bare]))[:FORMS_MAX]


def nim_in(line: str, stored: Mapping[str, object]) -> str:
    """The stored NIM of a line: the line itself, or the only stored one among its parts; blank without one."""
    found = {line} & stored.keys() or stored.keys() & forms_of(line)
    return found.pop() if len(found) == 1 else ""


def name_in(line: str) -> str:
    """The words of a line that may be a name: those without digits that are no titles and no single letters."""
    words = (word.strip(_AROUND) for word in _words(line) if not _has_digit(word))
    return " ".join(word for word in words if len(word) > 1 and not part_of(word))

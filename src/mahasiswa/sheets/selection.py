"""Finds the NIM, and the name beside it, in a line of a selection: `1. 2300018101 Siti`, `Siti (2300018101)`."""

import re
from collections.abc import Collection, Sequence

from mahasiswa.sheets.columns import part_of

FORMS_MAX = 12  # parts of a line that are looked for as NIMs

_words = re.compile(r"[\s,;|:=()\[\]]+").split
_around_word = " .-–*_•'\""
# The number before a NIM as in `1.2300018101`, and the name behind it as in `2300018101-Siti`.
_without_attached = re.compile(r"^[0-9]{1,3}\.(?=[0-9]{5})|[-–_][^\W\d].*").sub


def forms_of(line: str) -> Sequence[str]:
    """The texts that may be the NIM of a line: the whole line, then its words with a digit, without what is attached to them."""
    forms = [line]
    for word in _bare_words(line):
        if any(map(str.isdigit, word)):
            forms += (word, _without_attached("", word))
    return list(dict.fromkeys(forms))[:FORMS_MAX]


def nim_in(line: str, stored: Collection[str]) -> str:
    """The stored NIM of a line: the line itself, or the only stored one among its parts; blank without one."""
    if line in stored:
        return line
    found = {form for form in forms_of(line) if form in stored}
    return found.pop() if len(found) == 1 else ""


def name_in(line: str) -> str:
    """The words of a line that may be a name: those without digits that are no titles and no single letters."""
    words = (word for word in _bare_words(line) if len(word) > 1 and not part_of(word))
    return " ".join(word for word in words if not any(map(str.isdigit, word)))


def _bare_words(line: str) -> list[str]:
    return [word for part in _words(line) if (word := part.strip(_around_word))]

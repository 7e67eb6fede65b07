"""Folds texts for a search: letter case, accents and punctuation do not matter. SQL is made from the same table."""

import unicodedata
from collections.abc import Sequence

from mahasiswa.record import INVISIBLE

# Words of a search, because each word costs a pass over every text; further words are ignored.
MAX_WORDS = 10

SEARCHED_CHARACTERS = 1000
"""Characters of each text that the search looks at. Without this limit, 100 texts of 64,000 mixed letters take 0.25 s."""

REMOVED_ASCII = "'`.,-"
STREET = {"jl", "jln", "jalan"}
STREET_MEANS = ("jl", "jalan")
"""A word of STREET finds a text that contains one of STREET_MEANS, because people write an address in both ways."""

# Escapes, because these characters look alike or cannot be seen.
APOSTROPHES = (
    "\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u2018\u2019\u201a\u201b\u2032\ua78c\uff07"
)
HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
COMBINING_MARKS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u031b\u0323\u0326\u0327\u0328\u032e\u0331"

# Letters that are no plain letter with a mark.
SPECIAL = {
    "æ": "ae",
    "ð": "d",
    "đ": "d",
    "ħ": "h",
    "ı": "i",
    "ł": "l",
    "ø": "o",
    "œ": "oe",
    "ß": "ss",
    "ſ": "s",
}
SPECIAL |= {"ŧ": "t", "þ": "th", "\u00b5": "μ", "ς": "σ", "ґ": "г"}

# The letters of European languages, of Vietnamese, and of transliterated Chinese, Arabic and Sanskrit, and two signs.
_CODES = (
    0xB5,
    *range(0xC0, 0x250),
    *range(0x386, 0x460),
    0x490,
    0x491,
    *range(0x1E00, 0x1F00),
    0x212A,
    0x212B,
)


def _plain(letter: str) -> str:
    parts = unicodedata.normalize("NFD", letter.lower())
    return "".join(SPECIAL.get(part, part) for part in parts if not unicodedata.combining(part))


REPLACEMENTS = {letter: _plain(letter) for letter in map(chr, _CODES) if _plain(letter) != letter}
REPLACEMENTS |= dict.fromkeys(APOSTROPHES + HYPHENS + INVISIBLE + COMBINING_MARKS, "")
"""Every character beyond ASCII that folding replaces."""

_ASCII = {chr(code): chr(code).lower() for code in range(128)}
_TABLE = str.maketrans(REPLACEMENTS | _ASCII | dict.fromkeys(REMOVED_ASCII, ""))


def fold(text: str) -> str:
    """A text as the search compares it."""
    return text.translate(_TABLE)


# A line break, a tab or another kind of space.
ODD_SPACES = "".join(space for space in map(chr, range(0x3001)) if space.isspace() and space != " ")
_SEEN = str.maketrans(dict.fromkeys(INVISIBLE, ""))


def tidy(text: str) -> str:
    """A text without spaces at its ends, with one space between words, and without characters that cannot be seen."""
    return " ".join(text.translate(_SEEN).split())


def words(cari: str) -> Sequence[str]:
    """The folded words of a search, each once; none if no record can be found."""
    if "\0" in cari:  # no record contains it
        return []
    return [word for word in dict.fromkeys(map(fold, cari.split())) if word][:MAX_WORDS]


def terms(cari: str, *, is_prefix: bool = False) -> Sequence[Sequence[str]]:
    """The terms of a search, each a list of words of which a text needs one. A prefix is one word without spaces."""
    if is_prefix:
        return [(word,) for word in words("".join(cari.split()))]
    return [STREET_MEANS if word in STREET else (word,) for word in words(cari)]

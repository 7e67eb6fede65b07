"""Folds texts for a search: letter case, accents and punctuation do not matter. SQL is made from the same table."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mahasiswa.record import INVISIBLE, ODD_SPACES, Mahasiswa

# Maximum words of a search. Each word costs a pass over every text, so further words are ignored.
MAX_WORDS = 10

SEARCHED_CHARACTERS = 1000
"""Characters of each text that the search looks at. Otherwise a few long texts would make it slow."""

REMOVED_ASCII = "'`.,-"
# Other ways to write a word of an address. A text is found by each of them.
ABBREVIATIONS = (
    ("jl", "jln", "jalan"),
    ("gg", "gang"),
    ("no", "nomor"),
    ("ds", "desa"),
    ("dsn", "dusun"),
    ("kel", "kelurahan"),
    ("kec", "kecamatan"),
    ("kab", "kabupaten"),
    ("perum", "perumahan"),
)
_SAME = {word: words for words in ABBREVIATIONS for word in words}
# Folding would join the words of `Jl.Kaliurang`, but most records have a space there.
_part_abbreviation = re.compile(
    rf"(?<!\w)({'|'.join([*_SAME, 'km', 'blok'])})\.(?=\w)", re.IGNORECASE
).sub
# Replacements in a folded text. Then each RT and RW is written as in `rt 3 rw 7`. A text such as
# `RT/RW 03/07` becomes `rt 3 7`.
_RT_RW_STEPS = (
    (":", " "),
    (" /", "/"),
    ("/ ", "/"),
    ("rt/rw", "rt"),
    ("rtrw", "rt"),
    ("/", " "),
    ("rt", "rt "),
    ("rw", "rw "),
    ("  ", " "),
    ("  ", " "),
    (" 00", " "),
    (" 0", " "),
)
# The patterns of the number of an RT, and of an RW, in the text after these replacements.
RT = ("[^a-z]rt {}[^0-9]",)
RW = (
    "[^a-z]rw {}[^0-9]",
    "[^a-z]rt [0-9] {}[^0-9]",
    "[^a-z]rt [0-9][0-9] {}[^0-9]",
    "[^a-z]rt [0-9][0-9][0-9] {}[^0-9]",
)

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
    letters = [part for part in parts if not unicodedata.combining(part)]
    return "".join(SPECIAL.get(part, part) for part in letters)


REPLACEMENTS = {letter: _plain(letter) for letter in map(chr, _CODES) if _plain(letter) != letter}
REPLACEMENTS |= dict.fromkeys(APOSTROPHES + HYPHENS + INVISIBLE + COMBINING_MARKS, "")
REPLACEMENTS |= {space: " " for space in ODD_SPACES if not space.isascii()}
"""Every character beyond ASCII that folding replaces."""

REPLACEMENTS_JSON = json.dumps(REPLACEMENTS, ensure_ascii=False)

_ASCII = {chr(code): chr(code).lower() for code in range(128)}
_TABLE = str.maketrans(REPLACEMENTS | _ASCII | dict.fromkeys(REMOVED_ASCII, ""))


def fold(text: str) -> str:
    """A text as the search compares it."""
    return text.translate(_TABLE)


def key(record: Mahasiswa) -> str:
    """The name and the address of a record as one text for comparison.

    Two records with the same key differ at most in spaces, letter case, accents and punctuation.
    """
    texts = (text[:SEARCHED_CHARACTERS] for text in record[1:])
    return fold("|".join(texts)).replace(" ", "")


# With straight quotes, or with those that phones write.
quoted = re.compile(r"""(?<!\S)["“”„]([^"“”„]+)["“”„](?!\S)""")
_NUMBER = "(0{0,2}[1-9][0-9]{0,2})"
# Folded: `3/7`, `rt 3/7`, `rt 3/rw 7`, `rt/rw 3/7`, or one of both.
rt_rw = re.compile(
    rf"(?:(?:(?<![a-z])(rt)[ :/]*(?:rw[ :]*)?|(?<![a-z0-9/])){_NUMBER} ?/ ?(?:rw[ :]*)?{_NUMBER}(?!/?[0-9])"
    rf"|(?<![a-z])rt[ :]*{_NUMBER}(?![0-9])"
    rf"|(?<![a-z])rw[ :]*{_NUMBER}(?![0-9]))/?"
)


class Spelling(NamedTuple):
    """A text that a search looks for. If it has patterns, one of them must match too.

    Patterns are literal, with classes such as `[^0-9]`, and with `*` for any text. Those of an RT or an RW are looked for
    in the text as `with_plain_rt_rw` writes it.
    """

    text: str
    patterns: Sequence[str] = ()
    is_rt_rw: bool = False


Term = Sequence[Spelling]
"""The spellings of one word of a search. A text needs one of them."""


def words(cari: str) -> Sequence[str]:
    """The folded words of a search, each once; none if no record can be found."""
    if "\0" in cari:  # no record contains it
        return []
    unquoted = quoted.sub(r" \1 ", cari)
    folded = filter(None, map(fold, unquoted.split()))
    return [*dict.fromkeys(folded)][:MAX_WORDS]


def terms(cari: str, *, is_prefix: bool = False) -> Sequence[Term]:
    """The terms of a search. A text in quotes has one spelling.

    With `is_prefix`, the search is one word without its spaces. A line feed stands before the word,
    because the searched text of a nim begins with a line feed.
    """
    if "\0" in cari:
        return []
    if is_prefix:
        joined = "".join(cari.split())
        return [[Spelling(f"\n{word}")] for word in words(joined)]

    phrases = (fold(" ".join(phrase.split())) for phrase in quoted.findall(cari))
    unquoted = _part_abbreviation(r"\1 ", quoted.sub(" ", cari))
    folded = " ".join(map(fold, unquoted.split()))
    found: list[Term] = [[Spelling(phrase)] for phrase in phrases if phrase]
    others = rt_rw.sub(" ", folded).split()
    found += map(_of_word, dict.fromkeys(others))
    # RT and RW come last, because the search for one takes as long as that for a dozen words.
    for match in rt_rw.finditer(folded):
        found += _of_rt_rw(*match.groups())
    return found[:MAX_WORDS]


def _of_word(word: str) -> Term:
    others = (other for other in _SAME.get(word, ()) if word not in other)
    spellings = [Spelling(other, [f"[^a-z]{other}"]) for other in others]
    return [Spelling(word), *spellings]


def _of_rt_rw(
    head: str | None, first: str | None, second: str | None, rt: str | None, rw: str | None
) -> Iterator[Term]:
    both = f"{first}/{second}"
    # Two numbers alone may also be those of a house, or the beginning of a NIM.
    alone = [Spelling(both, [f"[^0-9]{both}"])] if first and not head else []
    for number, patterns in ((first or rt, RT), (second or rw, RW)):
        if number:
            plain = number.lstrip("0")
            # Every spelling matches this pattern. It rejects most other records in a fifth of the
            # time.
            yield [Spelling(plain, [f"r*[^1-9]{plain}[^0-9]"]), *alone]
            spelled = [pattern.format(plain) for pattern in patterns]
            yield [Spelling(plain, spelled, is_rt_rw=True), *alone]


def with_plain_rt_rw(folded_text: str) -> str:
    """The SQL that writes each RT and RW of a folded text in the same way."""
    for old, new in _RT_RW_STEPS:
        folded_text = f"replace({folded_text}, '{old}', '{new}')"
    return folded_text

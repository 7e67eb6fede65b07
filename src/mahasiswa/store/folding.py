"""Folds texts for a search: letter case, accents and punctuation do not matter. The SQL of the engines does the same."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from mahasiswa.record import HYPHENS, INVISIBLE, ODD_SPACES

# Maximum words of a search. Each word costs a pass over every text, so further words are ignored.
MAX_WORDS = 10

SEARCHED_CHARACTERS = 1000
"""Characters of each text that the search looks at. Otherwise a few long texts would make it slow."""

REMOVED_ASCII = "'`.,-"

# Escapes, because these characters look alike or cannot be seen.
# NFKC would make a space of it.
ACUTE_ACCENT = "\u00b4"
APOSTROPHES = "\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u2018\u2019\u201a\u201b\u2032\ua78c"
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
    "ŧ": "t",
    "þ": "th",
    "\u00b5": "μ",
    "ς": "σ",
}

# The letters of European languages, of Vietnamese, and of transliterated Chinese, Arabic and Sanskrit.
_CODES = (*range(0xC0, 0x460), *range(0x1E00, 0x1F00))


def _plain(letter: str) -> str:
    parts = unicodedata.normalize("NFD", letter.lower())
    letters = [part for part in parts if not unicodedata.combining(part)]
    return "".join(SPECIAL.get(part, part) for part in letters)


REPLACEMENTS = {letter: _plain(letter) for letter in map(chr, _CODES) if _plain(letter) != letter}
REPLACEMENTS |= dict.fromkeys(APOSTROPHES + HYPHENS + INVISIBLE + COMBINING_MARKS, "")
REPLACEMENTS |= {space: " " for space in ODD_SPACES if not space.isascii()}
"""Every character beyond ASCII that folding replaces after NFKC."""

_ASCII = {chr(code): chr(code).lower() for code in range(128)}
_TABLE = str.maketrans(REPLACEMENTS | _ASCII | dict.fromkeys(REMOVED_ASCII, ""))

# How Indonesian names write one sound: each spelling becomes the other one, in this order. A space is
# the beginning of a word. The SQL of PostgreSQL has the same.
_SPELLINGS = (
    "oe=u|dj=j|tj=c|chr=kr| ch= c|ch=h|kh=h|sy=s|sj=s|th=t|dh=d|ph=f|z=s|v=f|q=k"
    "|iy=i|y=i|ii=i|ie=i|ll=l|mm=m|nn=n|ss=s|ff=f|tt=t"
)
SOUNDS = [pair.split("=") for pair in _SPELLINGS.split("|")]
# The letters that may become a letter of a sound, such as z and s for s.
_WRITTEN = {"u": "uo", "c": "ct", "k": "kcq", "s": "sz", "f": "fpv", "i": "iy"}

# Minimum and maximum length of a word that is also compared by its sound. No name has a longer word.
MIN_SOUND_CHARACTERS = 4
MAX_SOUND_CHARACTERS = 32
NO_SOUND = "\n"  # no folded name contains it

# With straight quotes, or with those that phones write.
_quoted = re.compile(r"""(?<!\S)["“”„]([^"“”„]+)["“”„](?!\S)""")


class Term(NamedTuple):
    """One word of a search. Names are also compared by its `sound`.

    `pattern` matches every name with that sound and few others, because it takes less time than to
    make the sound of each name: the letters of the sound in their order, as a regular expression.
    """

    word: str
    pattern: str = NO_SOUND
    sound: str = NO_SOUND


def fold(text: str) -> str:
    """A text as the search compares it."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace(ACUTE_ACCENT, ""))
    return text.translate(_TABLE)


def sound(word: str) -> str:
    """The sound of a folded word: riski and rizky are one name, and so are djoko and joko."""
    text = f" {word}"
    for spelling, other in SOUNDS:
        text = text.replace(spelling, other)
    return text[1:]


def words(cari: str) -> Sequence[str]:
    """The folded words of a search, each once."""
    folded = filter(None, map(fold, cari.split()))
    return [*dict.fromkeys(folded)][:MAX_WORDS]


def terms(cari: str, *, is_prefix: bool = False) -> Sequence[Term]:
    """The terms of a search. A text in quotes has no sound.

    With `is_prefix`, the search is one word without its spaces. A line feed stands before the word,
    because the searched text of a nim begins with a line feed.
    """
    if is_prefix:
        joined = "".join(cari.split())
        return [Term(f"\n{word}") for word in words(joined)]

    parts = _quoted.split(cari)  # each second one was in quotes
    quoted = [Term(fold(" ".join(phrase.split()))) for phrase in parts[1::2]]
    others = map(_term, words(" ".join(parts[::2])))
    return [term for term in (*quoted, *others) if term.word][:MAX_WORDS]


def _term(word: str) -> Term:
    is_name = word.isascii() and word.isalpha()
    if not (is_name and MIN_SOUND_CHARACTERS <= len(word) <= MAX_SOUND_CHARACTERS):
        return Term(word)
    its_sound = sound(word)
    pattern = ".*".join(f"[{_WRITTEN.get(letter, letter)}]" for letter in its_sound)
    return Term(word, pattern, its_sound)

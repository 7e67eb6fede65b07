"""Corrects the words of a search, by the words of the names and addresses in the list."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice, product
from math import prod
from operator import contains

from mahasiswa.record import Mahasiswa
from mahasiswa.store.folding import fold

# Similarities are ratios of difflib. With a minimum of 0.6, `bandung` would become `endang`.
MIN_SIMILARITY = 0.7
UNKNOWN_SIMILARITY = 0.5  # the similarity that an uncorrected word has if the list has no such word
# Spellings of one sound, in this order. A sound is no word: it is only compared.
SOUNDS = re.findall("([a-z]+)=([a-z])", "dj=j tj=c sy=s kh=h ph=f th=t oe=u z=s y=i j=i v=f o=u")
letters_or_digits = re.compile("[0-9]+|[^0-9]+").findall
doubled = re.compile(r"(.)\1+")
# The similarity of two words of the list to the word of a search that joins them.
JOINED_SIMILARITY = 0.95
MAX_WORD_CHARACTERS = 32  # maximum length of a word that is compared, because difflib is quadratic
# Maximum words of a search that are corrected; the others are left out, to find more.
MAX_CORRECTED_WORDS = 4
# Maximum corrections of one search, because each may cost a search that finds nothing.
MAX_CORRECTIONS = 6
COMPARISON_TIMEOUT_SECONDS = 0.1  # after it the rarer words, which come last, are left out
COMPARED_WORDS = 100  # words of the list that are compared between two looks at the clock


def corrections(words: Sequence[str], spellings: Iterable[str]) -> Sequence[str]:
    """Searches that resemble the folded words of a search, the most similar first. They need not find anything.

    `spellings` are the words of the list, the most frequent first. The searches have letters and digits apart and no titles
    of columns, or similar words, or one word less. A search that contains every word of the given one is left out, because
    it finds no other records.
    """
    known: dict[str, str] = {}  # the folded words, each with its usual spelling
    for part in (part for spelling in spellings for part in spelling.split()):
        word = fold(part)
        # People do not search for a word with a digit by its sound.
        if 1 < len(word) <= MAX_WORD_CHARACTERS and not any(map(str.isdigit, word)):
            known.setdefault(word, part.strip(",;"))
    sounds = {word: sound(word) for word in known}
    deadline = time.monotonic() + COMPARISON_TIMEOUT_SECONDS
    given = " ".join(words)
    words = [word for word in words if word not in Mahasiswa._fields] or words
    apart = " ".join(part for word in words for part in letters_or_digits(word))
    words = words[:MAX_CORRECTED_WORDS]
    shorter = (
        [" ".join([*words[:at], *words[at + 1 :]]) for at in range(len(words))]
        if len(words) > 1
        else []
    )
    choices = [_alternatives(word, known, sounds, deadline) for word in words]
    searches = {
        tuple(word for _, word in choice): prod(worth for worth, _ in choice)
        for choice in product(*choices)
    }
    likely = sorted(searches, key=searches.__getitem__, reverse=True)
    others = (search for search in likely if not all(map(contains, search, words)))
    similar = (
        " ".join(known.get(part, part) for word in search for part in word.split())
        for search in others
    )
    searches_offered = dict.fromkeys(
        [apart, " ".join(words), *islice(similar, MAX_CORRECTIONS), *shorter]
    )
    return [search for search in searches_offered if search != given]


def sound(word: str) -> str:
    """The sound of a folded word. Indonesian names are written in many ways: riski and rizky, djoko and joko."""
    for spelling, other in SOUNDS:
        word = word.replace(spelling, other)
    return doubled.sub(r"\1", word)


def _alternatives(
    word: str, known: Mapping[str, str], sounds: Mapping[str, str], deadline: float
) -> Sequence[tuple[float, str]]:
    """The word itself, the words that it joins, and at most three similar words, each with its similarity."""
    itself = 1.0 if any(word in other for other in known) else UNKNOWN_SIMILARITY, word
    if len(word) > MAX_WORD_CHARACTERS:
        return [itself]
    pairs = ((word[:at], word[at:]) for at in range(2, len(word) - 1))
    joined = [(JOINED_SIMILARITY, " ".join(pair)) for pair in pairs if known.keys() >= {*pair}]
    key = sound(word)
    alike = [
        (1.0, other) for other, its_sound in sounds.items() if its_sound == key and other != word
    ]
    similar: list[str] = []
    others = [other for other in known if other != word]
    for at in range(0, len(others), COMPARED_WORDS):
        if time.monotonic() > deadline:
            break
        similar += get_close_matches(word, others[at : at + COMPARED_WORDS], 3, MIN_SIMILARITY)
    ratios = ((SequenceMatcher(None, other, word).ratio(), other) for other in similar)
    nearest = [part for part in sorted(ratios, reverse=True) if (1.0, part[1]) not in alike]
    return [itself, *alike[:3], *joined[:2], *nearest[:3]]

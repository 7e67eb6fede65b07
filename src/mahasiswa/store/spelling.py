"""Corrects the words of a search, by the words of the names and addresses in the list."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import combinations, islice, product
from math import prod
from operator import contains

from mahasiswa.record import Mahasiswa
from mahasiswa.store.folding import fold
from mahasiswa.work import slices

# Similarities are ratios of difflib. With a minimum of 0.6, `bandung` would become `endang`.
MIN_SIMILARITY = 0.7
UNKNOWN_SIMILARITY = 0.5  # the similarity that an uncorrected word has if the list has no such word
# Spellings of one sound, in the order of their replacement. A sound is only compared, never shown.
SOUNDS = re.findall("([a-z]+)=([a-z])", "dj=j tj=c sy=s kh=h ph=f th=t oe=u z=s y=i j=i v=f o=u")
Similar = Sequence[tuple[float, str]]
"""Words, each with its similarity to the word of a search."""

letters_or_digits = re.compile("[0-9]+|[^0-9]+").findall
doubled = re.compile(r"(.)\1+")
# The similarity of two words of the list to the word of a search that joins them.
JOINED_SIMILARITY = 0.95
MIN_SOUND_CHARACTERS = 3  # minimum length of a compared sound; shorter ones say too little
MAX_WORD_CHARACTERS = 32  # maximum length of a word that is compared, because difflib is quadratic
# Minimum length of a word that is also like longer words, whose sound only begins with its sound.
GOES_ON_FROM_CHARACTERS = 4
# Maximum words of a search that are corrected; the others are left out, to find more.
MAX_CORRECTED_WORDS = 4
# Maximum corrections of one search, because each may cost a search that finds nothing.
MAX_CORRECTIONS = 6
COMPARISON_TIMEOUT_SECONDS = 0.1  # after it the rarer words, which come last, are left out
COMPARED_WORDS = 100  # words of the list that are compared between two looks at the clock


def corrections(words: Sequence[str], spellings: Iterable[str]) -> Sequence[str]:
    """Searches that resemble the folded words of a search, the most similar first. They need not find anything.

    `spellings` are the words of the list, the most frequent first. A search has a space between
    letters and digits and no titles of columns, or it has similar words, or one word less. A search
    that contains every word of the given one is left out, because it finds no other records.
    """
    vocabulary = _Vocabulary(spellings)
    meant = [word for word in words if word not in Mahasiswa._fields] or words
    compared = meant[:MAX_CORRECTED_WORDS]

    apart = [part for word in meant for part in letters_or_digits(word)]
    similar = islice(_similar(compared, vocabulary), MAX_CORRECTIONS)
    shorter = combinations(compared, len(compared) - 1) if len(compared) > 1 else ()
    searches = [apart, compared, *similar, *reversed([*shorter])]

    texts = dict.fromkeys(map(" ".join, searches))
    return [text for text in texts if text != " ".join(words)]


def same_sound(words: Sequence[str], spellings: Iterable[str]) -> Sequence[str]:
    """Searches that have another word of the same sound in place of one word, the most frequent first.

    A word of at least GOES_ON_FROM_CHARACTERS is also like longer words, whose sound begins with
    its sound. A word that contains the word of the search is left out, because the search finds it
    already.
    """
    vocabulary = _Vocabulary(spellings)
    searches = []
    for at, word in enumerate(words):
        for other in vocabulary.going_on(word):
            others = words[at + 1 :]
            parts = [*words[:at], vocabulary.usual(other), *others]
            searches.append(" ".join(parts))
    return searches[:MAX_CORRECTIONS]


def sound(word: str) -> str:
    """The sound of a folded word. Indonesian names are written in many ways: riski and rizky, djoko and joko."""
    for spelling, other in SOUNDS:
        word = word.replace(spelling, other)
    return doubled.sub(r"\1", word)


def _similar(words: Sequence[str], vocabulary: "_Vocabulary") -> Iterator[Sequence[str]]:
    """Searches with similar words, as the list spells them, the most similar first."""
    choices = product(*map(vocabulary.alternatives, words))
    worth = {
        tuple(word for _, word in choice): prod(similarity for similarity, _ in choice)
        for choice in choices
    }
    for search in sorted(worth, key=worth.__getitem__, reverse=True):
        if not all(map(contains, search, words)):
            yield [vocabulary.usual(part) for part in " ".join(search).split()]


class _Vocabulary:
    """The words of the list. They are compared until a deadline, because a list may have many."""

    def __init__(self, spellings: Iterable[str]) -> None:
        self._spellings: dict[str, str] = {}  # by the folded word
        for part in " ".join(spellings).split():
            word = fold(part)
            # People do not search for a word with a digit by its sound.
            if 1 < len(word) <= MAX_WORD_CHARACTERS and not any(map(str.isdigit, word)):
                self._spellings.setdefault(word, part.strip(",;"))
        self._sounds = {word: sound(word) for word in self._spellings}
        self._deadline = time.monotonic() + COMPARISON_TIMEOUT_SECONDS

    def usual(self, word: str) -> str:
        """The usual spelling of a folded word."""
        return self._spellings.get(word, word)

    def alternatives(self, word: str) -> Similar:
        """The word, and words that a person may have meant, each with its similarity.

        These are at most three words of the same sound, two pairs of words that the word joins, and
        three words with similar letters.
        """
        is_known = any(word in other for other in self._spellings)
        itself = (1.0 if is_known else UNKNOWN_SIMILARITY, word)
        key = sound(word)
        alike = [
            (1.0, other)
            for other, its_sound in self._sounds.items()
            if its_sound == key and other != word
        ]
        nearest = [pair for pair in self._nearest(word) if (1.0, pair[1]) not in alike]
        return [itself, *alike[:3], *self._joined(word)[:2], *nearest[:3]]

    def going_on(self, word: str) -> Iterator[str]:
        """Other words with the sound of this word.

        If this word has GOES_ON_FROM_CHARACTERS, their sound may also be longer.
        """
        key = sound(word)
        if len(key) < MIN_SOUND_CHARACTERS:
            return
        for other, its_sound in self._sounds.items():
            goes_on = len(word) >= GOES_ON_FROM_CHARACTERS and its_sound.startswith(key)
            if (its_sound == key or goes_on) and word not in other:
                yield other

    def _joined(self, word: str) -> Similar:
        """Two words of the list that are this word if they are written together."""
        pairs = ((word[:at], word[at:]) for at in range(2, len(word) - 1))
        known = self._spellings.keys()
        return [(JOINED_SIMILARITY, " ".join(pair)) for pair in pairs if known >= {*pair}]

    def _nearest(self, word: str) -> Similar:
        """Words with similar letters, the most similar first."""
        similar: list[str] = []
        others = [other for other in self._spellings if other != word]
        for compared in slices(others, COMPARED_WORDS):
            if time.monotonic() > self._deadline:
                break
            similar += get_close_matches(word, compared, 3, MIN_SIMILARITY)

        ratios = ((SequenceMatcher(None, other, word).ratio(), other) for other in similar)
        return sorted(ratios, reverse=True)

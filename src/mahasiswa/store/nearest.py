"""Corrects the words of a search that found nothing, by the words of the names in the list."""

import time
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice, product
from math import prod

from mahasiswa.store.folding import fold

MIN_SIMILARITY = 0.7
"""Minimum ratio of difflib between a word and its correction. With 0.6, `bandung` would become `endang`."""

UNKNOWN_SIMILARITY = 0.5
"""The similarity that an uncorrected word has if it is in no name. It may be a word of an address."""

MAX_WORD_CHARACTERS = 32
"""Maximum length of a word that is compared, because difflib is quadratic."""

MAX_CORRECTED_WORDS = 4
"""Maximum words of a search that are corrected. Further words are left out, so the correction finds more."""

MAX_CORRECTIONS = 6
"""Maximum corrections of one search. Each may cost a search that finds nothing."""

COMPARISON_TIMEOUT_SECONDS = 0.1
"""Maximum time of all comparisons. The rarer words, which come last, are left out after it."""


def vocabulary(spellings: Iterable[str]) -> Mapping[str, str]:
    """The folded words of names, each with its usual spelling. The most frequent of `spellings` come first."""
    words: dict[str, str] = {}
    for spelling in spellings:
        for part in spelling.split():
            words.setdefault(fold(part), part.strip(",;"))
    return {word: spelling for word, spelling in words.items() if 1 < len(word) <= MAX_WORD_CHARACTERS}


def corrections(words: Sequence[str], names: Mapping[str, str]) -> Sequence[str]:
    """Searches that resemble the folded words of a search, the most similar first. They need not find anything."""
    deadline = time.monotonic() + COMPARISON_TIMEOUT_SECONDS
    words = words[:MAX_CORRECTED_WORDS]
    choices = [_alternatives(word, names, deadline) for word in words]
    searches = {tuple(word for _, word in choice): prod(worth for worth, _ in choice) for choice in product(*choices)}
    searches.pop(tuple(words))
    likely = sorted(searches, key=searches.__getitem__, reverse=True)
    return [" ".join(names.get(word, word) for word in search) for search in islice(likely, MAX_CORRECTIONS)]


def _alternatives(word: str, names: Mapping[str, str], deadline: float) -> Sequence[tuple[float, str]]:
    """The word itself and at most three similar words of names, each with its similarity."""
    similar = [(1.0 if any(word in name for name in names) else UNKNOWN_SIMILARITY, word)]
    matcher = SequenceMatcher(b=word, autojunk=False)
    for name in names if len(word) <= MAX_WORD_CHARACTERS else ():
        if time.monotonic() > deadline:
            break
        matcher.set_seq1(name)
        # The first two are upper bounds of the third, which takes much longer.
        if (
            name != word
            and matcher.real_quick_ratio() >= MIN_SIMILARITY
            and matcher.quick_ratio() >= MIN_SIMILARITY
            and (ratio := matcher.ratio()) >= MIN_SIMILARITY
        ):
            similar.append((ratio, name))
    return [similar[0], *sorted(similar[1:], reverse=True)[:3]]

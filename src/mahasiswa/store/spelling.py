"""Other searches for a person whose search finds nothing: with similar words of the list."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from mahasiswa.store.folding import fold, words

SEARCHES_OFFERED = 5  # maximum searches that are offered
# Minimum ratio of difflib. With 0.6, `bandung` would become `endang`.
MIN_SIMILARITY = 0.7
# Maximum words of the list, the most frequent ones, because difflib compares each of them.
VOCABULARY_MAX_WORDS = 3000
MAX_WORD_CHARACTERS = 32  # maximum length of a word that is compared, because difflib is quadratic


def corrections(cari: str, texts: Iterable[str]) -> Sequence[str]:
    """At most SEARCHES_OFFERED searches, the most similar first. They need not find anything.

    Each word that no word of the list contains is replaced by a similar one. `texts` are names and
    addresses of the list.
    """
    vocabulary: dict[str, str] = {}
    counted = Counter(" ".join(texts).split())
    for spelling, _ in counted.most_common(VOCABULARY_MAX_WORDS):
        word = fold(spelling)
        if 1 < len(word) <= MAX_WORD_CHARACTERS:
            vocabulary.setdefault(word, spelling.strip(".,;"))
    choices = []
    for word in words(cari):
        similar = [word] * SEARCHES_OFFERED
        if not any(word in other for other in vocabulary):
            compared = word[: 2 * MAX_WORD_CHARACTERS]
            similar = get_close_matches(compared, vocabulary, SEARCHES_OFFERED, MIN_SIMILARITY)
        choices.append([vocabulary.get(other, other) for other in similar])
    return list(dict.fromkeys(map(" ".join, zip(*choices, strict=False))))

"""Other searches for a person whose search finds nothing: with similar words of the list, or with one slip in a nim corrected."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice, product
from operator import itemgetter
from string import digits

from mahasiswa.store.folding import fold

SEARCHES_OFFERED = 5  # maximum searches that are offered
# Minimum ratio of difflib. With 0.6, `bandung` would become `endang`.
MIN_SIMILARITY = 0.7
# Maximum words of the list, the most frequent ones, because difflib compares each of them.
VOCABULARY_MAX_WORDS = 3000
MAX_WORD_CHARACTERS = 32  # maximum length of a word that is compared, because difflib is quadratic
MAX_CORRECTED_WORDS = (
    3  # maximum words of a search that are compared; a search with more is left as it is
)
SLIPS_MAX_CHARACTERS = 30  # maximum length of a nim with slips; such a nim has hundreds of them


def corrections(words: Sequence[str], spellings: Iterable[str]) -> Sequence[str]:
    """At most SEARCHES_OFFERED searches, the most similar first. They need not find anything.

    Each word that no word of the list contains is replaced by a similar one. `spellings` are the
    words of the list, the most frequent first.
    """
    vocabulary: dict[str, str] = {}
    for spelling in islice(" ".join(spellings).split(), VOCABULARY_MAX_WORDS):
        word = fold(spelling)
        if 1 < len(word) <= MAX_WORD_CHARACTERS:
            vocabulary.setdefault(word, spelling.strip(".,;"))
    unknown = [word for word in words if not any(word in other for other in vocabulary)]
    if not 0 < len(unknown) <= MAX_CORRECTED_WORDS:
        return []

    choices = []
    for word in words:
        similar = [word]
        if word in unknown:
            compared = word[: 2 * MAX_WORD_CHARACTERS]
            similar = get_close_matches(compared, vocabulary, SEARCHES_OFFERED, MIN_SIMILARITY)
        choices.append(enumerate(vocabulary.get(other, other) for other in similar))
    nearest = sorted(product(*choices), key=lambda choice: sum(map(itemgetter(0), choice)))
    return [" ".join(map(itemgetter(1), choice)) for choice in nearest[:SEARCHES_OFFERED]]


def slips(nim: str) -> Sequence[str]:
    """The nims that one slip makes of this one.

    A slip is one wrong digit, one digit more or less, or two neighbours exchanged.
    """
    if len(nim) > SLIPS_MAX_CHARACTERS:
        return ()
    forms: set[str] = set()
    for at in range(len(nim) + 1):
        before, after = nim[:at], nim[at:]
        rest = after[1:]
        forms |= {before + rest, before + rest[:1] + after[:1] + rest[1:]}
        forms |= {before + digit + end for digit in digits for end in (after, rest)}
    return sorted(forms - {nim})

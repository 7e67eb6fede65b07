"""The rule by which a search ignores the case of letters: the same for every engine, and linear in the text."""

from collections.abc import Sequence

MAX_REPLACED = 32
"""Maximum letters beyond ASCII whose case one search ignores, because each costs a pass over the text."""


def ignore_case(cari: str) -> tuple[str, Sequence[tuple[str, str]]]:
    """The text to look for, and the letters to replace in a record's text after its ASCII letters are made lower case.

    A letter matches itself alone if its other case is an ASCII letter, or is more than one letter.
    """
    replaced: dict[str, str] = {}
    for letter in dict.fromkeys(cari):
        cases = [case for case in (letter.lower(), letter.upper(), letter) if len(case) == 1 and not case.isascii()]
        replaced |= {case: cases[0] for case in cases[1:] if case != cases[0] and case not in replaced}
    pairs = list(replaced.items())[:MAX_REPLACED]
    text = "".join(letter.lower() if letter.isascii() else letter for letter in cari)
    for letter, replacement in pairs:
        text = text.replace(letter, replacement)
    return text, pairs

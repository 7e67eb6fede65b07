"""Reads numbers that a client or a file has sent."""

NUMBER_MAX_DIGITS = 9
"""Python refuses to convert thousands of digits."""


def is_digits(text: str) -> bool:
    """Whether a text consists of ASCII digits."""
    return text.isascii() and text.isdigit()


def whole_number(text: str, max_digits: int = NUMBER_MAX_DIGITS) -> int | None:
    """The number, or None if the text is no number of at most so many ASCII digits."""
    return int(text) if is_digits(text) and len(text) <= max_digits else None

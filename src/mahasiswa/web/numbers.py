"""Reads numbers that a client has sent."""

NUMBER_MAX_DIGITS = 9
"""Python refuses to convert thousands of digits."""


def whole_number(text: str, max_digits: int = NUMBER_MAX_DIGITS) -> int | None:
    """The number in a text, or None if it is no number of at most so many ASCII digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= max_digits else None

"""Reads numbers that a client or a file has sent."""

NUMBER_MAX_DIGITS = 9  # Python refuses to convert a number of thousands of digits


def is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def whole_number(text: str, max_digits: int = NUMBER_MAX_DIGITS) -> int | None:
    """The number in a text of at most `max_digits` ASCII digits; None for every other text."""
    return int(text) if is_digits(text) and len(text) <= max_digits else None

"""Reads numbers that a client or a file has sent."""

NUMBER_MAX_DIGITS = 9  # Python refuses to convert a number of thousands of digits


def is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def whole_number(text: str) -> int | None:
    """The number in a text of at most NUMBER_MAX_DIGITS ASCII digits; None for every other text."""
    return int(text) if is_digits(text) and len(text) <= NUMBER_MAX_DIGITS else None

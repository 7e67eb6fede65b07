"""The errors of spreadsheets. The text of each is a sentence in Indonesian from `wording`, fit for a page."""


class SheetError(ValueError):
    """A file, pasted cells or a confirmation cannot be read."""


class TooBig(SheetError):
    """A limit is exceeded: bytes, rows, memory or time."""


class NotCarried(SheetError):
    """The format of a download cannot hold a text, or so many records."""

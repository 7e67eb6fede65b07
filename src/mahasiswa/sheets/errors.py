"""What can be wrong with a whole file, as one small tree. `str(error)` is a sentence in Indonesian, fit for a page.

SheetError
├── Unreadable          the file cannot be read as it is
│   ├── Empty
│   ├── NotASpreadsheet
│   ├── PasswordProtected
│   ├── NoColumns       no NIM column, or two of them, or nothing beside it
│   ├── OpenQuote       a CSV's quote that is never closed
│   └── TooBig          a limit was met
│       ├── TooLarge    bytes
│       ├── TooManyRows
│       └── TooHeavy    time or memory
├── BadConfirmation     the rows to write came back damaged
└── NotCarried          a download's format cannot hold what it should
"""


class SheetError(ValueError):
    """The base of all; its text is the message for the person."""


class Unreadable(SheetError):
    """The file cannot be read as it is."""


class Empty(Unreadable):
    """There is nothing in it."""


class NotASpreadsheet(Unreadable):
    """Neither a workbook we know nor text."""


class PasswordProtected(Unreadable):
    """Only its owner can open it."""


class NoColumns(Unreadable):
    """The columns cannot be told."""


class OpenQuote(Unreadable):
    """A quote opens a cell and never closes, so rows would vanish into it."""


class TooBig(Unreadable):
    """A limit was met."""


class TooLarge(TooBig):
    """More bytes than allowed."""


class TooManyRows(TooBig):
    """More rows than allowed."""


class TooHeavy(TooBig):
    """It takes more time or memory than allowed."""


class BadConfirmation(SheetError):
    """What the browser sent back is not what the preview gave it."""


class NotCarried(SheetError):
    """The format of the download cannot hold a text, or so many records."""

"""The errors of spreadsheets. The text of each is a sentence in Indonesian from `wording`, fit for a page."""


class SheetError(ValueError):
    """A file, pasted cells or a confirmation cannot be read."""


class TooBig(SheetError):
    """A limit is exceeded: bytes, rows, memory or time."""


class ColumnsUnclear(SheetError):
    """The columns were not found. `titles` are those to choose from, `of_fields` the columns that are clear or chosen."""

    def __init__(
        self, problem: str, titles: list[str], of_fields: tuple[int | None, int | None, int | None]
    ) -> None:
        super().__init__(problem)
        self.titles = titles
        self.of_fields = of_fields


class NotCarried(SheetError):
    """The format of a download cannot hold a text, or so many records."""

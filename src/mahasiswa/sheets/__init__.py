"""Spreadsheets to records and back. Only xlsx is written elsewhere, in `mahasiswa.sheets.xlsx_export`.

    with read(file) as table:                        # a file of any kind, or read_text(pasted)
        rows = check(table)                          # each a clean Row, or InvalidRow with the reason
    plan = compare(rows, existing)                   # new, changed, same, wrong
    field = dump(plan)                               # to the browser …
    confirmed = load(field)                          # … and back
    changes = writes(confirmed, existing)

A million rows go through a Cleaner instead of `check`, in batches.
"""

from mahasiswa.sheets.cleaning import Cleaner, InvalidRow, Row, check, shown
from mahasiswa.sheets.columns import Raw
from mahasiswa.sheets.csv_export import csv_chunks, write_csv
from mahasiswa.sheets.errors import (
    BadConfirmation,
    Empty,
    NoColumns,
    NotASpreadsheet,
    NotCarried,
    OpenQuote,
    PasswordProtected,
    SheetError,
    TooBig,
    TooHeavy,
    TooLarge,
    TooManyRows,
    Unreadable,
)
from mahasiswa.sheets.plan import (
    MAX_CONFIRMED_BYTES,
    MAX_CONFIRMED_ROWS,
    Confirmed,
    Entry,
    Plan,
    compare,
    dump,
    load,
    writes,
)
from mahasiswa.sheets.reading import COMMAND_LINE, WEB, Limits, Table, read, read_text
from mahasiswa.wording import NO_TEXT_FOR_NEW

__all__ = [
    "COMMAND_LINE",
    "MAX_CONFIRMED_BYTES",
    "MAX_CONFIRMED_ROWS",
    "NO_TEXT_FOR_NEW",
    "WEB",
    "BadConfirmation",
    "Cleaner",
    "Confirmed",
    "Empty",
    "Entry",
    "InvalidRow",
    "Limits",
    "NoColumns",
    "NotASpreadsheet",
    "NotCarried",
    "OpenQuote",
    "PasswordProtected",
    "Plan",
    "Raw",
    "Row",
    "SheetError",
    "Table",
    "TooBig",
    "TooHeavy",
    "TooLarge",
    "TooManyRows",
    "Unreadable",
    "check",
    "compare",
    "csv_chunks",
    "dump",
    "load",
    "read",
    "read_text",
    "shown",
    "write_csv",
    "writes",
]

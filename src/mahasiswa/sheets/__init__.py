"""Reads records from spreadsheets, and writes records to spreadsheets.

    with read(file) as table:                       # or read_text(pasted)
        reading = first_reading(table, name)        # the rows: each is a Row, an InvalidRow or a Skipped one
    plan = compare(reading.answers, existing)       # new, changed and unchanged records, and rows that are not written
    book, field = dump(reading)                     # the rows as a field of the browser's form
    reading = read_again(load(field))               # the field as the browser sends it back
    changes = writes(book, plan, update=True)

Use a Cleaner for rows that do not fit into memory. `xlsx_export` writes .xlsx.
"""

from mahasiswa.sheets.book import (
    MAX_CONFIRMED_BYTES,
    MAX_REPAIRED_ROWS,
    Book,
    Reading,
    dump,
    first_reading,
    in_input,
    load,
    read_again,
    repaired,
)
from mahasiswa.sheets.cleaning import Answer, Cleaner, InvalidRow, NimCell, Row, Skipped, check, clean_nims
from mahasiswa.sheets.columns import MAX_TITLES, Batch, Columns, Places, SheetRow
from mahasiswa.sheets.csv_export import csv_chunks, write_csv
from mahasiswa.sheets.csv_form import is_ordinary
from mahasiswa.sheets.errors import ColumnsUnclear, NotCarried, SheetError, Stopped, TooBig
from mahasiswa.sheets.plan import Entry, Plan, compare, near_nims, nims, not_found, shown, writes
from mahasiswa.sheets.reading import (
    COMMAND_LINE,
    UPLOAD_MAX_BYTES,
    UPLOAD_MAX_ROWS,
    WEB,
    Choice,
    Limits,
    Table,
    is_workbook,
    read,
    read_text,
)
from mahasiswa.sheets.xlsx_export import write_template, write_xlsx

__all__ = [
    "COMMAND_LINE",
    "MAX_CONFIRMED_BYTES",
    "MAX_REPAIRED_ROWS",
    "MAX_TITLES",
    "UPLOAD_MAX_BYTES",
    "UPLOAD_MAX_ROWS",
    "WEB",
    "Answer",
    "Batch",
    "Book",
    "Choice",
    "Cleaner",
    "Columns",
    "ColumnsUnclear",
    "Entry",
    "InvalidRow",
    "Limits",
    "NimCell",
    "NotCarried",
    "Places",
    "Plan",
    "Reading",
    "Row",
    "SheetError",
    "SheetRow",
    "Skipped",
    "Stopped",
    "Table",
    "TooBig",
    "check",
    "clean_nims",
    "compare",
    "csv_chunks",
    "dump",
    "first_reading",
    "in_input",
    "is_ordinary",
    "is_workbook",
    "load",
    "near_nims",
    "nims",
    "not_found",
    "read",
    "read_again",
    "read_text",
    "repaired",
    "shown",
    "write_csv",
    "write_template",
    "write_xlsx",
    "writes",
]

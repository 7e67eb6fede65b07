"""Reads records from spreadsheets and writes them back.

    with read(file) as table:           # or read_text(pasted)
        rows = check(table)             # each is a Row, or an InvalidRow with the reason
    plan = compare(rows, existing)      # new, changed and unchanged records, invalid rows
    field = dump(plan)                  # the plan as a field of the browser's form
    confirmed = load(field)             # the field as the browser sends it back
    changes = writes(confirmed, existing)

Use a Cleaner instead of `check` for rows that do not fit into memory. `xlsx_export` writes .xlsx.
"""

from mahasiswa.sheets.cleaning import Cleaner, InvalidRow, NimCell, Row, check, clean_nims
from mahasiswa.sheets.columns import SheetRow
from mahasiswa.sheets.csv_export import csv_chunks, write_csv
from mahasiswa.sheets.errors import NotCarried, SheetError, Stopped, TooBig
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
from mahasiswa.sheets.reading import COMMAND_LINE, UPLOAD_MAX_BYTES, WEB, Limits, Table, is_workbook, read, read_text
from mahasiswa.sheets.xlsx_export import write_template, write_xlsx

__all__ = [
    "COMMAND_LINE",
    "MAX_CONFIRMED_BYTES",
    "MAX_CONFIRMED_ROWS",
    "UPLOAD_MAX_BYTES",
    "WEB",
    "Cleaner",
    "Confirmed",
    "Entry",
    "InvalidRow",
    "Limits",
    "NimCell",
    "NotCarried",
    "Plan",
    "Row",
    "SheetError",
    "SheetRow",
    "Stopped",
    "Table",
    "TooBig",
    "check",
    "clean_nims",
    "compare",
    "csv_chunks",
    "dump",
    "is_workbook",
    "load",
    "read",
    "read_text",
    "write_csv",
    "write_template",
    "write_xlsx",
    "writes",
]

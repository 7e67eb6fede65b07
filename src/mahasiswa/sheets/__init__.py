"""Reads records from spreadsheets, and writes records to spreadsheets.

    with read(file) as table:                       # or read_text(pasted)
        cleaned = clean_table(table, name)          # each row: a CleanedRow or a RejectedRow
    plan = compare(cleaned, existing)               # new, changed and unchanged records, and rows that are not written
    file, field = dump(cleaned)                     # the file as a field of the browser's form
    cleaned = clean_again(load(field))              # the field as the browser sends it back
    changes = confirmed_writes(file, plan, update=True)

Use a Cleaner for rows that do not fit into memory. `xlsx_export` writes .xlsx.
"""

from mahasiswa.sheets.carried_file import (
    LEFT_OUT,
    MAX_CONFIRMED_BYTES,
    CarriedFile,
    CleanedFile,
    clean_again,
    clean_table,
    in_input,
    repaired,
)
from mahasiswa.sheets.cells import MAX_SHEETS, MAX_TITLES, NAME_MAX_CHARACTERS, SHEET_ROWS, row_name
from mahasiswa.sheets.cleaning import CleanedRow, Cleaner, NimCell, RejectedRow, clean_nims
from mahasiswa.sheets.csv_form import write_csv
from mahasiswa.sheets.errors import NotCarried, SheetError, TooBig
from mahasiswa.sheets.file_kind import kind_of
from mahasiswa.sheets.form_field import dump, load
from mahasiswa.sheets.limits import COMMAND_LINE, UPLOAD_MAX_BYTES, UPLOAD_MAX_ROWS, WEB, Choice
from mahasiswa.sheets.plan import (
    FoundRow,
    ImportPlan,
    PlannedRow,
    compare,
    compare_nims,
    confirmed_writes,
    file_of_nims,
    nims,
    with_shown_changes,
    with_stored_nims,
)
from mahasiswa.sheets.reading import Table, read, read_text
from mahasiswa.sheets.xlsx_export import write_template, write_xlsx

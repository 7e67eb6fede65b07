"""Reads records from spreadsheets, and writes records to spreadsheets.

    with read(file) as table:                       # or read_text(pasted)
        cleaned = clean_table(table, name)          # each row: a CleanedRow, an InvalidRow or a SkippedRow
    plan = compare(cleaned, existing)               # new, changed and unchanged records, and rows that are not written
    file, field = dump(cleaned)                     # the file as a field of the browser's form
    cleaned = clean_again(load(field))              # the field as the browser sends it back
    changes = confirmed_writes(file, plan, update=True)

Use a Cleaner for rows that do not fit into memory. `xlsx_export` writes .xlsx.
"""

from mahasiswa.sheets.carried_file import CarriedFile as CarriedFile
from mahasiswa.sheets.carried_file import CleanedFile as CleanedFile
from mahasiswa.sheets.carried_file import Repairs as Repairs
from mahasiswa.sheets.carried_file import clean_again as clean_again
from mahasiswa.sheets.carried_file import clean_table as clean_table
from mahasiswa.sheets.carried_file import in_input as in_input
from mahasiswa.sheets.carried_file import repaired as repaired
from mahasiswa.sheets.cells import MAX_TITLES as MAX_TITLES
from mahasiswa.sheets.cells import SHEET_ROWS as SHEET_ROWS
from mahasiswa.sheets.cells import row_name as row_name
from mahasiswa.sheets.cleaning import CleanedRow as CleanedRow
from mahasiswa.sheets.cleaning import Cleaner as Cleaner
from mahasiswa.sheets.cleaning import InvalidRow as InvalidRow
from mahasiswa.sheets.cleaning import NimCell as NimCell
from mahasiswa.sheets.cleaning import SkippedRow as SkippedRow
from mahasiswa.sheets.cleaning import clean_nims as clean_nims
from mahasiswa.sheets.csv_form import write_csv as write_csv
from mahasiswa.sheets.deletion import FoundRow as FoundRow
from mahasiswa.sheets.deletion import compare_nims as compare_nims
from mahasiswa.sheets.deletion import file_of_nims as file_of_nims
from mahasiswa.sheets.errors import NotCarried as NotCarried
from mahasiswa.sheets.errors import SheetError as SheetError
from mahasiswa.sheets.errors import TooBig as TooBig
from mahasiswa.sheets.file_kind import is_workbook as is_workbook
from mahasiswa.sheets.form_field import MAX_CONFIRMED_BYTES as MAX_CONFIRMED_BYTES
from mahasiswa.sheets.form_field import dump as dump
from mahasiswa.sheets.form_field import load as load
from mahasiswa.sheets.kept_sheets import MAX_SHEETS as MAX_SHEETS
from mahasiswa.sheets.kept_sheets import NAME_MAX_CHARACTERS as NAME_MAX_CHARACTERS
from mahasiswa.sheets.plan import ImportPlan as ImportPlan
from mahasiswa.sheets.plan import PlannedRow as PlannedRow
from mahasiswa.sheets.plan import compare as compare
from mahasiswa.sheets.plan import confirmed_writes as confirmed_writes
from mahasiswa.sheets.plan import nims as nims
from mahasiswa.sheets.plan import with_shown_changes as with_shown_changes
from mahasiswa.sheets.plan import with_stored_nims as with_stored_nims
from mahasiswa.sheets.reading import COMMAND_LINE as COMMAND_LINE
from mahasiswa.sheets.reading import UPLOAD_MAX_BYTES as UPLOAD_MAX_BYTES
from mahasiswa.sheets.reading import UPLOAD_MAX_ROWS as UPLOAD_MAX_ROWS
from mahasiswa.sheets.reading import WEB as WEB
from mahasiswa.sheets.reading import Choice as Choice
from mahasiswa.sheets.reading import Table as Table
from mahasiswa.sheets.reading import read as read
from mahasiswa.sheets.reading import read_text as read_text
from mahasiswa.sheets.xlsx_export import write_template as write_template
from mahasiswa.sheets.xlsx_export import write_xlsx as write_xlsx

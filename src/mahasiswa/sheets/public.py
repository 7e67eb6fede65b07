"""The names of this package for the rest of the program."""

from mahasiswa.sheets.carried_file import LEFT_OUT, CarriedFile, dump, load, ranges_of
from mahasiswa.sheets.cells import SHEET_ROWS, in_input, row_name
from mahasiswa.sheets.cleaning import (
    CleanedFile,
    CleanedRow,
    Cleaner,
    RejectedRow,
    clean_again,
    clean_table,
    questions_of,
    repaired,
)
from mahasiswa.sheets.columns import Columns, problem_of
from mahasiswa.sheets.exports import EXPORTS
from mahasiswa.sheets.file_kind import is_utf8
from mahasiswa.sheets.limits import (
    NAME_MAX_CHARACTERS,
    UPLOAD_MAX_BYTES,
    UPLOAD_MAX_ROWS,
    Choice,
)
from mahasiswa.sheets.plan import (
    ImportPlan,
    PlannedRow,
    compare,
    confirmed_writes,
    with_shown_changes,
)
from mahasiswa.sheets.questions import Question, unanswered
from mahasiswa.sheets.reading import Table, read, read_text
from mahasiswa.sheets.sheet_errors import NotCarried, SheetError, TooBig
from mahasiswa.sheets.signed_field import MAX_CONFIRMED_BYTES
from mahasiswa.sheets.xlsx_export import rest_as_xlsx, write_template, write_xlsx

"""The limits for reading an upload, and the choice of a person who reads it again."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mahasiswa.record import Field

UPLOAD_MAX_BYTES = 16 << 20
UPLOAD_MAX_ROWS = 10_000  # maximum rows of a previewed file, or of pasted cells, without blank rows
UPLOAD_MAX_LINES = 1_048_576  # the same with blank rows, for CSV too; as in Excel
MAX_TITLES = 100  # maximum columns of a table among which a person can choose
MAX_TABLES = 400  # of a file
KEY_CHARACTERS = 8  # of the digest of the titles of a table
MAX_SHEETS = 200  # of a file, because a preview offers all of them
# Maximum length of the name of a file or of a sheet. Excel's sheets have at most 31 characters.
NAME_MAX_CHARACTERS = 255


# The fields of the columns that are read, which are counted from 0.
Roles = Mapping[int, Field]


class Choice(NamedTuple):
    """The sheets and the columns that a person has chosen, if any.

    `columns` are the fields of the columns by the keys of the tables. With `nim_only` no other column is needed.
    """

    sheets: Sequence[str] = ()
    columns: Mapping[str, Roles] = {}
    nim_only: bool = False


NO_CHOICE = Choice()

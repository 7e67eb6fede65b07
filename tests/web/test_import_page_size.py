"""The page that answers a preview's form is at most 64 KB and 8 times its field, however small the field is packed."""

import base64
import bz2
import json
import string
from collections.abc import Callable, Sequence

import pytest
from spreadsheets import (
    SAVE,
    Database,
    Importer,
)

PAGE_MAX_BYTES, PAGE_MAX_RATIO = 64 << 10, 8

MARK = "'"
"""A character of one byte in the field and of five in the page."""

LONG_TITLE = MARK * 30
TITLES, NAMES = [LONG_TITLE] * 100, [MARK * 255] * 199


def nims(count: int) -> list[str]:
    """Return different NIMs that are packed well."""
    return [f"{number:05}" for number in range(count)]


def sheet(*columns: list[str]) -> list[object]:
    """Return a sheet of these columns, whose first row has the titles."""
    cells = [[title, *column] for title, column in zip(["NIM", "Nama", "Alamat", *TITLES], columns, strict=False)]
    return ["", [1] * len(cells[0]), cells]


def equal(rows: int, nama: str, alamat: str) -> list[object]:
    """Return a sheet of rows that differ only by their NIM."""
    return sheet(nims(rows), [nama] * rows, [alamat] * rows)


def field(*sheets: Sequence[object], others: Sequence[str] = (), titles: Sequence[str] = ("", "", "")) -> str:
    """Return the field of a preview's form, packed as small as bz2 can."""
    has_all_cells = len(sheets) > 1 or bool(others) or len(titles) > 3
    file = [
        "daftar.csv",
        [sheet[0] for sheet in sheets],
        sheets,
        others,
        [[0, 1, 2], titles],
        has_all_cells,
        [],
        [],
        [],
        [],
        False,
        "",
    ]
    text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(bz2.compress(text.encode())).decode()


ONE = equal(1, "Ani", "Solo")
WIDE = sheet(["1"], ["Ani"], ["Solo"], *[[""]] * 97)
MARKS = [MARK * 99] * 4_000
LARGEST: dict[str, Callable[[], str]] = {
    "titles": lambda: field(WIDE, titles=TITLES),
    "names of sheets": lambda: field(ONE, others=NAMES),
    "sheets": lambda: field(ONE, *[[name, [], []] for name in NAMES]),
    "titles and names of sheets": lambda: field(WIDE, others=NAMES, titles=TITLES),
    "a few long texts": lambda: field(equal(20, MARK * 100_000, MARK * 100_000)),
    "500 long texts": lambda: field(equal(500, MARK * 5_000, MARK * 5_000)),
    "10,000 rows": lambda: field(equal(9_999, MARK * 300, MARK * 300)),
    "rows to repair": lambda: field(equal(9_999, "", MARK * 600)),
    "rows to repair, each with its own message": lambda: field(
        sheet([f"1,{n}E+11" for n in range(4_000)], MARKS, MARKS)
    ),
    "rows to look at": lambda: field(sheet([f"'{n:05}.0" for n in range(4_000)], MARKS, MARKS)),
    "rows that are skipped": lambda: field(sheet(["Total " + MARK * 900] * 5_000, [""] * 5_000, [""] * 5_000)),
    "rows without a column": lambda: field(equal(9_999, MARK * 300, "")),
    "rows that may have lost zeros": lambda: field(
        sheet([str(n) for n in range(1, 300)], [MARK * 3_000] * 299, [MARK * 3_000] * 299)
    ),
    "rows of sheets with long names": lambda: field(
        [MARK * 255, *equal(4_000, "", MARK)[1:]], [MARK * 254, *equal(5_000, "Ani", "Solo")[1:]]
    ),
    "row numbers": lambda: field(sheet([str(n % 2 or "") for n in range(9_999)], ["x"] * 9_999, ["y"] * 9_999)),
}


SHORT = {"titles and names of sheets", "500 long texts", "rows to repair"}


@pytest.mark.parametrize(
    "largest",
    [pytest.param(make, id=name, marks=[pytest.mark.torture] * (name not in SHORT)) for name, make in LARGEST.items()],
)
def test_a_small_field_does_not_make_a_large_page(
    importer: Importer, other: Database, largest: Callable[[], str]
) -> None:
    """Whatever part of it is opened. The list has long texts, too, which the page shows beside the file's."""
    other.fill([(nim, MARK * 3_000, MARK * 3_000) for nim in [*nims(300), *string.ascii_letters]])
    data = largest()
    for part in ("1", "baru", "baru-9000", "berubah", "sisa"):
        answer = importer.site.post(SAVE, {"data": data, "periksa": part})
        assert importer.shown(answer).data
        assert len(answer.content) <= PAGE_MAX_BYTES + PAGE_MAX_RATIO * len(data), (part, len(data))

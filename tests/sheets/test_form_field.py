"""The field of a preview's form carries a file to the browser and back unchanged, and refuses all unsigned values."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mahasiswa import wording
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets import selection
from mahasiswa.sheets.carried_file import CarriedFile
from mahasiswa.sheets.cells import SHEET_ROWS, BadCell, Cell, Sheet
from mahasiswa.sheets.columns import Columns
from mahasiswa.sheets.questions import Question

texts = st.text(st.characters(exclude_categories=["Cs"]))
cells: st.SearchStrategy[Cell] = (
    st.none()
    | texts
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.builds(BadCell, st.sampled_from(["date", "error", "formula", "long"]), texts)
)


KEY = bytes(range(32))
SHEET = Sheet("", [(1, ["1", "Ani", "Solo"])])
COLUMNS = Columns(1, "k", ["NIM"], [["1"]], {0: "nim"})
FILE = CarriedFile("daftar.csv", [""], [SHEET], [], [COLUMNS], [""], has_all_cells=True)


@given(
    st.dictionaries(
        st.integers(1, SHEET_ROWS - 1), st.lists(cells, min_size=1, max_size=4), max_size=6
    ),
    st.dictionaries(st.integers(1, 9999), st.tuples(*[st.none() | texts] * 3), max_size=3),
    st.lists(texts.map(lambda text: text[:30]), max_size=4),
    st.frozensets(st.integers(1, 99), max_size=5),
)
def test_a_file_comes_back_from_the_browser_unchanged(
    rows: dict[int, list[Cell]],
    typed: dict[int, tuple[str | None, str | None, str | None]],
    titles: list[str],
    accepted: frozenset[int],
) -> None:
    """The field has only characters that no browser alters or escapes."""
    sheet = Sheet("A", [(number, rows[number]) for number in sorted(rows)])
    hidden = Sheet("B", [], (Question("lembar", "?", [1], "!"),), (2,))
    columns = COLUMNS._replace(titles=titles, problem="?")
    file = FILE._replace(sheets=[sheet, hidden], other_sheets=["C"], tables=[columns, COLUMNS])
    file = file._replace(
        typed=typed,
        accepted=accepted,
        new=[2, 3],
        changed=[4],
        chosen_columns={"k": {0: "nim", 2: "nama"}},
        shown_digests=["v"],
    )
    field = sheets.dump(file, KEY)
    assert set(field) <= set(string.ascii_letters + string.digits + "-_=")
    loaded = sheets.load(field, KEY)
    assert loaded == file._replace(sheets=[sheet, hidden])
    assert [list(map(type, row)) for _, row in loaded.sheets[0].rows] == [
        list(map(type, row)) for _, row in sheet.rows
    ]


def test_a_field_that_the_service_has_not_made_for_this_purpose_is_refused() -> None:
    """Every byte and the purpose are signed. The last characters of base64 hold bits that mean nothing."""
    field = sheets.dump(FILE, KEY)
    selected = selection.select([selection.NimRow(1, "1")], {}, [])._replace(unread_sheets=["B"])
    of_selection = selection.dump_selection(selected, KEY)
    assert selection.load_selection(of_selection, KEY) == ([], [selection.NimRow(1, "1")], ["B"])
    altered = [
        field[:at] + ("A" if field[at] != "A" else "B") + field[at + 1 :]
        for at in range(0, len(field) - 4, 7)
    ]
    others = (
        sheets.dump(FILE, b"x" * 32),
        of_selection,
        "",
        field[:-4],
        field + "AAAA",
        field + "*",
        "é",
    )
    for other in (*altered, *others):
        with pytest.raises(sheets.SheetError, match=wording.CONFIRMATION_DAMAGED):
            sheets.load(other, KEY)
    with pytest.raises(sheets.SheetError, match=wording.CONFIRMATION_DAMAGED):
        selection.load_selection(field, KEY)

"""The field of a preview's form carries a file to the browser and back unchanged, and refuses everything else."""

import base64
import bz2
import json
import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spreadsheets import HEADER, csv, reading, students

from mahasiswa import wording
from mahasiswa.sheets import public as sheets
from mahasiswa.sheets.carried_file import BZ2_LEVEL, FIELD_MAX_CHARACTERS, CarriedFile
from mahasiswa.sheets.cells import SHEET_ROWS, BadCell, Cell, Sheet, Verbatim
from mahasiswa.sheets.columns import Columns

texts = st.text(st.characters(exclude_categories=["Cs"]))
cells: st.SearchStrategy[Cell] = (
    st.none()
    | texts
    | st.builds(Verbatim, texts)
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.builds(BadCell, st.sampled_from(["date", "error", "formula", "long"]), texts)
)


def cleaned(data: bytes) -> sheets.CleanedFile:
    with reading(data) as table:
        return sheets.clean_table(table, "daftar.csv")


@given(
    st.dictionaries(st.integers(1, SHEET_ROWS - 1), st.lists(cells, min_size=1, max_size=4), max_size=6),
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
    parts = ("daftar", ["A"], [sheet, Sheet("B", [])], ["C"], Columns((0, None, 2), titles))
    file = CarriedFile(
        *parts,
        has_all_cells=True,
        typed=typed,
        accepted=accepted,
        new=[2, 3],
        changed=[4],
        fills_alamat=True,
        replaced_digest="v",
    )
    carried, field = sheets.dump(sheets.CleanedFile(file, [], []))
    assert carried == file
    assert set(field) <= set(string.ascii_letters + string.digits + "-_=")
    loaded = sheets.load(field)
    width = max(map(len, rows.values()), default=0)
    padded = [(number, (*cells, *[None] * (width - len(cells)))) for number, cells in sheet.rows]
    assert loaded._replace(sheets=[]) == file._replace(sheets=[])
    assert [(name, list(rows)) for name, rows in loaded.sheets] == [("A", padded), ("B", [])]
    assert [list(map(type, row)) for _, row in loaded.sheets[0].rows] == [list(map(type, row)) for _, row in padded]


def test_3000_records_are_carried_in_less_than_33_kb() -> None:
    file, field = sheets.dump(cleaned(csv(HEADER, *students(3000))))
    assert file.has_all_cells
    assert len(field) < 33_000


def test_a_file_that_is_too_large_is_carried_with_the_columns_that_were_read() -> None:
    rows = "".join(f"{n};Ani {n};Solo;{n * 7919 % 99991}{n * 104729 % 99991}\n" for n in range(9000))
    whole = cleaned(("NIM;Nama;Alamat;Lain\n" + rows).encode())
    file, field = sheets.dump(whole)
    assert (whole.file.has_all_cells, file.has_all_cells) == (True, False)
    assert sheets.clean_again(sheets.load(field)).results == whole.results
    assert 2 * len(field) < 3 * FIELD_MAX_CHARACTERS


# ---- a field that no preview sends


def field_of(text: str) -> str:
    return base64.urlsafe_b64encode(bz2.compress(text.encode(), BZ2_LEVEL)).decode()


def json_of(field: str) -> str:
    return bz2.decompress(base64.urlsafe_b64decode(field)).decode()


FIELD = sheets.dump(cleaned(b"NIM;Nama;Alamat\n1;Ani;Solo\n2;Budi;Bantul\n"))[1]

TAMPERED: dict[str, Callable[[str], str]] = {
    "another order of the same JSON": lambda text: text.replace(",", ", "),
    "an object": lambda text: text.replace('"Ani"', '{"a":1}'),
    "an object with the same key twice": lambda text: text.replace('"Ani"', '{"a":1,"a":2}'),
    "half a surrogate pair": lambda text: text.replace("Ani", "\\ud83d"),
    "an escape that needs none": lambda text: text.replace("Ani", "\\u0041ni"),
    "NaN": lambda text: text.replace('"Ani"', "NaN"),
    "infinity": lambda text: text.replace('"Ani"', "1e999"),
    "a number of 4,000 digits": lambda text: text.replace('"Ani"', "1" * 4000),
    "a number of 100,000 digits": lambda text: text.replace('"Ani"', "1" * 100_000),
    "a cell of another kind": lambda text: text.replace('"Ani"', '["x","y"]'),
    "a kind without a text": lambda text: text.replace('"Ani"', '["error"]'),
    "deep lists": lambda text: text.replace('"Ani"', "[" * 100_000 + "]" * 100_000),
    "a byte order mark": lambda text: "\ufeff" + text,
    "a value less": lambda text: text.rpartition(",")[0] + "]",
    "a value more": lambda text: text[:-1] + ",1]",
    "a column less in a sheet": lambda text: text.replace(',["Alamat","Solo","Bantul"]', ',["Alamat","Solo"]'),
    "a row twice": lambda text: text.replace("[[1,3]]", "[[1,1],[0,1],[1,1]]"),
    "rows in another order": lambda text: text.replace("[[1,3]]", "[[2,1],[-1,1],[1,1]]"),
    "a row more": lambda text: text.replace("[[1,3]]", "[[1,4]]"),
    # Python refuses to write a number of more than 4,300 digits, which the sum of two others may have.
    "rows with a huge number": lambda text: text.replace("[[1,3]]", f"[[1,1],[{'9' * 4300},2]]"),
    "a row of a sheet that is not read": lambda text: text.replace("[[1,3]]", f"[[1,2],[{SHEET_ROWS},1]]"),
    "a row that is true": lambda text: text.replace("[[1,3]]", "[[true,3]]"),
    "rows in two runs that are one": lambda text: text.replace("[[1,3]]", "[[1,1],[1,2]]"),
    "a run without a row": lambda text: text.replace("[[1,3]]", "[[1,3],[5,0]]"),
    "a run of a billion rows": lambda text: text.replace("[[1,3]]", "[[1,1000000000]]"),
    "a billion new rows": lambda text: text.replace(
        "true,[],[],[]", f"true,[],[],[{'[1,99999],[2,99999],' * 5000}[1,1]]"
    ),
    "a column that is a text": lambda text: text.replace("[0,1,2]", '[0,1,"2"]'),
    "a column beyond every sheet": lambda text: text.replace("[0,1,2]", "[0,1,99999]"),
    "a column less": lambda text: text.replace("[0,1,2]", "[0,1]"),
    "no sheet": lambda text: text[: text.index("[[")] + "[]" + text[text.index(",[],[[0,1,2]") :],
    "two sheets of selected columns": lambda text: text.replace("true", "false").replace("[[", '[["x",[],[]],[', 1),
    "a long name": lambda text: text.replace("daftar.csv", "x" * 256),
    "many sheets": lambda text: text.replace(
        ",[],[[0,1,2]", f",{json.dumps(['x'] * 201, separators=(',', ':'))},[[0,1,2]"
    ),
    "many titles": lambda text: text.replace('"NIM","Nama","Alamat"]]', '"x",' * 100 + '"x"]]'),
    "a long title": lambda text: text.replace('"NIM","Nama","Alamat"]]', f'"{"x" * 31}"]]'),
    "a digest of another length": lambda text: text.replace(',""]', f',"{"0" * 33}"]'),
    "a number instead of true": lambda text: text.replace('false,""]', '0,""]'),
    "a typed number": lambda text: text.replace("true,[]", "true,[[2,1,null,null]]"),
    "text of 2 MB that takes 8 MB in memory": lambda text: text.replace("Ani", "🎓" + "x" * (2 << 20)),
    "a typed text more": lambda text: text.replace("true,[]", 'true,[[2,"a","b","c","d"]]'),
}


@pytest.mark.parametrize("alter", TAMPERED.values(), ids=TAMPERED)
def test_a_field_that_was_altered_is_damaged(alter: Callable[[str], str]) -> None:
    text = json_of(FIELD)
    assert field_of(text) == FIELD
    assert alter(text) != text
    with pytest.raises(sheets.SheetError) as caught:
        sheets.load(field_of(alter(text)))
    assert str(caught.value) == wording.CONFIRMATION_DAMAGED


@pytest.mark.parametrize("value", [None, 1, True, {}, [[]] * 10, [0] * 10, ["x"] * 10, [None] * 10, [{}] * 10])
def test_json_of_any_other_shape_is_damaged(value: Any) -> None:  # noqa: ANN401 - JSON
    """Also if it stands for a part of the file."""
    parts = json.loads(json_of(FIELD))
    for shape in (value, *([*parts[:place], value, *parts[place + 1 :]] for place in range(len(parts)))):
        valid = ([*parts[:3], ["x"] * 10, *parts[4:]], [*parts[:5], value, *parts[6:]], [*parts[:-2], value, parts[-1]])
        if shape != parts and shape not in valid:
            with pytest.raises(sheets.SheetError):
                sheets.load(field_of(json.dumps(shape, separators=(",", ":"))))


@pytest.mark.parametrize("end", ["", "x" * 3, "*"], ids=["half", "characters after it", "no base64"])
def test_a_field_that_was_cut_or_made_longer_is_damaged(end: str) -> None:
    with pytest.raises(sheets.SheetError, match=wording.CONFIRMATION_DAMAGED):
        sheets.load(FIELD + end if end else FIELD[: len(FIELD) // 2])


def test_a_field_of_another_block_size_is_damaged() -> None:
    """It could be half as long, and so demand a page that is twice as long as its field allows."""
    packed = base64.urlsafe_b64encode(bz2.compress(json_of(FIELD).encode(), 9)).decode()
    with pytest.raises(sheets.SheetError, match=wording.CONFIRMATION_DAMAGED):
        sheets.load(packed)


@pytest.mark.parametrize("unit", ["[],", '"ab",', "1,", "{},", "[[[[],"])
def test_a_small_field_of_millions_of_values_is_refused_before_it_is_parsed(unit: str) -> None:
    """8 MB of JSON could become 170 MB of lists."""
    text = "[" + unit * ((8 << 20) // len(unit) - 2) + "1]"
    with pytest.raises(sheets.SheetError, match=wording.CONFIRMATION_DAMAGED):
        sheets.load(field_of(text))

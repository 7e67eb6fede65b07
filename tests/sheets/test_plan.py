"""A file is compared with the records that exist, and the result passes through the browser unchanged."""

import json
import re
import string
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mahasiswa import sheets, wording
from mahasiswa.record import NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, Mahasiswa, Write, digest

ANI = Mahasiswa("1", "Ani", "Jl. A")
VERSI = digest(ANI)

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
nims = texts.filter(lambda text: text and text not in UNADDRESSABLE_NIMS and len(text) <= NIM_MAX_CHARACTERS)


def plan_of(*rows: tuple[str, str | None, str | None]) -> sheets.Plan:
    return sheets.compare(sheets.check((number, *row) for number, row in enumerate(rows, 2)), {"1": ANI})


def test_rows_are_sorted_into_new_changed_unchanged_and_invalid() -> None:
    plan = plan_of(("1", "Ani", "Jl. B"), ("2", "Budi", "B"), ("..", "C", "C"))
    assert [(entry.before, entry.after) for entry in plan.changed] == [(ANI, Mahasiswa("1", "Ani", "Jl. B"))]
    assert [(entry.before, entry.after) for entry in plan.new] == [(None, Mahasiswa("2", "Budi", "B"))]
    assert [wrong.number for wrong in plan.wrong] == [4]
    assert plan.same == []


def test_a_blank_cell_never_erases_a_text() -> None:
    plan = plan_of(("1", None, "Jl. B"))
    assert plan.changed[0].after == Mahasiswa("1", "Ani", "Jl. B")
    assert [entry.after for entry in plan_of(("1", None, None)).same] == [ANI]


def test_a_new_record_needs_both_texts() -> None:
    nama, alamat, both = plan_of(("2", None, "B"), ("3", "C", None), ("4", None, None)).wrong
    assert nama.message == "Baris 2: Nama kosong. Mahasiswa baru harus punya nama."
    assert nama.cells == ("2", "", "B")
    assert alamat.message == "Baris 3: Alamat kosong. Mahasiswa baru harus punya alamat."
    assert both.problem == f"{wording.NEW_NEEDS_NAMA} {wording.NEW_NEEDS_ALAMAT}"


def test_a_confirmation_holds_new_and_changed_records() -> None:
    plan = plan_of(("1", "Ani", "Jl. B"), ("2", "Budi", "B"))
    new = Write(Mahasiswa("2", "Budi", "B"), None)
    confirmed = sheets.load(sheets.dump(plan))
    assert sheets.writes(confirmed[:1], {}) == [new]
    assert sheets.writes(confirmed, {"1": ANI}) == [new, Write(Mahasiswa("1", "Ani", "Jl. B"), VERSI)]


def test_a_blank_cell_keeps_the_newest_text_of_the_record() -> None:
    confirmed = sheets.load(sheets.dump(plan_of(("1", None, "Jl. B"))))
    newer = Mahasiswa("1", "Ani S.", "Jl. C")
    assert sheets.writes(confirmed, {"1": newer}) == [Write(Mahasiswa("1", "Ani S.", "Jl. B"), VERSI)]
    assert sheets.writes(confirmed, {}) is None


@given(st.builds(Mahasiswa, texts, texts, texts), st.builds(Mahasiswa, texts, texts, texts))
def test_two_records_have_the_same_digest_only_if_they_look_the_same_in_a_form(
    first: Mahasiswa, second: Mahasiswa
) -> None:
    """The digest is of nama and alamat without their line breaks, which a single-line input cannot hold."""
    shown = [[re.sub("[\r\n]", "", text) for text in record[1:]] for record in (first, second)]
    assert (digest(first) == digest(second)) == (shown[0] == shown[1])
    assert set(digest(first)) <= set(string.ascii_letters + string.digits + "-_")


def test_the_digest_depends_on_where_each_text_ends() -> None:
    assert digest(Mahasiswa("1", "ab", "c")) != digest(Mahasiswa("1", "a", "bc"))
    assert digest(Mahasiswa("1", "a1:b", "")) != digest(Mahasiswa("1", "a", "b"))


@given(
    st.lists(
        st.builds(sheets.Row, st.integers(1, 10_000), nims, texts, texts, st.just(()), st.just(())),
        unique_by=lambda row: row.nim,
    )
)
def test_confirmed_rows_come_back_unchanged(rows: list[sheets.Row]) -> None:
    existing = {row.nim: Mahasiswa(row.nim, row.nama or "", "lama") for row in rows[::2]}
    plan = sheets.compare(rows, existing)
    field = sheets.dump(plan)
    assert field.isascii()
    assert field.isprintable()
    assert sheets.load(field) == [
        sheets.Confirmed(entry.row, digest(entry.before) if entry.before else None)
        for entry in (*plan.new, *plan.changed)
    ]


as_field = partial(json.dumps, separators=(",", ":"))

GOOD: list[Any] = [2, "1", "Ani", "A", None]


@pytest.mark.parametrize(
    "rows",
    [
        None,
        {},
        "x",
        [[]],
        ["1234"],
        [GOOD[:4]],
        [[*GOOD, 1]],
        [[2, 1, "Ani", "A", None]],
        [[0, "1", "Ani", "A", None]],
        [[True, "1", "Ani", "A", None]],
        [["2", "1", "Ani", "A", None]],
        [[2, "1", None, "A", None]],
        [[2, "1", "Ani", ["A"], None]],
        [[2, "1", "Ani", "A", ""]],
        [[2, "1", "Ani", "A", "x" * 23]],
        [[2, "1", "Ani", "A", "é" * 22]],
        [[2, "1", "Ani", "A", VERSI + "\n"]],
        [[2, ".", "Ani", "A", None]],
        [[2, "..", "Ani", "A", None]],
        [[2, "1" * (NIM_MAX_CHARACTERS + 1), "Ani", "A", None]],
        [[2, "1", "A\0", "A", None]],
        [[2, "1", "A\ud800", "A", None]],
        [GOOD, GOOD],
    ],
)
def test_a_confirmation_that_no_preview_sends_is_refused(rows: object) -> None:
    with pytest.raises(sheets.SheetError, match=wording.CONFIRMATION_DAMAGED):
        sheets.load(as_field(rows))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "]",
        "[" * 100_000,
        "9" * 5000,
        "[NaN]",
        '[[2,"1","Ani","A",null]',
        '[[2,"1","Ani","A",null],]',
        '[[2,"1","Ani","A",null]]]',
        '[[2,"1","Ani","A",null]][]',
        '[[2,"1","Ani","A" ,null]]',
        '[[2,"1","Ani\n","A",null]]',
        '[[2,"1","Ani\\q","A",null]]',
        '[[2,"1","Ani","A,null]]',
        "[" + "[]," * 1000 + "[]]",
    ],
)
def test_a_confirmation_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(sheets.SheetError, match=wording.CONFIRMATION_DAMAGED):
        sheets.load(text)


def test_a_confirmation_is_limited_in_rows_and_bytes() -> None:
    rows = [[2, str(number), "Ani", "A", None] for number in range(10_001)]
    assert len(sheets.load(as_field(rows[1:]))) == 10_000
    with pytest.raises(sheets.SheetError, match=r"10\.000 baris"):
        sheets.load(as_field(rows))
    with pytest.raises(sheets.SheetError, match="8 MB"):
        sheets.load(" " * (8 << 20) + "[]")


def test_a_confirmation_that_would_be_too_large_is_refused_before_the_preview() -> None:
    """The browser percent-encodes the field, so each `é` becomes eight bytes or more."""
    with pytest.raises(sheets.SheetError, match="8 MB"):
        sheets.dump(sheets.compare([sheets.Row(2, "1", "é" * 1_100_000, "A")], {}))

"""A file is compared with the stored records, and its cells pass through the browser unchanged."""

import io
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spreadsheets import students

from mahasiswa import sheets, wording
from mahasiswa.record import Mahasiswa, Write, digest, near_key
from mahasiswa.sheets.book import WHOLE_MAX_PACKED_BYTES
from mahasiswa.sheets.columns import BadCell, Cell, Columns, Verbatim
from mahasiswa.sheets.whole import Sheet

ANI = Mahasiswa("1", "Ani", "Jl. A")
VERSI = digest(ANI)

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
cells: st.SearchStrategy[Cell] = (
    st.none()
    | texts
    | st.builds(Verbatim, texts)
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.builds(BadCell, st.sampled_from(["date", "error", "formula", "long"]), texts)
)


def plan_of(*rows: tuple[str, str | None, str | None]) -> sheets.Plan:
    return sheets.compare(sheets.check((number, *row) for number, row in enumerate(rows, 2)), {"1": ANI})


def reading_of(data: bytes) -> sheets.Reading:
    with sheets.read(io.BytesIO(data)) as table:
        return sheets.first_reading(table, "daftar.csv")


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


def test_a_confirmation_writes_new_and_changed_records() -> None:
    reading = reading_of(b"NIM;Nama;Alamat\n1;Ani;Jl. B\n2;Budi;B\n")
    plan = sheets.compare(reading.answers, {"1": ANI})
    book = sheets.shown(reading.book, plan)
    new, changed = Write(Mahasiswa("2", "Budi", "B"), None), Write(Mahasiswa("1", "Ani", "Jl. B"), VERSI)
    assert sheets.writes(book, plan, update=False) == [new]
    assert sheets.writes(book, plan, update=True) == [new, changed]


def test_a_confirmation_writes_nothing_if_a_record_has_changed_since() -> None:
    reading = reading_of(b"NIM;Nama;Alamat\n1;;Jl. B\n2;Budi;B\n")
    book = sheets.shown(reading.book, sheets.compare(reading.answers, {"1": ANI}))

    def writes(*existing: Mahasiswa, update: bool) -> list[Write] | None:
        plan = sheets.compare(reading.answers, {record.nim: record for record in existing})
        return sheets.writes(book, plan, update=update)

    newer, added = Mahasiswa("1", "Ani S.", "Jl. A"), Mahasiswa("2", "Orang lain", "B")
    assert writes(newer, update=True) is None
    assert writes(newer, update=False) == [Write(Mahasiswa("2", "Budi", "B"), None)]
    assert writes(update=True) is None
    assert writes(ANI, added, update=False) is None
    assert writes(Mahasiswa("1", "Ani", "Jl. B"), Mahasiswa("2", "Budi", "B"), update=True) == []


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


@pytest.mark.parametrize(
    ("nim", "key"), [("0230.0-1 A", "23001a"), ("00", ""), ("É0", "É0"), ("20/456839/TK/50663", "20/456839/tk/50663")]
)
def test_nims_that_differ_only_by_zeros_and_separators_have_one_key(nim: str, key: str) -> None:
    assert near_key(nim) == key


@given(
    st.dictionaries(st.integers(1, 999_999_999), st.lists(cells, min_size=1, max_size=4), max_size=6),
    st.dictionaries(st.integers(1, 9999), st.tuples(*[st.none() | texts] * 3), max_size=3),
    st.lists(texts, max_size=4),
    st.frozensets(st.integers(1, 99), max_size=5),
)
def test_what_was_read_comes_back_from_the_browser_unchanged(
    rows: dict[int, list[Cell]],
    typed: dict[int, tuple[str | None, str | None, str | None]],
    titles: list[str],
    accepted: frozenset[int],
) -> None:
    """The field has only characters that no browser alters or escapes."""
    sheet = Sheet("A", [(number, rows[number]) for number in sorted(rows)])
    columns = Columns((0, None, 2), titles)
    book = sheets.Book("daftar", [sheet, Sheet("B", [])], ["C"], columns, True, typed, accepted, [2, 3, 9], [4], "v")  # noqa: FBT003 - as it is declared
    carried, field = sheets.dump(sheets.Reading(book, [], []))
    assert carried == book
    assert set(field) <= set(string.ascii_letters + string.digits + "-_=")
    loaded = sheets.load(field)
    width = max(map(len, rows.values()), default=0)
    padded = [(number, (*cells, *[None] * (width - len(cells)))) for number, cells in sheet.rows]
    assert loaded._replace(sheets=[]) == book._replace(sheets=[])
    assert [(name, list(rows)) for name, rows in loaded.sheets] == [("A", padded), ("B", [])]
    assert [list(map(type, row)) for _, row in loaded.sheets[0].rows] == [list(map(type, row)) for _, row in padded]


def test_a_cell_with_nul_is_still_refused_after_it_was_carried() -> None:
    reading = sheets.first_reading(sheets.read_text("NIM\tNama\tAlamat\n1\tA\0\1ni\tSolo"), "")
    again = sheets.read_again(sheets.load(sheets.dump(reading)[1]))
    assert [type(answer) for answer in (*reading.answers, *again.answers)] == [sheets.InvalidRow] * 2


def test_3000_records_are_carried_in_less_than_40_kb() -> None:
    data = "NIM;Nama;Alamat\n" + "".join(";".join(record) + "\n" for record in students(3000))
    book, field = sheets.dump(reading_of(data.encode()))
    assert book.is_whole
    assert len(field) < 40_000


def test_a_file_that_is_too_large_is_carried_with_the_columns_that_were_read() -> None:
    rows = "".join(f"{n};Ani {n};Solo;{n * 7919 % 99991}{n * 104729 % 99991}\n" for n in range(9000))
    reading = reading_of(("NIM;Nama;Alamat;Lain\n" + rows).encode())
    book, field = sheets.dump(reading)
    assert reading.book.is_whole
    assert not book.is_whole
    assert sheets.read_again(sheets.load(field)).answers == reading.answers
    assert len(field) < 2 * WHOLE_MAX_PACKED_BYTES


def test_a_confirmation_that_would_be_too_large_is_refused_before_the_preview() -> None:
    rows = "".join(f"{n};{'é' * 1000};Solo\n" for n in range(5000))
    with pytest.raises(sheets.SheetError, match="8 MB"):
        sheets.dump(reading_of(("NIM;Nama;Alamat\n" + rows).encode()))

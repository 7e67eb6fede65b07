"""An import of more rows than the history keeps stores the same records as a shorter one, in another way."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import ask

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.settings import SQLiteURL
from mahasiswa.store import Merged, folding, migrate, open_store
from mahasiswa.store.sqlite import store as sqlite_store

TABLES = ("SELECT * FROM mahasiswa", "SELECT * FROM mahasiswa_cari", "SELECT type, name, sql FROM sqlite_schema")
texts = st.text("Aa1 ,.-'`\u2019\u00c9\u00e9\u00df\u0301\u212b\U0001f393\x01\n", max_size=8)
nims = st.text("01a\u00c9-", min_size=1, max_size=2)


@st.composite
def incoming(draw: st.DrawFn) -> list[Incoming]:
    """Draw the rows of a file, some of them with blank cells, and in the order of their nims or not."""
    drawn = draw(st.lists(nims, unique=True, min_size=1, max_size=8))
    cells = draw(st.sampled_from([texts, st.none() | texts]))
    rows = sorted(drawn) if draw(st.booleans()) else drawn
    return [(number, nim, draw(cells), draw(cells)) for number, nim in enumerate(rows, 2)]


stored = st.lists(st.builds(Mahasiswa, nims, texts, texts), unique_by=lambda record: record.nim, max_size=5)


def test_an_import_without_entries_in_the_history_writes_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records, the folded texts, the triggers and the counts are the same, also if the list was not empty."""

    async def result(path: Path, before: Sequence[Mahasiswa], rows: Sequence[Incoming], *, update: bool) -> object:
        migrate(SQLiteURL(path))
        store = await open_store(SQLiteURL(path))
        await store.merge([[(n, *record) for n, record in enumerate(before)]], update=False, dry_run=False)
        monkeypatch.setattr(sqlite_store, "UNDOABLE_ROWS_MAX", 0 if path.name == "long.db" else 100_000)
        half = len(rows) // 2
        batches = [rows[:half], rows[half:]]
        merged: Merged = (await store.merge(batches, update=update, dry_run=False))._replace(seconds=0)
        await store.close()
        tables = [sorted(map(repr, ask(path, table))) for table in TABLES]
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return merged, tables

    @given(before=stored | st.just([]), rows=incoming(), update=st.booleans())
    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def compare(before: list[Mahasiswa], rows: list[Incoming], *, update: bool) -> None:
        short = asyncio.run(result(tmp_path / "short.db", before, rows, update=update))
        assert asyncio.run(result(tmp_path / "long.db", before, rows, update=update)) == short

    compare()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | texts, min_size=1, max_size=10))
@settings(max_examples=300, deadline=None)
def test_many_texts_are_folded_as_each_of_them_is(many: list[str]) -> None:
    assert list(folding.fold_all(many)) == list(map(folding.fold, many))


def test_every_letter_is_folded_alike_alone_and_among_many() -> None:
    many = [letter + other for letter in folding.REPLACEMENTS for other in "Aa-\u2019"]
    assert list(folding.fold_all(many)) == list(map(folding.fold, many))

"""Both engines give the same answers to the same random operations, and hold the same records in the same order."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import stores
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres import new_schema
from stores import engine_at, migrate

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.store import Query, Store
from mahasiswa.store.store_errors import Changed, EditConflict, Refused
from mahasiswa.work import RECORD, SEARCH, Slots

# Letters with another case, and characters that a language or a lenient comparison takes for the same.
LETTERS = "aAbBzZ01 éÉüÜßẞıİiIſKKåÅåÅσςΣǅǆǄñÑ%_\\*?[](){}.+^$|-/'\"<&\x01\t\n\r\u200b\ufeff\uffff🎓"
TEXTS = st.text(st.sampled_from(LETTERS), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=6
)
NAMES = "Siti|siti|SITI| Siti\r\n|Nur'aini|Élan|élan|100%|a_b|a.b|[x]|***=a|(?i)a"
WORDS = st.sampled_from(NAMES.split("|"))
LONG = [letter * length for letter in "9🎓" for length in (255, 256)]
# Half of them are one of two, so that the operations often meet the same record.
NIMS = st.one_of(
    st.sampled_from(["1", "01"]),
    st.sampled_from(["1", "01"]),
    st.sampled_from(["", ".", "..", "a\0", *LONG]),
    TEXTS,
)
VALUES = st.none() | WORDS | TEXTS
STORABLE = (WORDS | TEXTS).map(lambda text: text.replace("\0", ""))
# PostgreSQL refuses a NUL before it looks for the record of an edit.
KEPT = st.none() | STORABLE
QUERIES = st.builds(
    Query,
    st.just("") | WORDS | TEXTS,
    st.sampled_from(Mahasiswa._fields),
    st.sampled_from(["naik", "turun"]),
)
WRITES = st.lists(
    st.tuples(st.builds(Mahasiswa, NIMS, STORABLE, STORABLE | TEXTS), st.booleans()), max_size=4
)
# The name of a function below, or of a method of the store or of its readers, and the arguments.
OPERATIONS = st.one_of(
    st.tuples(st.just("add"), st.none() | NIMS, VALUES, VALUES),
    st.tuples(st.just("update"), NIMS, STORABLE, KEPT, st.sampled_from([None, "another"])),
    st.tuples(st.just("edit"), NIMS, KEPT, KEPT, STORABLE),
    st.tuples(st.just("delete"), NIMS),
    st.tuples(st.just("find"), st.lists(NIMS, max_size=5)),
    st.tuples(st.just("after"), st.none() | STORABLE, st.integers(1, 3)),
    st.tuples(st.just("search"), QUERIES, st.integers(0, 3), st.integers(0, 5)),
    st.tuples(st.just("write_all"), WRITES),
)


async def edit(store: Store, nim: str, nama: str | None, alamat: str | None, shown: str) -> None:
    """Change a record as the edit page does, which has shown another nama."""
    current = await store.reader(RECORD).get(nim)
    version = digest(current._replace(nama=shown)) if current else "none"
    await store.update(nim, nama, alamat, version)


async def write_all(store: Store, wanted: Sequence[tuple[Mahasiswa, bool]]) -> None:
    """Write several records, some of them with the digest of their current texts."""
    writes = []
    for record, known in wanted:
        current = await store.reader(RECORD).get(record.nim) if known else None
        writes.append(Write(record, digest(current) if current else None))
    await store.write_all("import", writes)


async def search(store: Store, query: Query, offset: int, limit: int) -> object:
    """A page of all records that a query finds, without its line of the history, whose moment differs."""
    page = (await store.reader(SEARCH).search(query, offset, limit))._replace(last=None)
    found = await store.export(query, list)
    assert page.total == len(found)
    assert page.records == found[offset : offset + limit]
    return page


async def outcome(store: Store, name: str, *arguments: Any) -> object:  # noqa: ANN401 - drawn
    reader = store.reader(RECORD)
    try:
        if name in ("edit", "write_all", "search"):
            return await globals()[name](store, *arguments)
        return await getattr(reader if name in ("find", "after") else store, name)(*arguments)
    except (Refused, Changed, EditConflict) as error:
        # A change may have several faults, of which the engines name different ones.
        return "refused" if name == "write_all" or "\\x00" in repr(arguments) else repr(error)


@pytest.fixture
def runner(postgres: str, tmp_path: Path) -> Iterator[tuple[asyncio.Runner, Store, Store]]:
    with asyncio.Runner() as runner:
        opened = []
        for place in (tmp_path / "a.db", new_schema(postgres)):
            migrate(place)
            opened.append(runner.run(engine_at(place).open_store(Slots())))
        yield runner, opened[0], opened[1]
        for store in opened:
            runner.run(store.close())


@pytest.mark.parametrize("examples", [30, pytest.param(300, marks=pytest.mark.torture)])
def test_both_engines_answer_the_same_operations_alike(
    runner: tuple[asyncio.Runner, Store, Store], examples: int
) -> None:
    """After each operation they hold the same records, in the order of their nims."""
    loop, sqlite, postgres = runner

    @settings(max_examples=examples)
    @given(st.lists(OPERATIONS, min_size=5, max_size=20))
    def compare(steps: list[tuple[Any, ...]]) -> None:
        loop.run(both(steps))

    async def both(steps: list[tuple[Any, ...]]) -> None:
        for step in steps:
            one, other = [await outcome(store, *step) for store in (sqlite, postgres)]
            assert one == other, step
            kept = await stores.read_all(sqlite)
            assert kept == sorted(kept), step
            assert kept == await stores.read_all(postgres), step
        for record in kept:
            await sqlite.delete(record.nim)
            await postgres.delete(record.nim)

    compare()

"""The lines that SQLite joins for an export as CSV are those that the program writes record by record."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naughty import NAUGHTY, NAUGHTY_NIMS
from stores import ask

from mahasiswa import sheets
from mahasiswa.record import UNADDRESSABLE_NIMS, Mahasiswa
from mahasiswa.settings import SQLiteURL
from mahasiswa.store import Query, Store, migrate, open_store
from mahasiswa.store.errors import Unavailable
from mahasiswa.store.sqlite import store as sqlite_store

ordinary = st.sampled_from(
    ["Ani", "Budi Santoso", "Jl. Melati No. 5, Solo", "Sa'adah", "Ma\u2019ruf", "Élan", "7", "(x)"]
)
characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
texts = (
    ordinary
    | st.sampled_from(NAUGHTY)
    | st.text(characters, max_size=6)
    | st.text("',;=+-@\t\r\n\"aé １＝", max_size=9)
)
nims = (
    st.integers(0, 99999).map("{:05}".format)
    | st.sampled_from(["", "1E5", "1.5E3", "A11.2019", "20/4/TK", "x", "2019-1", *NAUGHTY_NIMS])
    | st.text("0123456789aE+-./ ", max_size=9)
).filter(lambda nim: nim not in UNADDRESSABLE_NIMS)
lists = st.lists(st.builds(Mahasiswa, nims, texts, texts), max_size=20, unique_by=lambda record: record.nim) | st.lists(
    st.builds(Mahasiswa, nims, ordinary, ordinary), max_size=20, unique_by=lambda record: record.nim
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an SQLite file with an empty table."""
    migrate(SQLiteURL(tmp_path / "mahasiswa.db"))
    return tmp_path / "mahasiswa.db"


@pytest.fixture
def runner(path: Path) -> Iterator[tuple[asyncio.Runner, Store]]:
    """Open a store, with the event loop on which it works."""
    with asyncio.Runner() as runner:
        store = runner.run(open_store(SQLiteURL(path)))
        yield runner, store
        runner.run(store.close())


async def lines(store: Store) -> list[Mahasiswa | bytes]:
    """Return the records and lines that the store gives for an export."""
    return [item async for chunk in store.lines(Query(), sheets.is_ordinary) for item in chunk]


async def replace_all(store: Store, records: Sequence[Mahasiswa]) -> None:
    """Make these records the whole list."""
    await store.delete_all([record.nim async for chunk in store.chunks(Query()) for record in chunk])
    await store.merge([[(n, *record) for n, record in enumerate(records)]], update=False, dry_run=False)


def test_joined_lines_are_those_of_the_records(
    runner: tuple[asyncio.Runner, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a list with some records that are not ordinary."""
    monkeypatch.setattr(sqlite_store, "JOINED_RECORDS", 3)
    loop, store = runner

    @given(lists)
    @example([Mahasiswa(nim, text, text) for nim, text in zip(NAUGHTY_NIMS, NAUGHTY, strict=False) if nim != "."])
    @example([Mahasiswa("1", '"Budi"', "x"), Mahasiswa("2", '"a,b"', '","'), Mahasiswa("3", "a", "b\r\n4;c;d")])
    @example([Mahasiswa("1", "Ani", "x\r\n5;y;z"), Mahasiswa("2", "Budi", "Solo")])  # its lines look like two records
    @example([Mahasiswa("1", "Ani", "x\r\n5;y;z")])
    @settings(max_examples=200, deadline=None)
    def compare(records: list[Mahasiswa]) -> None:
        records = [record for record in records if record.nim not in UNADDRESSABLE_NIMS and len(record.nim) < 256]
        loop.run(replace_all(store, records))
        expected = sorted(records)
        assert b"".join(sheets.csv_chunks(loop.run(lines(store)))) == b"".join(sheets.csv_chunks(expected))

    compare()


def test_ordinary_records_are_joined(runner: tuple[asyncio.Runner, Store]) -> None:
    """Records with commas, apostrophes and letters beyond ASCII come as lines, all but the chunk with a formula."""
    loop, store = runner
    records = [Mahasiswa(f"{n:06}", "Sa'adah, S.Pd.", "Jl. Mawar 5-6, Élan \u2019 Solo") for n in range(3500)]
    records[1500] = Mahasiswa("001500", "=1+1", "Solo")
    loop.run(replace_all(store, records))
    found = loop.run(lines(store))
    assert [item for item in found if not isinstance(item, bytes)] == records[1000:2000]
    assert b"".join(sheets.csv_chunks(found)) == b"".join(sheets.csv_chunks(records))


def test_long_records_are_not_joined(runner: tuple[asyncio.Runner, Store]) -> None:
    """So no call of C code takes long, and the next reads of the connection have no limit of length."""
    loop, store = runner
    records = [Mahasiswa(f"{n:06}", "Ani", "x" * 2000 if n < 1000 else "Solo") for n in range(2000)]
    records[5] = Mahasiswa("000005", "x" * (2 * sqlite_store.JOINED_MAX_BYTES), "Solo")
    loop.run(replace_all(store, records))
    found = loop.run(lines(store))
    assert found[:1000] == records[:1000]
    assert [type(item) for item in found[1000:]] == [bytes]
    assert loop.run(store.chunks(Query()).__anext__())[5] == records[5]


@pytest.mark.parametrize("column", ["nim", "nama"])
def test_a_text_that_is_not_utf_8_is_not_exported(
    runner: tuple[asyncio.Runner, Store], path: Path, column: str
) -> None:
    """Another program stored it. The export is Unavailable, and the next one reads the list as it is then."""
    loop, store = runner
    loop.run(replace_all(store, [Mahasiswa(f"{n:06}", "Ani", "Solo") for n in range(2500)]))
    for row in (3, 1000, 2400):
        ask(path, f"UPDATE mahasiswa SET {column} = CAST(x'41ff' AS TEXT) WHERE nim = '{row:06}'")
        with pytest.raises(Unavailable, match="not UTF-8"):
            loop.run(lines(store))
        ask(path, f"UPDATE mahasiswa SET {column} = '{row:06}' WHERE {column} = CAST(x'41ff' AS TEXT)")
    assert b"".join(sheets.csv_chunks(loop.run(lines(store)))).count(b"\n") == 2501


def test_an_export_shows_one_moment(runner: tuple[asyncio.Runner, Store]) -> None:
    """A record that is added meanwhile is not in it. It is in the next one, on the same connection."""
    loop, store = runner

    async def export() -> bytes:
        found: list[Mahasiswa | bytes] = []
        async for chunk in store.lines(Query(), sheets.is_ordinary):
            found += chunk
            await store.delete("019999")
        return b"".join(sheets.csv_chunks(found))

    loop.run(replace_all(store, [Mahasiswa(f"{n:06}", "Ani", "Solo") for n in range(20_000)]))
    assert b"019999;" in loop.run(export())
    assert b"019999;" not in loop.run(export())

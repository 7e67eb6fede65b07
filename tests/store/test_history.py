"""The history and undo: each engine keeps the same promises."""

import asyncio
from collections.abc import Awaitable, Iterator

import apsw
import psycopg
import pytest
from spreadsheets import numbered
from stores import BUDI, EXPIRE, SITI, engine_at, execute, items, merge, migrate, opened, read_all

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.store import Query, Store
from mahasiswa.store.history_items import (
    ENTRIES_MAX,
    NAMES_CHANGE,
    OLEH,
    PURGE_ENTRIES,
    UNDO_ROWS_MAX,
    Item,
)
from mahasiswa.store.store_errors import EditConflict, NotInHistory, Refused
from mahasiswa.system.administrator import command_name
from mahasiswa.work import SEARCH


async def newest(store: Store) -> Item:
    """Return the newest item, which a snapshot and a search must have as well."""
    item = (await items(store))[0]
    found = await store.reader(SEARCH).search(Query(), 0, 1)
    for last in ((await store.snapshot(0)).last, found.last):
        assert last
        assert last.item.key == item.key
    return item


async def by(name: str, write: Awaitable[object]) -> object:
    """Make a change under a name, as a request does in its own task."""
    OLEH.set(name)
    return await write


@pytest.fixture
def named() -> Iterator[None]:
    """Make the changes of a test as those of a request whose answer names its change."""
    token = NAMES_CHANGE.set(True)
    yield
    NAMES_CHANGE.reset(token)


@pytest.mark.usefixtures("named")
async def test_a_change_returns_the_key_of_its_own_item(store: Store, url: str) -> None:
    """Each of several changes at once has its own key and person. A change that changes nothing has no key and no entry.

    A change of another program has no name of a person.
    """
    records = [Mahasiswa(f"b{number:02}", "Budi", "Solo") for number in range(40)]
    refused = records[0], Mahasiswa("..", "", "")
    writes = [by(record.nim, store.add(*record)) for record in [*records, *refused]]
    keys = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(key, Refused) for key in keys[40:]] == [True, True]
    added = {item.key: (item.after, item.oleh) for item in await items(store)}
    assert [added[str(key)] for key in keys[:40]] == [(record, record.nim) for record in records]
    await store.add(*SITI)
    execute(url, f"INSERT INTO mahasiswa VALUES {tuple(BUDI)}")
    before = await items(store)
    assert before[0].oleh is None
    for unchanged in (
        store.update(*SITI),
        store.delete("x"),
        store.rename("b00", "b00"),
        store.write_all("import", [Write(SITI, None)]),
        store.write_all("delete", removals=["x"]),
        store.write_all("delete"),
    ):
        assert await unchanged is None
    merge(url, SITI)
    assert await items(store) == before


def test_no_program_can_change_a_nim(url: str) -> None:
    """The start adds the trigger if it is missing. The same nim again is no change."""
    execute(url, "INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Solo'), ('2', 'Budi', 'Bantul')")
    execute(url, "UPDATE mahasiswa SET nim = nim, nama = 'Ina' WHERE nim = '1'")
    execute(
        url, f"DROP TRIGGER mahasiswa_nim{' ON mahasiswa' if url.startswith('postgres') else ''}"
    )
    migrate(url)
    insert = (
        "INSERT INTO mahasiswa VALUES ('1', 'a', 'b') ON CONFLICT (nim) DO UPDATE SET nim = '4'"
    )
    update = "UPDATE mahasiswa SET nim ="
    for statement in (f"{update} '3' WHERE nim = '1'", f"{update} '0' || nim", insert):
        with pytest.raises((psycopg.Error, apsw.Error)):
            execute(url, statement)
    assert engine_at(url).merge([("1", "Ina", "Solo"), BUDI], update=True, dry_run=True)[:3] == (
        1,
        0,
        1,
    )


async def test_a_very_long_import_is_one_item_without_entries(store: Store, url: str) -> None:
    """It says how many records changed, and cannot be undone. The next import has its entries again."""
    merge(url, *numbered(ENTRIES_MAX + 1, "Ina", nim="{}"))
    (item,) = await items(store)
    assert item.kind == "import"
    assert item.rows == ENTRIES_MAX + 1
    assert item.left is None
    batch = await store.reader(SEARCH).history("", 0, 1000, batch=item.key)
    assert (batch.total, batch.items) == (0, [])
    with pytest.raises(NotInHistory):
        await store.undo(item.key)
    merge(url, ("1", "Ani", "Solo"))
    item = await newest(store)
    assert item.kind == "import"
    assert item.rows == 1
    assert item.left == 1


async def test_an_undo_overwrites_no_addition_of_the_same_nim(url: str) -> None:
    """Another adds a record with the nim of a deleted one at this moment. One of both is stored."""
    async with opened(url) as first, opened(url) as second:
        for moment in range(30):
            await first.add(*SITI)
            await first.delete(SITI.nim)
            entry = await newest(first)
            added = SITI._replace(nama="Lain")

            async def add(moment: int, added: Mahasiswa = added) -> None:
                await asyncio.sleep(moment * 0.0004)
                await second.add(*added)

            undone, refused = await asyncio.gather(
                first.undo(entry.key), add(moment), return_exceptions=True
            )
            assert isinstance(undone, Exception) != isinstance(refused, Exception)
            assert await read_all(first) == [added if isinstance(undone, Exception) else SITI]
            await first.delete(SITI.nim)


async def test_a_batch_of_too_many_rows_is_not_undone(store: Store, url: str) -> None:
    """Its entries are in the history, and can be undone one by one."""
    merge(url, *numbered(UNDO_ROWS_MAX + 1, "Ina", nim="{:06}"))
    batch = await newest(store)
    with pytest.raises(NotInHistory):
        await store.undo(batch.key)
    (entry,) = (await store.reader(SEARCH).history("000001", 0, 10, batch=batch.key)).items
    await store.undo(entry.key)
    assert (await store.reader(SEARCH).search(Query(), 0, 0)).total == UNDO_ROWS_MAX


async def test_concurrent_edits_of_different_fields_through_several_stores_are_both_kept(
    url: str,
) -> None:
    """The comparison is part of the write's transaction, so one edit of each field is stored in every round."""
    async with opened(url) as first, opened(url) as second:
        await first.add(*SITI)
        for turn in range(10):
            (shown,) = await read_all(first)
            edits = [shown._replace(nama=f"Orang {turn} {number}") for number in range(4)]
            edits += [shown._replace(alamat=f"Kota {turn} {number}") for number in range(4)]
            writes = [
                store.update(*edited, digest(shown))
                for edited in edits
                for store in (first, second)
            ]
            answers = await asyncio.gather(*writes, return_exceptions=True)
            # A text that is stored already is no conflict.
            kinds = [type(answer) for answer in answers]
            assert sorted(kinds, key=str) == [type(None)] * 4 + [EditConflict] * 12
            (stored,) = await read_all(second)
            names = {edited.nama for edited in edits[:4]}
            addresses = {edited.alamat for edited in edits[4:]}
            assert stored.nama in names
            assert stored.alamat in addresses


# ---- HISTORY_DAYS and expired entries
def test_the_last_start_decides_the_days(url: str) -> None:
    """A command, which names none, keeps them."""
    for days, kept in ((30, 30), (7, 7), (None, 7)):
        engine_at(url).migrate(days)
        assert execute(url, "SELECT days FROM mahasiswa_history_state") == [(kept,)]


async def test_expired_entries_are_purged(url: str) -> None:
    """All of them, in slices, by any number of stores at once. The records and newer entries stay."""
    async with opened(url) as store, opened(url) as other:
        merge(url, *numbered(3 * PURGE_ENTRIES, "Siti", nim="{}"))
        await store.add("a", "Siti", "Solo")
        execute(url, EXPIRE)
        await store.add(*SITI)
        records = await read_all(store)
        await asyncio.gather(*(purging.purge() for purging in (store, other)))
        await store.purge()
        assert [(item.before, item.after) for item in await items(store)] == [(None, SITI)]
        assert await read_all(other) == records


async def test_forgetting_removes_the_record_and_all_its_history(store: Store, url: str) -> None:
    """Others keep theirs. A silent batch tells it without a text. The rest of another batch can be undone."""
    merge(url, SITI, BUDI)
    await store.update(*SITI._replace(nama="Siti"))
    await store.delete(SITI.nim)
    await store.add(*SITI)
    assert engine_at(url).forget(SITI.nim)[0]
    assert await read_all(store) == [BUDI]
    assert not engine_at(url).forget(SITI.nim)[0]
    assert not engine_at(url).forget("00\0")[0]
    forgotten, batch = await items(store)
    assert forgotten[1:] == ("delete", 1, None, command_name(), None, None, None)
    assert batch.kind == "import"
    assert batch.before is None
    assert batch.after == BUDI
    await store.undo(batch.key)
    assert await read_all(store) == []
    assert engine_at(url).forget(BUDI.nim)  # its history is all that there is of it
    assert await items(store) == [forgotten]

"""The history names the person of each change, on both engines."""

import asyncio
from collections.abc import Awaitable

from engines import run_elsewhere
from stores import attempt, items, merge, read_all

from mahasiswa.record import Mahasiswa, Write
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import Store
from mahasiswa.store.history_items import OLEH, Item
from mahasiswa.system.administrator import command_name
from mahasiswa.work import SEARCH


async def by(name: str | None, write: Awaitable[object]) -> object:
    """Make a change under a name, as a request does in its own task."""
    OLEH.set(name)
    return await write


async def names(store: Store) -> list[tuple[str, str | None]]:
    """Return the nim, or the kind, and the name of each item of the history, oldest first."""

    def name(item: Item) -> str:
        is_entry = item.kind in {"add", "edit", "delete"} and item.record
        return item.record.nim if is_entry and item.record else item.kind

    return [(name(item), item.oleh) for item in await items(store)][::-1]


async def test_64_people_add_in_one_commit(store: Store, database: str) -> None:
    """Each addition has its own name, also if others of the group are refused. Another program's changes have none."""
    # The others wait for its commit.
    first = asyncio.create_task(by("first", store.add("first", "a", "b")))
    await asyncio.sleep(0)
    records = [Mahasiswa(f"{number:02}", "Siti", "Solo") for number in range(64)]
    adding = [
        asyncio.create_task(by(f"person {record.nim}", store.add(*record))) for record in records
    ]
    adding += [
        asyncio.create_task(by("nobody", attempt(store.add(*refused))))
        for refused in (("05", "x", "y"), ("..", "x", "y"), (None, "x", "y"), ("null", "x", None))
    ]
    adding += [
        asyncio.create_task(by(name, attempt(store.add("null", "x", "y"))))
        for name in (None, "late")
    ]
    await asyncio.gather(first, *adding)
    run_elsewhere(database, "INSERT INTO mahasiswa VALUES ('zz', 'x', 'y')")
    expected = {("first", "first"), ("null", None), ("zz", None)} | {
        (r.nim, f"person {r.nim}") for r in records
    }
    assert set(await names(store)) == expected
    assert len(await read_all(store)) == len(expected)


async def test_batches_have_a_name(store: Store, url: DatabaseURL) -> None:
    """So do their entries, an edit, a deletion, an undo, and an import by command. Any name is kept. The next change has its own."""
    siti, budi, wati = "a'b\"c\\", "%s {0}", "\u2028é🎓" * 60
    two = [Write(Mahasiswa(nim, "Ani", "Solo"), None) for nim in "12"]
    changes = {
        ("import", siti): store.write_all("import", two),
        ("1", budi): store.update("1", "Ina", "Solo"),
        ("2", wati): store.delete("2"),
        ("nim", "Eko"): store.rename("1", "3"),
        ("4", None): store.add("4", "Ani", "Solo"),
    }
    for (_, name), change in changes.items():
        await by(name, change)
    page = await store.reader(SEARCH).history("eko", 0, 10)
    await by("Rini", store.undo(page.items[0].key))
    merge(url, ("5", "Ani", "Solo"), ("6", "Ani", "Solo"))
    await by(siti, store.write_all("delete", removals=["4", "5"]))
    await by(wati, store.add("7", "Ani", "Solo"))
    later = [("nim", "Rini"), ("import", command_name()), ("delete", siti), ("7", wati)]
    assert await names(store) == [*changes, *later]
    renamed = next(item for item in await items(store) if item.oleh == "Eko")
    assert [entry.oleh for entry in await items(store, renamed.key)] == ["Eko", "Eko"]

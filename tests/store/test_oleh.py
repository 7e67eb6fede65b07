"""The history names the person of each change, on both engines."""

import asyncio
from collections.abc import Awaitable

from engines import run_elsewhere
from stores import attempt, items, merge

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


async def test_people_who_add_at_the_same_time_have_each_their_name(
    store: Store, database: str
) -> None:
    """Also if others are refused meanwhile. Another program's change has no name."""
    adding = [
        asyncio.create_task(by(f"person {number}", store.add(f"{number}", "Siti", "Solo")))
        for number in range(8)
    ]
    adding += [
        asyncio.create_task(by("nobody", attempt(store.add(*refused))))
        for refused in (("..", "x", "y"), ("null", "x", None))
    ]
    adding.append(asyncio.create_task(by(None, store.add("null", "x", "y"))))
    await asyncio.gather(*adding)
    run_elsewhere(database, "INSERT INTO mahasiswa VALUES ('zz', 'x', 'y')")
    named = [(f"{number}", f"person {number}") for number in range(8)]
    assert set(await names(store)) == {*named, ("null", None), ("zz", None)}


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

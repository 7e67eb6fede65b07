"""The history names the person of each change, on both engines."""

import asyncio
from collections.abc import Awaitable

from stores import attempt, execute, items

from mahasiswa.store import Store
from mahasiswa.store.history_items import OLEH, Item


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
    execute(database, "INSERT INTO mahasiswa VALUES ('zz', 'x', 'y')")
    named = [(f"{number}", f"person {number}") for number in range(8)]
    assert set(await names(store)) == {*named, ("null", None), ("zz", None)}

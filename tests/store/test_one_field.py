"""A record that differs in exactly one field is seen by each operation that compares records, on each engine."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from stores import BUDI, SITI, engine_at, execute, items, merge, opened, read_all

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.store import Store
from mahasiswa.store.history_items import Item
from mahasiswa.store.store_errors import Changed, EditConflict, NothingToUndo, NotInHistory
from mahasiswa.work import SEARCH

THIRD = Mahasiswa(SITI.nim, "Ketiga", "Ketiga")
FIRST = Mahasiswa(SITI.nim, "Lama", "Lama")


class Case(NamedTuple):
    """A database with SITI and BUDI. `other` is SITI with another text in one field."""

    store: Store
    url: str
    other: Mahasiswa

    async def newest(self) -> Item:
        return (await items(self.store))[0]


async def edit(case: Case) -> None:
    """An edit leaves an entry with both texts. A form that showed the other text is a conflict."""
    await case.store.update(*case.other)
    entry = await case.newest()
    assert entry.before == SITI
    assert entry.after == case.other
    with pytest.raises(EditConflict):
        await case.store.update(*THIRD, expected=digest(SITI))


async def preview(case: Case) -> None:
    """A confirmation writes nothing if the stored record differs from the one of the preview."""
    await case.store.update(*case.other)
    with pytest.raises(Changed):
        await case.store.write_all("import", [Write(THIRD, digest(SITI))])


async def import_by_command(case: Case) -> None:
    """One record is changed and the other one is left."""
    assert merge(case.url, case.other, BUDI)[:3] == (0, 1, 1)


async def import_of_one_column(case: Case) -> None:
    """A row without a text keeps the stored one."""
    nim, *texts = case.other
    (nama, alamat) = (
        text if text != old else None for text, old in zip(texts, SITI[1:], strict=True)
    )
    merge(case.url, (nim, nama, alamat))


async def imported(case: Case) -> None:
    """SITI is changed and BUDI removed, as one batch."""
    await case.store.write_all("import", [Write(case.other, digest(SITI))], [BUDI.nim])
    batch = await case.newest()
    assert (batch.kind, batch.rows) == ("import", 2)
    await case.store.add(*BUDI)


async def tidied(case: Case) -> None:
    """Of all records the one with a needless space is chosen."""
    spaced = Mahasiswa(*(text.replace("Lain", "Lain ") for text in case.other))
    await case.store.update(*spaced)
    assert (await case.store.reader(SEARCH).suspects("spaces", 10)).records == [spaced]
    await case.store.write_all("tidy", [Write(case.other, digest(spaced))])


async def undo_of_a_changed_record(case: Case) -> None:
    """One field of the record has another text than after the change, so it is left alone."""
    await case.store.update(*FIRST)
    await case.store.update(*SITI)
    entry = await case.newest()
    await case.store.update(*case.other)
    with pytest.raises(NothingToUndo):
        await case.store.undo(entry.key)


async def undo_of_a_batch_with_a_changed_record(case: Case) -> None:
    """The other record is restored."""
    await case.store.update(*FIRST)
    await case.store.write_all("import", [Write(SITI, digest(FIRST))], [BUDI.nim])
    made = await case.newest()
    await case.store.update(*case.other)
    page = await case.store.reader(SEARCH).history("", 0, 10, batch=made.key)
    (listed,) = (item for item in await items(case.store) if item.key == made.key)
    assert [item.left for item in (page.head, listed) if item] == [1, 1]
    _, left = await case.store.undo(made.key)
    assert left == 1


OPERATIONS: dict[str, Callable[[Case], Awaitable[None]]] = {
    "edit": edit,
    "preview": preview,
    "import by command": import_by_command,
    "import of one column": import_of_one_column,
    "import": imported,
    "tidy": tidied,
    "undo of a changed record": undo_of_a_changed_record,
    "undo of a batch with a changed record": undo_of_a_batch_with_a_changed_record,
}


every_field = pytest.mark.parametrize("field", ["nama", "alamat"])


@every_field
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_sees_a_record_that_differs_in_one_field(
    store: Store, url: str, operation: str, field: str
) -> None:
    """In the end the list has the other text, and the other record is as it was."""
    merge(url, SITI, BUDI)
    other = SITI._replace(**{field: "Lain"})
    await OPERATIONS[operation](Case(store, url, other))
    assert await read_all(store) == [other, BUDI]


@every_field
async def test_a_restore_sees_a_record_that_differs_in_one_field(path: Path, field: str) -> None:
    """The back-up has the other text. A second restore changes nothing."""
    other = SITI._replace(**{field: "Lain"})
    file = path.with_name("b.db")
    async with opened(path) as store:
        await store.add(*other)
        [*engine_at(path).backup(None, file)]
        await store.update(*SITI)
        for changed in (1, 0):
            found = await asyncio.to_thread(engine_at(path).restore, file)
            assert found[:4] == (1, 0, changed, 0)
        assert await read_all(store) == [other]


NEEDLESS = [
    ("1 ", "Ani", "Solo"),
    ("2", "Ani  B", "Solo"),
    ("3", "Ani", " Solo"),
    ("4", "\u2066Ani\u2069", ""),
]
NEEDLESS += [("5", " ", "Solo"), ("6", "Ani\vB", "Solo"), ("7", "Ani", "Jl. A\x1fB")]
NEEDED = [("8", "Ani", "Solo"), ("9", "", "Solo"), ("a", "Ani", "")]


async def test_needless_spaces_are_seen_in_each_field(store: Store) -> None:
    """Those of a nim come last, because they are named and not tidied."""
    for texts in NEEDLESS + NEEDED:
        await store.add(*texts)
    suspects = await store.reader(SEARCH).suspects("spaces", 20)
    assert sorted(suspects.records) == NEEDLESS
    assert suspects.records[-1] == NEEDLESS[0]


@pytest.mark.parametrize(("hours", "is_left"), [(-1, True), (1, False)])
async def test_a_change_can_be_undone_and_is_kept_until_the_days_of_the_history_are_over(
    store: Store, url: str, hours: int, *, is_left: bool
) -> None:
    """Neither an hour less nor an hour more. If a purge removes nothing, the list is not rendered again."""
    await store.add(*SITI)
    history = store.reader(SEARCH).history
    moment = datetime.now(UTC) - timedelta(days=30, hours=hours)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    execute(url, f"UPDATE mahasiswa_history SET moment = '{text}'")
    entry = (await history("", 0, 1)).items[0]
    before = await store.version()
    await store.purge()
    assert (await store.version() == before) == is_left
    assert (await history("", 0, 1)).total == is_left
    if is_left:
        await store.undo(entry.key)
    else:
        with pytest.raises(NotInHistory):
            await store.undo(entry.key)
    assert len(await read_all(store)) == 1 - is_left

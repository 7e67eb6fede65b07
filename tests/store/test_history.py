"""The history and undo: each engine keeps the same promises."""

import asyncio
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from engines import run_elsewhere
from spreadsheets import numbered
from stores import (
    BUDI,
    SITI,
    age_history,
    attempt,
    attempt_all,
    fill,
    items,
    leap,
    merge,
    migrate,
    opened,
    read_all,
)

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.settings import DatabaseURL, SQLiteURL
from mahasiswa.store import Query, Store
from mahasiswa.store.engines import engine_of
from mahasiswa.store.history_items import (
    NAMES_CHANGE,
    PURGE_ENTRIES,
    UNDO_ROWS_MAX,
    UNDOABLE_ROWS_MAX,
    Batch,
    BatchKind,
    Entry,
)
from mahasiswa.store.store_errors import Changed, EditConflict, NotInHistory, Refused
from mahasiswa.system.administrator import command_name
from mahasiswa.work import SEARCH

AGE_NEWEST = """
UPDATE mahasiswa_history SET moment = '2020-01-01T00:00:00.000Z'
WHERE id = (SELECT max(id) FROM mahasiswa_history)"""

ANI = Mahasiswa("0003", "Ani", "Klaten")
INA = Mahasiswa("0004", "Ina", "Solo")


async def newest(store: Store) -> Entry | Batch:
    """Return the newest item, which a snapshot and a search must have as well."""
    item = (await items(store))[0]
    assert (await store.snapshot(0)).last == item
    assert (await store.reader(SEARCH).search(Query(), 0, 1)).last == item
    return item


async def last_batch(store: Store, kind: BatchKind, rows: int) -> Batch:
    """Return the newest item, which must be a batch of that kind with that number of rows."""
    item = await newest(store)
    assert isinstance(item, Batch)
    assert (item.kind, item.rows, item.is_silent) == (kind, rows, False)
    return item


async def changes(store: Store, batch: int | None = None) -> list[object]:
    """Return the records before and after of each entry, and each batch, in the order of the history."""
    found = await items(store, batch)
    return [(item.before, item.after) if isinstance(item, Entry) else item for item in found]


# ---- entries and batches
async def test_an_import_and_a_bulk_delete_are_one_batch_each(
    store: Store, url: DatabaseURL
) -> None:
    """Entries are ordered by nim. Unchanged rows, a dry run and unknown nims, also with a NUL, are none of them."""
    await store.add(*SITI)
    await store.add(*ANI)
    changed = SITI._replace(nama="Siti", alamat="Solo")
    writes = [Write(ANI, digest(ANI)), Write(BUDI, None), Write(changed, digest(SITI))]
    await store.write_all("import", writes)
    engine_of(url).merge([(2, *INA)], update=True, dry_run=True)
    batch = await last_batch(store, "import", 2)
    assert await changes(store, batch.id) == [(SITI, changed), (None, BUDI)]
    merge(url, INA, (SITI.nim, None, "Bantul"))
    moved = changed._replace(alamat="Bantul")
    batch = await last_batch(store, "import", 2)
    assert await changes(store, batch.id) == [(changed, moved), (None, INA)]
    await store.write_all("delete", removals=[BUDI.nim, "0009", SITI.nim, "00\0", "0003\0"])
    batch = await last_batch(store, "delete", 2)
    assert await changes(store, batch.id) == [(moved, None), (BUDI, None)]
    assert await read_all(store) == [ANI, INA]


async def test_an_import_of_ten_thousand_changes_is_made_and_undone_after_a_single_edit(
    store: Store, url: DatabaseURL
) -> None:
    """Within the time of a request."""
    old = [Mahasiswa(f"{number:05}", "Siti", "Solo") for number in range(UNDO_ROWS_MAX)]
    fill(url, old)
    await store.update(old[0].nim, "Ani", "Solo")
    await store.update(*old[0])
    writes = [Write(record._replace(alamat="Bantul"), digest(record)) for record in old]
    await store.write_all("import", writes)
    await store.undo((await newest(store)).id, is_batch=True)
    assert await read_all(store) == old


@pytest.fixture
def named() -> Iterator[None]:
    """Make the changes of a test as those of a request whose answer names its change."""
    token = NAMES_CHANGE.set(True)
    yield
    NAMES_CHANGE.reset(token)


@pytest.mark.usefixtures("named")
async def test_a_change_returns_the_key_of_its_own_item(store: Store, url: DatabaseURL) -> None:
    """Of many at once each has its own. One that changes nothing has none, and no entry, whatever others have just changed."""
    records = [Mahasiswa(f"b{number:02}", "Budi", "Solo") for number in range(40)]
    writes = [store.add(*record) for record in [*records, records[0], Mahasiswa("..", "", "")]]
    keys = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(key, Refused) for key in keys[40:]] == [True, True]
    added = {str(item.key): item.after for item in await items(store) if isinstance(item, Entry)}
    assert [added[str(key)] for key in keys[:40]] == records
    await store.add(*SITI)
    run_elsewhere(url, f"INSERT INTO mahasiswa VALUES {tuple(BUDI)}")
    before = await items(store)
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


async def test_a_change_that_changes_nothing_leaves_no_entry(
    store: Store, url: DatabaseURL
) -> None:
    """Neither does a refused change, an empty batch, a deletion of an unknown nim, or a confirmation that is sent again."""
    await store.add(*SITI)
    await store.update(*SITI)
    await store.delete("0002")
    await store.write_all("import", [Write(SITI, None)])
    merge(url, SITI)
    await store.write_all("delete", removals=["0002"])
    await store.write_all("delete")
    assert await items(store) == [await newest(store)]
    await attempt_all(
        store.add(*BUDI), store.add(*SITI), store.add("..", "Ani", "Solo"), store.add(*ANI)
    )
    assert sorted(await changes(store), key=str) == [(None, SITI), (None, BUDI), (None, ANI)]


async def test_an_import_or_a_changed_nim_that_is_refused_is_no_batch(store: Store) -> None:
    """Nothing of it is stored, and the next change belongs to no batch. A nim that is written twice is refused."""
    twice = Write(SITI._replace(nama="Siti"), digest(SITI))
    for other in (Write(BUDI._replace(nama="a\0"), None), Write(BUDI, "another version"), twice):
        with pytest.raises((Changed, Refused)):
            await store.write_all("import", [Write(SITI, None), other])
        assert await read_all(store) == [], other
    await store.add(*SITI)
    await store.add(*BUDI)
    assert await attempt(store.rename(SITI.nim, BUDI.nim)) == ("nim", "duplicate")
    with pytest.raises(Changed):
        await store.rename("0009", "0008")
    await store.add(*ANI)
    assert await changes(store) == [(None, ANI), (None, BUDI), (None, SITI)]
    await store.rename(ANI.nim, "0009")
    for entry in await items(store, (await newest(store)).id):
        with pytest.raises(NotInHistory):  # half of it would be a second record, or none
            await store.undo(entry.id, is_batch=False)


@pytest.mark.parametrize("days", [30, 0])
def test_no_program_can_change_a_nim(url: DatabaseURL, days: int) -> None:
    """Also without a history. The start adds the trigger if it is missing. The same nim again is no change."""
    migrate(url, days)
    run_elsewhere(url, "INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Solo'), ('2', 'Budi', 'Bantul')")
    run_elsewhere(url, "UPDATE mahasiswa SET nim = nim, nama = 'Ina' WHERE nim = '1'")
    run_elsewhere(
        url, f"DROP TRIGGER mahasiswa_nim{'' if isinstance(url, SQLiteURL) else ' ON mahasiswa'}"
    )
    migrate(url)
    insert = (
        "INSERT INTO mahasiswa VALUES ('1', 'a', 'b') ON CONFLICT (nim) DO UPDATE SET nim = '4'"
    )
    update = "UPDATE mahasiswa SET nim ="
    for statement in (f"{update} '3' WHERE nim = '1'", f"{update} '0' || nim", insert):
        with pytest.raises((psycopg.Error, subprocess.CalledProcessError)):
            run_elsewhere(url, statement)
    assert engine_of(url).merge([(1, "1", "Ina", "Solo"), (2, *BUDI)], update=True, dry_run=True)[
        :3
    ] == (1, 0, 1)


async def test_a_very_long_import_is_one_item_without_entries(
    store: Store, url: DatabaseURL
) -> None:
    """It says how many records changed, and cannot be undone. The next import has its entries again."""
    fill(url, numbered(UNDOABLE_ROWS_MAX + 1, "Ina", nim="{}"))
    (item,) = await items(store)
    assert item[2:5] == ("import", UNDOABLE_ROWS_MAX + 1, True)
    assert await items(store, batch=item.id) == []
    with pytest.raises(NotInHistory):
        await store.undo(item.id, is_batch=True)
    merge(url, ("1", "Ani", "Solo"))
    await last_batch(store, "import", 1)


# ---- undo and edits
async def test_one_of_many_concurrent_undos_is_made(url: DatabaseURL) -> None:
    """The others find the record as it was before, so there is one undo in the history."""
    async with opened(url) as first, opened(url) as second:
        await first.add(*SITI)
        await first.delete(SITI.nim)
        entry = await newest(first)
        await asyncio.gather(
            *(store.undo(entry.id, is_batch=False) for store in (first, second) * 4)
        )
        assert await read_all(second) == [SITI]
        assert [type(item) for item in await items(second)] == [Batch, Entry, Entry]


async def test_an_undo_over_a_missing_record_overwrites_no_addition(url: DatabaseURL) -> None:
    """The person has seen that there is no record. Another adds one at this moment, and one of both is refused."""
    async with opened(url) as first, opened(url) as second:
        for moment in range(60):
            await first.add(*SITI)
            await first.update(*SITI._replace(nama="Siti"))
            entry = await newest(first)
            await first.delete(SITI.nim)
            added = SITI._replace(nama="Lain")

            async def add(moment: int, added: Mahasiswa = added) -> None:
                await asyncio.sleep(moment * 0.0002)
                await second.add(*added)

            undone, refused = await asyncio.gather(
                first.undo(entry.id, is_batch=False, expected="-"),
                add(moment),
                return_exceptions=True,
            )
            assert isinstance(undone, Exception) != isinstance(refused, Exception)
            assert await read_all(first) == [added if isinstance(undone, Exception) else SITI]
            await first.delete(SITI.nim)


async def test_a_conflict_has_what_the_form_showed_only_if_the_history_has_it(
    store: Store, url: DatabaseURL
) -> None:
    """It is found behind later changes, but not for a form of another record or of texts that never were stored."""

    async def shown_before(*texts: str) -> Mahasiswa | None:
        with pytest.raises(EditConflict) as conflict:
            await store.update(SITI.nim, "Saya", "Bantul", digest(Mahasiswa(SITI.nim, *texts)))
        return conflict.value.before

    await store.add(*SITI)
    await store.add("0002", *SITI[1:])
    for nama in ("Ani", "Budi", "Citra"):
        await store.update(SITI.nim, nama, "Solo")
    assert await shown_before(*SITI[1:]) == SITI
    assert await shown_before("Ani", "Solo") == (SITI.nim, "Ani", "Solo")
    assert await shown_before("Dewi", "Solo") is None
    await store.update("0002", "Ani", "Solo")
    engine_of(url).forget(SITI.nim)
    await store.add(SITI.nim, "Eko", "Solo")
    assert await shown_before(*SITI[1:]) is None


async def test_concurrent_edits_of_different_fields_through_several_stores_are_both_kept(
    url: DatabaseURL,
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
            assert stored.nama in {edited.nama for edited in edits[:4]}
            assert stored.alamat in {edited.alamat for edited in edits[4:]}


# ---- HISTORY_DAYS and expired entries
async def test_history_days_remove_the_history_and_create_it_again(url: DatabaseURL) -> None:
    """With 0 days changes and batches leave no entries. A command keeps the days of the service. No number is given again."""

    async def start(days: int) -> None:
        migrate(url, days)
        migrate(url)  # as a command does

    async with opened(url) as store:
        await store.add(*SITI)
        entry = await newest(store)
    await start(0)
    async with opened(url) as store:
        await store.write_all(
            "import", [Write(ANI, None), Write(SITI._replace(nama="Siti"), digest(SITI))]
        )
        fill(url, [INA])
        await store.write_all("delete", removals=[INA.nim])
        assert await items(store) == []
        assert (await store.snapshot(10)).last is None
    await start(7)
    async with opened(url) as store:
        await store.delete(ANI.nim)
        assert await changes(store) == [(ANI, None)]
        with pytest.raises(NotInHistory):  # a page that is still open cannot undo another change
            await store.undo(entry.id, is_batch=False)


def test_the_last_start_decides_the_days_and_says_so(
    url: DatabaseURL, caplog: pytest.LogCaptureFixture
) -> None:
    """One line has both numbers. The first start says nothing, nor does a start with the same days, nor a command."""
    for days in (30, 7, 7, None, 0, 30):
        migrate(url, days)
    said = [set(re.findall(r"(?:was|is|now) (\d+)", message)) for message in caplog.messages]
    assert said == [{"30", "7"}, {"7", "0"}, {"0", "30"}]


async def test_expired_changes_cannot_be_undone_and_are_purged_in_slices(url: DatabaseURL) -> None:
    """The oldest are first. Each change removes a slice; without changes any number of stores removes one in a minute."""
    async with opened(url) as store, opened(url) as other:
        await asyncio.gather(
            *(store.add(f"{number}", "Siti", "Solo") for number in range(PURGE_ENTRIES * 3 + 10))
        )
        fill(url, [SITI])
        age_history(url, 31)
        records = await read_all(store)
        batch, entry, *kept = await items(store)
        for item in (batch, entry):
            with pytest.raises(NotInHistory):
                await store.undo(item.id, is_batch=item is batch)
        for purging in (store, other, other, store):
            await purging.purge()
        assert await items(store) == [batch, entry, *kept][: PURGE_ENTRIES * 2 + 11]
        for number, left in enumerate((PURGE_ENTRIES + 11, 11, 0)):
            await store.add(f"b{number}", "Siti", "Solo")
            assert (await items(other))[number + 1 :] == [batch, entry, *kept][:left]
        assert (await read_all(store))[:-3] == records


LEAPT = "the clock has leapt to .* no expired entry of the history is removed until a day later"
# By how many days the clock leaps before each addition but the first, the age in days of the additions that the history has
# in the end.
LEAPS: dict[str, tuple[list[int], dict[str, int]]] = {
    "ahead: nothing is removed until a day later": ([400], {"0": 400, "1": 0}),
    "ahead and back: what was later counts as now": ([400, -400], {"0": 0, "1": 0, "2": 0}),
    "ahead for good": ([40, 1], {"1": 1, "2": 0}),
    "ahead, and then the service is off for a week": ([40, 7], {"1": 7, "2": 0}),
    "back for a while, as by a dead battery": ([-1000, 1000, 1], {"0": 1, "2": 1, "3": 0}),
}


@pytest.mark.parametrize(("leaps", "left"), LEAPS.values(), ids=LEAPS)
async def test_a_leap_of_the_clock_costs_no_entry_for_a_day(
    url: DatabaseURL,
    caplog: pytest.LogCaptureFixture,
    leaps: list[int],
    left: dict[str, int],
) -> None:
    """The log warns once. Until then the page of an old change shows it. The history of a day has the changes of that day."""
    async with opened(url) as store:
        await store.add("0", "Siti", "Solo")
        for number, days in enumerate(leaps, 1):
            leap(url, days)
            for _ in range(2):
                await store.purge()
            if number == 1:
                assert [*map(bool, map(re.compile(LEAPT).match, caplog.messages))] == [True]
            await store.add(f"{number}", "Siti", "Solo")
        found = {}
        for item in await items(store):
            assert isinstance(item, Entry)
            assert item.after
            found[item.after.nim] = round((datetime.now(UTC) - item.moment) / timedelta(days=1))
            assert (await store.reader(SEARCH).history("", 0, 1, change=item.key)).last
        half, now = timedelta(hours=12), datetime.now(UTC)
        today = await store.reader(SEARCH).history("", 0, 10, days=(now - half, now + half))
    assert found == left
    assert today.total == len(today.items) == [*left.values()].count(0)


async def test_changes_with_the_clock_ahead_do_not_stop_the_purge(url: DatabaseURL) -> None:
    """A moment that is past now counts as now, so these entries expire HISTORY_DAYS later."""
    async with opened(url) as store:
        fill(url, numbered(2 * PURGE_ENTRIES, "Siti", nim="{}"))
        age_history(url, -400)
        await store.add(*SITI)
        run_elsewhere(url, AGE_NEWEST)
        for turn in range(3):
            await store.add(f"a{turn}", "Siti", "Solo")
        ahead = (await items(store))[-1]
        assert [type(item) for item in await items(store)] == [Entry] * 3 + [Batch]
        assert abs(ahead.moment - datetime.now(UTC)) < timedelta(minutes=5)
        age_history(url, 31)
        for turn in range(3):
            await store.add(f"b{turn}", "Siti", "Solo")
        assert [type(item) for item in await items(store)] == [Entry] * 3


async def test_forgetting_removes_the_record_and_all_its_history(
    store: Store, url: DatabaseURL
) -> None:
    """Others keep theirs. A silent batch tells it without a text. The rest of another batch can be undone."""
    fill(url, [SITI, BUDI])
    await store.update(*SITI._replace(nama="Siti"))
    await store.delete(SITI.nim)
    await store.add(*SITI)
    assert engine_of(url).forget(SITI.nim)
    assert await read_all(store) == [BUDI]
    assert not engine_of(url).forget(SITI.nim)
    assert not engine_of(url).forget("00\0")
    forgotten, batch = await items(store)
    assert forgotten[2:] == ("delete", 1, True, False, None, command_name())
    assert isinstance(batch, Batch)
    assert batch.only
    assert (batch.only.before, batch.only.after) == (None, BUDI)
    await store.undo(batch.id, is_batch=True)
    assert await read_all(store) == []
    assert engine_of(url).forget(BUDI.nim)  # its history is all that there is of it
    assert await items(store) == [forgotten]


@pytest.mark.parametrize("forgotten", ["0008", "0009"])
async def test_a_change_of_nim_cannot_be_undone_after_one_of_its_nims_was_forgotten(
    store: Store, url: DatabaseURL, forgotten: str
) -> None:
    """Half of it would remove a record and restore none. Another person has the old nim by then."""
    await store.add("0008", *SITI[1:])
    await store.rename("0008", "0009")
    change = await newest(store)
    await store.add("0008", *BUDI[1:])
    assert engine_of(url).forget(forgotten)
    left = await read_all(store)
    assert [nim for nim, *_ in left] == [{"0008": "0009", "0009": "0008"}[forgotten]]
    with pytest.raises(NotInHistory):
        await store.undo(change.id, is_batch=True, key=change.key)
    assert await read_all(store) == left
    (halved,) = [item for item in await items(store) if item.id == change.id]
    assert isinstance(halved, Batch)
    assert halved.is_silent

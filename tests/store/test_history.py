"""The history and undo: each engine keeps the same promises."""

import asyncio
import re
from collections.abc import Sequence

import pytest
from stores import BUDI, SITI, age_history, attempt, opened, read_all, records_of

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import Query, Store, migrate
from mahasiswa.store.engines import forget, merge
from mahasiswa.store.errors import Changed, EditConflict, NotInHistory
from mahasiswa.store.history import PURGE_ENTRIES, UNDOABLE_ROWS_MAX, Batch, BatchKind, Entry
from mahasiswa.work import LIST, SEARCH

ANI = Mahasiswa("0003", "Ani", "Klaten")

Change = tuple[Mahasiswa | None, Mahasiswa | None]


async def items(store: Store, cari: str = "", batch: int | None = None) -> Sequence[Entry | Batch]:
    """Return the items of the history, newest first, or the entries of a batch."""
    page = await store.reader(SEARCH).history(cari, batch, 0, 1000)
    assert page.total == len(page.items)
    return page.items


async def newest(store: Store) -> Entry | Batch:
    """Return the newest item, which a snapshot and a search must have as well."""
    item = (await items(store))[0]
    assert (await store.reader(LIST).snapshot(0)).last == item
    assert (await store.reader(SEARCH).search(Query(), 0, 1)).last == item
    return item


async def last_entry(store: Store) -> Entry:
    """Return the newest item, which must be an entry."""
    item = await newest(store)
    assert isinstance(item, Entry)
    return item


async def last_batch(store: Store, kind: BatchKind, rows: int) -> Batch:
    """Return the newest item, which must be a batch of that kind with that number of rows."""
    item = await newest(store)
    assert isinstance(item, Batch)
    assert (item.kind, item.rows, item.is_silent) == (kind, rows, False)
    return item


def change(entry: Entry | Batch) -> Change:
    """Return the record of an entry before and after."""
    assert isinstance(entry, Entry)
    return entry.before, entry.after


async def changes(store: Store, cari: str = "", batch: int | None = None) -> list[Change]:
    """Return the records before and after of entries, in the order of the history."""
    return list(map(change, await items(store, cari, batch)))


# ---- entries


async def test_a_change_that_changes_nothing_leaves_no_entry(store: Store, url: DatabaseURL) -> None:
    """Neither does a refused change, a deletion of an unknown nim, or a confirmation that is sent again."""
    await store.add(*SITI)
    await store.update(*SITI)
    await store.delete("0002")
    await attempt(store.add(*SITI))
    await attempt(store.add("..", "Budi", "Bantul"))
    await store.write_all("import", [Write(SITI, None)])
    merge(url, [(1, *SITI)], update=True, dry_run=False)
    await store.write_all("delete", removals=dict.fromkeys(["0002"]))
    assert await changes(store) == [(None, SITI)]


async def test_a_refused_change_leaves_no_entry_among_the_others_of_its_group(store: Store) -> None:
    """Changes that are committed together each have their own entry."""
    await store.add(*SITI)
    await asyncio.gather(
        attempt(store.add(*BUDI)), attempt(store.add(*SITI._replace(nama="Ani"))), attempt(store.add(*ANI))
    )
    assert sorted(after.nim for _, after in await changes(store) if after) == ["0001", "0002", "0003"]


async def test_a_snapshot_has_the_newest_item_of_its_own_moment(url: DatabaseURL) -> None:
    """While another store adds records: the newest item is always about the last record that was added."""

    async def write(store: Store) -> None:
        for number in range(200):
            await store.add(f"{number:03}", "Siti", "Solo")

    async with opened(url) as first, opened(url) as second:
        await first.add("", "Siti", "Solo")
        writing = asyncio.create_task(write(first))
        while not writing.done():
            snapshot = await second.reader(LIST).snapshot(1000)
            assert isinstance(snapshot.last, Entry)
            assert snapshot.last.after == records_of(snapshot)[-1]
            await asyncio.sleep(0)  # let the writer run
        await writing


# ---- pages and search


@pytest.mark.parametrize("cari", ["aminah", "AMINAH", "0001", "kaliurang", "Klaten"])
async def test_a_search_finds_an_entry_by_any_text_before_or_after(store: Store, cari: str) -> None:
    """Letter case does not matter, and other entries are not found."""
    await store.add(*BUDI)
    await store.write_all("import", [Write(SITI, None)])
    (added,) = await items(store, cari="aminah")
    await store.update(*SITI._replace(nama="Siti", alamat="Klaten"))
    (edited, *_) = await items(store)
    found = await items(store, cari=cari)
    assert found == ([edited] if cari == "Klaten" else [edited, added])
    assert await items(store, cari="\0") == []


# ---- batches


async def test_a_confirmed_import_is_one_batch(store: Store) -> None:
    """Its entries are ordered by nim. Unchanged rows are none of them."""
    await store.add(*SITI)
    await store.add(*ANI)
    changed = SITI._replace(nama="Siti")
    await store.write_all("import", [Write(ANI, digest(ANI)), Write(BUDI, None), Write(changed, digest(SITI))])
    batch = await last_batch(store, "import", 2)
    assert batch.only is None
    assert len(await items(store)) == 3
    assert await changes(store, batch=batch.id) == [(SITI, changed), (None, BUDI)]


async def test_an_import_by_command_is_one_batch(store: Store, url: DatabaseURL) -> None:
    """A dry run is none."""
    await store.add(*SITI)
    rows = [(1, SITI.nim, None, "Solo"), (2, *BUDI)]
    merge(url, rows, update=True, dry_run=True)
    await last_entry(store)
    merge(url, rows, update=True, dry_run=False)
    batch = await last_batch(store, "import", 2)
    assert await changes(store, batch=batch.id) == [(SITI, SITI._replace(alamat="Solo")), (None, BUDI)]


async def test_a_bulk_delete_is_one_batch(store: Store) -> None:
    """Unknown nims, also one with a NUL, and a nim that is named twice do not count."""
    for record in (SITI, BUDI, ANI):
        await store.add(*record)
    await store.write_all("delete", removals=dict.fromkeys([BUDI.nim, "0009", SITI.nim, BUDI.nim, "00\0", "0003\0"]))
    assert await read_all(store) == [ANI]
    batch = await last_batch(store, "delete", 2)
    assert await changes(store, batch=batch.id) == [(SITI, None), (BUDI, None)]


async def test_an_import_that_is_refused_is_no_batch(store: Store) -> None:
    """None of its rows is stored, and the next change belongs to no batch."""
    await attempt(store.write_all("import", [Write(SITI, None), Write(BUDI._replace(nama="a\0"), None)]))
    with pytest.raises(Changed):
        await store.write_all("import", [Write(SITI, None), Write(BUDI, "another version")])
    await store.add(*ANI)
    assert await read_all(store) == [ANI]
    assert await changes(store) == [(None, ANI)]


async def test_a_very_long_import_is_one_item_without_entries(store: Store, url: DatabaseURL) -> None:
    """It says how many records changed, and cannot be undone. The next import has its entries again."""
    merge(url, [(n, f"{n}", "Ina", "Solo") for n in range(UNDOABLE_ROWS_MAX + 1)], update=True, dry_run=False)
    (item,) = await items(store)
    assert item[2:6] == ("import", UNDOABLE_ROWS_MAX + 1, True, None)
    assert await items(store, batch=item.id) == []
    with pytest.raises(NotInHistory):
        await store.undo(item.id, is_batch=True)
    merge(url, [(1, "1", "Ani", "Solo")], update=True, dry_run=False)
    await last_batch(store, "import", 1)


async def test_a_changed_nim_that_is_refused_is_no_batch(store: Store) -> None:
    """Neither one that exists already nor that of an unknown record; the next change belongs to no batch."""
    for record in (SITI, BUDI):
        await store.add(*record)
    assert await attempt(store.rename(SITI.nim, BUDI.nim)) == ("nim", "duplicate")
    with pytest.raises(Changed):
        await store.rename("0009", "0008")
    await store.add(*ANI)
    assert await changes(store) == [(None, ANI), (None, BUDI), (None, SITI)]


async def test_a_nim_that_is_written_twice_in_one_import_is_refused(store: Store) -> None:
    """A batch has one entry for each nim, so that it can be undone."""
    with pytest.raises(Changed):
        await store.write_all("import", [Write(SITI, None), Write(SITI._replace(nama="Siti"), digest(SITI))])
    assert await read_all(store) == []


# ---- undo


async def test_a_bulk_delete_is_undone_as_a_whole(store: Store) -> None:
    """Every record comes back unchanged."""
    records = [Mahasiswa(f"{number:04}", f"Siti {number}", "Solo\r\n") for number in range(1000)]
    await store.write_all("import", [Write(record, None) for record in records])
    await store.write_all("delete", removals=dict.fromkeys([record.nim for record in records]))
    await store.undo((await last_batch(store, "delete", 1000)).id, is_batch=True)
    assert await read_all(store) == records


async def test_one_of_many_concurrent_undos_is_made(url: DatabaseURL) -> None:
    """The others find the record as it was before, so there is one undo in the history."""
    async with opened(url) as first, opened(url) as second:
        await first.add(*SITI)
        await first.delete(SITI.nim)
        entry = await last_entry(first)
        await asyncio.gather(*(store.undo(entry.id, is_batch=False) for store in (first, second) * 4))
        assert await read_all(second) == [SITI]
        assert [type(item) for item in await items(second)] == [Batch, Entry, Entry]


# ---- edits


async def test_a_conflict_has_what_the_form_showed_only_if_the_history_has_it(store: Store, url: DatabaseURL) -> None:
    """It is found behind later changes, but not for a form of another record or of texts that never were stored."""
    await store.add(*SITI)
    await store.add("0002", *SITI[1:])
    for nama in ("Ani", "Budi", "Citra"):
        await store.update(SITI.nim, nama, "Solo")
    assert await shown_before(store, digest(SITI)) == SITI
    assert await shown_before(store, digest(SITI._replace(nama="Ani", alamat="Solo"))) == (SITI.nim, "Ani", "Solo")
    assert await shown_before(store, digest(SITI._replace(nama="Dewi"))) is None
    await store.update("0002", "Ani", "Solo")
    forget(url, SITI.nim)
    await store.add(SITI.nim, "Eko", "Solo")
    assert await shown_before(store, digest(SITI)) is None


async def shown_before(store: Store, versi: str) -> Mahasiswa | None:
    """Send an edit that must be a conflict; return the record that the form showed, as the error has it."""
    with pytest.raises(EditConflict) as conflict:
        await store.update(SITI.nim, "Saya", "Bantul", versi)
    return conflict.value.before


async def test_concurrent_edits_of_different_fields_through_several_stores_are_both_kept(url: DatabaseURL) -> None:
    """The comparison is part of the write's transaction, so one edit of each field is stored in every round."""
    async with opened(url) as first, opened(url) as second:
        await first.add(*SITI)
        for turn in range(10):
            (shown,) = await read_all(first)
            edits = [(f"Orang {turn} {number}", shown.alamat) for number in range(4)]
            edits += [(shown.nama, f"Kota {turn} {number}") for number in range(4)]
            sent = [(texts, store) for texts in edits for store in (first, second)]
            writes = [store.update(SITI.nim, *texts, digest(shown)) for texts, store in sent]
            answers = await asyncio.gather(*writes, return_exceptions=True)
            assert {type(answer) for answer in answers} == {type(None), EditConflict}
            winners = {texts for (texts, _), answer in zip(sent, answers, strict=True) if answer is None}
            (nama,) = {nama for nama, _ in winners} - {shown.nama}
            (alamat,) = {alamat for _, alamat in winners} - {shown.alamat}
            assert await read_all(second) == [(SITI.nim, nama, alamat)]


# ---- HISTORY_DAYS


async def test_history_days_remove_the_history_and_create_it_again(url: DatabaseURL) -> None:
    """With 0 days changes and batches leave no entries. A command keeps the days of the service. No number is given again."""
    async with opened(url) as store:
        await store.add(*SITI)
        entry = await last_entry(store)
    await asyncio.to_thread(migrate, url, 0)
    await asyncio.to_thread(migrate, url)
    async with opened(url) as store:
        await store.add(*BUDI)
        await store.write_all("import", [Write(ANI, None), Write(SITI._replace(nama="Siti"), digest(SITI))])
        merge(url, [(1, "0004", "Ina", "Solo")], update=False, dry_run=False)
        await store.write_all("delete", removals=dict.fromkeys([BUDI.nim]))
        assert await items(store) == []
        assert (await store.reader(LIST).snapshot(10)).last is None
    await asyncio.to_thread(migrate, url, 7)
    await asyncio.to_thread(migrate, url)
    async with opened(url) as store:
        await store.delete(ANI.nim)
        assert await changes(store) == [(ANI, None)]
        with pytest.raises(NotInHistory):  # a page that is still open cannot undo another change
            await store.undo(entry.id, is_batch=False)


def test_the_last_start_decides_the_days_and_says_so(url: DatabaseURL, caplog: pytest.LogCaptureFixture) -> None:
    """One line has both numbers. The first start says nothing, nor does a start with the same days, nor a command."""
    for days in (30, 7, 7, None, 0, 30):
        migrate(url, days)
    said = [set(re.findall(r"(?:was|is|now) (\d+)", message)) for message in caplog.messages]
    assert said == [{"30", "7"}, {"7", "0"}, {"0", "30"}]


# ---- expired entries


async def test_an_expired_change_cannot_be_undone(url: DatabaseURL) -> None:
    """Neither a single one nor a batch."""
    async with opened(url) as store:
        await store.write_all("import", [Write(SITI, None)])
        batch = await last_batch(store, "import", 1)
        await store.add(*BUDI)
        entry = await last_entry(store)
        await asyncio.to_thread(age_history, url, 31)
        for undo in (store.undo(entry.id, is_batch=False), store.undo(batch.id, is_batch=True)):
            with pytest.raises(NotInHistory):
                await undo
        assert await read_all(store) == [SITI, BUDI]


async def test_expired_entries_are_purged_in_slices_with_other_changes(url: DatabaseURL) -> None:
    """Each change removes a slice, the oldest entries first, until only those that have not expired are left."""
    async with opened(url) as store:
        await store.write_all(
            "import", [Write(SITI._replace(nim=f"{number}"), None) for number in range(PURGE_ENTRIES + 50)]
        )
        for number in range(3):
            await store.add(f"a{number}", "Siti", "Solo")
        await asyncio.to_thread(age_history, url, 31)
        for number in range(4):
            await store.add(f"b{number}", "Siti", "Solo")
        assert [after and after.nim for _, after in await changes(store)] == ["b3", "b2", "b1", "b0"]


async def test_an_entry_that_has_not_expired_is_not_purged(url: DatabaseURL) -> None:
    """HISTORY_DAYS is 30 by default. The version stays the same, so the list is not rendered again."""
    async with opened(url) as store, opened(url) as other:
        await store.add(*SITI)
        await asyncio.to_thread(age_history, url, 29)
        await store.add(*BUDI)
        before = await other.version()
        await store.purge()
        assert await other.version() == before
        assert await changes(store) == [(None, BUDI), (None, SITI)]


async def test_of_many_workers_one_purges_once_a_minute(url: DatabaseURL) -> None:
    """Without other changes at most one slice is removed in a minute, for any number of stores."""
    async with opened(url) as store, opened(url) as other:
        for number in range(PURGE_ENTRIES * 2 + 10):
            await store.add(f"{number:03}", "Siti", "Solo")
        await asyncio.to_thread(age_history, url, 31)
        for purging in (store, other, other, store):
            await purging.purge()
        assert len(await items(store)) == PURGE_ENTRIES + 10
        assert len(await read_all(store)) == PURGE_ENTRIES * 2 + 10


# ---- forget


async def test_forgetting_removes_the_record_and_all_its_history(store: Store, url: DatabaseURL) -> None:
    """Other records keep theirs. The deletion itself is no entry."""
    await store.add(*SITI)
    await store.add(*BUDI)
    await store.update(*SITI._replace(nama="Siti"))
    await store.delete(SITI.nim)
    await store.add(*SITI)
    assert forget(url, SITI.nim)
    assert await read_all(store) == [BUDI]
    assert await changes(store) == [(None, BUDI)]
    assert not forget(url, SITI.nim)
    assert not forget(url, "00\0")
    await store.delete(BUDI.nim)
    assert forget(url, BUDI.nim)  # its history is all that there is of it
    assert await items(store) == []


async def test_the_rest_of_a_batch_can_be_undone_after_forgetting(store: Store, url: DatabaseURL) -> None:
    """The batch has one row less. A batch without rows is removed."""
    await store.write_all("import", [Write(SITI, None), Write(BUDI, None)])
    assert forget(url, SITI.nim)
    batch = await last_batch(store, "import", 1)
    assert batch.only
    assert change(batch.only) == (None, BUDI)
    await store.undo(batch.id, is_batch=True)
    assert await read_all(store) == []
    assert forget(url, BUDI.nim)
    assert await items(store) == []

"""The Store protocol: each engine keeps the same promises."""

import asyncio

import pytest
from stores import BUDI, SITI, attempt, attempt_all, opened, read_all, records_of

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import SLICE_RECORDS, SNAPSHOT_MAX_BYTES, Store, open_store
from mahasiswa.store.engines import merge
from mahasiswa.work import IMPORT, LIST, RECORD, Slots


async def test_records_are_ordered_by_code_point(store: Store) -> None:
    """Every engine orders nims by code points, not by a language, by UTF-16 or by the value of digits."""
    nims = ["", " ", "!", "0", "00", "10", "100", "2", "A", "Z", "a", "aB", "ab", "z", "~"]
    nims += ["é", "e\u0301", "\u00df", "ss", "ı", "İ", "٠", "ꦗ", "\ue000", "\ufeff", "\uffff", "Ａ", "😀", "🎓", "\U0010ffff"]  # fmt: skip

    for nim in sorted(nims, key=lambda nim: (len(nim), nim[::-1]), reverse=True):
        await store.add(nim, "Siti", "Solo")
    assert [record.nim for record in await read_all(store)] == sorted(nims)


REFUSED: dict[tuple[str, str], list[tuple[str | None, str | None, str | None]]] = {
    ("nim", "missing"): [(None, "Budi", "Solo")],
    ("nama", "missing"): [("1", None, "Solo")],
    ("alamat", "missing"): [("1", "Budi", None)],
    ("nim", "unaddressable"): [(".", "Budi", "Solo"), ("..", "Budi", "Solo")],
    ("nim", "too_long"): [(letter * length, "Budi", "Solo") for letter in "9é🎓\u0301" for length in (256, 5000)],
    ("nim", "nul"): [(text, "Budi", "Solo") for text in ("\0", "a\0", "\0a", "a\0b")],
    ("nama", "nul"): [("1", text, "Solo") for text in ("\0", "a\0", "\0a", "a" * 300 + "\0")],
    ("alamat", "nul"): [("1", "Budi", text) for text in ("\0", "a\0", "\0a", "a" * 300 + "\0")],
}


async def test_the_rules_of_the_table_refuse_a_record(store: Store) -> None:
    """The refusal names the field and the reason, of an addition and of an edit, and nothing is stored."""
    await store.add(*SITI)
    for reason, records in REFUSED.items():
        for nim, nama, alamat in records:
            assert await attempt(store.add(nim, nama, alamat)) == reason
            if reason[0] != "nim":
                assert await attempt(store.update(SITI.nim, nama, alamat)) == reason
    refused = await attempt(store.add(None, None, None))
    assert refused
    assert refused[1] == "missing"
    await store.update("unknown", None, None)  # no rule applies if no record has the nim
    assert await read_all(store) == [Mahasiswa(*SITI)]


async def test_what_the_rules_of_the_table_allow(store: Store) -> None:
    """Empty texts, nims like dots, and 255 code points of any size. Other texts have no limit."""
    texts = ["", "...", "./", "/..", " .", ". .", "%2e", "．", *(letter * 255 for letter in "9é🎓\u0301\x01%")]
    for text in texts:
        await store.add(text, text * 20, text)
    assert set(await read_all(store)) == {(text, text * 20, text) for text in texts}


async def test_a_nim_with_a_nul_finds_no_record(store: Store) -> None:
    """Get, update and delete by such a nim find nothing, above all not the record named by the part before the NUL."""
    await store.add(*SITI)
    await store.add("", "Budi", "Bantul")
    for nim in ("\0", "0001\0", "0001\0001", "\0001"):
        assert await store.reader(RECORD).get(nim) is None
        await store.update(nim, "Ani", "Klaten")
        await store.delete(nim)
    assert await read_all(store) == [("", "Budi", "Bantul"), SITI]


async def test_one_of_many_additions_through_several_stores_succeeds(url: DatabaseURL) -> None:
    """The database alone decides, as it does between two worker processes."""
    async with opened(url) as first, opened(url) as second, opened(url) as third:
        for nim in map(str, range(10)):
            stores = [store for _ in range(8) for store in (first, second, third)]
            outcomes = await attempt_all(*(store.add(nim, f"{number}", "Solo") for number, store in enumerate(stores)))
            (winner,) = [number for number, outcome in enumerate(outcomes) if outcome is None]
            assert set(outcomes) == {None, ("nim", "duplicate")}
            for store in (first, second, third):
                assert await store.reader(RECORD).get(nim) == (nim, f"{winner}", "Solo")


async def test_a_refused_write_does_not_affect_others_of_its_group(store: Store) -> None:
    """Writes that are committed together each have their own outcome."""
    await store.add(*SITI)
    await store.add(*BUDI)
    expected = [
        (store.add("1", "Ani", "Klaten"), None),
        (store.add("0001", "Ani", "Klaten"), ("nim", "duplicate")),
        (store.add("2", "Ani", "Klaten"), None),
        (store.add(None, "Ani", "Klaten"), ("nim", "missing")),
        (store.add("..", "Ani", "Klaten"), ("nim", "unaddressable")),
        (store.update("0001", "Siti Baru", "Solo"), None),
        (store.update("0002", None, "Klaten"), ("nama", "missing")),
        (store.add("3", "Ani", None), ("alamat", "missing")),
        (store.add("4" * 256, "Ani", "Klaten"), ("nim", "too_long")),
        (store.add("5", "A\0ni", "Klaten"), ("nama", "nul")),
        (store.delete("0003"), None),
        (store.add("6", "Ani", "Klaten"), None),
    ]
    assert await attempt_all(*(write for write, _ in expected)) == [outcome for _, outcome in expected]
    assert await read_all(store) == [
        ("0001", "Siti Baru", "Solo"),
        BUDI,
        ("1", "Ani", "Klaten"),
        ("2", "Ani", "Klaten"),
        ("6", "Ani", "Klaten"),
    ]


async def test_a_thousand_concurrent_additions_are_all_stored(store: Store) -> None:
    """No write is lost or made twice, and concurrent readers see an ordered list."""
    adding = attempt_all(*(store.add(f"{number:04}", f"{number}", "Solo") for number in range(1000)))
    reading = [asyncio.create_task(read_all(store)) for _ in range(8)]
    assert await adding == [None] * 1000
    for seen in await asyncio.gather(*reading):
        assert seen == sorted(seen)
    assert await read_all(store) == [(f"{number:04}", f"{number}", "Solo") for number in range(1000)]


async def test_a_cancelled_write_does_not_affect_the_others(store: Store) -> None:
    """A cancelled write may be made or not. The others are made, and so is the next one."""
    tasks = [asyncio.ensure_future(store.add(f"{number:02}", "Siti", "Solo")) for number in range(20)]
    await asyncio.sleep(0)  # each write is queued now
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [task.exception() for task in tasks[1::2]] == [None] * 10
    await store.add("next", "Siti", "Solo")
    stored = {record.nim for record in await read_all(store)}
    assert stored >= {f"{number:02}" for number in range(1, 20, 2)} | {"next"}


async def test_closing_a_store_waits_for_running_writes(url: DatabaseURL) -> None:
    """Writes that are queued when the store is closed are made and answered."""
    store = await open_store(url, Slots())
    tasks = [asyncio.ensure_future(store.add(f"{number:02}", "Siti", "Solo")) for number in range(20)]
    await asyncio.sleep(0)  # each write is queued now
    await store.close()
    assert await asyncio.gather(*tasks) == [None] * 20
    async with opened(url) as store:
        assert len(await read_all(store)) == 20


async def test_a_returned_write_is_visible_in_every_store(url: DatabaseURL) -> None:
    """When a write has returned, the next read of any store on the database finds it."""
    async with opened(url) as first, opened(url) as second:
        for writer, reader in [(first, second), (second, first)] * 10:
            for store in (writer, reader):
                assert await read_all(store) == []
            await writer.add(*SITI)
            for store in (writer, reader):
                assert await read_all(store) == [SITI]
            await reader.update("0001", "Budi", "Bantul")
            for store in (writer, reader):
                assert await store.reader(RECORD).get("0001") == ("0001", "Budi", "Bantul")
            await writer.delete("0001")


async def test_a_snapshot_returns_no_records_above_its_limit(store: Store) -> None:
    """Up to the limit every record is returned. With one record more the result is None, so memory is bounded."""
    assert (await store.reader(LIST).snapshot(0)).slices == []
    for number in range(5):
        await store.add(f"{number}", "Siti", "Solo")
    for at_most, there in [(0, False), (1, False), (4, False), (5, True), (6, True)]:
        snapshot = await store.reader(LIST).snapshot(at_most)
        assert (snapshot.slices is not None) == there
        assert not there or [record.nim for record in records_of(snapshot)] == ["0", "1", "2", "3", "4"]


async def test_a_snapshot_holds_every_record_in_slices(store: Store, url: DatabaseURL) -> None:
    """All slices but the last are full, and the records are those of a search, in the same order."""
    rows = [
        (number, f"{number * 7919 % 5237:04}{'é' * (number % 3)}", f"\x01{number}", "Solo") for number in range(5237)
    ]
    merge(url, rows, update=False, dry_run=False)
    snapshot = await store.reader(LIST).snapshot(10_000)
    assert records_of(snapshot) == await read_all(store)
    sizes = [packed.count(b"\0") // 3 + 1 for packed in snapshot.slices or ()]
    assert sizes == [SLICE_RECORDS] * 52 + [37]


async def test_a_snapshot_returns_no_records_if_their_texts_are_too_long(store: Store, url: DatabaseURL) -> None:
    """The bytes of a snapshot are bounded, so few records with long texts cannot fill the memory."""
    rows = [(number, f"{number}", "Siti", "x" * 60_000) for number in range(SNAPSHOT_MAX_BYTES // 60_000)]
    merge(url, rows, update=False, dry_run=False)
    assert (await store.reader(LIST).snapshot(10_000)).total == len(rows)
    await store.add("last", "Siti", "x" * 60_000)
    assert (await store.reader(LIST).snapshot(10_000)).slices is None


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 100])
async def test_after_returns_every_record_once_and_in_order(store: Store, limit: int) -> None:
    """Each batch has the requested size, except for the last one."""
    nims = ["", "\x01", " ", "0", "A", "a", "ab", "é", "\uffff", "🎓"]

    assert list(await store.reader(LIST).after(None, limit)) == []
    for nim in reversed(nims):
        await store.add(nim, nim, "Solo")
    read: list[Mahasiswa] = []
    while batch := await store.reader(LIST).after(read[-1].nim if read else None, limit):
        read += batch
        assert len(batch) == limit or len(read) == len(nims)
    assert read == [(nim, nim, "Solo") for nim in sorted(nims)]
    assert [record.nim for record in await store.reader(LIST).after("A", 2)] == ["a", "ab"]
    assert [record.nim for record in await store.reader(LIST).after("B", 1)] == [
        "a"
    ]  # no record needs to have this nim


async def test_the_version_changes_with_every_write_of_any_store(url: DatabaseURL) -> None:
    """Between writes the version stays the same."""
    async with opened(url) as first, opened(url) as second:
        seen: dict[Store, list[object]] = {first: [], second: []}
        for number in range(3):
            for write in (
                first.add(f"{number}", "Siti", "Solo"),
                second.update(f"{number}", "Budi", "Bantul"),
                first.delete(f"{number}"),
                second.add(f"{number}", "Siti", "Solo"),
            ):
                await write
                for store, versions in seen.items():
                    version = await store.version()
                    if version is None:
                        pytest.skip("this database cannot tell its version")
                    assert version not in versions
                    assert await store.version() == version
                    assert (await store.reader(LIST).snapshot(10)).version == version
                    await store.reader(RECORD).get("0")
                    assert await store.version() == version
                    versions.append(version)


async def test_a_snapshot_is_never_older_than_its_version(url: DatabaseURL) -> None:
    """While another store writes: if the version is still the same, the records are the same too."""

    async def write(store: Store) -> None:
        for number in range(500):
            await store.add(f"{number}", "Siti", "Solo")

    async with opened(url) as first, opened(url) as second:
        writing = asyncio.create_task(write(first))
        while not writing.done():
            snapshot = await second.reader(LIST).snapshot(10_000)
            await asyncio.sleep(0)  # let the writer run, because reading a short list does not
            now = await read_all(second)
            if await second.version() == snapshot.version:
                assert records_of(snapshot) == now
        await writing


async def test_records_whose_nim_is_nearly_the_same_are_found(store: Store) -> None:
    """The list of differences stands at `near_key`. A nim of zeros alone finds none."""
    for nim in ("0230000703", "A11.2020-1", "23O5l", "é1", "00", "", "20/45", "7"):
        await store.add(nim, "Ani", "Solo")
    wanted = ["230.000 703", "a11 20201", "É1", "000", "", "2045", "00\x007", "8", "2305I"]
    assert sorted(record.nim for record in await store.reader(IMPORT).near(wanted, 10)) == [
        "0230000703",
        "23O5l",
        "A11.2020-1",
    ]
    assert len(await store.reader(IMPORT).near(wanted, 1)) == 1
    assert await store.reader(IMPORT).near([], 10) == []

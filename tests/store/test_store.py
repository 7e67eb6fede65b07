"""Every store, through its protocol alone: the same promises on each engine."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import pytest
from stores import BUDI, SITI, attempt_all, opened, read_all, refusal

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import Store, migrate, open_store


class Run(Protocol):
    """Opens the store, hands it to a coroutine function, and closes it; the next call opens the same database anew."""

    def __call__(self, use: Callable[[Store], Coroutine[Any, Any, None]]) -> None: ...


@pytest.fixture
def run(url: DatabaseURL) -> Run:
    """Return what runs a coroutine function on the store."""

    def run(use: Callable[[Store], Coroutine[Any, Any, None]]) -> None:
        async def session() -> None:
            async with asyncio.timeout(30), opened(url) as store:
                await use(store)

        asyncio.run(session())

    return run


def test_a_new_store_is_empty(run: Run) -> None:
    """There are no records, and none of any nim."""

    async def use(store: Store) -> None:
        assert await read_all(store) == []
        assert await store.get("0001") is None
        assert await store.get("") is None

    run(use)


def test_records_are_added_read_changed_and_removed(run: Run) -> None:
    """Each change does what it says to the one record, and no other."""

    async def use(store: Store) -> None:
        await store.add(*SITI)
        await store.add(*BUDI)
        assert await store.get("0001") == SITI
        assert await read_all(store) == [SITI, BUDI]

        await store.update("0001", "Siti Baru", "Solo")
        assert await store.get("0001") == ("0001", "Siti Baru", "Solo")
        assert await read_all(store) == [("0001", "Siti Baru", "Solo"), BUDI]

        await store.delete("0001")
        assert await store.get("0001") is None
        assert await read_all(store) == [BUDI]

    run(use)


def test_what_is_read_are_records(run: Run) -> None:
    """One read or all: a record has its fields by name."""

    async def use(store: Store) -> None:
        await store.add(*SITI)
        for record in (await store.get("0001"), *await store.after(None, 10)):
            assert type(record) is Mahasiswa
            assert record._asdict() == {"nim": "0001", "nama": "Siti Aminah", "alamat": "Jalan Kaliurang 5"}

    run(use)


def test_a_change_of_what_is_not_there_is_nothing(run: Run) -> None:
    """Update and delete of an unknown nim neither fail nor do anything (specification 4.5.2 and 4.6.2)."""

    async def use(store: Store) -> None:
        await store.add(*SITI)
        for nim in ("0002", "", "0001 ", "000", ".", "..", "9" * 300, "%", "_001"):
            await store.update(nim, "Budi", "Bantul")
            await store.delete(nim)
        assert await read_all(store) == [SITI]

    run(use)


def test_a_store_keeps_what_it_was_told(run: Run) -> None:
    """Opened again, on a database that is made ready again, it has every record."""

    async def write(store: Store) -> None:
        await store.add(*SITI)
        await store.add(*BUDI)
        await store.update(BUDI.nim, "Budi Baru", BUDI.alamat)

    async def read(store: Store) -> None:
        assert await read_all(store) == [SITI, ("0002", "Budi Baru", "Bantul")]

    run(write)
    run(read)


def test_a_database_can_be_made_ready_again(url: DatabaseURL, run: Run) -> None:
    """Each start of the service makes the database ready: what is in it stays."""

    async def write(store: Store) -> None:
        await store.add(*SITI)

    async def read(store: Store) -> None:
        assert await read_all(store) == [SITI]

    run(write)
    migrate(url)
    run(read)


def test_records_are_ordered_by_code_point(run: Run) -> None:
    """The order is the same on every engine: no language's, no UTF-16's, and a number's digits are but text."""
    nims = ["", " ", "!", "0", "00", "10", "100", "2", "A", "Z", "a", "aB", "ab", "z", "~"]
    nims += ["é", "e\u0301", "\u00df", "ss", "ı", "İ", "٠", "ꦗ", "\ue000", "\ufeff", "\uffff", "Ａ", "😀", "🎓", "\U0010ffff"]  # fmt: skip

    async def use(store: Store) -> None:
        for nim in sorted(nims, key=lambda nim: (len(nim), nim[::-1]), reverse=True):
            await store.add(nim, "Siti", "Solo")
        assert [record.nim for record in await read_all(store)] == sorted(nims)

    run(use)


def test_nims_are_the_same_only_to_the_byte(run: Run) -> None:
    """Case, spaces, leading zeros and Unicode's normal forms make another nim."""
    nims = [
        "a",
        "A",
        "a ",
        " a",
        "Zo\u00eb",
        "Zoe\u0308",
        "1",
        "01",
        "1.0",
        "１",
        "",
        " ",
        "\u200b",
        "\t",
        "\n",
        "\r\n",
    ]

    async def use(store: Store) -> None:
        for nim in nims:
            await store.add(nim, nim, nim)
        for nim in nims:
            assert await store.get(nim) == (nim, nim, nim)
        for nim in nims[::2]:
            await store.delete(nim)
        assert [record.nim for record in await read_all(store)] == sorted(nims[1::2])

    run(use)


TEXTS = {
    "empty": "",
    "a space": " ",
    "control characters": "\x01\t\n\x0b\x0c\r\x1f\x7f\x85\u2028",
    "marks": "'\";--\\%_$1?:a",
    "digits": "0012",
    "a number": "1e3",
    "a word": "NULL",
    "no characters": "\ufeff\ufffe\uffff",
    "emoji": "👩🏽‍🎓",
    "right to left": "\u202eabc",
    "long": "a" * 60_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_is_kept_to_the_byte(run: Run, text: str) -> None:
    """Whatever it is, long and empty text included, it comes back as it went in, by add and by update."""

    async def use(store: Store) -> None:
        await store.add(text[:255], text, text)
        assert await store.get(text[:255]) == (text[:255], text, text)
        await store.update(text[:255], "Siti", "Solo")
        await store.update(text[:255], text, text)
        assert await read_all(store) == [(text[:255], text, text)]

    run(use)


def test_a_nim_that_exists_is_refused(run: Run) -> None:
    """The first record stays as it was; once it is removed, its nim is free again."""

    async def use(store: Store) -> None:
        await store.add(*SITI)
        assert await refusal(store.add("0001", "Budi", "Bantul")) == ("nim", "duplicate")
        assert await refusal(store.add(*SITI)) == ("nim", "duplicate")
        assert await read_all(store) == [SITI]
        await store.delete("0001")
        await store.add("0001", "Budi", "Bantul")
        assert await read_all(store) == [("0001", "Budi", "Bantul")]

    run(use)


@pytest.mark.parametrize("field", Mahasiswa._fields)
def test_a_missing_text_is_refused(run: Run, field: str) -> None:
    """Nothing is added, nothing is changed, where a text is None; an empty text is a text."""

    async def use(store: Store) -> None:
        values: dict[str, Any] = {**BUDI._asdict(), field: None}
        assert await refusal(store.add(**values)) == (field, "missing")
        await store.add(*SITI)
        if field != "nim":
            values["nim"] = SITI.nim
            assert await refusal(store.update(**values)) == (field, "missing")
        assert await read_all(store) == [SITI]
        await store.add(**{**BUDI._asdict(), field: ""})
        assert len(await read_all(store)) == 2

    run(use)


def test_a_record_without_any_text_is_refused(run: Run) -> None:
    """The refusal names one of the fields."""

    async def use(store: Store) -> None:
        field, reason = await refusal(store.add(None, None, None))
        assert field in Mahasiswa._fields
        assert reason == "missing"
        assert await read_all(store) == []

    run(use)


def test_a_change_without_text_of_what_is_not_there_is_nothing(run: Run) -> None:
    """The database has nothing to refuse where no record has the nim."""

    async def use(store: Store) -> None:
        await store.update("0001", None, None)
        assert await read_all(store) == []

    run(use)


@pytest.mark.parametrize("nim", [".", ".."])
def test_a_nim_that_no_browser_can_address_is_refused(run: Run, nim: str) -> None:
    """The URL standard resolves dot segments even when they are percent-encoded."""

    async def use(store: Store) -> None:
        assert await refusal(store.add(nim, "Siti", "Solo")) == ("nim", "unaddressable")
        assert await read_all(store) == []
        for other in ("...", "./", "/..", " .", ". .", "%2e", "．"):
            await store.add(other, "Siti", "Solo")
            assert await store.get(other) == (other, "Siti", "Solo")

    run(use)


@pytest.mark.parametrize("character", ["9", "é", "€", "🎓", "\u0301", "\x01", "%"])
def test_a_nim_has_255_characters_at_most(run: Run, character: str) -> None:
    """Characters are code points, however many bytes they have; nama and alamat have no such bound."""

    async def use(store: Store) -> None:
        await store.add(character * 255, character * 256, character * 5000)
        assert await refusal(store.add(character * 256, "Siti", "Solo")) == ("nim", "too_long")
        assert await refusal(store.add(character * 5000, "Siti", "Solo")) == ("nim", "too_long")
        assert await read_all(store) == [(character * 255, character * 256, character * 5000)]

    run(use)


@pytest.mark.parametrize(
    "text", ["\0", "a\0", "\0a", "a\0b", "a" * 300 + "\0"], ids=["alone", "last", "first", "inside", "far"]
)
@pytest.mark.parametrize("field", Mahasiswa._fields)
def test_a_nul_is_refused(run: Run, field: str, text: str) -> None:
    """No engine keeps a NUL in a text the same way, so none is stored, at whatever place it stands."""

    async def use(store: Store) -> None:
        await store.add(*SITI)
        refused, reason = await refusal(store.add(**{**BUDI._asdict(), field: text}))
        assert refused == field
        assert reason == "nul" or (field == "nim" and len(text) > 255 and reason == "too_long")
        if field != "nim":
            assert await refusal(store.update(**{**SITI._asdict(), field: text})) == (field, "nul")
        assert await read_all(store) == [SITI]

    run(use)


def test_a_nim_with_a_nul_is_no_records(run: Run) -> None:
    """To read, change or remove by it is to find nothing, above all not what stands before the NUL."""

    async def use(store: Store) -> None:
        await store.add(*SITI)
        await store.add("", "Budi", "Bantul")
        for nim in ("\0", "0001\0", "0001\0001", "\0001"):
            assert await store.get(nim) is None
            await store.update(nim, "Ani", "Klaten")
            await store.delete(nim)
        assert await read_all(store) == [("", "Budi", "Bantul"), SITI]

    run(use)


def test_one_of_many_at_once_gets_the_nim(run: Run) -> None:
    """Of all who add the same nim at the same time one succeeds, and it is that one's record that is stored."""

    async def use(store: Store) -> None:
        outcomes = await attempt_all(*(store.add("0001", f"{number}", "Solo") for number in range(50)))
        (winner,) = [number for number, outcome in enumerate(outcomes) if outcome is None]
        assert set(outcomes) == {None, ("nim", "duplicate")}
        assert await read_all(store) == [("0001", f"{winner}", "Solo")]

    run(use)


def test_one_of_many_in_several_processes_gets_the_nim(url: DatabaseURL) -> None:
    """The same where they do not share a store, as two workers do not: the database alone decides."""

    async def use() -> None:
        async with opened(url) as first, opened(url) as second, opened(url) as third:
            for nim in map(str, range(10)):
                stores = [store for _ in range(8) for store in (first, second, third)]
                outcomes = await attempt_all(
                    *(store.add(nim, f"{number}", "Solo") for number, store in enumerate(stores))
                )
                (winner,) = [number for number, outcome in enumerate(outcomes) if outcome is None]
                assert set(outcomes) == {None, ("nim", "duplicate")}
                for store in (first, second, third):
                    assert await store.get(nim) == (nim, f"{winner}", "Solo")

    asyncio.run(use())


def test_a_refused_write_leaves_its_neighbours(run: Run) -> None:
    """Writes that are committed together have each their own outcome, whichever of them is refused, and why."""

    async def use(store: Store) -> None:
        await store.add(*SITI)
        await store.add(*BUDI)
        outcomes = await attempt_all(
            store.add("1", "Ani", "Klaten"),
            store.add("0001", "Ani", "Klaten"),
            store.add("2", "Ani", "Klaten"),
            store.add(None, "Ani", "Klaten"),
            store.add("..", "Ani", "Klaten"),
            store.update("0001", "Siti Baru", "Solo"),
            store.update("0002", None, "Klaten"),
            store.add("3", "Ani", None),
            store.add("4" * 256, "Ani", "Klaten"),
            store.add("5", "A\0ni", "Klaten"),
            store.delete("0003"),
            store.add("6", "Ani", "Klaten"),
        )
        assert outcomes == [
            None,
            ("nim", "duplicate"),
            None,
            ("nim", "missing"),
            ("nim", "unaddressable"),
            None,
            ("nama", "missing"),
            ("alamat", "missing"),
            ("nim", "too_long"),
            ("nama", "nul"),
            None,
            None,
        ]
        assert await read_all(store) == [
            ("0001", "Siti Baru", "Solo"),
            BUDI,
            ("1", "Ani", "Klaten"),
            ("2", "Ani", "Klaten"),
            ("6", "Ani", "Klaten"),
        ]

    run(use)


def test_many_at_once_are_all_stored(run: Run) -> None:
    """No write is lost or made twice among a thousand that come together, while others read."""

    async def use(store: Store) -> None:
        adding = attempt_all(*(store.add(f"{number:04}", f"{number}", "Solo") for number in range(1000)))
        reading = [asyncio.create_task(read_all(store)) for _ in range(8)]
        assert await adding == [None] * 1000
        for seen in await asyncio.gather(*reading):
            assert seen == sorted(seen)
        assert await read_all(store) == [(f"{number:04}", f"{number}", "Solo") for number in range(1000)]

    run(use)


def test_a_writer_who_goes_away_leaves_the_others(run: Run) -> None:
    """A write that is given up may be made or not; those that wait beside it are made, and so is the next."""

    async def use(store: Store) -> None:
        tasks = [asyncio.ensure_future(store.add(f"{number:02}", "Siti", "Solo")) for number in range(20)]
        await asyncio.sleep(0)  # each is under way now
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [task.exception() for task in tasks[1::2]] == [None] * 10
        await store.add("next", "Siti", "Solo")
        stored = {record.nim for record in await read_all(store)}
        assert stored >= {f"{number:02}" for number in range(1, 20, 2)} | {"next"}

    run(use)


def test_closing_lets_running_writes_finish(url: DatabaseURL, run: Run) -> None:
    """Writes that are under way when the store is closed are made and answered."""

    async def close_early() -> None:
        store = await open_store(url)
        tasks = [asyncio.ensure_future(store.add(f"{number:02}", "Siti", "Solo")) for number in range(20)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*tasks) == [None] * 20

    async def read(store: Store) -> None:
        assert len(await read_all(store)) == 20

    asyncio.run(close_early())
    run(read)


def test_a_write_is_seen_by_everyone_at_once(url: DatabaseURL) -> None:
    """When a write has returned, the next read has it, through this store and through any other."""

    async def use() -> None:
        async with opened(url) as first, opened(url) as second:
            for writer, reader in [(first, second), (second, first)] * 10:
                for store in (writer, reader):
                    assert await read_all(store) == []
                await writer.add(*SITI)
                for store in (writer, reader):
                    assert await read_all(store) == [SITI]
                await reader.update("0001", "Budi", "Bantul")
                for store in (writer, reader):
                    assert await store.get("0001") == ("0001", "Budi", "Bantul")
                await writer.delete("0001")

    asyncio.run(use())


def test_a_snapshot_has_no_more_records_than_were_asked_for(run: Run) -> None:
    """Up to the bound every record is there; with one more there are none, so that memory is bounded."""

    async def use(store: Store) -> None:
        assert (await store.snapshot(0)).records == []
        for number in range(5):
            await store.add(f"{number}", "Siti", "Solo")
        for at_most, there in [(0, False), (1, False), (4, False), (5, True), (6, True)]:
            records = (await store.snapshot(at_most)).records
            assert (records is not None) == there
            assert records is None or [nim for nim, _, _ in records] == ["0", "1", "2", "3", "4"]

    run(use)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 100])
def test_all_records_are_read_in_pieces(run: Run, limit: int) -> None:
    """Piece after piece, each of the size that was asked for but the last, every record comes once and in order."""
    nims = ["", "\x01", " ", "0", "A", "a", "ab", "é", "\uffff", "🎓"]

    async def use(store: Store) -> None:
        assert list(await store.after(None, limit)) == []
        for nim in reversed(nims):
            await store.add(nim, nim, "Solo")
        read: list[Mahasiswa] = []
        while piece := await store.after(read[-1].nim if read else None, limit):
            read += piece
            assert len(piece) == limit or len(read) == len(nims)
        assert read == [(nim, nim, "Solo") for nim in sorted(nims)]
        assert [record.nim for record in await store.after("A", 2)] == ["a", "ab"]
        assert [record.nim for record in await store.after("B", 1)] == ["a"]  # there need not be one of that nim

    run(use)


def test_the_version_changes_with_every_change(url: DatabaseURL) -> None:
    """Whoever writes, each store's version is another one then, and the same for as long as nobody does."""

    async def use() -> None:
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
                            pytest.skip("this engine cannot tell a version")
                        assert version not in versions
                        assert await store.version() == version
                        assert (await store.snapshot(10)).version == version
                        await store.get("0")
                        assert await store.version() == version
                        versions.append(version)

    asyncio.run(use())


def test_a_snapshot_is_never_older_than_its_version(url: DatabaseURL) -> None:
    """While another store writes: where the version is still the same, so are the records."""

    async def use() -> None:
        async with opened(url) as first, opened(url) as second:
            writing = asyncio.create_task(write_to(first))
            while not writing.done():
                version, records = await second.snapshot(10_000)
                await asyncio.sleep(0)  # a short list may be read without letting anyone else run
                now = await read_all(second)
                if await second.version() == version:
                    assert records == now
            await writing

    async def write_to(store: Store) -> None:
        for number in range(500):
            await store.add(f"{number}", "Siti", "Solo")

    asyncio.run(use())

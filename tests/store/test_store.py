"""The Store protocol: each engine keeps the same promises."""

import asyncio
import re
from collections.abc import Awaitable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from spreadsheets import numbered
from stores import SITI, execute, merge, opened, read_all

from mahasiswa import store as store_package
from mahasiswa.record import Mahasiswa, near_key
from mahasiswa.store import Store
from mahasiswa.store.postgres import postgres_sql
from mahasiswa.store.reader import SNAPSHOT_MAX_BYTES
from mahasiswa.store.sqlite import sqlite_sql
from mahasiswa.store.store_errors import Refused
from mahasiswa.web.list_html import packed
from mahasiswa.work import IMPORT, LIST, RECORD

ASCII_NIMS = '! 0 00 10 100 2 A Z a aB ab z ~ ... ./ /.. NULL " \\ \\" {} \' , [1] %s \x01'


async def test_records_are_ordered_by_code_point(store: Store) -> None:
    """Not by a language, by UTF-16 or by the value of digits. `after` reads all in any batches, from any nim on.

    All are found and removed together: no letter of a nim ends the list of nims that a statement gets.
    """
    nims = ["", " ", " .", *ASCII_NIMS.split(), "．"]
    nims += ["é", "e\u0301", "\u00df", "ss", "ı", "İ", "٠", "ꦗ", "\ue000", "\ufeff", "\uffff", "Ａ", "😀", "🎓", "\U0010ffff"]  # fmt: skip
    nims += [letter * 255 for letter in "9é🎓\u0301\x01%"]
    expected = [(nim, nim * 20, nim) for nim in sorted(nims)]

    assert list(await store.reader(LIST).after(None, 5)) == []
    for record in sorted(expected, key=lambda record: record[0][::-1]):
        await store.add(*record)
    assert await read_all(store) == expected
    for limit in (1, 2, 6, len(nims), 100):
        read = list(await store.reader(LIST).after(None, limit))
        while batch := await store.reader(LIST).after(read[-1].nim, limit):
            assert len(read) % limit == 0
            read += batch
        assert read == expected
    # No record has this nim.
    assert [record.nim for record in await store.reader(LIST).after("Y", 1)] == ["Z"]
    assert {*await store.reader(RECORD).find([*nims, "\0"])} == {*nims}
    await store.write_all("delete", removals=nims)
    assert await read_all(store) == []


REFUSED: dict[tuple[str | None, str | None, str | None], tuple[str, str]] = {
    (None, "Budi", "Solo"): ("nim", "missing"),
    ("1", None, "Solo"): ("nama", "missing"),
    ("1", "Budi", None): ("alamat", "missing"),
    (".", "Budi", "Solo"): ("nim", "unaddressable"),
    ("..", "Budi", "Solo"): ("nim", "unaddressable"),
    **{(letter * 256, "Budi", "Solo"): ("nim", "too_long") for letter in "9é🎓\u0301"},
    **{(text, "Budi", "Solo"): ("nim", "nul") for text in ("\0", "a\0", "\0a", "a\0b")},
    SITI: ("nim", "duplicate"),
}
"""Each record that a rule of the table refuses, with the field and the reason."""


async def attempt(write: Awaitable[object]) -> tuple[str, str] | None:
    """Make a write; return None if it is stored, or the field and the reason if it is refused."""
    try:
        await write
    except Refused as refused:
        return refused.field, refused.reason
    return None


async def test_refused_additions_of_a_group_leave_their_neighbours(store: Store) -> None:
    """Each of 64 additions has its own outcome. Each rule refuses at least one of every second addition."""
    await store.add(*SITI)
    good = [Mahasiswa(f"{number:02}", "Ani", "Solo") for number in range(64)]
    writes: list[Any] = [(record, None) for record in good]
    writes[::2] = islice(cycle(REFUSED.items()), 32)
    answers = await asyncio.gather(*(attempt(store.add(*record)) for record, _ in writes))
    assert answers == [outcome for _, outcome in writes]
    assert await read_all(store) == sorted([SITI, *good[1::2]])


BROKEN_RULES = [
    *("NULL, 'Siti', 'Solo'", "'1', NULL, 'Solo'", "'1', 'Siti', NULL", "'..', 'Siti', 'Solo'"),
    *(f"'{'9' * 256}', 'Siti', 'Solo'", "'0001', 'Siti', 'Solo'"),
]


async def test_no_other_program_can_break_a_rule(store: Store, url: str) -> None:
    """The rules stand in the database, so they bind every program."""
    await store.add(*SITI)
    for values in BROKEN_RULES:
        with pytest.raises((psycopg.IntegrityError, apsw.Error)):
            execute(url, f"INSERT INTO mahasiswa VALUES ({values})")
    assert await read_all(store) == [SITI]


async def test_one_of_many_additions_through_several_stores_succeeds(url: str) -> None:
    """The database alone decides, as it does between two worker processes."""
    async with opened(url) as first, opened(url) as second, opened(url) as third:
        for nim in map(str, range(10)):
            stores = [store for _ in range(8) for store in (first, second, third)]
            outcomes = await asyncio.gather(
                *(
                    attempt(store.add(nim, f"{number}", "Solo"))
                    for number, store in enumerate(stores)
                )
            )
            (winner,) = [number for number, outcome in enumerate(outcomes) if outcome is None]
            assert set(outcomes) == {None, ("nim", "duplicate")}
            for store in (first, second, third):
                assert await store.reader(RECORD).get(nim) == (nim, f"{winner}", "Solo")


async def test_a_snapshot_holds_every_record_or_none(store: Store, url: str) -> None:
    """It has none if there are more records than asked for, or too many bytes."""
    assert (await store.snapshot(0)).packed == b""
    rows = [
        (f"{number * 7919 % 5237:04}{'é' * (number % 3)}", f"\x01{number}", "Solo")
        for number in range(5237)
    ]
    merge(url, *rows)
    for at_most, is_read in [(0, False), (1, False), (5236, False), (5237, True), (10_000, True)]:
        snapshot = await store.snapshot(at_most)
        assert (snapshot.packed is not None) == is_read
    assert snapshot[:2] == (len(rows), packed(sorted(rows)))
    long = numbered(SNAPSHOT_MAX_BYTES // 60_000 + 1, "Siti", "ก" * 20_000, nim="x{}")
    merge(url, *long[:-3])
    assert (await store.snapshot(10_000)).packed == packed(await read_all(store))
    merge(url, *long[-3:])
    assert (await store.snapshot(10_000)).packed is None


async def test_a_snapshot_is_of_one_moment_and_never_older_than_its_version(
    url: str,
) -> None:
    """While another store adds: its newest item is about its last record, and the same version has the same records."""

    async def write(store: Store) -> None:
        for number in range(150):
            await store.add(f"{number:03}", "Siti", "Solo")

    async with opened(url) as first, opened(url) as second:
        await first.add("", "Siti", "Solo")
        writing = asyncio.create_task(write(first))
        while not writing.done():
            version = await second.version()
            snapshot = second.snapshot_now(10_000) or await second.snapshot(10_000)
            assert snapshot.packed
            assert snapshot.last
            newest = snapshot.last.item.after
            assert newest
            assert snapshot.packed.endswith(packed([newest]))
            await asyncio.sleep(0)  # let the writer run, because reading a short list does not
            now = await second.snapshot(10_000)
            if await second.version() == version:
                assert snapshot == now
        await writing


async def test_records_whose_nim_is_nearly_the_same_are_found(store: Store) -> None:
    """The list of differences stands at `near_key`. A nim of zeros alone finds none."""
    for nim in ("0230000703", "A11.2020-1", "23O5l", "é1", "00", "", "20/45", "7"):
        await store.add(nim, "Ani", "Solo")
    wanted = [
        "\ufeff230.000\u200e 703\u00ad",
        "a11 20201",
        "É1",
        "000",
        "",
        "2045",
        "00\x007",
        "8",
        "2305I",
    ]
    keys = sorted({near_key(nim) for nim in wanted} - {""})
    near = await store.reader(IMPORT).near(keys, 10)
    assert sorted(near) == ["0230000703", "23O5l", "A11.2020-1"]
    assert len(await store.reader(IMPORT).near(keys, 1)) == 1
    assert await store.reader(IMPORT).near([], 10) == []


def test_both_engines_have_the_statements_that_the_program_names_and_no_others() -> None:
    """A step names its statement by a text, which mypy does not check."""
    source = "".join(
        path.read_text("utf-8") for path in Path(store_package.__file__).parent.rglob("*.py")
    )
    steps = re.findall(r'\b(?:yield|rows|by_nim|step)[ (]+"([a-z_]+)"', source)
    texts = re.findall(r'"([a-z_]+)"', source)
    for statements in (sqlite_sql.STATEMENTS, postgres_sql.STATEMENTS):
        names = {name.partition(" ")[0] for name in statements}
        assert {*steps} <= names <= {*texts}
    assert sqlite_sql.STATEMENTS.keys() == postgres_sql.STATEMENTS.keys()

"""Both engines give the same answers to the same random operations, and their records are those of a dict."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import stores
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres import own_schema
from stores import migrate

from mahasiswa.record import Incoming, Mahasiswa, Write, digest
from mahasiswa.settings import DatabaseURL, parse_database_url
from mahasiswa.store import Query, Store
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import Changed, EditConflict, Refused
from mahasiswa.work import RECORD, SEARCH, Slots

# Letters with another case, and characters that a language or a lenient comparison takes for the same.
LETTERS = "aAbBzZ01 éÉüÜßẞıİiIſKKåÅåÅσςΣǅǆǄñÑ%_\\*?[](){}.+^$|-/'\"<&\x01\t\n\r\u200b\ufeff\uffff🎓"
TEXTS = st.text(st.sampled_from(LETTERS), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=6
)
WORDS = st.sampled_from(
    [
        "Siti",
        "siti",
        "SITI",
        " Siti\r\n",
        "Nur'aini",
        "Élan",
        "élan",
        "100%",
        "a_b",
        "a.b",
        "[x]",
        "***=a",
        "(?i)a",
    ]
)
ODD_NIMS = [
    "",
    "1",
    "01",
    "a",
    "A",
    "é",
    "É",
    "e\u0301",
    ".",
    "..",
    "a\0",
    "\0",
    "9" * 255,
    "9" * 256,
]
# Half of them are one of two, so that the operations often meet the same record.
NIMS = (
    st.sampled_from(["1", "01"])
    | st.sampled_from(["1", "01"])
    | st.sampled_from([*ODD_NIMS, "🎓" * 255, "🎓" * 256])
    | TEXTS
)
VALUES = st.none() | WORDS | TEXTS
STORABLE = (WORDS | TEXTS).map(lambda text: text.replace("\0", ""))
OLDER = st.none() | STORABLE
QUERIES = st.builds(
    Query,
    st.just("") | WORDS | TEXTS,
    st.sampled_from(Mahasiswa._fields),
    st.sampled_from(["naik", "turun"]),
)

Operation = tuple[str, tuple[Any, ...]]


@st.composite
def rows(draw: st.DrawFn) -> list[Incoming]:
    """The rows of a cleaned file, in which each nim occurs once."""
    nims = draw(st.lists(NIMS.map(lambda nim: nim.replace("\0", "")), unique=True, max_size=6))
    texts = st.none() | STORABLE
    return [(number, nim, draw(texts), draw(texts)) for number, nim in enumerate(nims, 2)]


def calls(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    """The name of a function or method to call, and its arguments."""
    return st.tuples(st.just(name), st.tuples(*arguments))


WRITES = st.lists(
    st.tuples(st.builds(Mahasiswa, NIMS, STORABLE, STORABLE | TEXTS), st.booleans()), max_size=4
)
OPERATIONS = st.one_of(
    calls("add", st.none() | NIMS, VALUES, VALUES),
    calls("update", NIMS, STORABLE, VALUES),
    calls("update", NIMS, VALUES, VALUES, st.just("another version")),
    calls("edit", NIMS, VALUES, VALUES, st.tuples(OLDER, OLDER)),
    calls("delete", NIMS),
    calls("get", NIMS),
    calls("find", st.lists(NIMS, max_size=5)),
    calls("after", st.none() | NIMS.map(lambda nim: nim.replace("\0", "")), st.integers(1, 3)),
    calls("search", QUERIES, st.integers(0, 3), st.integers(0, 5)),
    calls("all", QUERIES),
    calls("write_all", WRITES),
    calls("merge", rows(), st.booleans(), st.booleans()),
)


async def edit(
    store: Store,
    nim: str,
    nama: str | None,
    alamat: str | None,
    older: tuple[str | None, str | None],
) -> None:
    """Change a record as the edit page does, with the digest of its current texts, or of older ones."""
    current = await store.reader(RECORD).get(nim)
    texts = (
        [text if old is None else old for text, old in zip(current[1:], older, strict=True)]
        if current
        else []
    )
    await store.update(nim, nama, alamat, digest(Mahasiswa(nim, *texts)) if current else "none")


async def write_all(store: Store, wanted: Sequence[tuple[Mahasiswa, bool]]) -> None:
    """Write several records, some of them with the digest of their current texts."""
    writes = []
    for record, known in wanted:
        current = await store.reader(RECORD).get(record.nim) if known else None
        writes.append(Write(record, digest(current) if current else None))
    await store.write_all("import", writes)


async def merge(store: Store, incoming: Sequence[Incoming], update: bool, dry_run: bool) -> object:  # noqa: FBT001 - drawn
    return engine_of(URLS[store]).merge(incoming, update=update, dry_run=dry_run)


async def read_all(store: Store, query: Query) -> list[Mahasiswa]:
    return await store.export(query, list)


def may_have_several_faults(name: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether a change has several records, or a NUL, which PostgreSQL refuses before every other fault."""
    return name == "write_all" or (name in ("add", "update", "edit") and "\\x00" in repr(arguments))


async def search(store: Store, query: Query, offset: int, limit: int) -> object:
    """A page of all records that a query finds, without its line of the history, whose moment differs."""
    page = (await store.reader(SEARCH).search(query, offset, limit))._replace(last=None)
    found = await read_all(store, query)
    assert (page.total, page.records) == (len(found), found[offset : offset + limit])
    return page


def model(
    records: dict[str, Mahasiswa], name: str, arguments: tuple[Any, ...]
) -> dict[str, Mahasiswa]:
    """The records of a dict after an addition, an edit or a deletion that is not refused."""
    nim, *_ = arguments
    kept = {known: record for known, record in records.items() if known != nim}
    return (
        kept | {nim: Mahasiswa(*arguments)}
        if name == "add" or (name == "update" and nim in records)
        else kept
    )


URLS: WeakKeyDictionary[Store, DatabaseURL] = WeakKeyDictionary()
"""The address of each open store."""

EXTRAS: dict[str, Callable[..., Awaitable[object]]] = {
    "edit": edit, "write_all": write_all, "merge": merge, "all": read_all, "search": search,
}  # fmt: skip


def ask(store: Store, name: str, *arguments: Any) -> Awaitable[object]:  # noqa: ANN401 - drawn
    """Call one of the functions above, or a method of the store or of its readers."""
    if name in EXTRAS:
        return EXTRAS[name](store, *arguments)
    called = store.reader(RECORD) if name in ("get", "find", "after") else store
    answer: Awaitable[object] = getattr(called, name)(*arguments)
    return answer


async def outcome(store: Store, name: str, arguments: tuple[Any, ...]) -> object:
    try:
        return await ask(store, name, *arguments)
    except Refused as refused:
        return refused.field, refused.reason
    except Changed as changed:
        return str(changed)
    except EditConflict as conflict:
        return conflict.current, conflict.edited, conflict.before


@pytest.fixture
def runner(postgres: str, tmp_path: Path) -> Iterator[tuple[asyncio.Runner, Store, Store]]:
    with own_schema(postgres) as address, asyncio.Runner() as runner:
        opened = []
        for url in map(parse_database_url, (f"sqlite:///{tmp_path}/a.db", address)):
            migrate(url)
            opened.append(runner.run(engine_of(url).open_store(Slots())))
            URLS[opened[-1]] = url
        yield runner, opened[0], opened[1]
        for store in opened:
            runner.run(store.close())


@pytest.mark.parametrize("examples", [30, pytest.param(300, marks=pytest.mark.torture)])
def test_both_engines_answer_the_same_operations_alike(
    runner: tuple[asyncio.Runner, Store, Store], examples: int
) -> None:
    """After each operation they hold the same records in the same order. A refused one changes nothing."""
    loop, sqlite, postgres = runner

    @settings(max_examples=examples)
    @given(st.lists(OPERATIONS, min_size=5, max_size=20))
    def compare(steps: list[Operation]) -> None:
        loop.run(both(steps))

    async def both(steps: list[Operation]) -> None:
        records: dict[str, Mahasiswa] = {}
        for name, arguments in steps:
            answers = [await outcome(store, name, arguments) for store in (sqlite, postgres)]
            if may_have_several_faults(name, arguments):  # the engines may name different ones
                answers = [answer and "refused" for answer in answers]
            assert answers[0] == answers[1], (name, arguments)
            kept = await stores.read_all(sqlite)
            assert kept == sorted(kept) == await stores.read_all(postgres), (name, arguments)
            before, records = records, {record.nim: record for record in kept}
            if name in ("add", "update", "delete") and len(arguments) <= 3 and answers[0] is None:
                before = model(before, name, arguments)
            assert records == before or name in ("edit", "write_all", "merge"), (name, arguments)
        for record in await read_all(sqlite, Query()):
            await sqlite.delete(record.nim)
            await postgres.delete(record.nim)

    compare()

"""The search of both engines: one table of cases, and folded texts that always agree with the records."""

import asyncio
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres import execute, own_schema
from stores import ask, opened, run_script

from mahasiswa.record import Mahasiswa, Write
from mahasiswa.settings import DatabaseURL, PostgresURL, SQLiteURL
from mahasiswa.store import Query, Store, adopt, folding, migrate
from mahasiswa.store.errors import Unusable
from mahasiswa.store.history import Entry

PEOPLE = [
    Mahasiswa("20/456839/TK/50663", "Siti Nur'aini", "Jl. Merdeka No. 5, Bandung"),
    Mahasiswa("0002", "Siti\u00a0Nur\u2019Aini  Putri", "Bandung"),
    Mahasiswa("0001", "Nuraini", "Yogyakarta"),
    Mahasiswa("0004", "Maria D\u2019Souza", "Jl.Kaliurang Km. 5"),
    Mahasiswa("0005", "Café Ñandú", "Łódź"),
    Mahasiswa("0006", "Cafe\u0301 Al-Amin", "c:\\rumah"),
    Mahasiswa("0007", "Ḥasan Bā\u02bfalawī", "100% [Baru]"),
    Mahasiswa("0008", "Straße Æsir", "Nguyễn_Trãi"),
    Mahasiswa("0009", "ΣΊΜΟΣ Ёлкин", "*Mawar*?"),
    Mahasiswa("23.10-00", "Sa`adah, S.Pd.", "中 🎓"),
]

# The words that people type, and the last digit of the nims that they mean.
CASES = [
    ("siti bandung", "23"),
    ("bandung siti", "23"),
    ("siti  aini", "23"),
    ("  SITI\taini ", "23"),
    ("siti\u00a0aini", "23"),
    ("nuraini", "321"),
    ("nur\u2019aini", "321"),
    ("nur'aini", "321"),
    ("nur\u02bcaini", "321"),
    ("nur`aini", "321"),
    ("nur\u00b4aini", "321"),
    ("nur\u2018aini", "321"),
    ("NUR AINI", "321"),
    ("d'souza", "4"),
    ("dsouza", "4"),
    ("D\u2019SOUZA", "4"),
    ("cafe", "56"),
    ("CAFÉ", "56"),
    ("cafe\u0301", "56"),
    ("nandu", "5"),
    ("ñandu", "5"),
    ("lodz", "5"),
    ("ŁÓDŹ", "5"),
    ("al-amin", "6"),
    ("alamin", "6"),
    ("al\u2013amin", "6"),
    ("hasan baalawi", "7"),
    ("ḥasan bā\u02bfalawī", "7"),
    ("strasse", "8"),
    ("STRAẞE aesir", "8"),
    ("nguyen_trai", "8"),
    ("NGUYỄN", "8"),
    ("σίμος", "9"),
    ("σιμοσ елкин", "9"),
    ("ЁЛКИН", "9"),
    ("saadah", "0"),
    ("s.pd", "0"),
    ("spd saadah", "0"),
    ("saadah,", "0"),
    ("20/456839/TK/50663", "3"),
    ("20/456839/tk/50663", "3"),
    ("456839", "3"),
    ("tk/50663", "3"),
    ("23.10-00", "0"),
    ("231000", "0"),
    ("jl kaliurang", "4"),
    ("jl.", "34"),
    ("100%", "7"),
    ("[baru]", "7"),
    ("c:\\rumah", "6"),
    ("nguyễn_", "8"),
    ("*mawar*?", "9"),
    ("中", "0"),
    ("🎓", "0"),
    ("siti yogyakarta", ""),
    ("siti*", ""),
    ("%", "7"),
    ("_", "8"),
    ("-", ""),
    (".", ""),
    ("- .", ""),
    ("\u0301", ""),
    ("siti - bandung", "23"),
    ("s" * 200, ""),
    ("siti\0", ""),
    ("s i t n u r a d g b zzz", "32"),  # the words after the tenth are ignored
]


async def nims(store: Store, cari: str) -> list[str]:
    """Return the nims that a search finds, by each of the methods that search."""
    found = await store.search(Query(cari), 0, 100)
    chunks = [record.nim async for chunk in store.chunks(Query(cari, "nama")) for record in chunk]
    assert found.total == len(found.records) == await store.count(Query(cari)) == len(chunks)
    assert {record.nim for record in found.records} == set(chunks)
    return [record.nim for record in found.records]


@pytest.fixture
async def people(store: Store) -> Store:
    """Return a store with PEOPLE."""
    await fill(store, PEOPLE)
    return store


async def fill(store: Store, records: Sequence[Mahasiswa]) -> None:
    """Import records into an empty list."""
    rows = [(number, *record) for number, record in enumerate(records)]
    assert (await store.merge([rows], update=False, dry_run=False)).new == len(records)


@pytest.mark.parametrize(("cari", "found"), CASES, ids=[ascii(cari)[1:31] for cari, _ in CASES])
async def test_a_search_finds_what_people_mean(people: Store, cari: str, found: str) -> None:
    """Its words stand in any order and any field. Case, accents, apostrophes, dots, commas and hyphens do not matter."""
    assert sorted(nim[-1] for nim in await nims(people, cari)) == sorted(found)


async def test_the_history_is_searched_in_the_same_way(people: Store) -> None:
    """A search of the entries of an import finds the same records as a search of the list."""
    (batch,) = (await people.history("", None, 0, 10)).items
    for cari, _ in CASES:
        entries = (await people.history(cari, batch.id, 0, 100)).items
        found = [entry.after.nim for entry in entries if isinstance(entry, Entry) and entry.after]
        assert sorted(found) == sorted(await nims(people, cari)), cari
        assert (await people.history(cari, None, 0, 10)).total == bool(found), cari


@pytest.mark.parametrize("urut", Mahasiswa._fields)
@pytest.mark.parametrize("arah", ["naik", "turun"])
async def test_a_search_is_sorted_and_paged(people: Store, urut: str, arah: str) -> None:
    """All pages together are the records found, in order; past the end there is no record, and the number stays."""
    query = Query("i", urut, arah)  # type: ignore[arg-type]
    expected = [record for record in PEOPLE if "i" in folding.fold("\n".join(record))]
    column = Mahasiswa._fields.index(urut)
    expected.sort(key=lambda record: (ascii_lower(record[column]) if column else record.nim, record.nim))
    if arah == "turun":
        expected.reverse()
    pages = [await people.search(query, offset, 3) for offset in range(0, len(expected) + 3, 3)]
    assert {page.total for page in pages} == {len(expected)}
    assert [record for page in pages for record in page.records] == expected


def ascii_lower(text: str) -> str:
    """Return a text with its ASCII letters in lower case, by which lists are sorted."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


async def test_each_letter_finds_itself(store: Store) -> None:
    """Also a letter that has three cases, or whose other case is an ASCII letter or two letters."""
    letters = "ßẞıİſ\u212a\u212bςǅǆǄ\u0345µμÿŸ"
    await store.add("0", letters, "Solo")
    for cari in (*letters, letters):
        assert await nims(store, cari) == ["0"], cari


# ---- the nearest names


@pytest.mark.parametrize(
    ("cari", "expected"),
    [
        ("nuraeni", "Nur\u2019Aini"),
        ("siti nuraeni", "Siti Nur\u2019Aini"),
        ("stii bandung", "Siti bandung"),
        ("kafe", "Café"),
        ("DSUZA", "D\u2019Souza"),
        ("zzzz", None),
        ("-", None),
        ("siti\0", None),
        ("s" * 255, None),
    ],
)
async def test_the_nearest_names_are_offered(people: Store, cari: str, expected: str | None) -> None:
    """The best correction comes first, and each correction finds a record."""
    assert await nims(people, cari) == []
    offered = await people.nearest(cari, 3)
    assert offered[:1] == ([expected] if expected else [])
    assert len(offered) <= 3
    for text in offered:
        assert await nims(people, text)


async def test_the_nearest_names_are_those_of_the_present_list(people: Store) -> None:
    """An added name is offered at once, and a deleted one is not offered again."""
    assert await people.nearest("zainap", 3) == []
    await people.add("0010", "Zainab", "Solo")
    assert await people.nearest("zainap", 3) == ["Zainab"]
    await people.delete("0010")
    assert await people.nearest("zainap", 3) == []


@pytest.mark.parametrize(
    "name", ["ab" * 32_000, "ab " * 21_000, "abcdefgh" * 4 + " " + "hgfedcba" * 4, '"\\" [] \\\\ {"a":']
)
async def test_long_and_odd_names_do_not_make_the_nearest_names_expensive(store: Store, name: str) -> None:
    """Only the beginning of a name and words of the usual length are compared, for a bounded time."""
    await fill(store, [Mahasiswa(f"{number}", f"{number} {name}", "Solo") for number in range(300)])
    began = time.process_time()
    await store.nearest("abcdefhg" * 4 + " bac cab bca", 5)
    assert time.process_time() - began < 2


# ---- the folded texts agree with the records

LETTERS = "aAiI'`.,- é\u00c9\u0301\u2019\u00a0ßẞæİıſ\u212aςΣёЁ中🎓\n/%_\\" + "".join(folding.REPLACEMENTS)
TEXTS = st.text(st.sampled_from(LETTERS), max_size=8)
NIMS = st.sampled_from(["a", "A", "b", "É", "é", "中"])

EVERY_ENGINE = [
    "INSERT INTO mahasiswa VALUES ({a}, {text}, {other})",
    "INSERT INTO mahasiswa VALUES ({a}, {text}, {other}), ({b}, {other}, {text})",
    "INSERT INTO mahasiswa VALUES ({a}, {text}, {other}) ON CONFLICT DO NOTHING",
    "INSERT INTO mahasiswa VALUES ({a}, {text}, {other}) ON CONFLICT (nim) DO UPDATE SET nama = {other}",
    "INSERT INTO mahasiswa VALUES ({a}, {text}, {other}) ON CONFLICT (nim) DO UPDATE SET nim = {b}",
    "INSERT INTO mahasiswa SELECT nim || {b}, alamat, {text} FROM mahasiswa",
    "UPDATE mahasiswa SET nama = {text} WHERE nim = {a}",
    "UPDATE mahasiswa SET alamat = nama || {text}",
    "UPDATE mahasiswa SET nim = {a} WHERE nim = {b}",
    "UPDATE mahasiswa SET nim = nim || {b}, alamat = {text}",
    "UPDATE mahasiswa SET nama = nama",
    "DELETE FROM mahasiswa WHERE nim = {a}",
    "DELETE FROM mahasiswa",
]
SQLITE = [
    "INSERT OR REPLACE INTO mahasiswa VALUES ({a}, {text}, {other})",
    "INSERT OR IGNORE INTO mahasiswa VALUES ({a}, {text}, {other}), ({b}, {other}, {text})",
    "INSERT OR FAIL INTO mahasiswa VALUES ({a}, {text}, {other}), ({b}, {other}, {text})",
    "INSERT OR ROLLBACK INTO mahasiswa VALUES ({a}, {text}, {other})",
    "UPDATE OR REPLACE mahasiswa SET nim = {a}, nama = {text} WHERE nim = {b}",
    "UPDATE OR IGNORE mahasiswa SET nim = {a}, nama = {text}",
    "UPDATE OR IGNORE mahasiswa SET nama = {text}",
    "UPDATE OR FAIL mahasiswa SET nim = {a}, nama = {text}",
    "PRAGMA recursive_triggers = ON",
    "PRAGMA recursive_triggers = OFF",
]
POSTGRES = [
    "COPY mahasiswa FROM PROGRAM $$printf 'd\\tCaf\\303\\251\\tSolo\\n'$$",
    "TRUNCATE mahasiswa",
    "WITH gone AS (DELETE FROM mahasiswa WHERE nim = {a} RETURNING *) INSERT INTO mahasiswa SELECT nim, {text}, '' FROM gone",
    "WITH gone AS (DELETE FROM mahasiswa WHERE nim = {a}) INSERT INTO mahasiswa VALUES ({b}, {text}, {other})",
    """MERGE INTO mahasiswa AS m USING (VALUES ({a}), ({b})) AS v (nim) ON m.nim = v.nim
    WHEN MATCHED AND m.nama < {text} THEN DELETE WHEN MATCHED THEN UPDATE SET nama = {text}
    WHEN NOT MATCHED THEN INSERT VALUES (v.nim, {other}, {text})""",
    "ALTER TABLE mahasiswa DISABLE TRIGGER mahasiswa_history_truncate",
]


@st.composite
def statements(draw: st.DrawFn, templates: Sequence[str]) -> str:
    """Return a random statement of one of these forms."""
    values = {"a": draw(NIMS), "b": draw(NIMS), "text": draw(TEXTS), "other": draw(TEXTS)}
    return draw(st.sampled_from(templates)).format_map({name: quoted(text) for name, text in values.items()})


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


Program = Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def another_program(url: DatabaseURL) -> Iterator[Program]:
    """Yield a function by which another program runs a statement. A statement that is refused does nothing.

    In this process no store may have the file open meanwhile: Python's sqlite3 would drop its locks.
    """
    if isinstance(url, PostgresURL):
        with psycopg.connect(url.conninfo, autocommit=True) as db:

            def in_postgres(statement: str) -> list[tuple[Any, ...]]:
                try:
                    cursor = db.execute(statement.encode())
                except psycopg.Error:
                    return []
                return cursor.fetchall() if cursor.description else []

            yield in_postgres
    else:
        with closing(sqlite3.connect(url.path, isolation_level=None)) as file:

            def in_sqlite(statement: str) -> list[tuple[Any, ...]]:
                try:
                    return file.execute(statement).fetchall()
                except sqlite3.Error:
                    return []

            yield in_sqlite


def assert_folded(program: Program) -> int:
    """Check that the folded texts agree with the records. Return the number of records."""
    records = program("SELECT nim, nama, alamat FROM mahasiswa")
    folded = {nim: folding.fold(f"{nim}\n{nama}\n{alamat}") for nim, nama, alamat in records}
    assert dict(program("SELECT nim, teks FROM mahasiswa_cari")) == folded
    return len(folded)


def test_the_folded_texts_agree_with_the_records_after_any_statement(url: DatabaseURL) -> None:
    """Other programs change the table by random statements. SQLite's are run by the version that Python brings."""
    templates = EVERY_ENGINE + (POSTGRES if isinstance(url, PostgresURL) else SQLITE)

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(statements(templates), min_size=1, max_size=8))
    def change(chosen: list[str]) -> None:
        for statement in chosen:
            program(statement)
            assert_folded(program)
        program("DELETE FROM mahasiswa")

    with another_program(url) as program:
        change()


def test_every_character_is_folded_as_in_python(url: DatabaseURL) -> None:
    """A text with all characters of Unicode but surrogates and NUL is folded by the database as by `fold`."""
    with another_program(url) as program:
        for first in range(0, 0x110000, 0x8000):
            text = "".join(chr(code) for code in range(max(first, 1), first + 0x8000) if not 0xD800 <= code < 0xE000)
            program(f"INSERT INTO mahasiswa VALUES ('{first}', {quoted(text)}, 'Solo')")
        assert assert_folded(program) == 0x110000 // 0x8000


async def test_the_folded_texts_agree_with_what_the_store_writes(url: DatabaseURL) -> None:
    """Additions, edits, imports, deletions and undone changes."""
    async with opened(url) as store:
        await fill(store, PEOPLE)
        await store.add("0010", "É\u2019", "x")
        await store.update("0001", "Zoë", "Solo")
        await store.merge([[(1, "0002", "Ñ", None), (2, "0011", "É", "é")]], update=True, dry_run=False)
        await store.delete("0004")
        await store.write_all([Write(Mahasiswa("0012", "Ø", "ø"), None)])
    with another_program(url) as program:
        assert assert_folded(program) == len(PEOPLE) + 2


# ---- schemas of earlier versions


@pytest.mark.parametrize("version", [1, 2])
def test_the_folded_texts_of_an_older_schema_are_made_at_the_start(url: DatabaseURL, version: int) -> None:
    """A database of an earlier version gets them; wrong ones are folded again."""
    with another_program(url) as program:
        program("INSERT INTO mahasiswa VALUES ('1', 'É\u2019', 'x'), ('2', 'Siti', 'Solo')")
        program("UPDATE mahasiswa_cari SET teks = 'x' WHERE nim = '1'")
        program("DELETE FROM mahasiswa_cari WHERE nim = '2'")
        if isinstance(url, PostgresURL):
            program(f"COMMENT ON TABLE mahasiswa IS 'mahasiswa schema version {version}'")
        else:
            program(f"PRAGMA user_version = {version}")
    migrate(url)
    with another_program(url) as program:
        assert assert_folded(program) == 2


def test_truncate_clears_the_folded_texts_if_there_is_no_history(postgres_url: PostgresURL) -> None:
    """With HISTORY_DAYS=0 no trigger refuses TRUNCATE."""
    migrate(postgres_url, 0)
    execute(postgres_url.conninfo, "INSERT INTO mahasiswa VALUES ('1', 'Siti', 'Solo'); TRUNCATE mahasiswa")
    assert execute(postgres_url.conninfo, "SELECT * FROM mahasiswa_cari") == []
    execute(postgres_url.conninfo, "INSERT INTO mahasiswa VALUES ('1', 'Siti', 'Solo')")
    assert execute(postgres_url.conninfo, "SELECT teks FROM mahasiswa_cari") == [("1\nsiti\nsolo",)]


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[PostgresURL]:
    """Return the address of an empty schema in PostgreSQL."""
    with own_schema(postgres) as address:
        yield PostgresURL(address)


# ---- Debian's sqlite3 shell


async def in_shell(path: Path, commands: str) -> str:
    """Run commands in the sqlite3 shell; return its output. It must end without an error."""
    if (shell := shutil.which("sqlite3")) is None:
        pytest.skip("the sqlite3 shell is not installed")
    run = partial(
        subprocess.run, [shell, "-bail", str(path)], input=commands, capture_output=True, text=True, check=True
    )
    return (await asyncio.to_thread(run)).stdout


async def test_a_search_finds_what_the_sqlite3_shell_writes(tmp_path: Path) -> None:
    """Its SQLite 3.40 runs the triggers: .import, INSERT, OR REPLACE, UPDATE, a changed nim and DELETE."""
    url = SQLiteURL(tmp_path / "mahasiswa.db")
    migrate(url)
    (tmp_path / "baru.csv").write_text("1,Nur\u2019aini,Klaten\n2,José,Sleman\n3,Ina,Bantul\n")
    commands = f"""
        .import --csv {tmp_path}/baru.csv mahasiswa
        INSERT INTO mahasiswa VALUES ('4', 'Zoë', 'Bogor');
        INSERT OR REPLACE INTO mahasiswa VALUES ('3', 'Ána', 'Bantul');
        UPDATE mahasiswa SET nama = 'D\u2019Souza' WHERE nim = '2';
        UPDATE mahasiswa SET nim = '5' WHERE nim = '4';
        DELETE FROM mahasiswa WHERE nim = '1';
    """
    await in_shell(url.path, "\n".join(map(str.strip, commands.splitlines())))
    async with opened(url) as store:
        assert [await nims(store, cari) for cari in ("ana", "dsouza", "zoe bogor")] == [["3"], ["2"], ["5"]]
        assert [await nims(store, cari) for cari in ("nuraini", "jose", "ina", "4")] == [[], [], [], []]


async def test_a_search_works_on_a_dump_of_the_sqlite3_shell(tmp_path: Path) -> None:
    """`.dump` leaves out user_version, so the start makes the step again."""
    url = SQLiteURL(tmp_path / "mahasiswa.db")
    migrate(url)
    async with opened(url) as store:
        await fill(store, PEOPLE)
    restored = SQLiteURL(tmp_path / "restored.db")
    await in_shell(restored.path, await in_shell(url.path, ".dump"))
    migrate(restored)
    async with opened(restored) as store:
        await store.add("0010", "Café", "Solo")
        assert sorted(await nims(store, "cafe")) == ["0005", "0006", "0010"]


async def test_a_search_works_on_an_adopted_table(tmp_path: Path) -> None:
    """Also if the file still has the folded texts of a table that was dropped."""
    url = SQLiteURL(tmp_path / "mahasiswa.db")
    migrate(url)
    async with opened(url) as store:
        await fill(store, PEOPLE)
    run_script(
        url.path,
        "DROP TABLE mahasiswa; CREATE TABLE mahasiswa (nim VARCHAR(20), nama TEXT, alamat TEXT);"
        "INSERT INTO mahasiswa VALUES ('1', 'Café', 'Solo')",
    )
    adopt(url)
    async with opened(url) as store:
        assert await nims(store, "cafe") == ["1"]
        await store.update("1", "Zoë", "Solo")
        assert [await nims(store, cari) for cari in ("cafe", "zoe", "siti")] == [[], ["1"], []]


def test_a_table_of_another_program_is_not_replaced_by_the_folded_texts(tmp_path: Path) -> None:
    """The start names the table in one line and leaves it alone."""
    path = tmp_path / "mahasiswa.db"
    run_script(path, "CREATE TABLE mahasiswa_cari (x TEXT); INSERT INTO mahasiswa_cari VALUES ('1')")
    with pytest.raises(Unusable, match=r"holds a table mahasiswa_cari that this program did not make; rename it$"):
        migrate(SQLiteURL(path))
    assert ask(path, "SELECT x FROM mahasiswa_cari") == [("1",)]

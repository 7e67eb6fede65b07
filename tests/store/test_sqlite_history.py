"""The history in an SQLite file: changes of other programs, HISTORY_DAYS and forgotten texts."""

import asyncio
import random
from pathlib import Path

import pytest
from postgres import until
from stores import age_history, ask, contents, in_shell, opened, run_script

from mahasiswa import worker
from mahasiswa.record import Mahasiswa, Write
from mahasiswa.settings import SQLiteURL
from mahasiswa.store import Store, migrate
from mahasiswa.store.engines import forget
from mahasiswa.store.history import Entry
from mahasiswa.work import LIST

ENTRIES = """
SELECT nim, nama_before, alamat_before, nama_after, alamat_after FROM mahasiswa_history
WHERE kind IS NULL AND id > 2 ORDER BY id
"""
CHANGED = ("1", "Siti", "Solo", "Ani", "Klaten")
NEW = ("3", None, None, "Ina", "Bogor")

# The records are 1 (Siti, Solo) and 2 (Budi, Bantul). Each statement is run by the sqlite3 shell 3.40. None: it is refused.
OTHER_PROGRAMS: dict[str, tuple[str, list[tuple[str | None, ...]] | None]] = {
    "INSERT": ("INSERT INTO mahasiswa VALUES ('3', 'Ina', 'Bogor');", [NEW]),
    "INSERT of a number as nim": ("INSERT INTO mahasiswa VALUES (3, 'Ina', 'Bogor');", [NEW]),
    "INSERT OR REPLACE of a new nim": ("INSERT OR REPLACE INTO mahasiswa VALUES ('3', 'Ina', 'Bogor');", [NEW]),
    "INSERT OR REPLACE": (
        "INSERT OR REPLACE INTO mahasiswa VALUES ('1', 'Ani', 'Klaten');",
        [("1", None, None, "Ani", "Klaten")],
    ),
    "INSERT OR REPLACE with recursive triggers": (
        "PRAGMA recursive_triggers = ON; REPLACE INTO mahasiswa VALUES ('1', 'Ani', 'Klaten');",
        [("1", "Siti", "Solo", None, None), ("1", None, None, "Ani", "Klaten")],
    ),
    "INSERT OR IGNORE": ("INSERT OR IGNORE INTO mahasiswa VALUES ('1', 'Ani', 'Klaten');", []),
    "upsert of an existing nim": (
        "INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Klaten') ON CONFLICT DO UPDATE SET nama = excluded.nama;",
        [("1", "Siti", "Solo", "Ani", "Solo")],
    ),
    "upsert of a new nim": (
        "INSERT INTO mahasiswa VALUES ('3', 'Ina', 'Bogor') ON CONFLICT DO UPDATE SET nama = excluded.nama;",
        [NEW],
    ),
    "upsert that does nothing": ("INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Klaten') ON CONFLICT DO NOTHING;", []),
    "UPDATE": ("UPDATE mahasiswa SET nama = 'Ani', alamat = 'Klaten' WHERE nim = '1';", [CHANGED]),
    "UPDATE with the same texts": ("UPDATE mahasiswa SET nama = nama || '';", []),
    "a changed nim": (
        "UPDATE mahasiswa SET nim = '3' WHERE nim = '1';",
        [("1", "Siti", "Solo", None, None), ("3", None, None, "Siti", "Solo")],
    ),
    "a changed nim and nama": (
        "UPDATE mahasiswa SET nim = '3', nama = 'Ani' WHERE nim = '1';",
        [("1", "Siti", "Solo", None, None), ("3", None, None, "Ani", "Solo")],
    ),
    "UPDATE OR REPLACE of a nim": (
        "UPDATE OR REPLACE mahasiswa SET nim = '2' WHERE nim = '1';",
        [("1", "Siti", "Solo", None, None), ("2", None, None, "Siti", "Solo")],
    ),
    "UPDATE OR IGNORE of a nim": ("UPDATE OR IGNORE mahasiswa SET nim = '2' WHERE nim = '1';", []),
    "DELETE": ("DELETE FROM mahasiswa WHERE nim = '1';", [("1", "Siti", "Solo", None, None)]),
    "DELETE of all": (
        "DELETE FROM mahasiswa;",
        [("1", "Siti", "Solo", None, None), ("2", "Budi", "Bantul", None, None)],
    ),
    "a transaction that is rolled back": ("BEGIN; DELETE FROM mahasiswa; ROLLBACK;", []),
    ".import": (".import --csv baru.csv mahasiswa", [NEW]),
    "INSERT of an existing nim": ("INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Klaten');", None),
    "a record that breaks a rule": ("INSERT OR REPLACE INTO mahasiswa VALUES ('1', 'Ani', char(0));", None),
    "UPDATE to an existing nim": ("UPDATE mahasiswa SET nim = '2' WHERE nim = '1';", None),
}
OLD_RECORDS = [("1", "Siti", "Solo"), ("2", "Budi", "Bantul")]


@pytest.fixture
def path(path: Path) -> Path:
    """Return a file of the service with two records."""
    run_script(path, "INSERT INTO mahasiswa VALUES ('1', 'Siti', 'Solo'), ('2', 'Budi', 'Bantul')")
    return path


@pytest.fixture
def url(path: Path) -> SQLiteURL:
    """Return the address of that file; the fixture `store` opens it."""
    return SQLiteURL(path)


def bytes_of(path: Path) -> bytes:
    """Return all bytes of a database, and of its files of the write-ahead log."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


# ---- other programs


@pytest.mark.parametrize(("script", "entries"), OTHER_PROGRAMS.values(), ids=OTHER_PROGRAMS)
def test_a_change_of_the_sqlite3_shell_is_in_the_history(
    path: Path, script: str, entries: list[tuple[str | None, ...]] | None
) -> None:
    """Each changed record is one entry with the texts before and after; a changed nim is two. A refused change is none."""
    (path.parent / "baru.csv").write_text("3,Ina,Bogor\n")
    ended = in_shell(path, script)
    assert (ended.returncode == 0) == (ended.stderr == "") == (entries is not None)
    assert ask(path, ENTRIES) == (entries or [])
    assert entries or contents(path) == OLD_RECORDS


async def test_a_text_of_another_program_that_is_not_utf_8_does_not_hide_the_history(path: Path, store: Store) -> None:
    """It is shown with replacement characters, and an undo restores its bytes."""
    run_script(path, "UPDATE mahasiswa SET nama = CAST(x'41ff' AS TEXT) WHERE nim = '1'")
    await store.update("1", "Ani", "Solo")
    last = (await store.reader(LIST).snapshot(10)).last
    assert isinstance(last, Entry)
    assert last.before == Mahasiswa("1", "A\ufffd", "Solo")
    await store.undo(last.id, is_batch=False)
    assert ask(path, "SELECT hex(nama) FROM mahasiswa WHERE nim = '1'") == [("41FF",)]


async def test_with_recursive_triggers_the_history_has_no_false_line(path: Path) -> None:
    """Replayed from the first entry on, the texts before each change are those that were stored, and the end is the list."""
    dice = random.Random(19)
    scripts = [script for script, entries in OTHER_PROGRAMS.values() if entries is not None and script[0] not in ".B"]
    script = "PRAGMA recursive_triggers = ON;" + "".join(dice.choices(scripts, k=2000))
    # None may be refused, so that the script goes on.
    run_script(path, script.replace("INSERT INTO", "REPLACE INTO").replace("UPDATE maha", "UPDATE OR REPLACE maha"))
    stored: dict[object, tuple[object, ...]] = {}
    for nim, *texts in ask(path, ENTRIES.replace("id > 2", "true")):
        before, after = tuple(texts[:2]), tuple(texts[2:])
        assert stored.pop(nim, (None, None)) == before
        if after != (None, None):
            stored[nim] = after
    assert sorted((nim, *texts) for nim, texts in stored.items()) == contents(path)


def test_the_history_survives_a_dump_of_the_sqlite3_shell(path: Path, tmp_path: Path) -> None:
    """The restored file has the same entries and goes on with new numbers."""
    (tmp_path / "dump.sql").write_text(in_shell(path, ".dump").stdout)
    restored = tmp_path / "restored.db"
    in_shell(restored, ".read dump.sql")
    migrate(SQLiteURL(restored))
    run_script(restored, "DELETE FROM mahasiswa WHERE nim = '1'")
    for statement in ("SELECT * FROM mahasiswa_history WHERE id < 3", "SELECT * FROM sqlite_schema WHERE sql = ''"):
        assert ask(restored, statement) == ask(path, statement)
    assert ask(restored, ENTRIES) == [("1", "Siti", "Solo", None, None)]


def test_lost_triggers_are_created_again_at_the_next_start(path: Path) -> None:
    """Another program may have removed them. A start that finds them writes nothing."""
    run_script(path, "DROP TRIGGER mahasiswa_history_delete; DELETE FROM mahasiswa WHERE nim = '1'")
    migrate(SQLiteURL(path))
    run_script(path, "DELETE FROM mahasiswa WHERE nim = '2'; PRAGMA wal_checkpoint(TRUNCATE)")
    assert ask(path, ENTRIES) == [("2", "Budi", "Bantul", None, None)]
    before = path.read_bytes()
    migrate(SQLiteURL(path))
    assert path.read_bytes() == before


async def test_a_worker_purges_without_other_changes_and_goes_on_after_a_failure(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a purge fails, the log says why. The next one removes the expired entries."""
    monkeypatch.setattr(worker, "PURGE_SECONDS", 0.05)
    age_history(SQLiteURL(path), 31)
    run_script(path, "ALTER TABLE mahasiswa_history_state RENAME TO aside")
    purging = asyncio.create_task(worker._purge_history(store))
    async with asyncio.timeout(10):
        await until(lambda: "expired entries of the history were not removed" in caplog.text)
        run_script(path, "ALTER TABLE aside RENAME TO mahasiswa_history_state")
        await until(lambda: ask(path, "SELECT count(*) FROM mahasiswa_history") == [(0,)])
    purging.cancel()
    assert contents(path) == OLD_RECORDS


# ---- forgotten texts


async def test_a_forgotten_record_is_in_no_byte_of_the_files(path: Path) -> None:
    """Its present texts and those of earlier edits are gone, also if another program wrote them."""
    migrate(SQLiteURL(path), 0)
    # Another program leaves removed texts in free space.
    run_script(
        path,
        "PRAGMA secure_delete = OFF;"
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 2000)"
        "INSERT INTO mahasiswa SELECT printf('x%05d', n), 'Budi', 'rahasia-lama-' || n FROM n;"
        "DELETE FROM mahasiswa WHERE nim > 'x'",
    )
    assert b"rahasia-lama-1500" in bytes_of(path)
    migrate(SQLiteURL(path), 30)
    nim, *texts = "00007/rahasia-nim", "rahasia-satu", "rahasia-dua" + "x" * 20_000, "rahasia-tiga"
    async with opened(SQLiteURL(path)) as store:
        await store.write_all("import", [Write(Mahasiswa(nim, texts[0], "Solo"), None)])
        for text in texts:
            await store.update(nim, text, text)
        await store.delete(nim)
        assert forget(SQLiteURL(path), nim)
        assert b"rahasia" not in bytes_of(path)
    assert contents(path) == OLD_RECORDS


async def test_a_deleted_record_leaves_no_text_in_free_space(path: Path) -> None:
    """The connections of the service overwrite it, so that forgetting later is complete."""
    migrate(SQLiteURL(path), 0)
    async with opened(SQLiteURL(path)) as store:
        records = [Mahasiswa(f"a{number}", f"rahasia-{number}", "Solo" * 100) for number in range(500)]
        await asyncio.gather(*(store.add(*record) for record in records))
        await store.write_all("delete", removals=dict.fromkeys(record.nim for record in records))
    assert b"rahasia" not in bytes_of(path)

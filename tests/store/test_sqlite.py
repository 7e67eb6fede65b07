"""The SQLite store: its files, and other programs."""

import asyncio
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli.operators import records_of
from harness import Service, led_to, visited
from processes import finished, until
from sockets import CLOSE, post, statuses
from spreadsheets import numbered
from stores import EXPIRE, SITI, connect, engine_at, execute, merge, migrate, opened

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, Write
from mahasiswa.server import worker
from mahasiswa.store.store_errors import Unusable
from mahasiswa.work import RECORD, STEP_TIMEOUT_SECONDS, Slots


# ---- the files on the disk
def test_a_file_without_a_write_ahead_log_gets_one_at_the_start(path: Path) -> None:
    """A file that another program switched to a rollback journal is switched back."""
    assert execute(path, "PRAGMA journal_mode = DELETE") == [("delete",)]
    with visited(Service(path)) as site:
        assert execute(path, "PRAGMA journal_mode") == [("wal",)]
        site.add("1", "Ani", "Klaten")
        assert path.with_name("mahasiswa.db-wal").stat().st_size > 0


async def test_concurrent_writes_share_commits(path: Path) -> None:
    """Each commit would write several pages of 4 KB to the log. tests/faults/test_power.py looks at the syncs of commits."""
    async with opened(path) as store:
        await asyncio.gather(*(store.add(f"{number}", "Siti", "Solo") for number in range(100)))
        assert path.with_name("mahasiswa.db-wal").stat().st_size < 100 * 4096


def test_opening_a_removed_file_is_unusable(path: Path) -> None:
    """A worker that starts after the file was removed does not create an empty one."""
    path.unlink()
    with pytest.raises(Unusable, match="unable to open database file"):
        asyncio.run(engine_at(path).open_store(Slots()))
    assert not path.exists()


# ---- other programs at the same file
def test_a_write_waits_for_the_lock_of_another_program_until_its_deadline(path: Path) -> None:
    """Pages are read meanwhile. Before the deadline changes are stored; after it they are 503, and never made.

    A command waits, too.
    """
    with (
        Service(path) as service,
        service.site() as site,
        ThreadPoolExecutor() as threads,
        closing(connect(path)) as other,
    ):

        def send(target: str, body: bytes) -> Future[bytes]:
            return threads.submit(service.raw, post(f"/mahasiswa/{target}", body, CLOSE), 30)

        site.add("0001", "Siti", "Solo")
        other.execute("BEGIN IMMEDIATE")
        waiting = [
            send("add", b"nim=0002&nama=Budi&alamat=Bantul"),
            send("edit/0001", b"nama=Siti+Baru&alamat=Solo"),
            send("add", b"nim=0003&nama=Ani&alamat=Klaten"),
        ]
        command: Future[Any] = threads.submit(merge, path, ("0004", "Eko", "Sleman"))
        other.execute("INSERT INTO mahasiswa VALUES ('0003', 'yang lain', '')")
        for future in [*waiting, command]:
            with pytest.raises(FutureTimeoutError):
                future.result(0.3)
        assert site.records == [("0001", "Siti", "Solo")]
        assert site.get(site.path("/mahasiswa/edit/", "0002")).status_code == 404
        other.execute("COMMIT")
        assert [statuses(future.result(10)) for future in waiting] == [[302], [302], [409]]
        command.result(10)
        stored = [
            ("0001", "Siti Baru", "Solo"),
            ("0002", "Budi", "Bantul"),
            ("0003", "yang lain", ""),
            ("0004", "Eko", "Sleman"),
        ]
        assert site.records == stored

        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        bodies = {
            "add": b"nim=0006&nama=Ina&alamat=Bogor",
            "edit/0001": b"nama=Siti+Lagi&alamat=Klaten",
            "delete/0001": b"",
        }
        for future in [send(target, body) for target, body in bodies.items()]:
            answer = future.result(20)
            assert statuses(answer) == [503]
            assert wording.PROBLEMS["locked"].text in answer.decode()
        assert STEP_TIMEOUT_SECONDS - 1 < time.monotonic() - began < 15
        other.execute("ROLLBACK")
        led_to(site.add("0005", "Eka", "Klaten"))
        assert site.records == [*stored, ("0005", "Eka", "Klaten")]


def test_a_text_of_another_program_that_is_not_utf_8_makes_its_pages_unavailable(
    path: Path,
) -> None:
    """Pages of that record answer 503, but the list shows it. Others are read and changed, and an edit or a deletion mends it."""
    with Service(path) as service, service.site() as site:
        for nim in ("0001", "0002", "0003"):
            site.add(nim, "Siti", "Solo")
        edit = ("/mahasiswa/edit/0002", {"nama": "Budi", "alamat": "Solo"})
        for target, texts in (edit, ("/mahasiswa/delete/0002", {})):
            execute(path, "UPDATE mahasiswa SET nama = CAST(x'41ff' AS TEXT) WHERE nim = '0002'")
            for page in (
                "/?cari=0002",
                "/?urut=nama",
                "/mahasiswa/edit/0002",
                "/mahasiswa/ekspor.csv",
            ):
                assert site.get(page).status_code == 503
            old = {"nama": "Siti", "alamat": "Solo", "versi": "x"}
            assert site.post("/mahasiswa/edit/0002", data=old).status_code == 503
            assert site.get("/mahasiswa/edit/0001").status_code == 200
            assert site.edit("0001", "Siti", "Solo").status_code == 302
            assert site.post(target, data=texts).status_code == 302
            assert site.records[0][:2] == ("0001", "Siti")
        assert "another program has stored a text that is not UTF-8" in service.stderr()


# ---- the history of changes of other programs
OLD_RECORDS = [("1", "Siti", "Solo"), ("2", "Budi", "Bantul")]
ENTRIES = """
SELECT nim, nama_before || '/' || alamat_before, nama_after || '/' || alamat_after FROM mahasiswa_history
WHERE kind IS NULL AND id > 2 ORDER BY id
"""
NEW, GONE = ("3", None, "Ina/Bogor"), ("1", "Siti/Solo", None)

# Statements of the sqlite3 shell 3.40 on these records, and the entries after them. None: the statement is refused.
OTHER_PROGRAMS: dict[str, list[tuple[str | None, ...]] | None] = {
    "INSERT INTO mahasiswa VALUES ('3', 'Ina', 'Bogor');": [NEW],
    "INSERT OR REPLACE INTO mahasiswa VALUES ('1', 'Ani', 'Klaten');": [("1", None, "Ani/Klaten")],
    "PRAGMA recursive_triggers = ON; REPLACE INTO mahasiswa VALUES ('1', 'Ani', '');": [
        GONE,
        ("1", None, "Ani/"),
    ],
    "UPDATE mahasiswa SET nama = 'Ani', alamat = '' WHERE nim = '1';": [("1", "Siti/Solo", "Ani/")],
    "UPDATE mahasiswa SET nama = nama || '';": [],
    "UPDATE mahasiswa SET nim = '3', nama = 'Ani' WHERE nim = '1';": None,
    "DELETE FROM mahasiswa WHERE nim = '1';": [GONE],
    ".import --csv baru.csv mahasiswa": [NEW],
}


@pytest.fixture
def listed(path: Path) -> Path:
    """Return a file of the service with OLD_RECORDS."""
    execute(path, "INSERT INTO mahasiswa VALUES ('1', 'Siti', 'Solo'), ('2', 'Budi', 'Bantul')")
    return path


def bytes_of(path: Path) -> bytes:
    """Return all bytes of a database, and of its files of the write-ahead log."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.parametrize("script", OTHER_PROGRAMS)
def test_a_change_of_the_sqlite3_shell_is_in_the_history(listed: Path, script: str) -> None:
    """Each changed record is one entry with the texts before and after. A refused change is none, as that of a nim."""
    (listed.parent / "baru.csv").write_text("3,Ina,Bogor\n")
    entries = OTHER_PROGRAMS[script]
    if not shutil.which("sqlite3"):
        pytest.skip("the sqlite3 shell is not installed")
    ended = finished("sqlite3", "-bail", listed, script, cwd=listed.parent)
    assert (ended.returncode == 0) == (ended.stderr == "") == (entries is not None)
    assert execute(listed, ENTRIES) == (entries or [])
    assert entries or records_of(listed) == OLD_RECORDS


def test_lost_triggers_are_created_again_at_the_next_start(listed: Path) -> None:
    """Another program may have removed them. A start that finds them writes nothing."""
    execute(listed, "DROP TRIGGER mahasiswa_history_delete; DELETE FROM mahasiswa WHERE nim = '1'")
    migrate(listed)
    execute(listed, "DELETE FROM mahasiswa WHERE nim = '2'; PRAGMA wal_checkpoint(TRUNCATE)")
    assert execute(listed, ENTRIES) == [("2", "Budi/Bantul", None)]
    before = listed.read_bytes()
    migrate(listed)
    assert listed.read_bytes() == before


async def test_a_worker_purges_without_other_changes_and_goes_on_after_a_failure(
    listed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If a purge fails, the log says why. The next one removes the expired entries."""
    execute(listed, EXPIRE)
    execute(listed, "ALTER TABLE mahasiswa_history_state RENAME TO aside")
    async with opened(listed) as store, asyncio.timeout(10):
        purging = asyncio.create_task(worker.repeat(store.purge, 0.05))
        await asyncio.to_thread(until, lambda: "hourly work failed: " in caplog.text)
        execute(listed, "ALTER TABLE aside RENAME TO mahasiswa_history_state")
        await asyncio.to_thread(
            until, lambda: execute(listed, "SELECT count(*) FROM mahasiswa_history") == [(0,)]
        )
        purging.cancel()
    assert records_of(listed) == OLD_RECORDS


# Another program leaves removed texts in free space.
LEAVES_TEXTS = """
PRAGMA secure_delete = OFF;
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 2000)
INSERT INTO mahasiswa SELECT printf('x%05d', n), 'Budi', 'rahasia-lama-' || n FROM n; DELETE FROM mahasiswa WHERE nim > 'x';
DELETE FROM mahasiswa_history
"""


async def test_a_removed_text_is_in_no_byte_of_the_files(listed: Path) -> None:
    """The service overwrites the texts of a deleted record when its history has expired. A forgotten one's are gone, also if another program wrote them."""
    records = [Mahasiswa(f"a{number}", f"rahasia-{number}", "Solo" * 100) for number in range(500)]
    async with opened(listed) as store:
        await asyncio.gather(*(store.add(*record) for record in records))
        await store.write_all("delete", removals=[record.nim for record in records])
        execute(listed, EXPIRE)
        await store.purge()
    assert b"rahasia" not in bytes_of(listed)
    execute(listed, LEAVES_TEXTS)
    assert b"rahasia-lama-1500" in bytes_of(listed)
    nim = "00007/rahasia-nim"
    async with opened(listed) as store:
        await store.write_all("import", [Write(Mahasiswa(nim, "rahasia-satu", "Solo"), None)])
        for text in ("rahasia-satu", "rahasia-dua" + "x" * 20_000, "rahasia-tiga"):
            await store.update(nim, text, text)
        await store.delete(nim)
        assert b"rahasia" in listed.with_name(f"{listed.name}-wal").read_bytes()
        assert engine_at(listed).forget(nim)[0]
        engine_at(listed).rewrite()
        assert b"rahasia" not in bytes_of(listed)
    assert records_of(listed) == OLD_RECORDS


async def test_a_replaced_nim_is_known_for_a_thousand_changes(path: Path) -> None:
    """So that no search for it reads the whole history. The import is one of them."""
    async with opened(path) as store:
        await store.add(*SITI)
        await store.rename(SITI.nim, "7")
        merge(path, *numbered(998))
        assert await store.reader(RECORD).renamed(SITI.nim)
        await store.add("baru", "Ani", "Solo")
        assert await store.reader(RECORD).renamed(SITI.nim) is None

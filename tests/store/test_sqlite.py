"""The SQLite store: the files on the disk when a write returns, and other programs at the same file.

Another program is always another process: Python's sqlite3 in this process would drop the locks of APSW.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from pathlib import Path

import apsw
import httpx
import pytest
from harness import URL_ENCODED, Page, Service
from stores import ask, attempt_all, contents, opened, other_program, run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import Query, migrate, open_store
from mahasiswa.store.errors import Unavailable, Unusable
from mahasiswa.work import EXPORT, LIST, RECORD, SEARCH, Slots

CHANGE_NOT_STORED = "Data belum tersimpan karena basis data sedang tidak dapat diakses."
NOT_READ = "Data sedang tidak dapat ditampilkan. Cobalah beberapa saat lagi."

REAL_DISK = apsw.vfs_names()[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an SQLite file with an empty table."""
    migrate(SQLiteURL(tmp_path / "mahasiswa.db"))
    return tmp_path / "mahasiswa.db"


# ---- the files on the disk


def test_a_file_without_a_write_ahead_log_gets_one_at_the_start(path: Path) -> None:
    """A file that another program switched to a rollback journal is switched back."""
    assert ask(path, "PRAGMA journal_mode = DELETE") == [("delete",)]
    with Service(path) as service, service.site() as site:
        assert ask(path, "PRAGMA journal_mode") == [("wal",)]
        site.add("1", "Ani", "Klaten")
        assert path.with_name("mahasiswa.db-wal").stat().st_size > 0


async def test_the_log_is_synced_before_a_write_returns(path: Path) -> None:
    """Each write that is committed alone syncs the write-ahead log; a group of writes shares a sync."""
    synced: list[str] = []

    class File(apsw.VFSFile):
        def __init__(self, name: "apsw.URIFilename | str | None", flags: list[int]) -> None:
            super().__init__(REAL_DISK, name, flags)
            self.name = name if isinstance(name, str) or name is None else name.filename()

        def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
            super().xSync(flags)
            synced.append(str(self.name))

    with default_disk(File):
        async with opened(SQLiteURL(path)) as store:
            for number in range(10):
                for write in (
                    store.add(f"{number}", "Siti", "Solo"),
                    store.update(f"{number}", "Budi", "Bantul"),
                    store.delete(f"{number}"),
                ):
                    synced.clear()
                    await write
                    assert f"{path}-wal" in synced
            synced.clear()
            await asyncio.gather(*(store.add(f"{number}", "Siti", "Solo") for number in range(100)))
            assert 0 < synced.count(f"{path}-wal") <= 10


@contextmanager
def default_disk(file: Callable[["apsw.URIFilename | str | None", list[int]], apsw.VFSFile]) -> Iterator[None]:
    """Have SQLite open every file of this process as `file` does."""

    class Disk(apsw.VFS):
        def xOpen(self, name: "apsw.URIFilename | str | None", flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
            return file(name, flags)

    disk = Disk("test", REAL_DISK, makedefault=True)
    try:
        yield
    finally:
        disk.unregister()


def test_opening_a_removed_file_is_unusable(path: Path) -> None:
    """A worker that starts after the file was removed does not create an empty one."""
    path.unlink()
    with pytest.raises(Unusable):
        asyncio.run(open_store(SQLiteURL(path), Slots()))
    assert not path.exists()


# ---- other programs at the same file


def test_a_write_waits_for_the_lock_of_another_program(path: Path) -> None:
    """While another program writes, changes wait and pages are read. When it commits, the changes are stored."""
    with (
        Service(path) as service,
        service.site() as site,
        ThreadPoolExecutor() as threads,
        other_program(path) as other,
    ):
        site.add("0001", "Siti", "Solo")
        other("BEGIN IMMEDIATE")
        waiting = [
            send(threads, service, "/mahasiswa/add", b"nim=0002&nama=Budi&alamat=Bantul"),
            send(threads, service, "/mahasiswa/edit/0001", b"nama=Siti+Baru&alamat=Solo"),
            send(threads, service, "/mahasiswa/add", b"nim=0003&nama=Ani&alamat=Klaten"),
        ]
        other("INSERT INTO mahasiswa VALUES ('0003', 'yang lain', '')")
        for answer in waiting:
            with pytest.raises(FutureTimeoutError):
                answer.result(0.3)
        assert [row[1:] for row in site.list().rows] == [("0001", "Siti", "Solo")]
        assert site.get(site.path("/mahasiswa/edit/", "0002")).status_code == 404
        other("COMMIT")
        assert [answer.result(10).status_code for answer in waiting] == [302, 302, 409]
        assert [row[1:] for row in site.list().rows] == [
            ("0001", "Siti Baru", "Solo"),
            ("0002", "Budi", "Bantul"),
            ("0003", "yang lain", ""),
        ]


def test_a_write_that_waited_too_long_for_a_lock_is_never_made(path: Path) -> None:
    """Each such change is answered 503 with the typed texts, and it is not made when the lock is released."""
    with (
        Service(path) as service,
        service.site() as site,
        ThreadPoolExecutor() as threads,
        other_program(path) as other,
    ):
        site.add("0001", "Siti", "Solo")
        other("BEGIN IMMEDIATE")
        began = time.monotonic()
        add = send(threads, service, "/mahasiswa/add", b"nim=0002&nama=Budi&alamat=Bantul")
        edit = send(threads, service, "/mahasiswa/edit/0001", b"nama=Siti+Baru&alamat=Klaten")
        delete = send(threads, service, "/mahasiswa/delete/0001", b"")
        for future in (add, edit, delete):
            answer = future.result(20)
            assert answer.status_code == 503
            assert f"{CHANGE_NOT_STORED} Cobalah beberapa saat lagi." in answer.text
        assert time.monotonic() - began < 15
        values = [Page(future.result().text, service.url).record_form.values for future in (add, edit)]
        assert values == [
            {"nim": "0002", "nama": "Budi", "alamat": "Bantul"},
            {"nim": "0001", "nama": "Siti Baru", "alamat": "Klaten"},
        ]
        other("ROLLBACK")
        assert site.add("0003", "Ani", "Klaten").status_code == 302
        assert contents(path) == [("0001", "Siti", "Solo"), ("0003", "Ani", "Klaten")]


def test_a_table_that_another_program_drops_and_creates_again(path: Path) -> None:
    """Without the table every page answers 503. With it the service goes on, and the rules still apply."""
    with Service(path) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        ((definition,),) = ask(path, "SELECT sql FROM sqlite_schema WHERE name = 'mahasiswa'")
        ask(path, "DROP TABLE mahasiswa")
        for answer in (site.get(site.path("/")), site.get(site.path("/mahasiswa/edit/", "0001"))):
            assert answer.status_code == 503
            assert NOT_READ in answer.text
        for answer in (site.add("0002", "Budi", "Bantul"), site.edit("0001", "Ani", "Solo"), site.delete("0001")):
            assert answer.status_code == 503
            assert CHANGE_NOT_STORED in answer.text
        ask(path, str(definition))
        assert site.list().rows == []
        assert site.add("..", "Budi", "Bantul").status_code == 400
        assert site.add("0002", "Bu\0di", "Bantul").status_code == 400
        assert site.add("0002", "Budi", "Bantul").status_code == 302
        assert site.list().nims == ["0002"]


def test_a_text_of_another_program_that_is_not_utf_8_makes_its_pages_unavailable(path: Path) -> None:
    """The list and that record answer 503. Other records are read and changed, and an edit or a deletion mends it."""
    with Service(path) as service, service.site() as site:
        for nim in ("0001", "0002", "0003"):
            site.add(nim, "Siti", "Solo")
        for target, texts in (
            ("/mahasiswa/edit/0002", {"nama": "Budi", "alamat": "Solo"}),
            ("/mahasiswa/delete/0002", {}),
        ):
            ask(path, "UPDATE mahasiswa SET nama = CAST(x'41ff' AS TEXT) WHERE nim = '0002'")
            for page in ("/", "/?cari=0002", "/?urut=nama", "/mahasiswa/edit/0002", "/mahasiswa/ekspor.csv"):
                assert site.get(page).status_code == 503
            assert site.get("/mahasiswa/edit/0001").status_code == 200
            assert site.edit("0001", "Siti", "Solo").status_code == 302
            assert site.post(target, texts).status_code == 302
            assert site.list().row("0001").cells[2] == "Siti"


async def test_a_text_that_is_not_utf_8_is_named_as_the_cause(path: Path) -> None:
    """Reads of it, and changes that are based on it, are Unavailable with that message; their group is not affected."""
    async with opened(SQLiteURL(path)) as store:
        await store.add("0001", "Siti", "Solo")
        await asyncio.to_thread(ask, path, "UPDATE mahasiswa SET nama = CAST(x'41ff' AS TEXT)")
        reads = (
            store.reader(RECORD).get("0001"),
            store.reader(LIST).after(None, 1),
            store.reader(SEARCH).search(Query(), 0, 1),
            store.reader(LIST).snapshot(10),
        )
        for read in (
            *reads,
            store.update("0001", "Siti", "Solo", "versi"),
            anext(store.reader(EXPORT).chunks(Query())),
        ):
            with pytest.raises(Unavailable, match="another program has stored a text that is not UTF-8"):
                await read
        writes = (store.add("0002", "Ani", "Solo"), store.update("0001", "Siti", "Solo", "versi"))
        assert await attempt_all(*writes, store.add("0003", "Ina", "Solo")) == [None, "unavailable", None]


async def test_a_trigger_of_another_program_refuses_one_write_alone(path: Path) -> None:
    """The other writes of its group are stored."""
    run_script(
        path,
        "CREATE TRIGGER aturan BEFORE INSERT ON mahasiswa WHEN NEW.alamat = 'x' BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    async with opened(SQLiteURL(path)) as store:
        writes = [store.add("1", "Siti", "Solo"), store.add("2", "Ani", "x"), store.add("3", "Ina", "Solo")]
        assert await attempt_all(*writes) == [None, "unavailable", None]
    assert contents(path) == [("1", "Siti", "Solo"), ("3", "Ina", "Solo")]


def send(threads: ThreadPoolExecutor, service: Service, path: str, body: bytes) -> "Future[httpx.Response]":
    """Send a form from another thread, on a connection of its own."""
    headers = {"content-type": URL_ENCODED}
    return threads.submit(httpx.post, service.url + path, content=body, headers=headers, timeout=30, trust_env=False)

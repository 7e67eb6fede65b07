"""The SQLite store: the files on the disk when a write returns, and other programs at the same file.

Another program is always another process: Python's sqlite3 in this process would drop the locks of APSW.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

import apsw
import httpx
import pytest
from harness import URL_ENCODED, Page, Service, Site
from stores import ask, attempt_all, opened, other_program, run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import open_store
from mahasiswa.store.errors import Unusable
from mahasiswa.work import STEP_TIMEOUT_SECONDS, Slots

CHANGE_NOT_STORED = "Data belum tersimpan karena basis data sedang tidak dapat diakses."
NOT_READ = "Data sedang tidak dapat ditampilkan. Cobalah beberapa saat lagi."

Locked = tuple[Service, Site, Callable[[str], object], Callable[[str, bytes], Future[httpx.Response]]]

REAL_DISK = apsw.vfs_names()[0]


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
        def __init__(self, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
            super().__init__(REAL_DISK, name, flags)
            self.name = name.filename() if isinstance(name, apsw.URIFilename) else name

        def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
            super().xSync(flags)
            synced.append(str(self.name))

    class Disk(apsw.VFS):
        def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> File:  # noqa: N802 - SQLite's name
            return File(name, flags)

    disk = Disk("test", REAL_DISK, makedefault=True)
    try:
        async with opened(SQLiteURL(path)) as store:
            for write in (store.add("1", "Siti", "Solo"), store.update("1", "Budi", "Bantul"), store.delete("1")):
                synced.clear()
                await write
                assert f"{path}-wal" in synced
            synced.clear()
            await asyncio.gather(*(store.add(f"{number}", "Siti", "Solo") for number in range(100)))
            assert 0 < synced.count(f"{path}-wal") <= 10
    finally:
        disk.unregister()


def test_opening_a_removed_file_is_unusable(path: Path) -> None:
    """A worker that starts after the file was removed does not create an empty one."""
    path.unlink()
    with pytest.raises(Unusable):
        asyncio.run(open_store(SQLiteURL(path), Slots()))
    assert not path.exists()


# ---- other programs at the same file


@pytest.fixture
def locked(path: Path) -> Iterator[Locked]:
    """Start a service with a record, and let another program lock its file.

    Return also a function that runs a statement in that program, and one that sends a form from another thread.
    """
    with (
        Service(path) as service,
        service.site() as site,
        ThreadPoolExecutor() as threads,
        other_program(path) as other,
    ):

        def send(target: str, body: bytes) -> Future[httpx.Response]:
            headers = {"content-type": URL_ENCODED}
            return threads.submit(
                httpx.post, service.url + target, content=body, headers=headers, timeout=30, trust_env=False
            )

        site.add("0001", "Siti", "Solo")
        other("BEGIN IMMEDIATE")
        yield service, site, other, send


def test_a_write_waits_for_the_lock_of_another_program(
    locked: Locked,
) -> None:
    """While another program writes, changes wait and pages are read. When it commits, the changes are stored."""
    _, site, other, send = locked
    waiting = [
        send("/mahasiswa/add", b"nim=0002&nama=Budi&alamat=Bantul"),
        send("/mahasiswa/edit/0001", b"nama=Siti+Baru&alamat=Solo"),
        send("/mahasiswa/add", b"nim=0003&nama=Ani&alamat=Klaten"),
    ]
    other("INSERT INTO mahasiswa VALUES ('0003', 'yang lain', '')")
    for answer in waiting:
        with pytest.raises(FutureTimeoutError):
            answer.result(0.3)
    assert site.list().records == [("0001", "Siti", "Solo")]
    assert site.get(site.path("/mahasiswa/edit/", "0002")).status_code == 404
    other("COMMIT")
    assert [answer.result(10).status_code for answer in waiting] == [302, 302, 409]
    assert site.list().records == [("0001", "Siti Baru", "Solo"), ("0002", "Budi", "Bantul"), ("0003", "yang lain", "")]


def test_a_write_that_waited_too_long_for_a_lock_is_never_made(
    locked: Locked,
) -> None:
    """Each such change is answered 503 with the typed texts, and it is not made when the lock is released."""
    service, site, other, send = locked
    began = time.monotonic()
    add = send("/mahasiswa/add", b"nim=0002&nama=Budi&alamat=Bantul")
    edit = send("/mahasiswa/edit/0001", b"nama=Siti+Baru&alamat=Klaten")
    for future in (add, edit, send("/mahasiswa/delete/0001", b"")):
        answer = future.result(20)
        assert answer.status_code == 503
        assert f"{CHANGE_NOT_STORED} Cobalah beberapa saat lagi." in answer.text
    assert STEP_TIMEOUT_SECONDS - 1 < time.monotonic() - began < 15
    values = [Page(future.result().text, service.url).record_form.values for future in (add, edit)]
    assert values == [
        {"nim": "0002", "nama": "Budi", "alamat": "Bantul"},
        {"nim": "0001", "nama": "Siti Baru", "alamat": "Klaten"},
    ]
    other("ROLLBACK")
    assert site.add("0003", "Ani", "Klaten").status_code == 302
    assert site.list().records == [("0001", "Siti", "Solo"), ("0003", "Ani", "Klaten")]


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
            assert (
                site.post("/mahasiswa/edit/0002", {"nama": "Siti", "alamat": "Solo", "versi": "x"}).status_code == 503
            )
            assert site.get("/mahasiswa/edit/0001").status_code == 200
            assert site.edit("0001", "Siti", "Solo").status_code == 302
            assert site.post(target, texts).status_code == 302
            assert site.list().row("0001").cells[2] == "Siti"
        assert "another program has stored a text that is not UTF-8" in service.stderr()


async def test_a_write_that_another_program_makes_impossible_fails_alone(path: Path) -> None:
    """The other writes of its group are stored. A trigger refuses one, and another one reads a text that is not UTF-8."""
    run_script(
        path,
        "CREATE TRIGGER aturan BEFORE INSERT ON mahasiswa WHEN NEW.alamat = 'x' BEGIN SELECT RAISE(ABORT, 'no'); END;"
        "INSERT INTO mahasiswa VALUES ('0', CAST(x'41ff' AS TEXT), 'Solo')",
    )
    async with opened(SQLiteURL(path)) as store:
        outcomes = await attempt_all(
            store.add("1", "Siti", "Solo"),
            store.add("2", "Ani", "x"),
            store.update("0", "Siti", "Solo", "versi"),
            store.add("3", "Ina", "Solo"),
        )
    assert outcomes == [None, "unavailable", "unavailable", None]
    assert ask(path, "SELECT nim FROM mahasiswa ORDER BY nim") == [("0",), ("1",), ("3",)]

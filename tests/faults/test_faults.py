"""A disk that fails, or is full: what was answered 302 is stored, what was answered 503 is not, and the service goes on."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import pytest
from attack import Line, assert_log_is_sound, assert_says_nothing_was_saved, holds
from harness import Service

from mahasiswa.store.errors import Unavailable
from mahasiswa.store.sqlite.schema import migrate
from mahasiswa.store.sqlite.store import SQLiteStore

BEFORE, DURING = 2, 6
"""Records added before the disk may fail, and while."""

CLEAN = apsw.vfs_names()[0]
"""The way to the disk that never fails."""

FAILING = ("xWrite", "xSync", "xTruncate", "xRead")


class Disk(apsw.VFS):
    """SQLite's way to the disk, where the n-th call of one kind fails, and those after it too where it stays broken."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.kind = ""
        self.at = 0
        self.stays = False
        self.failed = 0
        super().__init__("failing", CLEAN, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file that fails as this disk does."""
        return File(self, name, flags)

    def fails(self, kind: str, at: int, *, stays: bool) -> None:
        """From now on the `at`-th call of that kind fails."""
        self.calls.clear()
        self.kind, self.at, self.stays, self.failed = kind, at, stays, 0

    def heal(self) -> None:
        """Nothing fails any more."""
        self.kind = ""

    def count(self, kind: str) -> None:
        """Note a call; raise where it is to fail."""
        self.calls[kind] += 1
        if kind == self.kind and (self.calls[kind] >= self.at if self.stays else self.calls[kind] == self.at):
            self.failed += 1
            raise apsw.IOError("the disk fails, as this test has it")


class File(apsw.VFSFile):
    """A file on that disk."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(CLEAN, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.count("xWrite")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.count("xSync")
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.count("xTruncate")
        super().xTruncate(newsize)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        self._disk.count("xRead")
        return super().xRead(amount, offset)


@contextmanager
def failing_disk() -> Iterator[Disk]:
    """Have every database of this process on a disk that can fail."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.unregister()


@pytest.mark.parametrize("stays", [False, True], ids=["once", "until it is mended"])
@pytest.mark.parametrize("kind", FAILING)
def test_the_disk_fails_at_the_nth_call(tmp_path: Path, kind: str, *, stays: bool) -> None:
    """For every n: an addition is Unavailable and not there, or it is there; the next one after the fault is stored."""

    async def attack(path: Path, at: int) -> bool:
        """Whether the fault was met."""
        stored = set()
        store = SQLiteStore(path)
        try:
            assert store._file
            writer = store._file.writer
            writer._db.wal_autocheckpoint(0)
            for n in range(BEFORE):
                await store.add(f"{n}", "Siti", "Solo")
                stored.add(f"{n}")
            disk.fails(kind, at, stays=stays)
            for n in range(BEFORE, BEFORE + DURING):
                with suppress(Unavailable):
                    await store.add(f"{n}", "Siti", "x" * 9000)
                    stored.add(f"{n}")
                after = after_a_crash(path)
                assert stored == after if not stays else stored <= after
                # SQLite ignores what goes wrong while it brings the log into the file after a commit; here APSW would
                # take a failure of this disk, which is Python's, for one of the commit. So the test does it, apart.
                with suppress(Unavailable):
                    await writer.run_exclusive(lambda db: db.wal_checkpoint() and None)
            disk.heal()
            await store.add("sesudah", "Siti", "Solo")
            stored.add("sesudah")
            assert {record.nim for record in await store.after(None, 100)} == stored
        finally:
            disk.heal()
            await store.close()
        assert nims(path) == stored
        return disk.failed > 0

    with failing_disk() as disk:
        for at in range(1, 200):
            folder = tmp_path / f"{at}"
            folder.mkdir()
            migrate(folder / "a.db")
            met = asyncio.run(attack(folder / "a.db", at))
            shutil.rmtree(folder)
            if not met:
                break
    assert not met
    assert at > 3, "the fault was hardly ever met"


def after_a_crash(path: Path) -> set[str]:
    """Return the nims that would be found if this program were killed now."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", folder)
        return nims(Path(folder) / path.name)


def nims(path: Path) -> set[str]:
    """Return the nims of a database that nobody has open, which must be sound."""
    with closing(apsw.Connection(str(path), vfs=CLEAN)) as db:
        assert db.execute("PRAGMA integrity_check").get == "ok"
        return {nim for (nim,) in db.execute("SELECT nim FROM mahasiswa")}


# ---- a disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 3 MB, or skip where that may not be."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux may mount a small file system")
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def use_up(folder: Path) -> Path:
    """Fill a disk to the last byte; return the file that does."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 1):
            with suppress(OSError):
                while file.write(b"x" * size):
                    pass
    return filler


def test_a_disk_that_is_full(small_disk: Path) -> None:
    """503 with a page that says nothing was saved, no false 302; with room again the service goes on by itself."""
    database = small_disk / "a.db"
    stored = {}
    with Service(database) as service, Line(service.port) as line:
        for n in range(3):
            assert line.add(f"{n}", "Siti", "Solo").status == 302
            stored[f"{n}"] = ("Siti", "Solo")
        for turn in range(3):
            filler = use_up(small_disk)
            refused = 0
            while refused < 20:
                nim = f"{turn}/{len(stored)}/{refused}"
                answer = line.add(nim, "Siti", "x" * 5000)
                if answer.status == 302:  # there was room in the log
                    stored[nim] = ("Siti", "x" * 5000)
                    assert len(stored) < 1000, "the disk does not get full"
                else:
                    assert_says_nothing_was_saved(answer)
                    assert b'value="' + nim.encode() + b'"' in answer.body, "what was typed is lost"
                    refused += 1
            assert_says_nothing_was_saved(line.edit("0", "Budi", "y" * 9000))
            # Who reads is not concerned.
            assert line.get("/").body.count(b"<tr><td>") == len(stored)
            assert line.get("/sehat").status == 200
            filler.unlink()
            assert line.add(f"{turn}", "Siti", "Solo").status == (409 if f"{turn}" in stored else 302)
            assert line.add(f"sesudah {turn}", "Siti", "Solo").status == 302
            stored[f"sesudah {turn}"] = ("Siti", "Solo")
        assert holds(database) == stored
        service.kill()
        service.restart()
        assert holds(database) == stored
        assert_log_is_sound(service.stderr(), allowed=["were not stored"])

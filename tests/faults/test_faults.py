"""The disk fails or is full: a change answered 302 is stored, one answered 503 is not, and the service goes on."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import pytest
from cli.operators import records_of, use_up
from faults.attack import assert_says_nothing_was_saved
from harness import Service, assert_log_is_sound, led_to
from stores import migrate, nims_of, opened

from mahasiswa.store.store_errors import Unavailable

REAL_DISK = apsw.vfs_names()[0]


class Disk(apsw.VFS):
    """An SQLite VFS whose `at`-th call of one kind fails; with `stays` all later calls of that kind fail too."""

    def __init__(self) -> None:
        self.fail_at("", 0, stays=False)
        super().__init__("failing", REAL_DISK, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return File(self, name, flags)

    def fail_at(self, kind: str, at: int, *, stays: bool) -> None:
        """Let a call of that kind fail, counted from now on."""
        self.kind = kind
        self.at = at
        self.stays = stays
        self.calls = 0

    def count(self, kind: str) -> None:
        """Count a call; raise IOError if it must fail."""
        self.calls += kind == self.kind
        if kind == self.kind and (self.calls == self.at or (self.stays and self.calls > self.at)):
            raise apsw.IOError("a failure of the disk that this test asked for")


class File(apsw.VFSFile):
    """A file of a Disk."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self.disk = disk
        super().__init__(REAL_DISK, name, flags)


def failing(kind: str) -> Callable[..., object]:
    """Return a method of a File that SQLite calls, which fails if the disk says so."""
    call = getattr(apsw.VFSFile, kind)

    def counted(file: File, *arguments: object) -> object:
        file.disk.count(kind)
        return call(file, *arguments)

    return counted


KINDS = ("xWrite", "xSync", "xTruncate", "xRead")
for each in KINDS:
    setattr(File, each, failing(each))


@contextmanager
def failing_disk() -> Iterator[Disk]:
    """Open every database of this process on a Disk, without automatic checkpoints."""
    disk = Disk()
    apsw.connection_hooks.append(lambda db: db.wal_autocheckpoint(0))
    try:
        yield disk
    finally:
        apsw.connection_hooks.pop()
        disk.unregister()


@pytest.mark.torture
@pytest.mark.parametrize("stays", [False, True], ids=["once", "until it is repaired"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_addition_is_stored_or_unavailable_if_the_disk_fails_at_any_call(
    tmp_path: Path, kind: str, *, stays: bool
) -> None:
    """This holds for the n-th call of each kind, for every n. The next addition after the failure is stored."""

    async def attack(path: Path, at: int) -> bool:
        stored = {"0", "1"}
        async with opened(path) as store:
            with closing(apsw.Connection(str(path))) as db:
                for nim in stored:
                    await store.add(nim, "Siti", "Solo")
                # Opens the log.
                assert db.execute("SELECT count(*) FROM mahasiswa").get == len(stored)
                disk.fail_at(kind, at, stays=stays)
                for nim in ("2", "3", "4"):
                    with suppress(Unavailable):
                        await store.add(nim, "Siti", "x" * 9000)
                        stored.add(nim)
                    after = after_a_crash(path)
                    assert stored == after if not stays else stored <= after
                    # SQLite ignores errors of the checkpoint after a commit. APSW would report an error of this disk,
                    # which is written in Python, as one of the commit. So the test runs the checkpoint separately.
                    with suppress(apsw.Error):
                        db.wal_checkpoint()
                disk.kind = ""  # it is repaired
            await store.add("sesudah", "Siti", "Solo")
        assert nims(path) == stored | {"sesudah"}
        return disk.calls >= at

    migrate(tmp_path / "empty.db")
    with failing_disk() as disk:
        for at in range(1, 1000):
            path = tmp_path / f"{at}.db"
            shutil.copy(tmp_path / "empty.db", path)
            if not asyncio.run(attack(path, at)):
                break
            path.unlink()
    assert 3 < at < 999, "the call that fails was hardly ever reached, or always"


def after_a_crash(path: Path) -> set[str]:
    """Return the nims that a restart would find if this process were killed now."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", folder)
        return nims(Path(folder) / path.name)


def nims(path: Path) -> set[str]:
    with closing(apsw.Connection(str(path), vfs=REAL_DISK)) as db:
        assert db.execute("PRAGMA integrity_check").get == "ok"
        return {nim for (nim,) in db.execute("SELECT nim FROM mahasiswa")}


# ---- a disk that is full
def test_changes_on_a_full_disk_are_answered_503(small_disk: Path) -> None:
    """The page says that nothing was saved and keeps the typed texts. With room again the service goes on by itself."""
    database = small_disk / "a.db"
    stored = [("0", "Siti", "Solo")]
    with Service(database) as service, service.site() as site:
        led_to(site.add(*stored[0]))
        filler = use_up(small_disk)
        refused = 0
        while refused < 20:
            nim = f"{len(stored)}/{refused}"
            answer = site.add(nim, "Siti", "x" * 5000)
            if answer.status_code == 302:  # there was room in the log
                stored.append((nim, "Siti", "x" * 5000))
                assert len(stored) < 1000, "the disk is never full"
            else:
                assert_says_nothing_was_saved(answer)
                assert f'value="{nim}"' in answer.text, "the typed texts are lost"
                refused += 1
        assert_says_nothing_was_saved(site.edit("0", "Budi", "y" * 9000))
        assert site.nims == sorted(nim for nim, _, _ in stored)  # reads go on
        assert site.get("/sehat").status_code == 200
        filler.unlink()
        stored.append(("sesudah", "Siti", "Solo"))
        led_to(site.add(*stored[-1]))
        for _ in range(2):
            assert records_of(database) == sorted(stored)
            assert len(nims_of(database)) == len(stored)
            service.kill()
            service.restart()
        assert_log_is_sound(service.stderr())

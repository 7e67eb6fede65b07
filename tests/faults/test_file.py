"""The SQLite file of a running service is replaced, removed, moved, locked, or its write-ahead log grows."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from attack import Line, assert_log_is_sound, assert_says_nothing_was_saved, holds, until
from harness import Service, free_port
from processes import working
from spreadsheets import Database

from mahasiswa.store.sqlite.connection import WAL_MAX_BYTES

TEXTS = ("Siti", "Solo")
GONE = "was replaced, moved or removed: stop the service, put the file right, start it"


def backup(database: Path, to: Path) -> None:
    """Copy the database while the service runs, as an operator does."""
    subprocess.run(
        [sys.executable, "-m", "mahasiswa", "backup", str(to)],
        env={**os.environ, "DATABASE_URL": f"sqlite:///{database}", "PORT": str(free_port())},
        check=True,
        capture_output=True,
        timeout=30,
    )


@contextmanager
def at_work(service: Service) -> Iterator[tuple[set[str], set[str]]]:
    """Add without pause while the block runs; yield the nims that were acknowledged, and those that may be stored."""
    stop = threading.Event()
    added: set[str] = set()
    sent: set[str] = set()

    def work(name: int) -> None:
        while not stop.is_set():
            with suppress(OSError), Line(service.port) as line:
                for _ in range(5):
                    nim = f"{name}/{len(sent)}"
                    sent.add(nim)
                    if line.add(nim, *TEXTS).status == 302:
                        added.add(nim)

    with working([partial(work, name) for name in range(4)], stop):
        yield added, sent


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fate", ["replaced", "moved", "removed"])
def test_a_file_that_is_gone_under_load_is_unavailable_until_the_next_start(
    tmp_path: Path, fate: str, workers: int
) -> None:
    """Each request gets 503, and the log says once what to do. The new file stays as it is, and the next start serves it.

    Changes that were only in the write-ahead log go with a file that is moved.
    """
    database, away, new = tmp_path / "a.db", tmp_path / "away.db", tmp_path / "new.db"
    with Service(database, {"WORKERS": f"{workers}"}) as service:
        with Line(service.port) as line:
            assert line.add("0", *TEXTS).status == 302
        backup(database, new)
        before = new.read_bytes()
        with at_work(service) as (added, sent), Line(service.port) as line:
            until(lambda: len(added) > 40)
            if fate == "replaced":
                new.replace(database)
            elif fate == "moved":
                database.rename(away)
            else:
                database.unlink()
            until(lambda: service.stderr().count(GONE) == workers)
            known = set(sent)
            until(lambda: len(sent) > len(known) + 40)
            assert added <= known, "a change was acknowledged that is in no file"
        for path in ("/", "/sehat", "/mahasiswa/edit/0", "/?cari=siti", "/mahasiswa/ekspor.csv") * 2 * workers:
            with Line(service.port) as line:
                assert line.get(path).status == 503
        with Line(service.port) as line:
            assert_says_nothing_was_saved(line.add("1", *TEXTS))
            assert line.get("/mahasiswa/add").status == 200
        if fate == "moved":
            assert added | {"0"} <= holds(away).keys() <= sent | {"0"}
            away.rename(database)
            assert ask(service, "/") == 503
        elif fate == "removed":
            assert not database.exists()
            new.rename(database)
        else:
            assert database.read_bytes() == before
        service.stop()
        assert service.stderr().count(GONE) == workers
        assert_log_is_sound(service.stderr(), allowed=["was replaced"])
        service.restart()
        with Line(service.port) as line:
            assert line.add("sesudah", *TEXTS).status == 302
        stored = holds(database).keys()
        assert stored == {"0", "sesudah"} if fate != "moved" else added | {"0", "sesudah"} <= stored


def ask(service: Service, path: str) -> int:
    """Send a request on a new connection; return the status."""
    with Line(service.port) as line:
        return line.get(path).status


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Have another program hold a lock on the folder."""
    program = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-ISc", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        yield
        process.communicate(b"\n")


@pytest.mark.torture
def test_a_service_does_not_wait_for_ever_for_a_locked_folder(tmp_path: Path) -> None:
    """It ends with one line that names the folder and says why."""
    with locked_folder(tmp_path):
        ended = start(tmp_path / "a.db")
    assert ended.returncode == 1
    assert ended.stderr == f"mahasiswa: another program has locked the folder {tmp_path} for 10 s\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "{folder} cannot be opened: it is a folder"),
        ("missing/a.db", "the folder {folder}/missing does not exist"),
        ("/proc/a.db", "/proc/a.db cannot be opened: no file can be made in the folder /proc"),
    ],
    ids=["a folder", "a missing folder", "a folder that takes no file"],
)
def test_a_file_that_cannot_be_opened_is_refused_with_the_folder_and_the_reason(
    tmp_path: Path, name: str, reason: str
) -> None:
    """The service ends with one line."""
    ended = start(tmp_path / name)
    assert ended.returncode == 1
    assert reason.format(folder=tmp_path) in ended.stderr
    assert ended.stderr.count("\n") == 1


def start(database: Path) -> "subprocess.CompletedProcess[str]":
    """Start a service that cannot start, and return how it ended."""
    return subprocess.run(
        [sys.executable, "-m", "mahasiswa"],
        env={**os.environ, "DATABASE_URL": f"sqlite:///{database}", "PORT": str(free_port())},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_log_that_grew_during_a_long_read_is_cut_to_64_mb(tmp_path: Path) -> None:
    """Changes go on while another program reads. When it ends, the log is truncated and used again."""
    database = tmp_path / "a.db"
    log = tmp_path / "a.db-wal"
    text = "x" * 60_000

    with Service(database, {"LOG_LEVEL": "warning"}) as service:

        def work(name: int) -> None:
            with Line(service.port) as line:
                for n in range(300):
                    assert line.add(f"{name}/{n}", "Siti", text).status == 302

        with Line(service.port) as line:
            assert line.add("0", *TEXTS).status == 302
        with Database(database, "BEGIN", "SELECT * FROM mahasiswa"), ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        grown = log.stat().st_size
        assert grown > WAL_MAX_BYTES
        with Line(service.port) as line:

            def bounded() -> bool:
                assert line.edit("0", f"{time.monotonic()}", "Solo").status == 302
                return log.stat().st_size <= WAL_MAX_BYTES

            until(bounded)
            for n in range(40):
                assert line.add(f"sesudah/{n}", "Siti", text).status == 302
            assert log.stat().st_size <= WAL_MAX_BYTES
        assert service.stderr() == ""
        assert len(holds(database)) == 1 + 1200 + 40

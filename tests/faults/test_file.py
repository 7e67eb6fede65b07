"""The SQLite file of a running service is replaced, removed, moved, locked, or its write-ahead log grows."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from attack import Answer, Hold, Line, assert_log_is_sound, assert_says_nothing_was_saved, holds, until
from harness import Service, free_port

from mahasiswa.store.sqlite.connection import WAL_MAX_BYTES

TEXTS = ("Siti", "Solo")


@pytest.fixture(params=["1", "2"], ids=["one worker", "two workers"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """Start a service on the file, and check its log at the end."""
    with Service(tmp_path / "a.db", {"WORKERS": request.param}) as service:
        yield service
        assert_log_is_sound(service.stderr(), allowed=["was replaced or removed"])


def backup(database: Path, to: Path) -> None:
    """Copy the database while the service runs, as an operator does."""
    subprocess.run(
        [sys.executable, "-m", "mahasiswa", "backup", str(to)],
        env={**os.environ, "DATABASE_URL": f"sqlite:///{database}", "PORT": str(free_port())},
        check=True,
        capture_output=True,
        timeout=30,
    )


def ask_all(service: Service, path: str) -> list[Answer]:
    """Send a request on many new connections, so that each worker answers some."""
    answers = []
    for _ in range(12):
        with Line(service.port) as line:
            answers.append(line.get(path))
    return answers


def test_a_file_that_is_replaced_under_load_is_served(
    service: Service, tmp_path: Path, rounds: Callable[[int, int], int]
) -> None:
    """Every change that begins after the replacement and is acknowledged is in the new file, which is sound."""
    database = tmp_path / "a.db"
    with Line(service.port) as line:
        assert line.add("0", *TEXTS).status == 302
    backup(database, tmp_path / "backup.db")
    for turn in range(rounds(8, 100)):
        shutil.copy(tmp_path / "backup.db", tmp_path / "new.db")
        replaced, stop = threading.Event(), threading.Event()

        def work(name: str) -> tuple[set[str], set[str]]:
            """Add until told to stop; return the nims added after the replacement, and those added before."""
            after: set[str] = set()
            before: set[str] = set()
            n = 0
            while not stop.is_set():  # noqa: B023 - the thread ends in this turn of the loop
                with suppress(OSError), Line(service.port) as line:
                    for _ in range(5):
                        n += 1
                        nim = f"{name}/{n}"
                        known = after if replaced.is_set() else before  # noqa: B023 - as above
                        if line.add(nim, *TEXTS).status == 302:
                            known.add(nim)
            return after, before

        with ThreadPoolExecutor(4) as threads:
            clients = [threads.submit(work, f"{turn}/{name}") for name in range(4)]
            with Line(service.port) as line:
                until(lambda: line.get("/").body.count(b"<tr>") > 40)
            (tmp_path / "new.db").replace(database)
            replaced.set()
            with Line(service.port) as line:
                until(lambda: b"<td>sesudah</td>" in line.get("/").body or line.add("sesudah", *TEXTS).status > 500)
                until(lambda: line.get("/").body.count(b"<tr>") > 40)
            stop.set()
            after, before = (set().union(*sets) for sets in zip(*(client.result() for client in clients), strict=True))
        stored = holds(database).keys()
        assert after, "nothing was added afterwards"
        assert after <= stored
        assert stored <= after | before | {"0", "sesudah"}
        # A worker that has not noticed the replacement yet may send the old page for a tenth of a second.
        with Line(service.port) as line:
            until(lambda: line.get("/").body.count(b"<tr><td>") == len(stored))  # noqa: B023 - as above


def test_a_removed_file_is_unavailable_until_it_is_back(service: Service, tmp_path: Path) -> None:
    """Reads and changes answer 503, and no empty list takes its place. A restored file is served again."""
    database = tmp_path / "a.db"
    with Line(service.port) as line:
        assert line.add("0", *TEXTS).status == 302
    backup(database, tmp_path / "backup.db")
    database.unlink()
    assert {answer.status for path in ("/", "/sehat", "/mahasiswa/edit/0") for answer in ask_all(service, path)} == {
        503
    }
    for _ in range(6):
        with Line(service.port) as line:
            assert_says_nothing_was_saved(line.add("1", *TEXTS))
            assert line.delete("0").status == 503
            assert line.get("/mahasiswa/add").status == 200
    assert not database.exists()
    (tmp_path / "backup.db").replace(database)
    assert {answer.status for path in ("/", "/sehat", "/mahasiswa/edit/0") for answer in ask_all(service, path)} == {
        200
    }
    for n in range(1, 7):
        with Line(service.port) as line:
            assert line.add(f"{n}", *TEXTS).status == 302
    assert holds(database).keys() == {f"{n}" for n in range(7)}
    assert service.stderr().count("was replaced or removed") == int(service._environment["WORKERS"])


def test_a_file_that_is_moved_away_keeps_every_acknowledged_change(service: Service, tmp_path: Path) -> None:
    """Changes that were only in the write-ahead log go with the file. Moved back, it is served again."""
    database = tmp_path / "a.db"
    for n in range(20):
        with Line(service.port) as line:
            assert line.add(f"{n}", *TEXTS).status == 302
    database.rename(tmp_path / "away.db")
    assert {answer.status for answer in ask_all(service, "/")} == {503}
    shutil.copy(tmp_path / "away.db", tmp_path / "copy.db")
    assert holds(tmp_path / "copy.db").keys() == {f"{n}" for n in range(20)}
    (tmp_path / "away.db").rename(database)
    assert {answer.body.count(b"<tr><td>") for answer in ask_all(service, "/")} == {20}


def test_an_export_while_the_file_is_replaced_is_complete_or_refused(tmp_path: Path) -> None:
    """The answer is never a part of a file that looks complete."""
    database = tmp_path / "a.db"
    with Service(database) as service:
        fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) INSERT INTO mahasiswa SELECT 'n' || i, 'Siti', 'Solo' FROM n"
        Hold(database, fill).let_go()
        backup(database, tmp_path / "new.db")

        def export() -> Answer:
            with Line(service.port) as line:
                return line.get("/mahasiswa/ekspor.csv")

        with ThreadPoolExecutor(1) as threads, Line(service.port) as line:
            exported = threads.submit(export)
            (tmp_path / "new.db").replace(database)
            until(lambda: line.get("/sehat").status == 200)  # 503 if the disk takes long to open the file
            answer = exported.result()
        assert answer.status in (200, 503), service.stderr()
        if answer.status == 200:
            assert answer.body.count(b"\n") == 60001
        assert export().body.count(b"\n") == 60001
        assert_log_is_sound(service.stderr(), allowed=["was replaced or removed", "is being opened again"])


def add(service: Service, nim: str) -> tuple[Answer, float]:
    """Add a record; return the answer and its duration in seconds."""
    began = time.monotonic()
    with Line(service.port) as line:
        return line.add(nim, *TEXTS), time.monotonic() - began


def test_a_change_waits_a_few_seconds_for_the_lock_of_another_program(tmp_path: Path) -> None:
    """Reads go on. A change then answers 503 and is not saved. When the lock is released, changes are saved."""
    database = tmp_path / "a.db"

    with (
        Service(database, {"WORKERS": "2"}) as service,
        Line(service.port) as line,
        ThreadPoolExecutor(8) as threads,
    ):
        assert line.add("0", *TEXTS).status == 302
        with Hold(database, "BEGIN IMMEDIATE"):
            waiting = [threads.submit(add, service, f"kurang {n}") for n in range(8)]
            slowest = 0.0
            while not all(change.done() for change in waiting):
                began = time.monotonic()
                assert line.get("/").status == line.get("/sehat").status == line.get("/mahasiswa/edit/0").status == 200
                slowest = max(slowest, time.monotonic() - began)
        for change in waiting:
            answer, took = change.result()
            assert_says_nothing_was_saved(answer)
            assert 4 < took < 20
        assert slowest < 4
        assert holds(database).keys() == {"0"}

        held = Hold(database, "BEGIN IMMEDIATE")
        waiting = [threads.submit(add, service, f"{n}") for n in range(1, 9)]
        for _ in range(50):
            assert line.get("/").status == 200
        assert not any(change.done() for change in waiting)
        held.let_go()
        assert [change.result()[0].status for change in waiting] == [302] * 8
    assert holds(database).keys() == {f"{n}" for n in range(9)}


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


def test_a_folder_that_another_program_locks_does_not_stop_the_event_loop(tmp_path: Path) -> None:
    """After the file was replaced, a read waits for the lock and answers 503 in the end. Other pages are answered."""
    database = tmp_path / "a.db"
    with Service(database, {"WORKERS": "1"}) as service, Line(service.port) as line, ThreadPoolExecutor(1) as threads:
        assert line.add("0", *TEXTS).status == 302
        backup(database, tmp_path / "new.db")

        def read() -> int:
            with Line(service.port) as other:
                return other.get("/mahasiswa/edit/0").status

        slowest = 0.0
        with locked_folder(tmp_path):
            (tmp_path / "new.db").replace(database)
            began = time.monotonic()
            reading = threads.submit(read)
            while not reading.done():
                asked = time.monotonic()
                assert line.get("/mahasiswa/add").status == 200
                slowest = max(slowest, time.monotonic() - asked)
            assert reading.result() == 503
            assert 4 < time.monotonic() - began < 20
        assert slowest < 4
        until(lambda: read() == 200)
        assert_log_is_sound(service.stderr(), allowed=["was replaced or removed", "is being opened again"])


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
        with Hold(database, "BEGIN", "SELECT * FROM mahasiswa"), ThreadPoolExecutor(4) as threads:
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

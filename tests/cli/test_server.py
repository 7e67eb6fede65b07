"""Starting: the service refuses a port or a database that it cannot use, in one line and with exit code 1."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from attack import LOG_LINE, is_free, until
from harness import START_SECONDS, Service, StartError, free_port, run_to_the_end
from processes import children
from stores import run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import migrate

FOREIGN = {
    "a table with other columns": "CREATE TABLE mahasiswa (npm TEXT PRIMARY KEY, nama TEXT, alamat TEXT)",
    "a table with our columns": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)",
    "a view": "CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE VIEW mahasiswa AS SELECT * FROM m",
}


@pytest.mark.parametrize("reuse_port", [False, True])
def test_a_port_of_another_program_is_refused(tmp_path: Path, *, reuse_port: bool) -> None:
    """The service does not start if another program listens on the port, even with SO_REUSEPORT."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=reuse_port) as other:
        port = str(other.getsockname()[1])
        ended = run_to_the_end({"HOST": "127.0.0.1", "PORT": port, "DATABASE_URL": "sqlite:///m.db"}, tmp_path)
    assert_refused(ended, "127.0.0.1", port)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("first", "second"), [(None, None), (None, "127.0.0.1"), ("127.0.0.1", None)])
def test_a_port_of_another_instance_is_refused(tmp_path: Path, first: str | None, second: str | None) -> None:
    """Two instances never share a port, on one address or on all, and the first one continues to answer."""
    with Service(tmp_path / "first.db", {"HOST": first}) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        with pytest.raises(StartError) as refused:
            Service(tmp_path / "second.db", {"HOST": second, "PORT": str(service.port)})
        assert refused.value.code == 1
        assert_one_line(refused.value.stderr, str(service.port))
        assert not (tmp_path / "second.db").exists()
        for _ in range(20):
            assert site.list().nims == ["0001"]


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    """The service does not start on an address that this machine does not have."""
    # No machine has an address in 192.0.2.0/24, which is reserved for documentation.
    ended = run_to_the_end({"HOST": "192.0.2.123", "PORT": str(free_port())}, tmp_path)
    assert_refused(ended, "192.0.2.123")
    assert list(tmp_path.iterdir()) == []


def migrated(folder: Path) -> Path:
    """Create an empty list; return its path."""
    migrate(SQLiteURL(folder / "a.db"))
    return folder / "a.db"


def damage(path: Path) -> None:
    """Overwrite all pages of a database."""
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))


def run_script_in(folder: Path, script: str) -> None:
    """Create a database by another program."""
    run_script(folder / "a.db", script)


def lock(folder: Path) -> None:
    """Create a folder that no user may enter."""
    (folder / "data").mkdir(parents=True)
    folder.chmod(0)


def killed_in(folder: Path) -> Path:
    """Return a database whose service was killed, so that its log is still there."""
    with Service(folder / "a.db") as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        service.kill()
    return folder / "a.db"


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


UNUSABLE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "in a missing folder": ("tidak/ada/a.db", lambda _: None, str(Path("tidak/ada"))),
    "below a file": ("berkas/a.db", lambda folder: (folder / "berkas").touch(), "berkas"),
    "in a folder with a too long name": ("a" * 300 + "/a.db", lambda _: None, "aaa"),
    "with a too long name": ("a" * 300, lambda _: None, "aaa"),
    "a folder": ("a.db", lambda folder: (folder / "a.db").mkdir(), "a.db"),
    "another file": (
        "a.db",
        lambda folder: (folder / "a.db").write_bytes(b"NIM;Nama;Alamat\n" * 200),
        "not an SQLite database",
    ),
    "damaged": ("a.db", lambda folder: damage(migrated(folder)), "a.db"),
    **{name: ("a.db", partial(run_script_in, script=script), "mahasiswa import") for name, script in FOREIGN.items()},
}


@pytest.mark.parametrize(("path", "prepare", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_database_that_cannot_be_used_is_refused_and_left_unchanged(
    tmp_path: Path, path: str, prepare: Callable[[Path], object], words: str
) -> None:
    """The service creates its file but no folder, so a mistyped path does not start an empty list."""
    prepare(tmp_path)
    before = files_in(tmp_path)
    assert_refused(start_on(path, tmp_path), words, path[:3])
    assert files_in(tmp_path) == before


FORBIDDEN: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a new file in a read-only folder": ("a.db", lambda folder: folder.chmod(0o500)),
    "a folder that allows no write-ahead log": ("a.db", lambda folder: migrated(folder).parent.chmod(0o500)),
    "a folder that may not be entered": ("terkunci/data/a.db", lambda folder: lock(folder / "terkunci")),
    "a file that cannot be written": ("a.db", lambda folder: migrated(folder).chmod(0o400)),
    "a file that cannot be read": ("a.db", lambda folder: migrated(folder).chmod(0)),
    "a file with the log of a killed instance": ("a.db", lambda folder: killed_in(folder).chmod(0o400)),
}


@pytest.mark.parametrize(("path", "prepare"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_database_without_the_permissions_that_it_needs_is_refused(
    tmp_path: Path, unprivileged: list[str], path: str, prepare: Callable[[Path], None]
) -> None:
    prepare(tmp_path)
    assert_refused(start_on(path, tmp_path, unprivileged), path.partition("/")[0])


def test_permissions_apply_to_the_commands_of_these_tests(tmp_path: Path, unprivileged: list[str]) -> None:
    """A command of the fixture `unprivileged` cannot create a file in a read-only folder."""
    tmp_path.chmod(0o500)
    assert subprocess.run([*unprivileged, "touch", "a"], cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_a_warning_at_the_start_is_a_line_of_the_log(tmp_path: Path) -> None:
    """A warning has its time and its level, and LOG_LEVEL applies to it."""
    for days, level in (("30", "info"), ("40", "info"), ("50", "error")):
        with Service(tmp_path / "a.db", {"HISTORY_DAYS": days, "LOG_LEVEL": level}) as service:
            lines = [line for line in service.stderr().splitlines() if "HISTORY_DAYS" in line]
        assert len(lines) == (days == "40")
        assert all(LOG_LINE.fullmatch(line) for line in lines)


def test_under_systemd_the_service_says_when_it_is_ready_and_outlives_a_hang_up(tmp_path: Path) -> None:
    """SIGHUP, which a rotation of logs sends, ends nothing. Each line of the log has its priority for journald."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(START_SECONDS)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "JOURNAL_STREAM": "8:1"}
        with Service(tmp_path / "a.db", environment) as service, service.site() as site:
            assert systemd.recv(100) == b"READY=1"
            os.killpg(service.pid, signal.SIGHUP)
            # The main process has handled the signal when it replaces a worker.
            (killed,) = children(service.pid)
            os.kill(killed, signal.SIGKILL)
            until(lambda: children(service.pid) not in ([], [killed]))
            until(lambda: not is_free(service.port))
            assert site.add("1", "Siti", "Solo").status_code == 302
            assert site.add("..", "Siti", "Solo").status_code == 400
            assert service.stop() == 0
            assert [line[:3] for line in service.stderr().splitlines()] == ["<3>", "<6>", "<4>"]
    ended = run_to_the_end({"PORT": "x", "JOURNAL_STREAM": "8:1"}, tmp_path)
    assert ended.stderr.startswith("<3>mahasiswa: PORT must be ")


# A release whose second step of the schema waits for a file.
UPGRADE = """
import time
from mahasiswa.store.sqlite import schema

def step(db, path):
    path.with_name("begun").touch()
    while not path.with_name("go").exists():
        time.sleep(0.01)

schema.STEPS = (*schema.STEPS, step)
from mahasiswa.cli import main
main()
"""


def test_an_upgrade_is_logged_before_and_after_and_meanwhile_connections_are_refused(tmp_path: Path) -> None:
    """So no client hangs, and the operator sees why the start takes long."""
    path, port = tmp_path / "a.db", free_port()
    migrate(SQLiteURL(path))
    rows = ", ".join(f"('{nim}', 'Siti', 'Solo')" for nim in range(1234))
    run_script(path, f"INSERT INTO mahasiswa VALUES {rows}")
    with ThreadPoolExecutor(1) as thread:
        starting = thread.submit(Service, path, {"PORT": str(port)}, command=[sys.executable, "-c", UPGRADE])
        until((tmp_path / "begun").exists)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        (tmp_path / "go").touch()
        with starting.result() as service:
            first, second = service.stderr().splitlines()
    assert first.endswith(f" INFO upgrading 1,234 records in {path}")
    assert second.endswith(f" INFO upgraded {path} to schema version 2")


def start_on(path: str, folder: Path, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Start the service on an SQLite file that it must refuse; return its output."""
    environment = {"HOST": "127.0.0.1", "PORT": str(free_port()), "DATABASE_URL": f"sqlite:///{path}"}
    return run_to_the_end(environment, folder, before)


def assert_refused(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that the service did not start, and that its one line of error has these words."""
    assert_one_line(ended.stderr, *words)
    assert ended.stdout == ""
    assert ended.returncode == 1


def assert_one_line(text: str, *words: str) -> None:
    """Check that the text is one line for the operator with these words."""
    assert re.fullmatch(r"mahasiswa: [^\n]{15,}\n", text), text
    for word in words:
        assert word in text

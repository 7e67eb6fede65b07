"""Starting: the service refuses a port or a database that it cannot use, in one line and with exit code 1."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attack import LOG_LINE, is_free, until
from harness import START_SECONDS, Service, StartError, free_port, run_to_the_end
from operators import unprivileged_command
from processes import children
from stores import run_script

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import migrate

# The fixture, which pytest finds by this name.
__all__ = ["unprivileged_command"]

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


def test_a_database_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """The service creates its file but no folder, so a mistyped path does not start an empty list."""
    ended = start_on("tidak/ada/mahasiswa.db", tmp_path)
    assert_refused(ended, str(Path("tidak/ada")))
    assert list(tmp_path.iterdir()) == []


def test_a_database_below_a_file_is_refused(tmp_path: Path) -> None:
    """The service does not start if the folder of its database is a file."""
    (tmp_path / "berkas").write_text("")
    assert_refused(start_on("berkas/mahasiswa.db", tmp_path), "berkas")


def test_a_database_with_a_too_long_name_is_refused(tmp_path: Path) -> None:
    """The service does not start on a path that is too long for the file system."""
    assert_refused(start_on("a" * 300 + "/mahasiswa.db", tmp_path), "aaa")
    assert_refused(start_on("a" * 300, tmp_path), "aaa")


def test_a_database_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    """The service does not start if the path of its database is a folder."""
    (tmp_path / "mahasiswa.db").mkdir()
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """The service does not start on another kind of file, and does not change it."""
    content = b"NIM;Nama;Alamat\n" * 200
    (tmp_path / "mahasiswa.db").write_bytes(content)
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db", "not an SQLite database")
    assert (tmp_path / "mahasiswa.db").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["mahasiswa.db"]


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    """The service does not start on a database whose pages are damaged."""
    migrate(SQLiteURL(tmp_path / "mahasiswa.db"))
    content = (tmp_path / "mahasiswa.db").read_bytes()
    (tmp_path / "mahasiswa.db").write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db")


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_a_table_of_another_program_is_refused(tmp_path: Path, script: str) -> None:
    """The service does not start on a table mahasiswa of another program, names the import of its CSV, and changes nothing."""
    make_database(tmp_path / "mahasiswa.db", script)
    before = (tmp_path / "mahasiswa.db").read_bytes()
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db", "mahasiswa import")
    assert (tmp_path / "mahasiswa.db").read_bytes() == before


def test_permissions_apply_to_the_commands_of_these_tests(tmp_path: Path, unprivileged: list[str]) -> None:
    """A command of the fixture `unprivileged` cannot create a file in a read-only folder."""
    tmp_path.chmod(0o500)
    assert subprocess.run([*unprivileged, "touch", "a"], cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_a_new_database_in_a_read_only_folder_is_refused(tmp_path: Path, unprivileged: list[str]) -> None:
    """The service does not start if it cannot create its file."""
    tmp_path.chmod(0o500)
    assert_refused(start_on("mahasiswa.db", tmp_path, unprivileged), "mahasiswa.db")


def test_an_existing_database_in_a_read_only_folder_is_refused(tmp_path: Path, unprivileged: list[str]) -> None:
    """The service does not start if the folder of its database does not allow a write-ahead log."""
    migrate(SQLiteURL(tmp_path / "mahasiswa.db"))
    tmp_path.chmod(0o500)
    assert_refused(start_on("mahasiswa.db", tmp_path, unprivileged), "mahasiswa.db")


def test_a_database_in_an_inaccessible_folder_is_refused(tmp_path: Path, unprivileged: list[str]) -> None:
    """The service does not start if it may not enter a folder of the path."""
    (tmp_path / "terkunci" / "data").mkdir(parents=True)
    (tmp_path / "terkunci").chmod(0)
    assert_refused(start_on("terkunci/data/mahasiswa.db", tmp_path, unprivileged), "terkunci")


@pytest.mark.parametrize("mode", [0o400, 0])
def test_a_database_without_write_permission_is_refused(tmp_path: Path, unprivileged: list[str], mode: int) -> None:
    """The service does not start on a file that it cannot write, or cannot even read."""
    migrate(SQLiteURL(tmp_path / "mahasiswa.db"))
    (tmp_path / "mahasiswa.db").chmod(mode)
    assert_refused(start_on("mahasiswa.db", tmp_path, unprivileged), "mahasiswa.db")


def test_a_database_without_write_permission_but_with_a_log_is_refused(tmp_path: Path, unprivileged: list[str]) -> None:
    """The service does not start on a read-only file, even if a killed instance left its write-ahead log."""
    with Service(tmp_path / "mahasiswa.db") as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        service.kill()
    (tmp_path / "mahasiswa.db").chmod(0o400)
    assert_refused(start_on("mahasiswa.db", tmp_path, unprivileged), "mahasiswa.db")


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


def make_database(path: Path, script: str) -> None:
    """Create a database by another program."""
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"
    subprocess.run([sys.executable, "-ISc", program, str(path), script], check=True)

"""Starting and ending: what the service refuses to start on, and that it ends soon, cleanly, and loses nothing."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

import httpx
import pytest
from harness import SETTINGS, START_SECONDS, URL_ENCODED, Service, StartError, free_port

END_SECONDS = 5.0
"""What the service promises for its end after SIGTERM or Ctrl-C."""

TABLE = "CREATE TABLE mahasiswa (nim TEXT NOT NULL PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL)"

# What stands in the file, and the word that tells the operator what is wrong with it; test_sqlite.py has more of them.
UNUSABLE = {
    "other columns": ("CREATE TABLE mahasiswa (npm TEXT PRIMARY KEY, nama TEXT, alamat TEXT)", "column"),
    "a view": ("CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE VIEW mahasiswa AS SELECT * FROM m", "view"),
    "nim is not the key": ("CREATE TABLE mahasiswa (nim TEXT, nama TEXT PRIMARY KEY, alamat TEXT)", "key"),
    "not TEXT": ("CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama BLOB, alamat TEXT)", "TEXT"),
}

# A terminal sends Ctrl-C to the whole process group.
ENDINGS = {
    "SIGTERM": (os.kill, signal.SIGTERM),
    "SIGINT": (os.kill, signal.SIGINT),
    "Ctrl-C": (os.killpg, signal.SIGINT),
}
endings = pytest.mark.parametrize(("send", "number"), ENDINGS.values(), ids=ENDINGS)
Send = Callable[[int, int], None]


# ---- what the service does not start on


@pytest.mark.parametrize("reuse_port", [False, True])
def test_a_port_that_is_taken(tmp_path: Path, *, reuse_port: bool) -> None:
    """Another program listens on the port, also one that would share it: the service does not start."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=reuse_port) as other:
        port = str(other.getsockname()[1])
        ended = run_to_the_end({"HOST": "127.0.0.1", "PORT": port, "DATABASE_URL": "sqlite:///m.db"}, tmp_path)
    assert_refused(ended, "127.0.0.1", port)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("first", "second"), [(None, None), (None, "127.0.0.1"), ("127.0.0.1", None)])
def test_a_port_that_another_service_of_ours_has(tmp_path: Path, first: str | None, second: str | None) -> None:
    """Two services never share a port, on one address or on every one; the first goes on undisturbed."""
    with Service(tmp_path / "first.db", {"HOST": first}) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        with pytest.raises(StartError) as refused:
            Service(tmp_path / "second.db", {"HOST": second, "PORT": str(service.port)})
        assert refused.value.code == 1
        assert_one_line(refused.value.stderr, str(service.port))
        assert not (tmp_path / "second.db").exists()
        for _ in range(20):
            assert site.list().nims == ["0001"]


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    """An address that this machine has not cannot be listened on (192.0.2.0/24 is for documentation)."""
    ended = run_to_the_end({"HOST": "192.0.2.123", "PORT": str(free_port())}, tmp_path)
    assert_refused(ended, "192.0.2.123")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    """The service makes its file, but no folder: a mistyped path must not start an empty list."""
    ended = start_on("tidak/ada/mahasiswa.db", tmp_path)
    assert_refused(ended, str(Path("tidak/ada")))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """A file cannot hold the database."""
    (tmp_path / "berkas").write_text("")
    assert_refused(start_on("berkas/mahasiswa.db", tmp_path), "berkas")


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    """A path that no file system takes is refused like any other that cannot be opened."""
    assert_refused(start_on("a" * 300 + "/mahasiswa.db", tmp_path), "aaa")
    assert_refused(start_on("a" * 300, tmp_path), "aaa")


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    """A folder is no database."""
    (tmp_path / "mahasiswa.db").mkdir()
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A spreadsheet, say, is refused and stays as it is."""
    content = b"NIM;Nama;Alamat\n" * 200
    (tmp_path / "mahasiswa.db").write_bytes(content)
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db", "not an SQLite database")
    assert (tmp_path / "mahasiswa.db").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["mahasiswa.db"]


def test_a_database_that_is_damaged(tmp_path: Path) -> None:
    """A file whose table cannot be read is refused."""
    make_database(tmp_path / "mahasiswa.db", TABLE)
    content = (tmp_path / "mahasiswa.db").read_bytes()
    (tmp_path / "mahasiswa.db").write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db")


@pytest.mark.parametrize(("script", "word"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_table_that_is_not_ours(tmp_path: Path, script: str, word: str) -> None:
    """Something else of the name mahasiswa is refused, the reason named, and nothing in the file is changed."""
    make_database(tmp_path / "mahasiswa.db", script)
    before = (tmp_path / "mahasiswa.db").read_bytes()
    assert_refused(start_on("mahasiswa.db", tmp_path), "mahasiswa.db", word)
    assert (tmp_path / "mahasiswa.db").read_bytes() == before


@pytest.fixture
def mortal() -> list[str]:
    """Return what stands before a command so that permissions hold for it, as they do not for root."""
    if sys.platform == "win32":
        pytest.skip("Windows has other permissions")
    if os.geteuid() != 0:
        return []
    # Root owns the files still, but without these two powers what their owner may not do, root may not.
    command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"root's powers cannot be taken away here: {error}")
    return command


def test_permissions_hold_in_these_tests(tmp_path: Path, mortal: list[str]) -> None:
    """What the next tests stand on: a file cannot be made in a folder that is read-only."""
    tmp_path.chmod(0o500)
    assert subprocess.run([*mortal, "touch", "a"], cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_a_folder_that_is_read_only(tmp_path: Path, mortal: list[str]) -> None:
    """A folder in which no file can be made."""
    tmp_path.chmod(0o500)
    assert_refused(start_on("mahasiswa.db", tmp_path, mortal), "mahasiswa.db")


def test_a_folder_that_is_read_only_around_a_database(tmp_path: Path, mortal: list[str]) -> None:
    """A file that can be written, in a folder that has no room for its write-ahead log."""
    make_database(tmp_path / "mahasiswa.db", TABLE)
    tmp_path.chmod(0o500)
    assert_refused(start_on("mahasiswa.db", tmp_path, mortal), "mahasiswa.db")


def test_a_folder_that_cannot_be_entered(tmp_path: Path, mortal: list[str]) -> None:
    """A folder behind one that this user may not enter."""
    (tmp_path / "terkunci" / "data").mkdir(parents=True)
    (tmp_path / "terkunci").chmod(0)
    assert_refused(start_on("terkunci/data/mahasiswa.db", tmp_path, mortal), "terkunci")


@pytest.mark.parametrize("mode", [0o400, 0])
def test_a_file_that_is_read_only(tmp_path: Path, mortal: list[str], mode: int) -> None:
    """A file that cannot be written, or not even read."""
    make_database(tmp_path / "mahasiswa.db", TABLE)
    (tmp_path / "mahasiswa.db").chmod(mode)
    assert_refused(start_on("mahasiswa.db", tmp_path, mortal), "mahasiswa.db")


@pytest.mark.parametrize("mode", [0o400, 0])
def test_a_file_that_is_read_only_with_its_log(tmp_path: Path, mortal: list[str], mode: int) -> None:
    """The same where the service has run on it before and was killed: its write-ahead log lies beside it."""
    with Service(tmp_path / "mahasiswa.db") as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        service.kill()
    (tmp_path / "mahasiswa.db").chmod(mode)
    assert_refused(start_on("mahasiswa.db", tmp_path, mortal), "mahasiswa.db")


# ---- how it ends


@endings
def test_what_is_in_flight_is_finished(tmp_path: Path, send: Send, number: int) -> None:
    """A form whose body is still on its way is stored and answered; then the service has ended, and no one is let in."""
    with Service(tmp_path / "mahasiswa.db", {"LOG_LEVEL": "warning"}) as service:
        with a_form_half_sent(service) as connection:
            send(service.pid, number)
            until(lambda: not can_connect(service.port))
            connection.sendall(b"&alamat=Solo")
            assert connection.recv(65536).startswith(b"HTTP/1.1 302 ")
            assert ended_with(service) == 0
        assert service.stderr() == ""
        service.restart()
        with service.site() as site:
            assert site.list().rows == [("1", "0001", "Siti", "Solo")]


def test_a_client_that_stalls_does_not_hold_it(tmp_path: Path) -> None:
    """Connections that say nothing, half a request, half a body, or read nothing: the end is as near, its code 0."""
    with ExitStack() as stack:
        services = []
        for name in ("SIGTERM", "Ctrl-C"):
            service = stack.enter_context(Service(tmp_path / f"{name}.db"))
            for data in (
                b"",
                b"GET / HTT",
                b"GET / HTTP/1.1\r\nHost: x\r\n",
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50,
            ):
                stalled = stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
                stalled.sendall(data)
            stack.enter_context(a_form_half_sent(service))
            services.append((service, *ENDINGS[name]))
        began = time.monotonic()
        for service, send, number in services:
            send(service.pid, number)
        for service, _, _ in services:
            assert ended_with(service, began) == 0
            assert not can_connect(service.port)


def test_a_second_signal_does_not_hurt(tmp_path: Path) -> None:
    """An impatient operator presses Ctrl-C again: what is in flight is finished all the same."""
    with Service(tmp_path / "mahasiswa.db") as service:
        with a_form_half_sent(service) as connection:
            os.killpg(service.pid, signal.SIGINT)
            until(lambda: not can_connect(service.port))
            os.killpg(service.pid, signal.SIGINT)
            connection.sendall(b"&alamat=Solo")
            assert connection.recv(65536).startswith(b"HTTP/1.1 302 ")
            assert ended_with(service) == 0
        service.restart()
        with service.site() as site:
            assert site.list().nims == ["0001"]


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_that_was_answered_is_lost(tmp_path: Path, number: int, workers: str) -> None:
    """Under a stream of additions the service is ended: each one that was answered 302 is there afterwards."""
    answered: list[str] = []
    enough = Event()
    with Service(tmp_path / "mahasiswa.db", {"WORKERS": workers}) as service:

        def add(name: int) -> None:
            with service.site() as site:
                for count in range(100_000):
                    nim = f"{name}/{count}"
                    try:
                        status = site.add(nim, "Siti", "Solo").status_code
                    except httpx.HTTPError:
                        return  # the service has ended
                    assert status == 302
                    answered.append(nim)
                    if len(answered) >= 100:
                        enough.set()

        with ThreadPoolExecutor(4) as clients:
            running = [clients.submit(add, name) for name in range(4)]
            assert enough.wait(START_SECONDS)
            os.killpg(service.pid, number)
            code = ended_with(service)
            for client in running:
                client.result(START_SECONDS)
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        service.restart()
        with service.site() as site:
            stored = set(site.list().nims)
    assert set(answered) <= stored
    assert len(stored) <= len(answered) + 4  # one of each client may have been stored without an answer


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_end_with_their_parent(tmp_path: Path, workers: int) -> None:
    """When the main process is killed no worker stays behind on the port: the service can start on it anew."""
    with Service(tmp_path / "mahasiswa.db", {"WORKERS": str(workers)}) as service:
        left = children(service.pid)
        assert len(left) == workers
        os.kill(service.pid, signal.SIGKILL)
        until(lambda: not can_connect(service.port))
        until(lambda: not any(is_running(pid) for pid in left))
        assert ended_with(service) == -signal.SIGKILL
        service.restart()


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """The main process starts another worker, which answers and shows all that was stored."""
    with Service(tmp_path / "mahasiswa.db") as service:
        with service.site() as site:
            site.add("0001", "Siti", "Solo")
        (killed,) = children(service.pid)
        os.kill(killed, signal.SIGKILL)
        until(lambda: children(service.pid) not in ([], [killed]))
        until(lambda: can_connect(service.port))
        with service.site() as site:
            assert site.add("0002", "Budi", "Bantul").status_code == 302
            assert site.list().nims == ["0001", "0002"]
        assert service.stop() == 0


def run_to_the_end(
    environment: Mapping[str, str], folder: Path, before: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Start the service with its working directory in `folder`, and return how it ended."""
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [*(before or []), sys.executable, "-m", "mahasiswa"],
        cwd=folder,
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=START_SECONDS,
        check=False,
    )


def start_on(path: str, folder: Path, before: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Start the service on a database that it must not use, and return how it ended."""
    environment = {"HOST": "127.0.0.1", "PORT": str(free_port()), "DATABASE_URL": f"sqlite:///{path}"}
    return run_to_the_end(environment, folder, before)


def assert_refused(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    """The service did not start, and said why in one line that has these words."""
    assert_one_line(ended.stderr, *words)
    assert ended.stdout == ""
    assert ended.returncode == 1


def assert_one_line(text: str, *words: str) -> None:
    """The text is one line for the operator that has these words."""
    assert re.fullmatch(r"mahasiswa: [^\n]{15,}\n", text), text
    for word in words:
        assert word in text


def make_database(path: Path, script: str) -> None:
    """Have another program make a database."""
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"
    subprocess.run([sys.executable, "-ISc", program, str(path), script], check=True)


def a_form_half_sent(service: Service) -> closing[socket.socket]:
    """Send a form of which the alamat is still missing; the service has read the beginning, as it says so itself."""
    connection = socket.create_connection(("127.0.0.1", service.port), START_SECONDS)
    # The interim answer comes when the application asks for the body.
    connection.sendall(
        b"POST /mahasiswa/add HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: " + URL_ENCODED.encode() + b"\r\nContent-Length: 30\r\nExpect: 100-continue\r\n\r\n"
    )
    assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"nim=0001&nama=Siti")
    return closing(connection)


def ended_with(service: Service, began: float | None = None) -> int:
    """Wait for the end of the service, which must come as soon as it promises; return its exit code."""
    began = time.monotonic() if began is None else began
    return service._process.wait(max(0.0, began + END_SECONDS - time.monotonic()))


def can_connect(port: int) -> bool:
    """Whether anyone listens on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def children(pid: int) -> list[int]:
    """Return the processes whose parent this is, and which are not dead."""
    return [child for child, parent in processes() if parent == pid]


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it is not dead."""
    return any(pid == other for other, _ in processes())


def processes() -> Iterator[tuple[int, int]]:
    """Every living process and its parent."""
    shown = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    for pid, parent, state in map(str.split, shown.splitlines()):
        if not state.startswith("Z"):
            yield int(pid), int(parent)


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until the condition holds; fail where it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.01)

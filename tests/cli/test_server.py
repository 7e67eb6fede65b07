"""Starting: the service refuses what it cannot use in one line, with exit code 2 if no restart can heal it."""

import os
import re
import resource
import shutil
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import pytest
from cli.operators import UNPRIVILEGED, Operator, overwrite
from harness import START_SECONDS, Service, free_port, is_free, page_of
from processes import COMMAND, cannot
from stores import execute, migrate


def assert_refused(
    folder: Path,
    words: Sequence[str],
    before: Sequence[str] = (),
    code: int = 1,
    **environment: str,
) -> None:
    """Check that the service does not start, that its one line of error has these words, and that no file changes."""
    files = files_in(folder)
    environment = {"HOST": "127.0.0.1", "PORT": str(free_port()), **environment}
    (said,) = Operator(folder).failed(code=code, before=before, **environment)
    assert re.fullmatch(r"mahasiswa: .{15,}", said), said
    assert all(word in said for word in words), said
    assert "sia@" not in said
    assert files_in(folder) == files


def files_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of the last change of the files by name. To read a file may be forbidden."""
    return {
        path.name: (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.iterdir()
        if path.is_file()
    }


def test_an_address_that_is_taken_or_of_another_machine_is_refused(tmp_path: Path) -> None:
    """Also if the other program has set SO_REUSEPORT. No file is created."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        port = str(other.getsockname()[1])
        assert_refused(tmp_path, ["127.0.0.1", port], PORT=port)
    # No machine has an address in 192.0.2.0/24, which is reserved for documentation.
    assert_refused(tmp_path, ["192.0.2.123"], HOST="192.0.2.123")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CDN_URL", os.fsdecode(b"https://cdn.example/\xff.css")),
        ("DATABASE_URL", "postgresql://siti:rah@sia@localhost/mahasiswa"),
    ],
)
def test_a_wrong_value_ends_the_service_with_exit_code_2(
    tmp_path: Path, variable: str, value: str
) -> None:
    """So systemd does not start it again and again. The line comes before other problems, and shows no password."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        others = {"PORT": str(other.getsockname()[1]), "DATABASE_URL": "sqlite:///nowhere/a.db"}
        said = [f"mahasiswa: {variable} must be "]
        assert_refused(tmp_path, said, code=2, **others | {variable: value})


def test_a_port_that_this_user_may_not_use_is_refused(tmp_path: Path) -> None:
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80:
        cannot("forbid a port below 1024", "net.ipv4.ip_unprivileged_port_start permits it")
    before = ["setpriv", "--bounding-set=-net_bind_service", "--"] * (os.geteuid() == 0)
    assert_refused(tmp_path, ["port 80: Permission denied"], before, code=2, PORT="80")


@pytest.mark.parametrize(("first", "second"), [("", "127.0.0.1"), ("127.0.0.1", "")])
def test_a_port_of_another_instance_is_refused(tmp_path: Path, first: str, second: str) -> None:
    """Two instances never share a port, on one address or on all, and the first one continues to answer."""
    (tmp_path / "second").mkdir()
    with Service(tmp_path / "first.db", {"HOST": first}) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        port = str(service.port)
        assert_refused(tmp_path / "second", [port], HOST=second, PORT=port)
        for _ in range(20):
            assert site.nims == ["0001"]


def test_a_unix_socket_is_made_again_after_a_kill_and_never_shared(tmp_path: Path) -> None:
    """Another instance is refused. So is a file with that name. Nothing listens on the port."""
    path, other = tmp_path / "socket", tmp_path / "other"
    host = f"unix:{path}"
    refused = [f"cannot listen on unix:{path}: Address already in use"]
    other.mkdir()
    path.write_text("a file of somebody")
    assert_refused(other, refused, HOST=host)
    path.unlink()
    with (
        Service(tmp_path / "a.db", {"HOST": host}) as service,
        httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url=service.url) as client,
    ):
        client.post("/mahasiswa/add", data={"nim": "0001", "nama": "Siti", "alamat": "Solo"})
        assert_refused(other, refused, HOST=host)
        assert is_free(service.port)
        assert path.stat().st_mode & 0o777 == 0o660
        service.kill()
        assert path.is_socket()
        service.restart()
        assert page_of(client.get("/")).nims == ["0001"]


def migrated(folder: Path) -> Path:
    migrate(folder / "a.db")
    return folder / "a.db"


FOREIGN = "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)"

# For each fault: the path of the file, a change of its folder before the start, and a part of the message.
UNUSABLE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "in a missing folder": (
        "tidak/ada/a.db",
        lambda _: None,
        "a.db cannot be used: No such file or directory",
    ),
    "a folder": (
        "a.db",
        lambda folder: (folder / "a.db").mkdir(),
        "a.db cannot be used: unable to open database file",
    ),
    "another file": (
        "a.db",
        lambda folder: (folder / "a.db").write_bytes(b"NIM;" * 999),
        "not an SQLite database",
    ),
    "damaged": ("a.db", lambda folder: overwrite(migrated(folder), 100), "is damaged"),
    "of a newer release": (
        "a.db",
        lambda folder: execute(migrated(folder), "PRAGMA user_version = 99"),
        "a.db has schema version 99, and this release knows only up to 1: use a newer release",
    ),
    # An empty list in place of the lost one would hide the loss.
    "without its table": (
        "a.db",
        lambda folder: execute(migrated(folder), "DROP TABLE mahasiswa"),
        "a.db has schema version 1, but not the tables of it",
    ),
    "another program's": (
        "a.db",
        lambda folder: execute(folder / "a.db", FOREIGN),
        "mahasiswa import",
    ),
}


@pytest.mark.parametrize(("path", "prepare", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_database_that_cannot_be_used_is_refused_and_left_unchanged(
    tmp_path: Path, path: str, prepare: Callable[[Path], object], words: str
) -> None:
    """The service creates its file but no folder, so a mistyped path does not start an empty list."""
    prepare(tmp_path)
    code = 1 if "cannot be used" in words else 2
    assert_refused(tmp_path, [words, path[:3]], code=code, DATABASE_URL=f"sqlite:///{path}")


FORBIDDEN: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a new file in a read-only folder": ("a.db", lambda folder: folder.chmod(0o500)),
    "a folder that allows no write-ahead log": (
        "a.db",
        lambda folder: migrated(folder).parent.chmod(0o500),
    ),
    "a file that cannot be written": ("a.db", lambda folder: migrated(folder).chmod(0o400)),
}


@pytest.mark.parametrize(("path", "prepare"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_database_without_the_permissions_that_it_needs_is_refused(
    tmp_path: Path, path: str, prepare: Callable[[Path], None]
) -> None:
    prepare(tmp_path)
    assert_refused(tmp_path, [str(tmp_path)], UNPRIVILEGED, DATABASE_URL=f"sqlite:///{path}")


def test_under_systemd_the_service_says_when_it_is_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(START_SECONDS)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with Service(tmp_path / "a.db", environment):
            assert systemd.recv(100) == b"READY=1"


@pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")
def test_the_service_may_open_as_many_files_as_the_system_allows(tmp_path: Path) -> None:
    """Each connection is an open file, and a shell allows 1024."""
    command = ("prlimit", "--nofile=256:2048", "--", *COMMAND)
    with Service(tmp_path / "a.db", command=command) as service:
        assert resource.prlimit(service.pid, resource.RLIMIT_NOFILE) == (2048, 2048)

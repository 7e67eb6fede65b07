"""Defines the peers, and starts, watches and ends their servers."""

import contextlib
import os
import shutil
import signal
import socket
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import processors
from bench.database import Postgres
from bench.prepare import BENCH, BUILD, ROOT
from bench.stores import SQLiteStore, Store
from bench.watched import Watched, started_at

HOST = "127.0.0.1"
CDN_URL = "https://cdn.jsdelivr.net/npm/bootstrap@5.3.8/dist/css/bootstrap.min.css"
START_SECONDS = 20.0
"""Maximum time until a server answers for the first time."""
END_SECONDS = 5.0
"""Maximum time until a server ends after SIGTERM; then it is killed."""


class Failed(Exception):
    """A peer failed in a work. It is left out, and the table says so."""


@dataclass(frozen=True)
class Start:
    """The command that starts a peer, and its environment besides PATH and HOME."""

    command: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Column:
    """A column of the table: a peer, or the shell of a database."""

    key: str
    name: str


@dataclass(frozen=True)
class Peer(Column):
    """A server that answers the six routes of the specification; nginx answers only the list page."""

    start: Callable[[int, str], Start]
    """Called with a port and the path or address of the store."""
    processors: str = str(processors.SERVER)


class Server(Watched):
    """A running peer."""

    def __init__(self, peer: Peer, store: str, database: Postgres | None = None) -> None:
        """Start it without waiting for it. `database` is the PostgreSQL server with its store, if any."""
        self.peer = peer
        self.database = database
        self.port = _free_port()
        start = peer.start(self.port, store)
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment |= {"LANG": "C.UTF-8", "CDN_URL": CDN_URL, **start.environment}
        self._log = BUILD / "logs" / f"{peer.key}.log"
        self._log.parent.mkdir(exist_ok=True)
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                ["taskset", "--cpu-list", peer.processors, *start.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=ROOT,
            )
        super().__init__(self.process.pid)

    def wait(self) -> None:
        """Wait until it answers the list page; raise Failed."""
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), START_SECONDS) as connection:
                # A server that listens may not be ready: gunicorn listens before it loads the application.
                connection.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}:{self.port}\r\nConnection: close\r\n\r\n".encode())
                if connection.recv(1 << 20).startswith(b"HTTP/1.1 200 "):
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.002)  # the precision of the work that measures the start
        raise Failed(f"{self.peer.name} did not start:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End it and all its descendants."""
        family = [(pid, started_at(pid)) for pid in self.processes()]
        self.process.terminate()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # The start time shows whether a process id still belongs to the same process.
        for pid, start_time in family:
            if start_time and started_at(pid) == start_time:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _ours(**environment: str) -> Callable[[int, str], Start]:
    def start(port: int, store: str) -> Start:
        url = store if store.startswith("postgresql:") else f"sqlite:///{store}"
        return Start([str(OUR_PROGRAM)], {"HOST": HOST, "PORT": str(port), "DATABASE_URL": url, **environment})

    return start


def _node(peer: str, variable: str, **environment: str) -> Callable[[int, str], Start]:
    def start(port: int, store: str) -> Start:
        node = {"NODE_ENV": "production", "NODE_PATH": f"{BUILD}/{peer}/node_modules"}
        own = {"HOST": HOST, "PORT": str(port), variable: store, **environment}
        return Start(["node", f"{BENCH}/peers/{peer}/server.js"], node | own)

    return start


def _gunicorn(peer: str, variable: str, application: str) -> Callable[[int, str], Start]:
    def start(port: int, store: str) -> Start:
        command = [f"{BUILD}/{peer}/venv/bin/gunicorn", "--bind", f"{HOST}:{port}", "--workers", "1"]
        command += ["--worker-class", "gthread", "--threads", "4", "--keep-alive", "30"]
        return Start([*command, "--chdir", f"{BENCH}/peers/{peer}", application], {variable: store})

    return start


def _nginx(port: int, folder: str) -> Start:
    user = "user root;" if os.geteuid() == 0 else ""
    template = string.Template((BENCH / "nginx.conf").read_text())
    config = Path(folder) / "nginx.conf"
    config.write_text(template.safe_substitute(user=user, folder=folder, host=HOST, port=port))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "nginx"
    return Start([program, "-p", folder, "-c", str(config)], {})


OUR_PROGRAM = Path(sys.executable).with_name("mahasiswa")
BOTH_PROCESSORS = f"{processors.SERVER},{processors.LOAD}"

OURS = Peer("mahasiswa", "mahasiswa", _ours())
OURS_WITHOUT_HISTORY = Peer("mahasiswa-without-history", "mahasiswa, no history", _ours(HISTORY_DAYS="0"))
EXPRESS = Peer("express", "Express", _node("express", "DATABASE", JOURNAL="delete"))
EXPRESS_WAL = Peer("express-wal", "Express, WAL", _node("express", "DATABASE", JOURNAL="wal"))
FLASK = Peer("flask", "Flask", _gunicorn("flask", "DATABASE", "app:app"))
NGINX = Peer("nginx", "nginx, a file", _nginx)
SQLITE3 = Column("sqlite3", "sqlite3 shell, our schema")
SQLITE3_PLAIN = Column("sqlite3-plain", "sqlite3 shell, plain table")

OURS_2 = Peer("mahasiswa-2", "mahasiswa, 2 workers", _ours(WORKERS="2"), BOTH_PROCESSORS)
EXPRESS_PG = Peer("express-pg", "Express + pg", _node("express-pg", "DATABASE_URL"))
DJANGO = Peer("django", "Django", _gunicorn("django", "DATABASE_URL", "app:application"))
PSQL = Column("psql", "psql")

COLUMNS = (
    *(OURS, OURS_WITHOUT_HISTORY, OURS_2),
    *(EXPRESS, EXPRESS_WAL, EXPRESS_PG, FLASK, DJANGO, NGINX),
    *(SQLITE3, SQLITE3_PLAIN, PSQL),
)


def fresh_folder(key: str) -> Path:
    """Create an empty folder for the data of a peer."""
    folder = BUILD / "data" / key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@contextlib.contextmanager
def serving(peer: Peer, number: int = 0, database: Postgres | None = None) -> Iterator[tuple[Server, Store]]:
    """Run a peer on a new store with `number` records, and stop it at the end. Raise Failed if it does not start."""
    folder = fresh_folder(peer.key)
    store: Store = database.fresh_store(peer.key) if database else SQLiteStore(folder / "mahasiswa.db")
    server = Server(peer, store.address, database)
    try:
        server.wait()
        if number:
            store.fill(number)
        yield server, store
    finally:
        store.close()
        server.stop()
        shutil.rmtree(folder)


@contextlib.contextmanager
def serving_file(page: bytes) -> Iterator[Server]:
    """Run nginx with this page as its only file, and stop it at the end."""
    folder = fresh_folder(NGINX.key)
    (folder / "html").mkdir()
    (folder / "html/index.html").write_bytes(page)
    server = Server(NGINX, str(folder))
    try:
        server.wait()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)

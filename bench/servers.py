"""Defines the servers that are compared, and starts and ends them."""

import contextlib
import os
import re
import shutil
import signal
import socket
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import processors
from bench.prepare import BENCH, BUILD, ROOT
from bench.stores import PostgresStore, Row, SQLiteStore, Store

HOST = "127.0.0.1"
CDN_URL = "https://cdn.jsdelivr.net/npm/bootstrap@5.3.8/dist/css/bootstrap.min.css"
START_SECONDS = 20.0
"""Maximum time until a server answers for the first time."""
END_SECONDS = 10.0
"""Maximum time until a server ends after SIGTERM; then it is killed."""


class Failed(Exception):
    """A server or a command gave a wrong answer. Its work has no result, and the report says so."""


class Command(NamedTuple):
    """The command that starts a server, and its environment besides PATH and HOME."""

    words: list[str]
    environment: dict[str, str]


class Peer(NamedTuple):
    """A server that is compared. `start` takes its port and the address of its store."""

    name: str
    start: Callable[[int, str], Command]
    database: Callable[[Path], Store] = lambda folder: SQLiteStore(folder / "mahasiswa.db")


class Server:
    """A running peer."""

    def __init__(self, peer: Peer, address: str) -> None:
        """Start it without waiting for it."""
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port = int(probe.getsockname()[1])
        self.peer = peer
        command = peer.start(self.port, address)
        self._log = BUILD / "server.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                ["taskset", "--cpu-list", str(processors.SERVER), *command.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
                | {"LANG": "C.UTF-8", "HOST": HOST, "PORT": str(self.port), "CDN_URL": CDN_URL}
                | command.environment,
                cwd=ROOT,
            )
        self.pid = self._process.pid

    @property
    def url(self) -> str:
        """The address of the server, without a path."""
        return f"http://{HOST}:{self.port}"

    def wait(self) -> None:
        """Wait until it answers the list page; raise Failed."""
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up and self._process.poll() is None:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((HOST, self.port), START_SECONDS) as connection,
            ):
                # A server that listens may not be ready: gunicorn listens before it loads the application.
                connection.sendall(
                    f"GET / HTTP/1.1\r\nHost: {HOST}:{self.port}\r\nConnection: close\r\n\r\n".encode()
                )
                if connection.recv(1 << 20).startswith(b"HTTP/1.1 200 "):
                    return
            time.sleep(0.01)
        raise Failed(f"{self.peer.name} did not start:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            # Gunicorn's worker would go on with its request.
            for pid in processors.family(self.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()


def _ours(_port: int, store: str) -> Command:
    url = store if store.startswith("postgresql:") else f"sqlite:///{store}"
    return Command([str(OUR_PROGRAM)], {"DATABASE_URL": url})


def _express(journal: str) -> Callable[[int, str], Command]:
    def start(_port: int, store: str) -> Command:
        node = {"NODE_ENV": "production", "NODE_PATH": f"{BUILD}/express/node_modules"}
        return Command(
            ["node", f"{BENCH}/peers/express/server.js"],
            {**node, "DATABASE": store, "JOURNAL": journal},
        )

    return start


def _django(port: int, store: str) -> Command:
    command = [
        f"{BUILD}/django/venv/bin/gunicorn",
        "--bind",
        f"{HOST}:{port}",
        "--timeout",
        "600",
        "--no-control-socket",
    ]
    return Command(
        [*command, "--chdir", f"{BENCH}/peers/django", "app:application"], {"DATABASE": store}
    )


def nginx(page: bytes) -> Peer:
    """Return nginx with this page as its only file."""
    return Peer(NGINX, partial(_nginx, page))


def _nginx(page: bytes, port: int, store: str) -> Command:
    folder = Path(store).parent
    config = string.Template((BENCH / "nginx.conf").read_text()).safe_substitute(
        user="user root;" if os.geteuid() == 0 else "", folder=folder, host=HOST, port=port
    )
    (folder / "nginx.conf").write_text(config)
    (folder / "html").mkdir()
    (folder / "html/index.html").write_bytes(page)
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "nginx"
    return Command([program, "-p", str(folder), "-c", str(folder / "nginx.conf")], {})


OUR_PROGRAM = Path(sys.executable).with_name("mahasiswa")

OURS = Peer("mahasiswa", _ours)
OURS_POSTGRES = Peer("mahasiswa, PostgreSQL", _ours, lambda _folder: PostgresStore())
EXPRESS = Peer("Express", _express("delete"))
EXPRESS_WAL = Peer("Express, WAL", _express("wal"))
DJANGO = Peer("django-import-export", _django)
NGINX = "nginx, a file"


@contextlib.contextmanager
def fresh_folder(name: str) -> Iterator[Path]:
    """Create an empty folder for data on the disk of this repository, and remove it at the end."""
    folder = BUILD / "data" / re.sub(r"\W+", "-", name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def serving(peer: Peer, records: Iterator[Row] | None = None) -> Iterator[tuple[Server, Store]]:
    """Run a peer on a new store with these records, and stop it at the end. Raise Failed if it does not start."""
    with fresh_folder(peer.name) as folder:
        store = peer.database(folder)
        server = Server(peer, store.address)
        try:
            server.wait()
            if records:
                store.fill(records)
            yield server, store
        finally:
            server.stop()
            store.close()

"""The peers: how each is started on one processor, watched through /proc, and ended."""

import contextlib
import os
import shutil
import signal
import socket
import string
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import processors
from bench.prepare import BENCH, BUILD, ROOT
from bench.stores import SQLiteStore

HOST = "127.0.0.1"
CDN_URL = "https://cdn.jsdelivr.net/npm/bootstrap@5.3.8/dist/css/bootstrap.min.css"
PATIENCE = 20.0
"""Seconds a server may take to answer for the first time, or to end."""


class Failed(Exception):
    """A peer did not do what is measured: it is left out, and the table says so."""


@dataclass(frozen=True)
class Start:
    """What starts a peer: its command, and the environment it needs besides PATH and HOME."""

    command: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Peer:
    """Something that answers the specification's six routes (or, nginx, its first one)."""

    key: str
    name: str
    start: Callable[[int, Path], Start]
    """Given a port and a folder of its own."""


class Server:
    """One peer, running."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        """Start it, without waiting for it; `folder` holds its store."""
        self.peer = peer
        self.folder = folder
        self.port = _free_port()
        start = peer.start(self.port, folder)
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment |= {"LANG": "C.UTF-8", "CDN_URL": CDN_URL, **start.environment}
        self._log = BUILD / "logs" / f"{peer.key}.log"
        self._log.parent.mkdir(exist_ok=True)
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                ["taskset", "--cpu-list", str(processors.SERVER), *start.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=ROOT,
            )

    def wait(self) -> None:
        """Wait until it answers; raise Failed."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), PATIENCE) as connection:
                # One that listens may not be ready yet: gunicorn listens before it loads the application.
                connection.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}:{self.port}\r\nConnection: close\r\n\r\n".encode())
                if connection.recv(1 << 20).startswith(b"HTTP/1.1 200 "):
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.002)
        raise Failed(f"{self.peer.name} did not start:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End it and every process it started, by their ids."""
        family = [(pid, _born(pid)) for pid in self.processes()]
        self.process.terminate()
        try:
            self.process.wait(PATIENCE / 4)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid, born in family:
            if born and _born(pid) == born:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """The ids of its process and of all below it."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += map(int, (task / "children").read_text().split())
        return found

    def processor_seconds(self) -> float:
        """Processor time that its processes have used up to now."""
        ticks = sum(int(field) for pid in self.processes() for field in _stat(pid)[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak_memory(self) -> float:
        """The most memory one of its processes has had resident so far (VmHWM), in MB."""
        return max((_kilobytes(f"/proc/{pid}/status", "VmHWM:") for pid in self.processes()), default=0) * 1024 / 1e6

    @contextlib.contextmanager
    def watched_memory(self) -> Iterator[list[float]]:
        """Sample the proportional memory (PSS) of all its processes together, in MB, while the block runs."""
        samples: list[float] = []
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(0.02):
                pss = sum(_kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in self.processes())
                samples.append(pss * 1024 / 1e6)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield samples
        finally:
            finished.set()
            thread.join()


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold anything; all zero for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ["0"] * 50


def _born(pid: int) -> int:
    return int(_stat(pid)[19])


def _kilobytes(path: str, field: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1])
    return 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _ours(port: int, folder: Path) -> Start:
    environment = {"HOST": HOST, "PORT": str(port), "DATABASE_URL": f"sqlite:///{folder}/mahasiswa.db", "WORKERS": "1"}
    return Start([str(Path(sys.executable).with_name("mahasiswa"))], environment)


def _uvicorn(port: int, folder: Path) -> Start:
    command = [sys.executable, "-m", "uvicorn", "--host", HOST, "--port", str(port), "--loop", "uvloop"]
    command += ["--http", "httptools", "--ws", "none", "--no-access-log", "--log-level", "warning"]
    environment = {**_ours(port, folder).environment, "PYTHONPATH": f"{BUILD}/uvicorn/site-packages:{ROOT}"}
    return Start([*command, "bench.uvicorn_app:app"], environment)


def _express(journal: str) -> Callable[[int, Path], Start]:
    def start(port: int, folder: Path) -> Start:
        environment = {"NODE_ENV": "production", "HOST": HOST, "PORT": str(port)}
        environment |= {"DATABASE": f"{folder}/mahasiswa.db", "JOURNAL": journal}
        environment |= {"NODE_PATH": f"{BUILD}/express/node_modules"}
        return Start(["node", f"{BENCH}/peers/express/server.js"], environment)

    return start


def _flask(port: int, folder: Path) -> Start:
    command = [f"{BUILD}/flask/venv/bin/gunicorn", "--bind", f"{HOST}:{port}", "--workers", "1"]
    command += [
        "--worker-class",
        "gthread",
        "--threads",
        "4",
        "--keep-alive",
        "30",
        "--chdir",
        f"{BENCH}/peers/flask",
        "app:app",
    ]
    return Start(command, {"DATABASE": f"{folder}/mahasiswa.db"})


def _nginx(port: int, folder: Path) -> Start:
    user = "user root;" if os.geteuid() == 0 else ""
    template = string.Template((BENCH / "nginx.conf").read_text())
    config = folder / "nginx.conf"
    config.write_text(template.safe_substitute(user=user, folder=folder, host=HOST, port=port))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "nginx"
    return Start([program, "-p", str(folder), "-c", str(config)], {})


OURS = Peer("mahasiswa", "mahasiswa", _ours)
UVICORN = Peer("uvicorn", "mahasiswa on uvicorn", _uvicorn)
EXPRESS = Peer("express", "Express", _express("delete"))
EXPRESS_WAL = Peer("express-wal", "Express, WAL", _express("wal"))
FLASK = Peer("flask", "Flask", _flask)
NGINX = Peer("nginx", "nginx, a file", _nginx)
PEERS = (OURS, UVICORN, EXPRESS, EXPRESS_WAL, FLASK, NGINX)


def fresh_folder(peer: Peer) -> Path:
    """A folder for a peer's data, empty."""
    folder = BUILD / "data" / peer.key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@contextlib.contextmanager
def serving(peer: Peer, number: int = 0) -> Iterator[tuple[Server, SQLiteStore]]:
    """Run a peer on a fresh store with that many records; end it in the end. Raise Failed where it does not start."""
    folder = fresh_folder(peer)
    store = SQLiteStore(folder / "mahasiswa.db")
    server = Server(peer, folder)
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
    """Run nginx with that page as its only file; end it in the end."""
    folder = fresh_folder(NGINX)
    (folder / "html").mkdir()
    (folder / "html/index.html").write_bytes(page)
    server = Server(NGINX, folder)
    try:
        server.wait()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)

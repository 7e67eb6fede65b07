"""Writes, reads and counts the records of a peer directly in its database, as another program does."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import apsw
import psycopg

FIRST = ("Siti", "Budi", "Dewi", "Agus", "Putri", "Muhammad", "Nur", "Rizky", "Ayu", "Ma’ruf", "Sa'adah", "André")
LAST = ("Rahmawati", "Santoso", "Lestari", "Wijaya", "Hidayat", "Pratama", "Nugroho", "Siregar", "Simanjuntak")
STREETS = ("Merdeka", "Sudirman", "Diponegoro", "Gajah Mada", "Ahmad Yani", "Cendrawasih", "Kaliurang", "Melati")
TOWNS = ("Bandung", "Yogyakarta", "Surabaya", "Medan", "Makassar", "Semarang", "Malang", "Padang", "Denpasar")


class Row(NamedTuple):
    """A record."""

    nim: str
    nama: str
    alamat: str


def nim(position: int) -> str:
    """Return the NIM of the record at this position, counted from 0."""
    return f"22{position:08d}"


def rows(number: int) -> Iterator[Row]:
    """Yield `number` records, ordered by nim and the same in every run."""
    dice = random.Random(number)
    choose = dice.choice
    for position in range(number):
        alamat = f"Jl. {choose(STREETS)} No. {dice.randrange(1, 200)}, {choose(TOWNS)}"
        yield Row(nim(position), f"{choose(FIRST)} {choose(LAST)}", alamat)


class Store(Protocol):
    """The database of one peer, whose table the peer has created."""

    @property
    def address(self) -> str:
        """The path of the SQLite file, or the address of the PostgreSQL database."""

    def fill(self, number: int) -> None:
        """Add `number` records in one transaction."""

    def read(self) -> list[Row]:
        """Return every record, ordered by nim."""

    def count(self) -> int:
        """Return the number of records."""

    def rewrite(self, position: int, alamat: str) -> None:
        """Change the alamat of one record, and commit."""

    def close(self) -> None:
        """Close the connection."""


class SQLiteStore:
    """One SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: apsw.Connection | None = None

    @property
    def address(self) -> str:
        """The path of the file."""
        return str(self._path)

    def fill(self, number: int) -> None:
        """Add `number` records in one transaction."""
        db = self._open()
        with db:
            db.executemany("INSERT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)", rows(number))
        db.pragma("wal_checkpoint(TRUNCATE)")

    def read(self) -> list[Row]:
        """Return every record, ordered by nim."""
        return [Row(*row) for row in self._open().execute("SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")]

    def count(self) -> int:
        """Return the number of records."""
        return int(self._open().execute("SELECT count(*) FROM mahasiswa").get)

    def rewrite(self, position: int, alamat: str) -> None:
        """Change the alamat of one record, and commit."""
        self._open().execute("UPDATE mahasiswa SET alamat = ? WHERE nim = ?", (alamat, nim(position)))

    def close(self) -> None:
        """Close the connection."""
        if self._db:
            self._db.close()
            self._db = None

    def _open(self) -> apsw.Connection:
        if not self._db:
            self._db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            self._db.set_busy_timeout(10_000)
        return self._db


class PostgresStore:
    """One database of a PostgreSQL server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._db = psycopg.connect(address, autocommit=True)

    def fill(self, number: int) -> None:
        """Add `number` records by COPY, then vacuum and checkpoint, so that neither happens during a measurement."""
        with self._db.cursor().copy("COPY mahasiswa (nim, nama, alamat) FROM STDIN") as copy:
            for row in rows(number):
                copy.write_row(row)
        self._db.execute("VACUUM ANALYZE mahasiswa")
        self._db.execute("CHECKPOINT")

    def read(self) -> list[Row]:
        """Return every record, ordered by nim."""
        return [Row(*row) for row in self._db.execute("SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")]

    def count(self) -> int:
        """Return the number of records."""
        (number,) = self._db.execute("SELECT count(*) FROM mahasiswa").fetchall()[0]
        return int(number)

    def rewrite(self, position: int, alamat: str) -> None:
        """Change the alamat of one record, and commit."""
        self._db.execute("UPDATE mahasiswa SET alamat = %s WHERE nim = %s", (alamat, nim(position)))

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

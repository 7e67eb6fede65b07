"""Finds the files that still hold a person who was forgotten: back-ups of both engines, exports and other databases."""

import errno
import gzip
import os
import re
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from xml.sax.saxutils import escape

import apsw

from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.backup import id_in, open_to_read
from mahasiswa.system.lookout import listed
from mahasiswa.system.unfinished import leftovers

# The names that the program and its documents give to copies. A restore leaves, for example,
# `mahasiswa.db.before-20261120T101700Z`, and the log of a file that was missing.
# `.unfinished` is a dump that mahasiswa-pgdump.service has not named yet.
NAME = re.compile(
    r".+\.((db|dump)(\.kept)?|csv(\.gz)?|xlsx|[a-z]+-\d{8}T\d{6}Z(-\d+)?(-wal)?)|\.unfinished"
)

# As `backup_folder.find_backups` reads it.
LIST_ID = re.compile(r"-([0-9a-f]{8})-\d{8}T\d{6}Z")

# How COPY, which fills a dump, writes these characters.
COPIED = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def is_of_another(copy: Path, own_id: str | None) -> bool:
    """Whether a copy is, or may be, of another list than the one with that id.

    An export does not tell its list, so it counts as one of this list.
    """
    if copy.is_dir() or copy.suffix in (".csv", ".gz", ".xlsx"):
        return False
    named = LIST_ID.search(copy.name)
    return (named[1] if named else id_in(copy)) != own_id


def copies_that_hold(places: Iterable[Path], own: Path | None, nim: str) -> Sequence[Path]:
    """The files in these folders that hold that nim or cannot be read; raise OSError.

    The folders that killed programs have left there are among them, because they may hold copies.

    `own` is the file of the database that is in use.
    """
    found: list[Path] = []
    for place in set(places):
        with suppress(FileNotFoundError):
            named = [file for file in listed(place) if NAME.fullmatch(file.name) and file.is_file()]
            found += [file for file in named if not _is_same(file, own) and _may_hold(file, nim)]
            found += leftovers(place)
    return sorted(found)


def remove_copy(copy: Path) -> None:
    """Remove a file of `copies_that_hold`, and its log; raise OSError, also if another program uses it."""
    if copy.is_dir():
        shutil.rmtree(copy)
    elif _is_in_use(copy):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(copy))
    else:
        for suffix in ("-wal", "-shm", ""):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def _is_same(file: Path, own: Path | None) -> bool:
    try:
        return own is not None and file.samefile(own)
    except FileNotFoundError:  # the service has just removed the file, and the others count
        return False


def _may_hold(file: Path, nim: str) -> bool:
    """Whether a file holds a nim as a whole cell, or cannot be read."""
    try:
        if file.suffix in (".csv", ".gz", ".xlsx", ".dump") or file.name == ".unfinished":
            return any(map(_cell(nim).search, _texts(file)))
        with closing(open_to_read(file)) as db:
            return bool(db.execute(*sql.SHARED.step("is_known", {"nims": [nim]})).get)
    except (
        OSError,
        EOFError,
        apsw.Error,
        zlib.error,
        zipfile.BadZipFile,
        subprocess.CalledProcessError,
    ):
        return file.exists()  # the service may have just removed it


def _cell(nim: str) -> re.Pattern[bytes]:
    """A pattern that finds a nim as a whole cell of CSV, of the XML of a workbook, or of a dump.

    CSV doubles a quote, XML escapes it, and a dump writes some characters with a backslash.
    """
    forms = (nim.replace('"', '""'), escape(nim), nim.translate(COPIED))
    written = b"|".join(re.escape(text.encode()) for text in forms)
    return re.compile(rb"(?<![^;,\t\r\n\"'>])(%b)(?![^;,\t\r\n\"<])" % written)


def _texts(file: Path) -> Iterator[bytes]:
    match file.suffix:
        case ".csv":
            yield file.read_bytes()
        case ".gz":
            yield gzip.decompress(file.read_bytes())
        case ".xlsx":
            with zipfile.ZipFile(file) as workbook:
                yield from map(workbook.read, workbook.namelist())
        case _:
            command = ["pg_restore", "--data-only", "--file=-", str(file)]
            yield subprocess.check_output(command, stderr=subprocess.DEVNULL)  # noqa: S603 - all of it is ours


def _is_in_use(file: Path) -> bool:
    """Whether another program has an SQLite file open.

    SQLite lets a connection end the use of the write-ahead log only if no other one has the file
    open.
    """
    try:
        with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
            return bool(db.pragma("journal_mode", "delete") == "wal")
    except apsw.BusyError:
        return True
    except apsw.Error:
        return False

"""The command line as an operator uses it: real commands, their exit codes, their output and the files they write."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from processes import COMMAND, finished
from spreadsheets import HEADER, Record, csv
from stores import execute, merge, migrate

SAID_DATABASE = re.compile("^database: (.*)\n", re.MULTILINE)
TWO: list[Record] = [("0001", "Ani", "Solo"), ("0002", "Budi", "Bantul")]


UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
"""The start of a command that runs with file permissions enforced, which root would ignore."""
if os.geteuid() != 0:
    UNPRIVILEGED = []


class Operator:
    """A person at a shell, in a folder with a database. Every command is run to its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "mahasiswa.db"
        self.backups = folder / "cadangan"
        self.environment = {**os.environ, "DATABASE_URL": f"sqlite:///{self.database}"}
        self.databases: list[str] = []
        """The databases that the last command said it used. They are left out of its standard error."""

    def use(self, database: Path | str) -> None:
        """Let commands use another file, or the database at this address."""
        if isinstance(database, Path):
            self.database = database
            database = f"sqlite:///{database}"
        self.environment["DATABASE_URL"] = database

    def keep_backups(self, folder: Path | None = None) -> None:
        """Set BACKUP_DIR to this folder, or to `cadangan`, which does not exist yet."""
        self.backups = folder or self.backups
        self.environment["BACKUP_DIR"] = str(self.backups)

    def backup_files(self) -> list[Path]:
        """Return the back-ups in BACKUP_DIR, in order of their names. A name holds the time in UTC."""
        return sorted(self.backups.glob("*.db"))

    def run(
        self, *arguments: str, before: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `mahasiswa` without a terminal, with these arguments and variables, by a command `before` it."""
        environment = self.environment | environment
        command = (*before, *COMMAND, *arguments)
        answer = finished(*command, cwd=self.folder, env=environment)
        self.databases = SAID_DATABASE.findall(answer.stderr)
        answer.stderr = SAID_DATABASE.sub("", answer.stderr)
        return answer

    def done(self, *arguments: str, before: Sequence[str] = (), **environment: str) -> str:
        """Run a command that must succeed with an empty standard error; return its standard output."""
        answer = self.run(*arguments, before=before, **environment)
        assert (answer.returncode, answer.stderr) == (0, "")
        return answer.stdout

    def write_rows(self, *rows: Record) -> str:
        """Write these rows to a.csv; return its name."""
        return self.write("a.csv", csv(HEADER, *rows))

    def failed(
        self, *arguments: str, code: int = 1, before: Sequence[str] = (), **environment: str
    ) -> list[str]:
        """Run a command that must fail with an empty standard output; return the lines of standard error."""
        answer = self.run(*arguments, before=before, **environment)
        assert (answer.returncode, answer.stdout) == (code, ""), answer.stderr
        assert "Traceback" not in answer.stderr
        return answer.stderr.splitlines()

    def write(self, name: str, data: bytes) -> str:
        (self.folder / name).write_bytes(data)
        return name

    def fill(self, records: Sequence[Record]) -> None:
        self.database.unlink(missing_ok=True)
        migrate(self.database)
        merge(self.database, *records)

    def sql(self, script: str) -> list[tuple[object, ...]]:
        """Run SQL on the database by another program; return the rows of a single statement."""
        return execute(self.database, script)

    def records(self) -> list[Record]:
        return records_of(self.database)

    def names(self) -> set[str]:
        """Return the names of all files in the folder, also of hidden ones, except those of the database."""
        return {path.name for path in self.folder.iterdir()} - {
            self.database.name + ending for ending in ("", "-wal", "-shm")
        }


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def overwrite(path: Path, begin: int = 0, end: int | None = None) -> None:
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(b"\xff" * ((end or path.stat().st_size) - begin))


def records_of(path: Path) -> list[Record]:
    return execute(path, "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")


def use_up(folder: Path) -> Path:
    filler = folder / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(folder).free))
    return filler

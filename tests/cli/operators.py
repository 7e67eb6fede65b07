"""The command line as an operator uses it: real commands, their exit codes, their output and the files they write."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from processes import COMMAND, finished
from spreadsheets import HEADER, Record, csv
from stores import execute, merge, migrate

TWO: list[Record] = [("0001", "Ani", "Solo"), ("0002", "Budi", "Bantul")]


UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
"""The start of a command that runs with file permissions enforced, which root would ignore."""
if os.geteuid() != 0:
    UNPRIVILEGED = []


class Operator:
    """A person at a shell, in a folder. Commands use the database mahasiswa.db in it, or another one, and are run to their end."""

    def __init__(self, folder: Path, database: Path | None = None) -> None:
        self.folder = folder
        self.database = database or folder / "mahasiswa.db"
        self.backups = folder / "cadangan"
        """The folder for BACKUP_DIR. It does not exist yet, and the variable is not set."""
        self.environment = {**os.environ, "DATABASE_URL": f"sqlite:///{self.database}"}

    def backup_files(self) -> list[Path]:
        """Return the back-ups in `backups`, in order of their names. A name holds the time in UTC."""
        return sorted(self.backups.glob("*.db"))

    def run(
        self, *arguments: str, before: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `mahasiswa` without a terminal, with these arguments and variables, by a command `before` it."""
        environment = self.environment | environment
        command = (*before, *COMMAND, *arguments)
        return finished(*command, cwd=self.folder, env=environment)

    def done(self, *arguments: str, **options: Any) -> str:  # noqa: ANN401 - those of `run`
        """Run a command that must succeed; return its standard output. On standard error it may only name the database."""
        answer = self.run(*arguments, **options)
        assert answer.returncode == 0, answer.stderr
        assert re.fullmatch("(database: .*\n)?", answer.stderr)
        return answer.stdout

    def write_rows(self, *rows: Record) -> str:
        """Write these rows to a.csv; return its name."""
        return self.write("a.csv", csv(HEADER, *rows))

    def failed(self, *arguments: str, code: int = 1, **options: Any) -> list[str]:  # noqa: ANN401
        """Run a command that must fail with an empty standard output; return the lines of standard error without the database."""
        answer = self.run(*arguments, **options)
        assert (answer.returncode, answer.stdout) == (code, ""), answer.stderr
        assert "Traceback" not in answer.stderr
        lines = answer.stderr.splitlines()
        return [line for line in lines if not line.startswith("database: ")]

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
        """Return the names of all files in the folder, also of hidden ones."""
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def overwrite(path: Path, begin: int = 0) -> None:
    """Damage a page of a database."""
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(b"\xff" * 4096)


def records_of(path: Path) -> list[Record]:
    return execute(path, "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")


def use_up(folder: Path) -> Path:
    filler = folder / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(folder).free))
    return filler

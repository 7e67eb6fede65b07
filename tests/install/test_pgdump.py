"""The unit that backs PostgreSQL up, and the restore of its file into a second database."""

import os
import shlex
import subprocess
import uuid
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest
from harness import Service
from operators import TWO, Operator
from postgres import execute, programs

UNIT = Path(__file__).parents[2] / "packaging" / "systemd" / "mahasiswa-pgdump.service"
READ = "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim", "SELECT * FROM mahasiswa_history ORDER BY id"


@pytest.fixture
def databases(postgres: str) -> Iterator[tuple[str, str]]:
    """Return the addresses of two empty databases."""
    names = [f"dump_{uuid.uuid4().hex}" for _ in range(2)]
    for name in names:
        execute(postgres, f"CREATE DATABASE {name}")
    first, second = (f"{postgres.rpartition('/')[0]}/{name}" for name in names)
    yield first, second
    for name in names:
        execute(postgres, f"DROP DATABASE {name} WITH (FORCE)")


def run_line(name: str, folder: Path, environment: dict[str, str]) -> None:
    """Run a line of the unit as systemd does."""
    unit = RawConfigParser(strict=False)
    unit.read(UNIT, "utf-8")
    line = unit["Service"][name].replace("$$", "$").replace("%%", "%")
    subprocess.run(shlex.split(line), cwd=folder, env=environment, check=True)


def test_the_file_of_the_unit_is_restored_into_a_second_database(databases: tuple[str, str], tmp_path: Path) -> None:
    """With the history, twice in a row, by the options that the documents give. The service then goes on with it."""
    first, second = databases
    folder = tmp_path / "cadangan"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{programs()}:{os.environ['PATH']}", "DATABASE_URL": first}
    with Service(first) as service, service.site() as site:
        for record in TWO:
            site.add(*record)
        site.edit("1", "Ani", "Sleman")
        run_line("ExecStart", folder, environment)
    expected = [execute(first, statement) for statement in READ]
    (dump,) = folder.iterdir()
    old = folder / "mahasiswa-20200101T000000Z.dump"
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    run_line("ExecStartPost", folder, environment)
    assert list(folder.iterdir()) == [dump]

    operator = Operator(tmp_path)
    operator.environment |= {"DATABASE_URL": second, "BACKUP_DIR": str(folder)}
    (line,) = operator.failed("restore", str(dump))
    options = line.partition("pg_restore ")[2].partition(" --dbname")[0].split()
    assert "--single-transaction" in options
    for _ in range(2):
        subprocess.run(["pg_restore", *options, f"--dbname={second}", dump], env=environment, check=True)
        assert [execute(second, statement) for statement in READ] == expected
        execute(second, "DELETE FROM mahasiswa")
    assert f"The newest back-up, {dump}, is 0.0 hours old" in operator.run("doctor").stdout
    subprocess.run(["pg_restore", *options, f"--dbname={second}", dump], env=environment, check=True)
    with Service(second) as service, service.site() as site:
        assert site.list().nims == ["1", "2"]
        assert site.delete("1").status_code == 302
    assert len(execute(second, READ[1])) == len(expected[1]) + 1

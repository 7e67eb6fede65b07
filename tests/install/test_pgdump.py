"""The unit that backs PostgreSQL up, and the restore of its file into a second database."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest
from harness import Service, visited
from operators import TWO, Operator
from postgres import execute, programs
from processes import run
from spreadsheets import HEADER, csv

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "packaging" / "systemd" / "mahasiswa-pgdump.service"
READ = (
    "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim",
    "SELECT * FROM mahasiswa_history ORDER BY id",
)


def with_programs() -> dict[str, str]:
    """Return the variable by which commands find those of PostgreSQL."""
    return {"PATH": f"{programs()}:{os.environ['PATH']}"}


@pytest.fixture
def databases(postgres: str) -> Iterator[tuple[str, str]]:
    names = [f"dump_{uuid.uuid4().hex}" for _ in range(2)]
    for name in names:
        execute(postgres, f"CREATE DATABASE {name}")
    first, second = (f"{postgres.rpartition('/')[0]}/{name}" for name in names)
    yield first, second
    for name in names:
        execute(postgres, f"DROP DATABASE {name} WITH (FORCE)")


def run_line(name: str, folder: Path, environment: dict[str, str]) -> str:
    unit = RawConfigParser(strict=False)
    unit.read(UNIT, "utf-8")
    line = unit["Service"][name].replace("$$", "$").replace("%%", "%")
    line = line.replace("/srv/mahasiswa/app/.venv/bin/python", sys.executable).replace(
        "/srv/mahasiswa/app", str(ROOT)
    )
    return run(*shlex.split(line), cwd=folder, env=environment)


def run_unit(folder: Path, environment: dict[str, str]) -> None:
    """Make a dump as the unit does."""
    for line in ("ExecStart", "ExecStartPost"):
        run_line(line, folder, environment)


@pytest.fixture(name="owner")
def operator_with_dumps(databases: tuple[str, str], tmp_path: Path) -> Operator:
    """Run commands for the first database. Its back-ups are in the folder `cadangan`."""
    folder = tmp_path / "cadangan"
    folder.mkdir()
    operator = Operator(tmp_path)
    operator.environment |= {
        "DATABASE_URL": databases[0],
        "BACKUP_DIR": str(folder),
        **with_programs(),
    }
    return operator


def test_the_file_of_the_unit_is_restored_into_a_second_database(
    databases: tuple[str, str], tmp_path: Path
) -> None:
    """With the history, twice in a row, by the options that the documents give. The service then goes on with it."""
    first, second = databases
    folder = tmp_path / "cadangan"
    folder.mkdir()
    environment = {**os.environ, **with_programs(), "DATABASE_URL": first}
    with visited(first) as site:
        for record in TWO:
            site.add(*record)
        site.edit("1", "Ani", "Sleman")
        run_unit(folder, environment)
    expected = [execute(first, statement) for statement in READ]
    (dump,) = folder.glob("*.dump")

    operator = Operator(tmp_path)
    operator.environment |= {"DATABASE_URL": second, "BACKUP_DIR": str(folder)}
    (line,) = operator.failed("restore", str(dump))
    options = line.partition("pg_restore ")[2].partition(" --dbname")[0].split()
    assert "--single-transaction" in options
    for _ in range(2):
        subprocess.run(
            ["pg_restore", *options, f"--dbname={second}", dump], env=environment, check=True
        )
        assert [execute(second, statement) for statement in READ] == expected
        execute(second, "DELETE FROM mahasiswa")
    assert f"The newest back-up, {dump}, is 0.0 hours old" in operator.run("doctor").stdout
    subprocess.run(
        ["pg_restore", *options, f"--dbname={second}", dump], env=environment, check=True
    )
    with visited(second) as site:
        assert site.list().nims == ["1", "2"]
        assert site.delete("1").status_code == 302
    assert len(execute(second, READ[1])) == len(expected[1]) + 1


def test_old_dumps_are_removed_by_the_rule_of_back_ups_and_never_those_of_another_list(
    databases: tuple[str, str], tmp_path: Path
) -> None:
    """The last dump of a day stays, and three that hold more than twice as many records.

    A dump has the id of its list in its name. In an old name it is missing, and the key in the dump tells the list.
    """
    environment = {**os.environ, **with_programs()}

    def dump(url: str, name: str) -> Path:
        run_line("ExecStart", tmp_path, environment | {"DATABASE_URL": url})
        return Path(shutil.copy(tmp_path / ".unfinished", tmp_path / name))

    def put(of: Path, name: str, *hours: int) -> set[Path]:
        """Copy a dump to names of these hours of one day. The times of the files are now."""
        return {Path(shutil.copy(of, tmp_path / name.format(f"{hour:02}"))) for hour in hours}

    for url in databases:
        with visited(url) as site:
            for nim in "123":
                site.add(nim, "Siti", "Solo")
    other, full = dump(databases[1], "other"), dump(databases[0], "full")
    execute(databases[0], "DELETE FROM mahasiswa WHERE nim = '3'")
    twice = dump(databases[0], "twice")
    assert run_line("ExecStartPost", tmp_path, environment) == ""
    execute(databases[0], "DELETE FROM mahasiswa WHERE nim = '2'")
    one = dump(databases[0], "one")
    (first,) = tmp_path.glob("mahasiswa-*.dump")
    own = re.sub(r"\d{8}T\d{2}", "20240101T{}", first.name)
    old = "mahasiswa-20240101T{}0000Z.dump"
    stays = {first} | put(one, own.replace("0101T", "0201T"), 0) | put(one, own, 9)
    stays |= put(full, own, 1, 2, 3) | put(other, old, 1) | put(UNIT, old, 2)
    stays |= put(full, "mahasiswa-0123abcd-20240101T{}0000Z.dump", 0)
    goes = put(full, own, 0) | put(twice, own, 4, 5) | put(twice, old, 6)
    removed = run_line("ExecStartPost", tmp_path, environment).splitlines()
    assert {Path(line.removeprefix("removed the old back-up ")) for line in removed} == goes
    assert stays <= set(tmp_path.iterdir())
    (tmp_path / ".unfinished").write_bytes(b"")
    with pytest.raises(AssertionError, match=r"\.unfinished cannot be read, so it is no back-up"):
        run_line("ExecStartPost", tmp_path, environment)


def test_the_password_of_the_address_is_on_no_command_line(tmp_path: Path) -> None:
    """Every user of the computer can see a command line. Only the same user can see an environment."""
    program = tmp_path / "pg_dump"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" "$PGPASSWORD" >said\n'
        '[ -z "$PGSERVICEFILE" ] || cat "$PGSERVICEFILE" >service\n'
    )
    program.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "DATABASE_URL": "postgresql://tu:s%40ndi%2F@db.example,db2.example/kampus?sslmode=verify-full",
    }
    expected = (
        "--dbname=user=tu dbname=kampus host=db.example,db2.example port=, sslmode=verify-full"
    )
    for key, service in (("", ""), ("&sslpassword=kunci", " service=mahasiswa")):
        url = environment["DATABASE_URL"].replace("postgresql:", "postgres:") + key
        run_line("ExecStart", tmp_path, environment | {"DATABASE_URL": url})
        address, *options, password = (tmp_path / "said").read_text().splitlines()
        assert address == expected + service
        assert (options, password) == (["--format=custom", "--file=.unfinished"], "s@ndi/")
    assert (tmp_path / "service").read_text() == "[mahasiswa]\nsslpassword=kunci\n"


@pytest.mark.parametrize("address", [{}, {"DATABASE_URL": "sqlite:///mahasiswa.db"}])
def test_one_line_says_that_the_settings_of_dumps_lack_the_address(
    address: dict[str, str], tmp_path: Path
) -> None:
    """A drop-in of the service's unit may hold it, which a dump does not read."""
    said = "^[^\n]*\n/etc/mahasiswa.env, the only settings of dumps, lacks DATABASE_URL=postgresql:…\n$"
    with pytest.raises(AssertionError, match=said):
        run_line("ExecStart", tmp_path, {"PATH": os.environ["PATH"], **address})


def test_a_list_that_has_shrunk_is_an_alarm_by_its_dumps_until_its_number_is_accepted(
    owner: Operator,
) -> None:
    """The next dump finds it, for doctor and the metric. Until then no copy of a forgotten person is removed."""
    url, folder = (owner.environment[name] for name in ("DATABASE_URL", "BACKUP_DIR"))
    with visited(url, owner.environment | {"METRICS": "1"}) as site:
        execute(url, "INSERT INTO mahasiswa SELECT n, 'A', 'B' FROM generate_series(1, 300) n")
        run_unit(Path(folder), owner.environment)
        assert re.search("records_missing.* 0\n", site.get("/metrics").text)
        execute(url, "DELETE FROM mahasiswa WHERE nim::int > 200")
        run_unit(Path(folder), owner.environment)
        fault = "list has 100 records fewer than within the last 30 days"
        assert f"WRONG  The {fault}." in owner.run("doctor").stdout
        assert re.search("records_missing.* 100\n", site.get("/metrics").text)
        refused = owner.run("forget", "1", "--delete-copies")
        assert f"no copy is removed, because the {fault}" in refused.stderr
        assert refused.returncode == 1
        elsewhere = {"BACKUP_DIR": "", "STATE_DIRECTORY": folder}
        without_folder = owner.run("forget", "1", "--delete-copies", **elsewhere)
        assert "still holds the texts" in without_folder.stdout
        assert "the list is empty" not in without_folder.stderr
        assert "199 records are accepted" in owner.run("doctor", "--accept").stdout
        assert "fewer than" not in owner.run("doctor").stdout
        assert re.search("records_missing.* 0\n", site.get("/metrics").text)


CLUSTER = (ROOT / "docs" / "cluster.md").read_text("utf-8")


@pytest.fixture
def documented(postgres: str) -> Iterator[str]:
    """Make the role and the database as docs/cluster.md says, under other names; return the address for the role."""
    name = f"kampus_{uuid.uuid4().hex}"
    statements = re.findall(r'-c "(CREATE .*?)"', CLUSTER)
    for statement in statements:
        execute(postgres, statement.replace("mahasiswa", name))
    try:
        yield f"{postgres.rpartition('/')[0].replace('postgres@', f'{name}@')}/{name}"
    finally:
        execute(postgres, f"DROP DATABASE {name} WITH (FORCE)")
        execute(postgres, f"DROP ROLE {name}")


def test_the_documented_rights_are_enough_for_the_service_and_its_dumps(
    documented: str, postgres: str, tmp_path: Path
) -> None:
    """The owner creates the tables. Another role then needs the rights of docs/cluster.md."""
    rights = re.findall(r"`([A-Z, ]+)` on `(mahasiswa\w*)`", CLUSTER)
    assert len(rights) == 4
    clerk = f"clerk_{uuid.uuid4().hex}"
    url = documented.replace(f"{documented.rpartition('/')[2]}@", f"{clerk}@")
    environment = {**os.environ, **with_programs(), "DATABASE_URL": url}
    with Service(documented):
        pass
    execute(postgres, f"CREATE ROLE {clerk} LOGIN")
    try:
        for right, table in rights:
            execute(documented, f"GRANT {right} ON {table} TO {clerk}")
        operator = Operator(tmp_path)
        operator.environment["DATABASE_URL"] = url
        with visited(url) as site:
            site.add(*TWO[0])
            assert site.edit("1", "Ani", "Sleman").status_code == 302
            operator.write("a.csv", csv(HEADER, TWO[1]))
            assert operator.imported("a.csv").startswith("written: 1 new")
            assert site.list().nims == ["1", "2"]
        run_unit(tmp_path, environment)
        assert len([*tmp_path.glob("mahasiswa-*.dump")]) == 1
    finally:
        database = f"{postgres.rpartition('/')[0]}/{documented.rpartition('/')[2]}"
        execute(database, f"DROP OWNED BY {clerk}; DROP ROLE {clerk}")


def test_a_dump_that_has_failed_takes_no_room_and_is_a_copy_until_the_unit_ends(
    owner: Operator,
) -> None:
    """The end of the unit removes it. If the power fails before, it may hold a person who is forgotten."""
    folder = Path(owner.environment["BACKUP_DIR"])
    with visited(owner.environment["DATABASE_URL"]) as site:
        site.add(*TWO[0])
    run_line("ExecStart", folder, owner.environment)
    left = folder / ".unfinished"
    assert f"{left} still holds the texts." not in owner.done("forget", "2")
    assert f"{left} still holds the texts." in owner.done("forget", "1")
    left.write_bytes(left.read_bytes()[:-100])
    assert f"{left} still holds the texts." in owner.done("forget", "2")
    for _ in range(2):  # a dump that has got its name leaves none
        run_line("ExecStopPost", folder, owner.environment)
        assert not left.exists()


def test_the_dumps_that_hold_a_forgotten_person_are_removed_after_a_newer_dump(
    owner: Operator,
) -> None:
    """Without a newer one, the command refuses and says how to make it."""
    nim, folder = "20/456839/TK/50663", Path(owner.environment["BACKUP_DIR"])
    with visited(owner.environment["DATABASE_URL"]) as site:
        site.add(*TWO[0])
        site.add(nim, "Siti", "Solo")
    run_unit(folder, owner.environment)
    (made,) = folder.glob("*.dump")
    old = made.rename(folder / "mahasiswa-20260101T000000Z.dump")
    refused = owner.answers("y\n", "forget", nim, "--delete-copies")
    assert f"{old} still holds the texts." in refused.stdout
    assert "run systemctl start mahasiswa-pgdump" in refused.stderr
    assert (refused.returncode, old.exists()) == (1, True)
    run_unit(folder, owner.environment)
    done = owner.answers("y\n", "forget", nim, "--delete-copies")
    assert (done.returncode, old.exists()) == (0, False), done.stderr
    (left,) = folder.glob("*.dump")
    assert str(left) not in done.stdout

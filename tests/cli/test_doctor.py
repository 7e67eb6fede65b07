"""`mahasiswa doctor`: its findings on real databases, services and back-ups, and their remedies."""

import re
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest
from cli.operators import TWO, Operator, overwrite
from harness import Service, free_port
from postgres import new_schema
from processes import run
from stores import execute, migrate


def problems(operator: Operator, **options: str) -> list[str]:
    """Run the command, which must find something wrong; return the sentences about that."""
    answer = operator.run("doctor", **options)
    assert answer.returncode == 1, answer.stdout
    assert re.fullmatch("database: .*\n", answer.stderr)
    return re.findall("^WRONG  (.*)", answer.stdout, re.MULTILINE)


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two records, and a back-up of them in the folder `cadangan`."""
    operator = Operator(tmp_path_factory.mktemp("kept"))
    operator.fill(TWO)
    operator.done("backup", BACKUP_DIR=str(operator.backups))
    return operator.folder


@pytest.fixture(name="kept")
def operator_with_a_backup(operator: Operator, backed_up: Path) -> Operator:
    shutil.copytree(backed_up, operator.folder, dirs_exist_ok=True)
    operator.environment |= {"HOST": "127.0.0.1", "PORT": str(free_port())}
    operator.environment["BACKUP_DIR"] = str(operator.backups)
    return operator


def backup_of(operator: Operator) -> Path:
    (file,) = operator.backup_files()
    return file


def test_a_sound_installation_has_four_good_findings(kept: Operator) -> None:
    """Nothing is written. So it is while the service runs, at a port or at a socket."""
    before = kept.database.read_bytes()
    port = kept.environment["PORT"]
    settings, service, *others = kept.done("doctor").splitlines()
    assert settings == f"ok     The settings can be used. People open http://localhost:{port}/"
    assert service == f"ok     The service does not run. Nothing listens on port {port}."
    assert others == [
        f"ok     {kept.database} is whole and holds 2 records.",
        f"ok     The newest back-up, {backup_of(kept)}, is 0.0 hours old.",
    ]
    assert kept.database.read_bytes() == before
    assert kept.names() == {"mahasiswa.db", "cadangan"}
    assert problems(kept, BACKUP_DIR="") == ["No back-ups are made. Set BACKUP_DIR to a folder."]
    for host, place in (
        ("127.0.0.1", f"port {port}"),
        (f"unix:{kept.folder}/s", f"{kept.folder}/s"),
    ):
        kept.environment["HOST"] = host
        with Service(kept.database, {"HOST": host, "PORT": port}):
            assert f"ok     The service answers on {place}.\n" in kept.done("doctor")


def test_a_service_that_takes_forms_of_other_sites_is_found(kept: Operator) -> None:
    """Other computers must reach it, also by a proxy. The log of the start says so, too."""
    found = "Other sites can send forms through a visitor's browser. Set SAME_ORIGIN_ONLY=1"
    for reached in ({"HOST": "0.0.0.0"}, {"BASE_URL": "https://kampus.example"}):
        (line,) = problems(kept, **reached)
        assert line.startswith(found)
        assert found not in kept.run("doctor", **reached, SAME_ORIGIN_ONLY="1").stdout
        with Service(kept.database, reached) as service:
            service.says(" WARNING Forms of other sites are accepted. To refuse")


def test_a_port_of_another_program_is_found(kept: Operator) -> None:
    """It is a web server."""
    port = int(kept.environment["PORT"])
    with (
        ThreadPoolExecutor(1) as thread,
        HTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler) as other,
    ):
        other.timeout = 60
        thread.submit(other.handle_request)
        (line,) = problems(kept)
    assert line.startswith(
        f"The service, or another program, answers wrongly on port {port}: 501. "
    )


def moved(backup: Path, day: str) -> Path:
    return backup.with_name(re.sub(r"\d{8}(T\d{6}Z)", rf"{day}\1", backup.name))


RESTORE = "Correct DATABASE_URL, or restore a back-up: mahasiswa restore FILE"
AGAIN = ". Make one now: mahasiswa backup"
FAULTS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a missing file": (
        lambda file, _: file.unlink(),
        "{file} cannot be used: unable to open database file. The user ANY Check DATABASE_URL too",
    ),
    "no list": (
        lambda file, _: file.write_bytes(b""),
        "{file} cannot be used: no such table: mahasiswa. ANY",
    ),
    "no database": (
        lambda file, _: overwrite(file),
        "{file} is damaged or not an SQLite database (ANY). " + RESTORE,
    ),
    "a newer version": (
        lambda file, _: execute(file, "PRAGMA user_version = 99"),
        "{file} has schema version 99, and this release knows only up to 1: use a newer release",
    ),
    "no back-up": (
        lambda _, backup: backup.unlink(),
        "{folder} holds no back-up" + AGAIN,
    ),
    "an old back-up": (
        lambda _, backup: backup.rename(moved(backup, "20250101")),
        "The newest back-up, ANY hours old" + AGAIN,
    ),
    "a back-up from the future": (
        lambda _, backup: backup.rename(moved(backup, "29991231")),
        "{folder} holds no back-up" + AGAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_cannot_be_used_is_found(kept: Operator, fault: str) -> None:
    """It is the only wrong finding, with a remedy. Nothing is created."""
    prepare, said = FAULTS[fault]
    backup = backup_of(kept)
    prepare(kept.database, backup)
    names = sorted(kept.folder.iterdir())
    shown = said.format(file=kept.database, folder=backup.parent)
    (line,) = problems(kept)
    assert re.fullmatch(re.escape(shown).replace("ANY", ".*"), line)
    assert sorted(kept.folder.iterdir()) == names


def type_remedy(kept: Operator, line: str) -> None:
    """Run the command at the end of a line of `doctor` in a shell."""
    path = f"{Path(sys.executable).parent}:{kept.environment['PATH']}"
    environment = kept.environment | {"PATH": path}
    run("sh", "-c", line.rpartition(": ")[2], cwd=kept.folder, env=environment)


def test_a_remedy_can_be_pasted(kept: Operator) -> None:
    """A damaged list is restored, with which the service did not start. The next back-up is made."""
    ((page,),) = kept.sql("SELECT rootpage FROM sqlite_schema WHERE name = 'mahasiswa'")
    overwrite(kept.database, 4096 * (cast("int", page) - 1))
    (refused,) = kept.failed(code=2)
    assert re.search(r"is damaged or .*restore a back-up", refused)
    (line,) = problems(kept)
    type_remedy(kept, line.replace("FILE", str(backup_of(kept))))
    assert kept.records() == TWO
    backup_of(kept).unlink()
    (line,) = problems(kept)
    type_remedy(kept, line)
    kept.done("doctor")


def test_the_tables_of_postgresql_are_checked(operator: Operator, postgres: str) -> None:
    """Its back-ups are its own."""
    operator.environment |= {"HOST": "127.0.0.1", "PORT": str(free_port())}
    url = new_schema(postgres)
    migrate(url)
    *_, last = operator.done("doctor", DATABASE_URL=url).splitlines()
    assert last == "ok     The table mahasiswa holds 0 records."
    gone = "postgresql://siti:rahasia@127.0.0.1:1/x"
    (line,) = problems(operator, DATABASE_URL=gone)
    assert line.endswith(" failed: Connection refused. Check DATABASE_URL and the server.")
    assert "rahasia" not in line
    said = operator.run("doctor", DATABASE_URL=gone).stderr
    assert said == "database: postgresql://127.0.0.1:1/x\n"

"""`mahasiswa-run`: a command gets the settings and the folder of the service, and Ctrl-C. Its systemd is a stand-in."""

import subprocess

import pytest
from harness import Service
from operators import COMMAND, TWO, Operator
from processes import finished
from units import RUN, pretend_unit

# Relative: they mean the folder of the service.
KAMPUS = {"DATABASE_URL": "sqlite:///kampus.db", "BACKUP_DIR": "cadangan"}


@pytest.fixture(name="kept")
def service_folder(operator: Operator) -> Operator:
    """Return an operator in another folder than that of the service, which holds two records."""
    folder = operator.folder
    operator.database = folder / "kampus.db"
    operator.fill(TWO)
    operator.folder = folder / "other"
    operator.folder.mkdir()
    return operator


def call(
    operator: Operator, unit: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    return finished(*RUN, *arguments, cwd=operator.folder, env=operator.environment | unit)


def wrong_lines(answer: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in answer.stdout.splitlines() if line.startswith("WRONG")]


@pytest.mark.parametrize("is_running", [True, False])
def test_a_command_uses_the_database_and_the_folder_of_the_service(
    kept: Operator, *, is_running: bool
) -> None:
    """Not those of the shell. While the service runs, the settings of its main process count, otherwise those of its unit."""
    folder = kept.database.parent
    changed = {"DATABASE_URL": "sqlite:///lain.db"}
    # Its environment is read from /proc, so it is no fork.
    with Service(KAMPUS["DATABASE_URL"], KAMPUS, cwd=folder, command=COMMAND) as service:
        unit = pretend_unit(folder, service.environment | changed, pid=service.pid)
        if not is_running:
            service.stop()
            unit = pretend_unit(folder, KAMPUS)
        exported = call(kept, unit, "export", "-")
        assert exported.stderr == f"database: {kept.database}\n"
        assert exported.stdout.count("\n") == 1 + len(TWO)
        assert call(kept, unit, "backup").returncode == 0
        assert len([*folder.glob("cadangan/kampus-*.db")]) == 1
        assert [*kept.folder.iterdir()] == []
        said = "These settings have changed since the service started: DATABASE_URL."
        said = f"WRONG  {said} To use the new ones: systemctl restart mahasiswa"
        found = [line for line in wrong_lines(call(kept, unit, "doctor")) if "started" in line]
        assert found == [said] * is_running


def test_without_an_address_a_command_uses_the_default_file_in_the_folder_of_the_service(
    kept: Operator,
) -> None:
    answer = call(kept, pretend_unit(kept.database.parent, {"DATABASE_URL": ""}), "export", "-")
    assert answer.stderr.startswith(f"database: {kept.database.parent / 'mahasiswa.db'}\n")


SETTINGS = """\ufeffPORT=3001
# a=1
 ; b=2

DATABASE_URL=sqlite:///kampus.db
WORKERS = 2\r
BASE_URL="https://kampus.example"
export HISTORY_DAYS=7
SAME-ORIGIN=1
"""


def test_doctor_names_each_line_of_the_settings_that_systemd_ignores(kept: Operator) -> None:
    """A byte order mark and `export` make another name of a name. Comments and empty lines are no fault."""
    file = kept.database.parent / "mahasiswa.env"
    file.write_text(SETTINGS, "utf-8")
    said = wrong_lines(call(kept, pretend_unit(file.parent, KAMPUS, file=file), "doctor"))
    ignored = [line.partition(". ")[0] for line in said if "ignores" in line]
    assert ignored == [f"WRONG  systemd ignores line {number} of {file}" for number in (1, 8, 9)]


def test_no_unit_of_systemd_gets_the_password_or_the_command(kept: Operator) -> None:
    """Every user can read the environment and the command of a unit, and the journal holds its command."""
    secret = KAMPUS | {"PGPASSWORD": "rahasia"}
    file = kept.database.parent / "mahasiswa.env"
    unit = pretend_unit(file.parent, secret, file=file)
    assert "no record" in call(kept, unit, "forget", "20/456839").stdout
    said = (file.parent / "stubs" / "calls").read_text()
    assert f"EnvironmentFile=-{file}" in said
    assert "rahasia" not in said
    assert "456839" not in said


def test_one_line_says_that_the_unit_is_not_installed(kept: Operator) -> None:
    answer = call(kept, pretend_unit(kept.database.parent, KAMPUS, user=""), "doctor")
    said = "mahasiswa-run: mahasiswa.service is not installed, or systemd does not run\n"
    assert (answer.returncode, answer.stderr) == (1, said)

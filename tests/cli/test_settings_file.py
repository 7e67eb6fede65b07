"""`mahasiswa --settings FILE`: a command by hand gets the settings of the service."""

import os

import pytest
from cli.operators import TWO, Operator
from harness import Service, visited
from processes import COMMAND, cannot

from mahasiswa.system.administrator import process_user

# As Windows writes it: a byte order mark and CRLF.
KAMPUS = """\ufeff# The list of the campus\r
; with back-ups\r
\r
DATABASE_URL=sqlite:///kampus.db\r
  BACKUP_DIR = "cadangan kampus" \r
TIMEZONE='Asia/Makassar'\r
HISTORY_DAYS=\r
PGAPPNAME=a\\b\r
TMPDIR=/tmp
"""


@pytest.fixture(name="elsewhere")
def other_folder(operator: Operator) -> Operator:
    """Return an operator without settings in an empty folder. The list and kampus.env are in the folder above."""
    operator.database = operator.folder / "kampus.db"
    operator.fill(TWO)
    operator.write("kampus.env", KAMPUS.encode())
    operator.folder /= "lain"
    operator.folder.mkdir()
    del operator.environment["DATABASE_URL"]
    return operator


def test_a_command_uses_the_list_of_the_file_from_any_folder(elsewhere: Operator) -> None:
    """A relative path begins at the folder of the file. Quotes, comments, blank lines, CRLF and empty values are read."""
    made = elsewhere.run("--settings", "../kampus.env", "backup")
    assert made.stderr == f"database: {elsewhere.database}\n"
    folder = elsewhere.database.parent / "cadangan kampus"
    assert made.stdout.startswith(f"{folder}/kampus-")
    assert not list(elsewhere.folder.iterdir())


def test_a_variable_of_the_environment_wins(elsewhere: Operator) -> None:
    other = elsewhere.folder / "b.db"
    ended = elsewhere.run(
        "--settings", "../kampus.env", "backup", DATABASE_URL=f"sqlite:///{other}"
    )
    assert ended.stderr.startswith(f"database: {other}\n")


def test_without_an_address_the_list_is_beside_the_file(elsewhere: Operator) -> None:
    elsewhere.write("a.env", b"")
    ended = elsewhere.run("--settings", "a.env", "export", "-")
    assert ended.stderr.startswith(f"database: {elsewhere.folder}/mahasiswa.db\n")


def test_the_service_reads_the_file(elsewhere: Operator) -> None:
    """Without a command, as with `serve`."""
    file = elsewhere.folder / elsewhere.write(
        "a.env", b"HOST=localhost\nDATABASE_URL=sqlite:///../kampus.db"
    )
    command = ["env", "-uHOST", "-uDATABASE_URL", *COMMAND, "--settings", str(file)]
    with visited(Service("", command=command)) as site:
        assert site.records == TWO


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "'a.env' does not exist"),
        (b"PORT=1\nexport HOST=::", "a.env, line 2 must be NAME=value"),
        (b"PORT", "a.env, line 1 must be NAME=value"),
        (b"PORT='1", "a.env, line 1 must be NAME=value"),
        (b"PORT='1' 2", "a.env, line 1 must be NAME=value"),
        (b"BACKUP_DIR=a\0b", "a.env, line 1 must be NAME=value"),
        (b"POTR=1", "a.env, line 1: POTR is no setting"),
        (b"PORT=x", "PORT must be a whole number"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(
    elsewhere: Operator, data: bytes | None, said: str
) -> None:
    """Exit code 2, before a database is opened."""
    if data is not None:
        elsewhere.write("a.env", data)
    ended = elsewhere.run("--settings", "a.env", "export", "-")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert said in ended.stderr.splitlines()[-1]
    assert "database: " not in ended.stderr


@pytest.mark.parametrize("owner", [os.geteuid(), pytest.param(65534, marks=pytest.mark.root)])
def test_a_remedy_names_the_file(elsewhere: Operator, owner: int) -> None:
    """So that it can be pasted in any folder. If the file belongs to another user, such as root, it begins with sudo."""
    file = elsewhere.database.parent / "kampus.env"
    if owner != os.geteuid() != 0:
        cannot("give a file to another user")
    os.chown(file, owner, -1)
    elsewhere.database.write_bytes(b"no database")
    (line,) = elsewhere.failed("--settings", "../kampus.env", "backup", "b.db")
    sudo = "" if owner == os.geteuid() else f"sudo -u {process_user()} "
    assert f": {sudo}mahasiswa --settings {file} restore FILE" in line

"""Everything is read and written in UTF-8, whatever the locale of the machine is."""

import pytest
from cli.operators import Operator
from harness import Service, led_to
from spreadsheets import HEADER, csv

ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SITI = ("2301/é", "Siti Nur’aini 😀", "Jalan Café 5")


@pytest.fixture
def abroad(operator: Operator) -> Operator:
    """Return an operator whose locale has ASCII, although Python could change it."""
    operator.environment |= ASCII
    return operator


def test_commands_read_and_write_utf_8(abroad: Operator) -> None:
    """Names of files, arguments, standard streams and settings."""
    folder = abroad.folder / "Café ’26"
    folder.mkdir()
    settings = f"DATABASE_URL=sqlite:///siswa’.db\nBACKUP_DIR='{folder}/cadangan é'\n"
    (folder / "é.env").write_text(settings, "utf-8")
    (folder / "masuk ’.csv").write_bytes(csv(HEADER, SITI))
    del abroad.environment["DATABASE_URL"]

    def done(*arguments: str) -> str:
        return abroad.done("--settings", f"{folder}/é.env", *arguments)

    assert "postgresql://…" in abroad.done("--help")
    assert done("import", "--accept-doubts", f"{folder}/masuk ’.csv").startswith("written: 1 new")
    assert done("export", "-") == "\ufeff" + csv(HEADER, SITI).decode().replace("\r\n", "\n")
    assert done("backup").startswith(f"{folder}/cadangan é/siswa’-")
    said = f"{SITI[0]}: the record and its history are removed"
    assert done("forget", SITI[0]).startswith(said)
    checked = abroad.run("--settings", f"{folder}/é.env", "doctor")
    assert f"{folder}/siswa’.db" in checked.stdout
    assert checked.stderr == f"database: {folder}/siswa’.db\n"


def test_the_service_reads_and_writes_utf_8(abroad: Operator) -> None:
    """Also standard output, which names the file."""
    with Service(abroad.folder / "siswa’.db", ASCII) as service:
        with service.site() as site:
            led_to(site.add(*SITI))
            assert site.records == [SITI]
        assert f"{abroad.folder}/siswa’.db" in service.stdout()

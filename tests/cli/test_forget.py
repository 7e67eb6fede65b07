"""`mahasiswa forget` lists each back-up, which may hold the person."""

import re
import shutil
from pathlib import Path

from operators import TWO, Operator

from mahasiswa.sheets.stage import Stage

END = "Dumps, exports, replicas and logs keep what they have. Remove it from them yourself."


def dated(file: Path, moment: str) -> Path:
    name = re.sub(r"\d{8}T\d{6}Z", moment, file.name)
    return Path(shutil.copy(file, file.with_name(name)))


def test_forget_lists_each_backup_with_its_last_month(
    operator: Operator,
) -> None:
    """The newest one of a month stays for 12 months. Other copies are not looked for."""
    operator.fill(TWO)
    operator.keep_backups()
    operator.done("backup")
    (newest,) = operator.backup_files()
    operator.sql("DELETE FROM mahasiswa WHERE nim = '0001'")
    operator.done("restore", str(newest))
    (before,) = operator.folder.glob("mahasiswa.db.before-*")
    middle = dated(newest, "20250110T000000Z")
    last = dated(newest, "20250120T000000Z")
    operator.write("lama.csv", b"NIM;Nama;Alamat\r\n1;Ani;Solo\r\n")
    shutil.copy(newest, newest.with_name("mahasiswa-0123abcd-20250120T000000Z.db"))
    newest.unlink()
    holds = "may hold the texts. It is removed in"
    assert operator.done("forget", "0001").splitlines() == [
        "0001: the record and its history are removed",
        f"{last} {holds} 2026-01 at the latest.",
        f"{middle} {holds} 2026-01 at the latest.",
        f"{before} may hold the texts. It stays until you remove it.",
        END,
    ]


def test_without_a_folder_the_backups_beside_the_database_are_listed(operator: Operator) -> None:
    operator.fill(TWO)
    operator.done("backup")
    (file,) = operator.folder.glob("mahasiswa-*.db")
    said = f"{file} may hold the texts. It stays until you remove it."
    assert said in operator.done("forget", "0001")


def test_forget_removes_the_uploads_that_wait_for_a_confirmation(operator: Operator) -> None:
    operator.fill(TWO)
    folder = operator.folder / "mahasiswa.db-unggahan"
    with Stage.create(folder, "impor", "daftar.csv", "::1") as stage:
        stage.put_lines([], [(0, 2, "0001", "Ani", "Solo", "", "")], 1)
    operator.done("forget", "0001")
    assert not list(folder.iterdir())

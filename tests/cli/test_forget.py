"""`mahasiswa forget` lists each back-up, which may hold the person."""

import re
import shutil
from pathlib import Path

from operators import TWO, Operator

from mahasiswa.sheets.stage import Stage

END = (
    "The service removes each back-up within 12 months. "
    "Dumps, exports, replicas and logs keep what they have: remove it from them yourself."
)


def dated(file: Path, moment: str) -> Path:
    name = re.sub(r"\d{8}T\d{6}Z", moment, file.name)
    return Path(shutil.copy(file, file.with_name(name)))


def test_forget_lists_each_backup(operator: Operator) -> None:
    """Those of another list, and other copies, are not looked for."""
    operator.fill(TWO)
    operator.keep_backups()
    operator.done("backup")
    (newest,) = operator.backup_files()
    operator.sql("DELETE FROM mahasiswa WHERE nim = '0001'")
    operator.done("restore", str(newest))
    (before,) = operator.folder.glob("mahasiswa.db.before-*")
    older = dated(newest, "20250110T000000Z")
    operator.write("lama.csv", b"NIM;Nama;Alamat\r\n1;Ani;Solo\r\n")
    shutil.copy(newest, newest.with_name("mahasiswa-0123abcd-20250120T000000Z.db"))
    holders = [f"{file} may hold the texts." for file in (newest, older, before)]
    assert operator.done("forget", "0001").splitlines() == [
        "0001: the record and its history are removed",
        *holders,
        END,
    ]


def test_forget_removes_the_uploads_that_wait_for_a_confirmation(operator: Operator) -> None:
    operator.fill(TWO)
    folder = operator.folder / "mahasiswa.db-unggahan"
    with Stage.create(folder, "impor", "daftar.csv", "::1") as stage:
        stage.put_lines([], [(0, 2, "0001", "Ani", "Solo", "", "")], 1)
    operator.done("forget", "0001")
    assert not list(folder.iterdir())

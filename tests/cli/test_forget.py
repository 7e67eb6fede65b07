"""`mahasiswa forget` names each copy that still holds the person, and removes the copies if it is asked to."""

import gzip
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from operators import COMMAND, MANY, TWO, Operator, flickering, records_of
from postgres import clerk, own_schema, programs
from processes import run, started, until
from stores import merge, migrate, other_program

from mahasiswa.sheets.public import EXPORTS
from mahasiswa.store.copies import NAME, is_of_another

REMAIN = b"mahasiswa: interrupted; the record is not in the list any more, and copies remain\n"
HINT = "To remove these copies, add --delete-copies."


@pytest.fixture(name="copied")
def operator_with_copies(operator: Operator) -> tuple[Operator, list[Path]]:
    """Return an operator, and the copies with the record 1, in the folders of the database, the back-ups and the unit."""
    operator.keep_backups()
    folder, unit = operator.backups, operator.folder / "satuan"
    operator.environment["STATE_DIRECTORY"] = f"{folder}:{unit}"
    unit.mkdir()
    operator.fill(TWO)
    operator.done("backup")
    copies = operator.backup_files()
    operator.sql("DELETE FROM mahasiswa WHERE nim = '1'")
    operator.done("restore", str(copies[0]))
    copies += operator.folder.glob("mahasiswa.db.before-*")
    for path in (
        *(folder / "litestream-1.db", folder / "kampus-20260101T000000Z.db"),
        *(operator.folder / "lama.db", unit / "mahasiswa.db"),
        folder / "mahasiswa-29991231T000000Z.db.kept",
    ):
        shutil.copy(operator.database, path)
        copies.append(path)
    for path in (unit / "before-1.csv", operator.folder / "a.xlsx"):
        operator.done("export", str(path))
        copies.append(path)
    copies.append(compressed(unit / "before-1.csv", operator.folder / "mahasiswa.csv.gz"))
    for path in (
        operator.folder / "mahasiswa.db.missing-20260101T000000Z-wal",
        folder / "mahasiswa-20260101T000000Z.dump",
    ):
        path.write_bytes(b"unreadable")
        copies.append(path)
    left = folder / f".mahasiswa-{1:032x}"  # by a back-up that was killed
    left.mkdir()
    shutil.copy(operator.database, left)
    copies.append(left)
    # No copies, or copies without the record.
    operator.write("mahasiswa.service", b"1")
    operator.write("lain.csv", b"NIM;Nama;Alamat\r\n11;Ani 1;Jalan 1 A\r\n")
    compressed(operator.folder / "lain.csv", operator.folder / "lain.csv.gz")
    return operator, sorted(copies)


def compressed(file: Path, target: Path) -> Path:
    target.write_bytes(gzip.compress(file.read_bytes()))
    return target


def answered(operator: Operator, answer: str) -> subprocess.CompletedProcess[str]:
    return operator.answers(answer, "forget", "1", "--delete-copies")


def test_forget_names_each_copy_that_the_documents_make(
    copied: tuple[Operator, list[Path]],
) -> None:
    """Back-ups of all names and engines, exports, old databases, files of a restore, and files that cannot be read."""
    operator, copies = copied

    def named(nim: str) -> list[str]:
        _, *lines, hint, _ = operator.done("forget", nim).splitlines()
        assert hint == HINT
        return lines

    assert named("1") == [f"{path} still holds the texts." for path in copies]
    unreadable = [path for path in copies if path.is_dir() or path.read_bytes() == b"unreadable"]
    assert named("9") == [f"{path} still holds the texts." for path in unreadable]


@pytest.mark.parametrize("suffix", EXPORTS)
def test_forget_knows_the_name_of_each_kind_of_export(tmp_path: Path, suffix: str) -> None:
    """An export does not tell its list."""
    export = tmp_path / f"daftar{suffix}"
    export.write_bytes(b"")
    assert NAME.fullmatch(export.name)
    assert not is_of_another(export, "0" * 8)


def test_copies_are_removed_after_a_question_and_a_new_backup(
    copied: tuple[Operator, list[Path]],
) -> None:
    """Another answer removes none, and so does a database that another program uses.

    Those that cannot be read may be of another list, so they need a second answer.
    """
    operator, copies = copied
    for answer in ("", "n\n"):
        asked = answered(operator, answer)
        assert asked.returncode == 1
        assert f"Remove these {len(copies) - 2} copies for ever? [y/N]: " in asked.stderr
        assert [path for path in copies if path.exists()] == copies
    used = operator.folder / "lama.db"
    with other_program(used) as other:
        other("SELECT * FROM mahasiswa")
        refused = answered(operator, "y\ny\n")
    assert refused.returncode == 1
    assert refused.stderr.endswith(f"{used}: Device or resource busy. Copies remain\n")
    assert used.exists()
    done = answered(operator, "y\ny\n")
    assert "1 are of another list, or cannot be read. Those too? [y/N]: " in done.stderr
    assert (done.returncode, [path for path in copies if path.exists()]) == (0, []), done.stderr
    (left,) = operator.backup_files()
    assert records_of(left) == operator.records() == [TWO[1]]
    assert (operator.folder / "lain.csv").exists()


def test_ctrl_c_at_the_question_ends_the_command(copied: tuple[Operator, list[Path]]) -> None:
    """Also by a signal alone, as `mahasiswa-run` passes it on."""
    operator, copies = copied
    command = [*COMMAND, "forget", "1", "--delete-copies"]
    pipe = subprocess.PIPE
    with started(*command, stdin=pipe, stderr=pipe, env=operator.environment) as process:
        assert process.stderr
        said = b""
        while not said.endswith(b"[y/N]: "):
            said += os.read(process.stderr.fileno(), 4096)
        # A signal that comes just before the process waits for the answer would not end that wait.
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == REMAIN
    assert [path for path in copies if path.exists()] == copies


def test_ctrl_c_after_the_record_is_removed_says_that_the_copies_remain(filled: Operator) -> None:
    """It comes during the new back-up, of which no file is left."""
    filled.keep_backups()
    filled.done("backup")
    (copy,) = filled.backup_files()
    answer = filled.folder / filled.write("jawaban", b"y\n")
    command = [*COMMAND, "forget", "0000001", "--delete-copies"]
    with answer.open() as typed, started(*command, stdin=typed, env=filled.environment) as process:
        until(lambda: any(filled.backups.glob(".mahasiswa-*/*.db")))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert (process.returncode, errors.endswith(REMAIN)) == (130, True), errors
    assert len(filled.records()) == MANY - 1
    assert filled.backup_files() == [copy]


def test_no_copy_is_removed_if_the_list_is_empty(copied: tuple[Operator, list[Path]]) -> None:
    """All of its records may be lost. So it is if it has lost many, until that is accepted."""
    operator, copies = copied
    operator.sql("DELETE FROM mahasiswa; DELETE FROM mahasiswa_history")
    refused = answered(operator, "y\n")
    assert "mahasiswa: no copy is removed, because the list is empty" in refused.stderr
    assert refused.returncode == 1
    assert [path for path in copies if path.exists()] == copies


def test_backups_of_another_list_need_a_second_answer(
    copied: tuple[Operator, list[Path]], tmp_path: Path
) -> None:
    """Its person may still be in that list, which shares the folder. An old name has no id, so it is read in the file."""
    operator, _ = copied
    (tmp_path / "lain").mkdir()
    other = Operator(tmp_path / "lain")
    other.fill(TWO)
    named, old_name = (
        operator.backups / f"mahasiswa-{name}.db"
        for name in ("0a1b2c3d-20260101T000000Z", "20260101T000000Z")
    )
    shutil.copy(operator.database, named)
    shutil.copy(other.database, old_name)
    done = answered(operator, "y\nn\n")
    assert "4 are of another list, or cannot be read. Those too? [y/N]: " in done.stderr
    assert (done.returncode, named.exists(), old_name.exists()) == (0, True, True)
    assert answered(operator, "y\n").returncode == 0
    assert [named.exists(), old_name.exists()] == [False, False]


def test_a_nim_with_a_backslash_is_found_in_a_dump(operator: Operator, postgres: str) -> None:
    """pg_dump writes this character twice, and a tab as two others."""
    operator.environment["PATH"] = f"{programs()}:{operator.environment['PATH']}"
    nim = 'a\\b\t"c"'
    dump = operator.folder / "mahasiswa.dump"
    operator.fill([])
    with own_schema(postgres) as url:
        migrate(url)
        merge(url, (nim, "Ani", "Solo"))
        run(programs() / "pg_dump", "--format=custom", f"--file={dump}", f"--dbname={url}")
    assert f"{dump} still holds the texts." in operator.done("forget", nim)
    assert "still holds" not in operator.done("forget", "a\\b")


@pytest.fixture(name="dependent")
def operator_who_owns_nothing(operator: Operator, postgres: str) -> Iterator[Operator]:
    """Run commands as a role that may read and write the tables of another one. The file `lama.csv` has the records."""
    with own_schema(postgres) as url:
        migrate(url)
        merge(url, *TWO)
        with clerk(url) as (_, own):
            operator.use(own)
            operator.keep_backups(operator.folder)
            operator.done("export", "lama.csv")
            yield operator


def test_the_copies_are_named_also_if_only_the_owner_can_remove_the_texts_from_the_files(
    dependent: Operator,
) -> None:
    """The error is the last line. Run again, the command does not say that the owner has done nothing."""
    copy = dependent.folder / "lama.csv"
    for removed in ("the record and its history are removed", "no record and no history"):
        ended = dependent.run("forget", "1")
        assert ended.stdout.startswith(f"{copy} still holds the texts.\n")
        assert ended.stderr.startswith(f"mahasiswa: {removed}, but ")
        is_done = "; if the owner has run it since the removal, this is done\n"
        assert ended.stderr.endswith(is_done) == (removed == "no record and no history")
        assert ended.returncode == 1
    ended = dependent.answers("y\n", "forget", "1", "--delete-copies")
    assert "the owner of the table must run: VACUUM" in ended.stderr
    assert (ended.returncode, copy.exists()) == (1, True)  # there is no newer dump


def test_no_copy_is_removed_if_no_backup_can_be_made(copied: tuple[Operator, list[Path]]) -> None:
    """Such as that to a disk that is gone."""
    operator, _ = copied
    gone = operator.folder / "none" / "cadangan"
    operator.keep_backups(gone)
    before = operator.names()
    refused = answered(operator, "y\ny\n")
    assert f"mahasiswa: no backup was written to the folder {gone}" in refused.stderr
    assert (refused.returncode, operator.names()) == (1, before)


def test_a_copy_is_named_although_another_one_vanishes_meanwhile(operator: Operator) -> None:
    """As by a back-up of the service, which removes old ones."""
    operator.keep_backups()
    operator.fill(TWO)
    operator.done("backup")
    (copy,) = operator.backup_files()
    others = [copy.with_name(f"mahasiswa-20260101T{number:06}Z.db") for number in range(500)]
    with flickering(others, Path.touch, Path.unlink):
        for _ in range(10):
            assert f"{copy} still holds the texts." in operator.done("forget", "1")

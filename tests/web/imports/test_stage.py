"""The stage of an upload by itself: its folder, its bounds, and the errors of a file that is damaged or full."""

import errno
import os
import time
from pathlib import Path

import pytest

from mahasiswa.sheets import stage as stages
from mahasiswa.sheets.cells import TooHeavy
from mahasiswa.sheets.stage import (
    MAX_AGE_SECONDS,
    MAX_BYTES,
    STAGES_MAX,
    STAGES_MAX_OF_ADDRESS,
    Gone,
    Purpose,
    Stage,
)


def begun(folder: Path, address: str = "::1", purpose: Purpose = "impor") -> str:
    """Begin an upload; return its identifier. Each is opened a second after the one before it."""
    with Stage.create(folder, purpose, "a.xlsx", address) as stage:
        count = len(list(folder.iterdir()))
        os.utime(stage.path, (time.time(), time.time() - 1000 + count))
        return stage.path.name


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_of_too_many_uploads_saved_ones_go_first_and_then_selections(tmp_path: Path) -> None:
    """Then goes the one of the address with most that was not opened for longest."""
    folder = tmp_path / "unggahan"
    many = [begun(folder, "10.0.0.1") for _ in range(STAGES_MAX_OF_ADDRESS)]
    for number in range(STAGES_MAX - len(many) - 2):
        begun(folder, f"10.0.1.{number}")
    selection = begun(folder, "10.0.2.1", "pilih")
    saved = begun(folder, "10.0.2.2")
    with Stage.find(folder, saved, "impor") as stage:
        stage.do("finish", [("1-1",)])
    for victim in (saved, selection, *many[:2]):
        before = left(folder)
        begun(folder, f"10.0.3.{victim}")
        assert before - left(folder) == {victim}
    assert len(left(folder)) == STAGES_MAX


def test_one_address_has_a_part_of_the_uploads_only(tmp_path: Path) -> None:
    """A new upload ends the oldest one of the same address, and none of another address."""
    folder = tmp_path / "unggahan"
    other = begun(folder, "10.0.0.2")
    first, *rest = [begun(folder, "10.0.0.1") for _ in range(STAGES_MAX_OF_ADDRESS)]
    last = begun(folder, "10.0.0.1")
    assert left(folder) == {other, *rest, last}
    assert first not in left(folder)


def test_an_upload_ends_after_two_hours(tmp_path: Path) -> None:
    """It is not found any more, and the next start of a worker removes it, as it removes a damaged one."""
    folder = tmp_path / "unggahan"
    old, young, damaged = (begun(folder) for _ in range(3))
    with Stage.find(folder, old, "impor") as stage:
        ended = time.time() - MAX_AGE_SECONDS - 1
        stage.db.execute("UPDATE stage SET created = ?", (ended,))
    (folder / damaged).write_bytes(b"")
    with pytest.raises(Gone):
        Stage.find(folder, old, "impor")
    stages.remove_ended(folder)
    assert left(folder) == {young}


def test_a_folder_that_other_users_can_read_is_refused(tmp_path: Path) -> None:
    """Also a symbolic link, which another user could have made in the folder for temporary files."""
    folder = tmp_path / "unggahan"
    folder.mkdir(0o750)
    (tmp_path / "own").mkdir(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    for place in (folder, tmp_path / "link"):
        with pytest.raises(PermissionError) as refused:
            Stage.create(place, "impor", "a.xlsx", "::1")
        assert refused.value.errno == errno.EACCES


def test_an_upload_never_takes_more_than_its_part_of_the_disk(tmp_path: Path) -> None:
    """Nothing of the change that was too much is kept."""
    folder = tmp_path / "unggahan"
    long = "x" * (MAX_BYTES // 10)
    with pytest.raises(TooHeavy), Stage.create(folder, "impor", "a.xlsx", "::1") as stage:
        stage.put_lines([], ((1, number, "1", long, "", "", "") for number in range(99)), 1)
    with Stage.find(folder, stage.path.name, "impor") as stage:
        assert stage.facts().version == 1
        assert stage.ask("counts") == []

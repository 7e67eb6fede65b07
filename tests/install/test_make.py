"""`make run` and `make install` in a state in which they cannot go on."""

import shutil
import sys
from pathlib import Path
from signal import SIGKILL

import pytest
from cli.operators import UNPRIVILEGED
from install.installed import ROOT
from processes import finished, run

PYTHON = """#!/bin/sh
# Stands for Python, whose environment holds a copy of this script, and pip as the last file. With a file `cut` that names
# a module, a power cut comes in the middle of it.
cut() { [ ! -e cut ] || [ "$(cat cut)" != "$1" ] || { rm cut; kill -9 0; }; }
case "$*" in
  '-m venv .venv')
    mkdir -p .venv/bin
    cp "$0" .venv/bin/python
    touch .venv/pyvenv.cfg
    cut venv
    touch .venv/pip
    ;;
  '-m pip '*)
    [ -e .venv/pip ] || { echo 'No module named pip' >&2; exit 1; }
    touch .venv/half
    cut pip
    rm .venv/half
    ;;
esac
"""
MAKE = ("make", "--silent", "PYTHON=./python3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with our Makefile, an empty lock, and the stand-in for Python."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "docs").mkdir()
    needed = ("pyproject.toml", "hatch_build.py", "docs/panduan.md")
    for file in ("requirements.txt", "requirements-build.txt", *needed):
        (tmp_path / file).touch()
    (tmp_path / "python3").write_text(PYTHON)
    (tmp_path / "python3").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("module", ["venv", "pip"])
def test_an_environment_that_was_cut_is_made_again(folder: Path, module: str) -> None:
    """It has no pip, or a part of a package, so it cannot be completed."""
    (folder / "cut").write_text(module)
    cut = finished(*MAKE, ".venv/run.stamp", cwd=folder, start_new_session=True)
    assert cut.returncode == -SIGKILL
    assert (folder / ".venv/pyvenv.cfg").exists()
    run(*MAKE, ".venv/run.stamp", cwd=folder)
    left = {file.name for file in (folder / ".venv").iterdir()}
    assert left == {"bin", "pip", "pyvenv.cfg", "run.stamp"}


def test_an_environment_of_another_python_is_made_again(folder: Path) -> None:
    """After an upgrade of the system, an environment has no packages. An environment that has them stays."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / ".venv")
    (folder / ".venv/run.stamp").touch()
    for _ in range(2):
        run(*MAKE, ".venv/run.stamp", cwd=folder)
        assert (folder / ".venv/pip").read_text() == ""
        (folder / ".venv/half").touch()
    assert (folder / ".venv/half").exists()


def test_make_says_in_one_line_that_a_user_lacks_the_rights(folder: Path) -> None:
    """Nothing is made."""
    folder.chmod(0o555)
    made = finished(*UNPRIVILEGED, *MAKE, ".venv/run.stamp", cwd=folder)
    folder.chmod(0o755)
    assert made.stderr.startswith(f"This user may not write to {folder}")
    assert not (folder / ".venv").exists()

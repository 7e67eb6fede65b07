"""`make run` and `make install` in a state in which they cannot go on."""

import shutil
import sys
from pathlib import Path
from signal import SIGKILL

import pytest
from installed import ROOT
from processes import finished, run

MAKE = ("make", "--silent", f"PYTHON={Path(__file__).with_name('stubs')}/python3")


def makefile(folder: Path) -> None:
    shutil.copy(ROOT / "Makefile", folder)
    for file in ("requirements.txt", "requirements-build.txt", "pyproject.toml"):
        (folder / file).touch()


@pytest.mark.parametrize("module", ["venv", "pip"])
def test_an_environment_that_was_cut_is_made_again(tmp_path: Path, module: str) -> None:
    """It has no pip, or a part of a package, so it cannot be completed."""
    makefile(tmp_path)
    (tmp_path / "cut").write_text(module)
    cut = finished(*MAKE, ".venv/run.stamp", cwd=tmp_path, start_new_session=True)
    assert cut.returncode == -SIGKILL
    assert (tmp_path / ".venv/pyvenv.cfg").exists()
    run(*MAKE, ".venv/run.stamp", cwd=tmp_path)
    left = {file.name for file in (tmp_path / ".venv").iterdir()}
    assert left == {"bin", "pip", "pyvenv.cfg", "run.stamp"}


def test_an_environment_of_another_python_is_made_again(tmp_path: Path) -> None:
    """After an upgrade of the system, an environment has no packages. An environment that has them stays."""
    makefile(tmp_path)
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv")
    (tmp_path / ".venv/run.stamp").touch()
    for _ in range(2):
        run(*MAKE, ".venv/run.stamp", cwd=tmp_path)
        assert (tmp_path / ".venv/pip").read_text() == ""
        (tmp_path / ".venv/half").touch()
    assert (tmp_path / ".venv/half").exists()


def test_make_says_in_one_line_that_a_user_lacks_the_rights(
    tmp_path: Path, unprivileged: list[str]
) -> None:
    """Nothing is made or installed."""
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    makefile(tmp_path)
    for folder in (tmp_path, units):
        folder.chmod(0o555)
    install = finished(*unprivileged, *MAKE, "install", f"DESTDIR={tmp_path}", cwd=tmp_path)
    environment = finished(*unprivileged, *MAKE, ".venv/run.stamp", cwd=tmp_path)
    for folder in (tmp_path, units):
        folder.chmod(0o755)
    assert install.stderr.splitlines()[0] == "This user may not install units. Run it as root."
    assert environment.stderr.startswith(f"This user may not write to {tmp_path}")
    assert not (tmp_path / ".venv").exists()
    assert list(units.iterdir()) == []

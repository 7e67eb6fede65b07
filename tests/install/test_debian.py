"""A bare Debian 13 with the packages that README.md names: `make run` serves a list, and `make test` runs for its user."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Service, free_port
from install.installed import ROOT, do_what_staff_do, make_debian
from processes import run

pytestmark = pytest.mark.torture

# An installed Debian has ca-certificates and procps.
PACKAGES = "ca-certificates git make procps python3-venv"
PYTHON = "3.13"
TEST_SECONDS = 600.0
TESTS = "tests/spec tests/cli/test_server.py tests/web/records/test_one_record.py"
# A test that depends on the letters of the login name fails.
USER = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def debian() -> Iterator[list[str]]:
    """Make the Debian, with a clone of our repository and its packages of Python. Return how its user runs a command."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "root")
        make_debian(Path(name), "trixie", PACKAGES, PYTHON)
        run("git", "clone", "--quiet", ROOT, root / "mahasiswa")
        run("chroot", root, "useradd", "--create-home", USER)
        run("chroot", root, "chown", "--recursive", USER, "/mahasiswa")
        enter = [
            "systemd-nspawn",
            "--quiet",
            "--register=no",
            "--keep-unit",
            "--as-pid2",
            "--console=pipe",
        ]
        enter += [
            f"--directory={root}",
            f"--bind-ro={name}/wheels:/wheels",
            f"--user={USER}",
            "--chdir=/mahasiswa",
        ]
        yield [*enter, "--setenv=PIP_NO_INDEX=1", "--setenv=PIP_FIND_LINKS=/wheels"]


def test_make_run_serves_a_list_on_a_bare_debian_13(debian: list[str]) -> None:
    """It installs the locked packages for Python 3.13, and staff add, edit, delete, import and export."""
    run(*debian, "make", ".venv/run.stamp")
    port = free_port()
    settings = [f"--setenv=PORT={port}", "--setenv=HOST=127.0.0.1"]
    command = [*debian, *settings, "make", "run"]
    with Service("", {"PORT": str(port)}, command=command) as service, service.site() as site:
        do_what_staff_do(site)
        service.stop()  # SIGKILL would end systemd-nspawn alone, and leave the service


def test_make_test_passes_on_a_bare_debian_13(debian: list[str]) -> None:
    """Without the network: the specification, the starts, and the records, on both engines."""
    said = run(*debian, "--private-network", "make", "test", f"ARGS={TESTS}", timeout=TEST_SECONDS)
    assert " passed" in said

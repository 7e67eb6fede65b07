"""`make dist` and `make image`: the wheel, the sdist, the SBOM and the container image work away from the repository."""

import os
import re
import shlex
import signal
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest
from harness import Service, Site, free_port
from install.installed import (
    ROOT,
    block,
    do_what_staff_do,
    is_well,
    needs,
)
from processes import finished, run, until

pytestmark = pytest.mark.torture

LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096")
"""podman's defaults are higher than the machine's limits, and not every machine lets root raise them."""

IMAGE_TOOLS = ("buildah", "mmdebstrap", "podman", "runc")


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `make dist`, and return the folder of its files."""
    folder = tmp_path_factory.mktemp("dist")
    run("make", "dist", f"DIST={folder}", cwd=ROOT)
    return folder


in_repository = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no Git repository")


# ---- the wheel and the sdist
def test_the_wheel_serves_a_list_from_an_environment_of_its_own(
    built: Path, tmp_path: Path
) -> None:
    """It keeps its list in the folder of its start, and says its version."""
    environment, elsewhere = tmp_path / "environment", tmp_path / "elsewhere"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", environment]
    run(*pip, "--quiet", "install", "--constraint", built / "constraints.txt", only(built, "*.whl"))
    locked = set(re.findall(r"(?m)^(\S+==\S+)", (ROOT / "requirements.txt").read_text("utf-8")))
    listed = run(*pip, "list", "--format=freeze", "--exclude=mahasiswa")
    installed = set(listed.lower().replace("_", "-").split())
    assert len(installed) > 10
    assert installed <= locked
    elsewhere.mkdir()
    program = environment / "bin" / "mahasiswa"
    assert run(program, "--version") == f"mahasiswa, version {version('mahasiswa')}\n"
    with (
        Service(
            "sqlite:///mahasiswa.db",
            {"PYTHONPATH": ""},
            ["env", f"--chdir={elsewhere}", str(program)],
        ) as service,
        service.site() as site,
    ):
        do_what_staff_do(site)
        assert service.stop() == 0
    assert {file.name for file in elsewhere.iterdir()} == {
        "mahasiswa.db",
        "mahasiswa.db-unggahan",
    }


@in_repository
def test_the_sdist_holds_every_file_of_the_repository(built: Path, tmp_path: Path) -> None:
    tracked = run(
        "git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT
    ).splitlines()
    with tarfile.open(only(built, "*.tar.gz")) as sdist:
        sdist.extractall(tmp_path, filter="data")
    unpacked = only(tmp_path, "mahasiswa-*")
    held = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}
    assert held == {*tracked, "PKG-INFO"}


# ---- the container image
@pytest.fixture(scope="module")
def image(built: Path) -> Path:
    """Run `make image` on these files, and return the image."""
    needs(*IMAGE_TOOLS)
    run("make", "--assume-old=dist", "image", f"DIST={built}", cwd=ROOT)
    return only(built, "*.oci.tar")


@pytest.fixture
def podman(image: Path) -> Iterator[partial[str]]:
    """Load the image into a storage of its own, which is removed afterwards. Run a podman command that must succeed."""
    # Not tmp_path: podman accepts no path of more than 50 characters.
    with tempfile.TemporaryDirectory() as folder:
        places = (f"--root={folder}/storage", f"--runroot={folder}/run", f"--tmpdir={folder}/tmp")
        kinds = (
            "--storage-driver=vfs",
            "--runtime=runc",
            "--cgroup-manager=cgroupfs",
            "--events-backend=file",
        )
        podman = partial(run, "podman", *places, *kinds)
        podman("load", "--quiet", "--input", str(image))
        yield podman
        podman("rm", "--force", "--all")
        # The processes that clean up after containers still write there.
        until(lambda: finished("pgrep", "--full", folder).returncode == 1)


def commands(port: int) -> tuple[list[str], list[str]]:
    """Return the arguments of podman by which docs/install.md starts the container, here on this port, and checks it."""
    text = block("install.md", "In a container")
    lines = text.replace("\\\n", "").splitlines()
    start, check = (
        shlex.split(line)[1:] for line in lines if line.startswith(("podman run ", "podman exec "))
    )
    published = start.index("--publish")
    start[published : published + 2] = ["--network", "host"]
    settings = (f"--env=PORT={port}", f"--env=BASE_URL=http://127.0.0.1:{port}")
    start[-1:-1] = [*LIMITS, *settings]
    return start, check


def test_a_container_keeps_its_records_with_a_read_only_root_and_no_capability(
    podman: partial[str],
) -> None:
    """It starts as docs/install.md says, twice, serves every kind of change, backs up, ends with 0, and starts again."""
    port = free_port()
    start, check = commands(port)
    with Site(f"http://127.0.0.1:{port}") as site:
        for _ in range(2):
            podman(*start)
            until(lambda: is_well(site))
        do_what_staff_do(site)
        stored = site.records
        main = podman("inspect", "--format", "{{.State.Pid}}", "mahasiswa").strip()
        status = Path("/proc", main, "status").read_text("utf-8")
        for line in (
            "Uid:" + "\t10001" * 4,
            "CapEff:\t" + "0" * 16,
            "CapBnd:\t" + "0" * 16,
            "NoNewPrivs:\t1",
        ):
            assert f"{line}\n" in status
        os.kill(int(main), signal.SIGKILL)
        until(lambda: podman("inspect", "--format", "{{.RestartCount}}", "mahasiswa") == "1\n")
        until(lambda: is_well(site))
        with pytest.raises(AssertionError, match="Read-only file system"):
            podman("exec", "mahasiswa", "/usr/bin/python3", "-c", "open('/usr/x', 'w')")
        assert podman("exec", "mahasiswa", "mahasiswa", "backup").startswith("/backup/mahasiswa-")
        assert "WRONG" not in podman(*check)
        program = " ".join([*podman.args, "exec", "-i", "mahasiswa", "mahasiswa"])
        rows = "NIM;Nama;Alamat\\n2301;Ani;Solo\\n"
        assert "1 new" in run("sh", "-c", f"printf '{rows}' | {program} import -")
        site.delete("2301")

        podman("stop", "mahasiswa")
        assert podman("inspect", "--format", "{{.State.ExitCode}}", "mahasiswa") == "0\n"
        podman("start", "mahasiswa")
        until(lambda: is_well(site))
        assert site.records == stored

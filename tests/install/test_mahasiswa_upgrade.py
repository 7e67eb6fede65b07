"""mahasiswa-upgrade, on a small machine and a container of shell scripts, with a fault in each of its steps.

The scripts in tests/install/stubs stand for systemd, podman and make, so that a run takes a tenth of a second.
test_machine.py and test_packages.py run the same program with the real ones.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest
from installed import GIT, ROOT
from processes import finished, run

PROGRAM = ROOT / "packaging" / "mahasiswa_upgrade.py"
STUBS = Path(__file__).with_name("stubs")

FAULT = """
import errno, os, runpy, signal, sys
number, is_kill, *sys.argv = int(sys.argv[1]), sys.argv[2] == "kill", *sys.argv[3:]
changes = {"os.rename", "os.symlink", "os.remove", "os.rmdir"}
questions = {"inspect", "exists", "is-active", "exec", "git"}
seen = 0
def look(event, arguments):
    global seen
    is_command = event == "subprocess.Popen" and questions.isdisjoint(arguments[1])
    seen += is_command or event in changes
    if seen == number:
        seen += 1
        if is_kill:
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(os.open(os.environ["DESTDIR"] + "/failed", os.O_CREAT))
        raise OSError(errno.ENOSPC, "No space left on device")
sys.addaudithook(look)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program, and kills it before its n-th command or change of a file, or lets that one fail, as on a full disk."""

RECORDS = ["1 Siti", "2 Budi"]
OLD, NEW = "tables=1 starts=true builds=true", "tables=2 starts=true builds=true"
BROKEN = "tables=2 starts=false builds=true"


class World:
    """A computer with version v1 of the service, which runs."""

    arguments: tuple[str, ...] = ()

    def __init__(self, folder: Path, abouts: dict[str, str]) -> None:
        self.folder = folder
        self.put("list", "\n".join(["1", *RECORDS, ""]))
        for name, about in abouts.items():
            self.put(f"{self.versions}/{name}/about", f"{about}\n")
            self.put(f"{self.versions}/{name}/Makefile", "")

    versions = "srv/mahasiswa"

    def put(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def environment(self) -> dict[str, str]:
        path = f"{STUBS}:{os.environ['PATH']}"
        return {**os.environ, "DESTDIR": str(self.folder), "HOME": str(self.folder), "PATH": path}

    def upgrade(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return finished(PROGRAM, *self.arguments, *arguments, env=self.environment())

    def upgrade_with_fault(self, number: int, mode: str, *arguments: str) -> bool:
        """Return whether the program came to the fault."""
        fault = (sys.executable, "-I", "-S", "-c", FAULT, str(number), mode)
        done = finished(*fault, PROGRAM, *self.arguments, *arguments, env=self.environment())
        assert "Traceback" not in done.stderr
        return done.returncode == -SIGKILL or (self.folder / "failed").exists()

    def call(self, *words: str) -> str:
        return run(STUBS / words[0], *words[1:], env=self.environment())

    def records(self) -> list[str]:
        return (self.folder / "list").read_text().splitlines()[1:]

    def add(self, record: str) -> None:
        with (self.folder / "list").open("a") as file:
            file.write(f"{record}\n")

    def running(self) -> str:
        """Return the description of the version that is installed and runs."""
        raise NotImplementedError

    def boot(self) -> bool:
        """Start what a restart of the computer starts; return whether the service runs."""
        raise NotImplementedError


class Machine(World):
    def __init__(self, folder: Path, abouts: dict[str, str]) -> None:
        super().__init__(folder, abouts)
        self.put("etc/unit", "")
        (folder / "var/lib/mahasiswa-backup").mkdir(parents=True)
        (folder / "srv/mahasiswa/app").symlink_to("v1")
        self.call("make", "--silent", "-C", f"{folder}/srv/mahasiswa/app", "install")
        self.call("systemctl", "start", "mahasiswa")

    def running(self) -> str:
        # The service runs with the unit of its version.
        files = ("srv/mahasiswa/app/about", "etc/unit", "running")
        abouts = {(self.folder / file).read_text().strip() for file in files}
        (about,) = abouts
        return about

    def boot(self) -> bool:
        (self.folder / "running").unlink(missing_ok=True)
        start = (STUBS / "systemctl", "start", "mahasiswa")
        return finished(*start, env=self.environment()).returncode == 0


class Container(World):
    versions = "images"
    arguments = ("--container",)

    def __init__(self, folder: Path, abouts: dict[str, str]) -> None:
        super().__init__(folder, abouts)
        (folder / "containers").mkdir()
        self.call("podman", "run", "--name", "mahasiswa", "v1")

    def running(self) -> str:
        container = self.folder / "containers" / "mahasiswa"
        image = (container / "running").read_text().strip()
        return (self.folder / "images" / image / "about").read_text().strip()

    def boot(self) -> bool:
        containers = list((self.folder / "containers").iterdir())
        for container in containers:
            (container / "running").unlink(missing_ok=True)
        for container in containers:
            self.call("podman", "start", container.name)
        return any((container / "running").exists() for container in containers)


@pytest.fixture(params=[Machine, Container])
def kind(request: pytest.FixtureRequest) -> type[World]:
    return request.param  # type: ignore[no-any-return]


def faults(
    kind: type[World], folder: Path, mode: str, about: str, *, goes_back: bool = False
) -> Iterator[tuple[World, tuple[str, ...]]]:
    """Upgrade to v2, or go back from it to v1, with a fault at the first moment, then at the second, and so on.

    Yield what the fault has left each time, and the arguments of the program.
    """
    arguments: tuple[str, ...] = ("v2",)
    world = kind(folder / "world", {"v1": OLD, "v2": about})
    if goes_back:
        arguments = ("v1", world.upgrade("v2").stderr.split()[-1])
        world.add("3 Ani")
    shutil.copytree(world.folder, folder / "first", symlinks=True)
    number = 1
    while world.upgrade_with_fault(number, mode, *arguments):
        yield world, arguments
        shutil.rmtree(world.folder)
        shutil.copytree(folder / "first", world.folder, symlinks=True)
        number += 1
    assert number > 10


@pytest.mark.parametrize("mode", ["fail", "kill"])
def test_an_upgrade_leaves_the_version_before_or_the_new_one_with_the_list(
    kind: type[World], mode: str, tmp_path: Path
) -> None:
    """If the build, the back-up or the start fails, the old version runs with its list. The next run goes on.

    After a kill, the computer starts again, and a record is added if the service runs then. The next run completes the
    change or takes it back, and goes on with that record.
    """
    for world, arguments in faults(kind, tmp_path, mode, NEW):
        expected = list(RECORDS)
        if mode == "kill":
            if world.boot():
                world.add("3 Ani")
                expected.append("3 Ani")
        else:
            assert world.running() in (OLD, NEW)
        assert world.records() == expected
        said = world.upgrade(*arguments).stderr
        assert (world.running(), world.records()) == (NEW, expected), said


@pytest.mark.parametrize("mode", ["fail", "kill"])
def test_a_version_that_does_not_start_is_put_back_by_this_run_or_the_next_one(
    kind: type[World], mode: str, tmp_path: Path
) -> None:
    """It has changed the tables, which the old version refuses, so the back-up is restored."""
    for world, _ in faults(kind, tmp_path, mode, BROKEN):
        said = world.upgrade("v1").stderr
        assert (world.running(), world.records()) == (OLD, RECORDS), said


@pytest.mark.parametrize("mode", ["fail", "kill"])
def test_rolling_back_exports_the_list_and_restores_the_back_up_of_the_upgrade(
    kind: type[World], mode: str, tmp_path: Path
) -> None:
    """If a step fails, the newer version runs with its list, or the older one with that of the back-up. The next run goes on."""
    for world, arguments in faults(kind, tmp_path, mode, NEW, goes_back=True):
        if mode == "fail":
            state = world.running(), world.records()
            assert state in ((NEW, [*RECORDS, "3 Ani"]), (OLD, RECORDS))
        said = world.upgrade(*arguments).stderr
        assert (world.running(), world.records()) == (OLD, RECORDS), said
        exports = world.folder.rglob("before-*.csv")
        assert [*RECORDS, "3 Ani"] in [file.read_text().splitlines() for file in exports]


class Cloned(Machine):
    """A machine as docs/install.md installs it: the folder `app` is a clone, and no link."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"v1": OLD})
        self.origin = folder / "origin"
        self._app = folder / "srv/mahasiswa/app"
        self._app.unlink()
        shutil.move(folder / "srv/mahasiswa/v1", self.origin)
        run("git", "init", "--quiet", "--initial-branch=main", self.origin)
        self.first = self.release("")
        run("git", "clone", "--quiet", self.origin, self._app)

    def release(self, text: str) -> str:
        """Make the next version, which has this text; return its name."""
        (self.origin / "text").write_text(text)
        run(*GIT, "-C", self.origin, "add", "--all")
        run(*GIT, "-C", self.origin, "commit", "--quiet", "--message=next")
        return run("git", "-C", self.origin, "describe", "--tags", "--always").strip()

    def text(self) -> str:
        return (self._app / "text").read_text()

    def folders(self) -> set[str]:
        return {each.name for each in self._app.parent.iterdir() if each.name[0] != "."}


def test_an_upgrade_without_anything_new_changes_nothing_and_says_whether_the_service_runs(
    tmp_path: Path,
) -> None:
    """A later upgrade works, also after an earlier program has left a folder of the name of the version in use."""
    world = Cloned(tmp_path)
    assert "in use already, and runs" in world.upgrade().stderr
    assert world.folders() == {"app"}
    world.call("systemctl", "stop", "mahasiswa")
    done = world.upgrade()
    assert (done.returncode, "in use already, and does not run" in done.stderr) == (1, True)
    world.call("systemctl", "start", "mahasiswa")
    run("git", "clone", "--quiet", world.origin, tmp_path / "srv/mahasiswa" / world.first)
    world.release("new")
    assert world.upgrade().returncode == 0
    assert (world.text(), world.running(), world.records()) == ("new", OLD, RECORDS)


def test_a_kill_while_the_first_folder_gets_its_name_is_healed(tmp_path: Path) -> None:
    """The folder has been moved, and there is no link to it yet."""
    for number in range(1, 100):
        shutil.rmtree(tmp_path)
        world = Cloned(tmp_path)
        world.release("new")
        if not world.upgrade_with_fault(number, "kill"):
            break
        world.boot()
        assert world.upgrade().returncode == 0
        assert (world.text(), world.running(), world.records()) == ("new", OLD, RECORDS)
    assert number > 10


def test_the_last_two_old_versions_stay_and_changed_ones_too(tmp_path: Path) -> None:
    """A folder that this program has not made, or in which somebody has changed a file, is never removed."""
    world = Cloned(tmp_path)
    own = tmp_path / "srv/mahasiswa/own"
    own.mkdir()
    names = [world.first]
    for number in range(5):
        names.append(world.release(str(number)))
        assert world.upgrade().returncode == 0
        if number == 1:
            (own.parent / names[-1] / "text").write_text("mine")
    assert world.folders() == {"app", "own", names[2], *names[-3:]}


def test_postgresql_is_dumped_before_an_upgrade_and_rolled_back_with_the_dump(
    tmp_path: Path,
) -> None:
    """The timer of the dumps does not run. Without a dump that can be read, nothing is changed."""
    world = Machine(tmp_path, {"v1": OLD, "v2": NEW})
    world.put("postgresql", "list")
    said = world.upgrade("v2").stderr
    assert (world.running(), world.records()) == (NEW, RECORDS)
    dump = said.split()[-1]
    assert dump.endswith(".dump")
    world.add("3 Ani")
    assert world.upgrade("v1", dump).returncode == 0
    assert (world.running(), world.records()) == (OLD, RECORDS)
    world.put("postgresql", "/dev/null")
    assert world.upgrade("v2").returncode == 1
    assert world.running() == OLD


def test_a_user_without_rights_gets_one_line(tmp_path: Path, unprivileged: list[str]) -> None:
    """Nothing is changed."""
    world = Machine(tmp_path, {"v1": OLD, "v2": NEW})
    folder = tmp_path / "srv/mahasiswa"
    folder.chmod(0o555)
    done = finished(*unprivileged, PROGRAM, "v2", env=world.environment())
    folder.chmod(0o755)
    said = f"mahasiswa-upgrade: this user may not change {folder}. Run it as root.\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert world.running() == OLD

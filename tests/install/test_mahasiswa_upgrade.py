"""mahasiswa-upgrade, on a small machine and a small container, with a fault in each of its steps.

test_machine.py and test_packages.py run the same program with systemd and podman.
"""

import os
import shutil
from pathlib import Path

import pytest
from installed import GIT
from processes import finished, run
from worlds import BROKEN, NEW, OLD, RECORDS, Machine, World


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
        containers = sorted((self.folder / "containers").iterdir())
        for container in containers:
            (container / "running").unlink(missing_ok=True)
        for container in containers:
            self.call("podman", "start", container.name)
            # Then the port is taken.
            if (container / "running").exists():
                return True
        return False


@pytest.fixture(params=[Machine, Container])
def kind(request: pytest.FixtureRequest) -> type[World]:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", ["fail", "kill"])
@pytest.mark.parametrize(("new", "left"), [(NEW, NEW), (BROKEN, OLD)], ids=["starts", "broken"])
def test_an_upgrade_leaves_the_version_before_or_the_new_one_with_the_list(
    kind: type[World], new: str, left: str, mode: str, tmp_path: Path
) -> None:
    """If the build, the back-up or the start fails, the old version runs with its list. The next run goes on.

    A version that does not start has changed the tables, which the old one refuses, so the back-up is restored. After a
    kill, the computer starts again, and a record is added if the service runs then. The next run completes the change or
    takes it back, and goes on with that record: it restores no older back-up.
    """
    world = kind(tmp_path / "world", {"v1": OLD, "v2": new})
    for _ in world.faults(mode, "v2"):
        expected = list(RECORDS)
        if mode == "kill" and world.boot():
            world.add("3 Ani")
            expected.append("3 Ani")
        if new == NEW:
            assert mode == "kill" or world.running() in (OLD, NEW)
            assert world.records() == expected
        world.ends_as(left, expected, "v2")


@pytest.mark.parametrize("mode", ["fail", "interrupt", "kill"])
def test_an_upgrade_with_which_staff_have_worked_since_a_kill_is_not_taken_back(
    kind: type[World], mode: str, tmp_path: Path
) -> None:
    """The new version has changed the tables and a record is added. If the next run fails, it runs with that record."""
    world = kind(tmp_path / "world", {"v1": OLD, "v2": NEW})
    world.is_killed_after_a_start()
    assert [*world.folder.rglob(".upgrade")]
    world.add("3 Ani")
    expected = [*RECORDS, "3 Ani"]
    for _ in world.faults(mode, "v2"):
        assert world.records() == expected
        assert mode == "kill" or [*world.folder.rglob("running")]
        world.ends_as(NEW, expected, "v2")


@pytest.mark.parametrize("mode", ["fail", "kill"])
def test_rolling_back_exports_the_list_and_restores_the_back_up_of_the_upgrade(
    kind: type[World], mode: str, tmp_path: Path
) -> None:
    """If a step fails, the newer version runs with its list, or the older one with that of the back-up. The next run goes on.

    If the older version runs after a kill, and a record is added, the next run does not restore the back-up again.
    """
    world = kind(tmp_path / "world", {"v1": OLD, "v2": NEW})
    file = world.run("v2").stderr.split()[-1]
    world.add("3 Ani")
    for _ in world.faults(mode, "v1", file):
        if mode == "fail":
            state = world.running(), world.records()
            assert state in ((NEW, [*RECORDS, "3 Ani"]), (OLD, RECORDS))
        expected = list(RECORDS)
        if mode == "kill" and world.boot():
            world.add("4 Umar")
            if world.tables() == 1:
                expected.append("4 Umar")
        world.ends_as(OLD, expected, "v1", file)
        exports = world.folder.rglob("before-*.csv")
        assert [*RECORDS, "3 Ani"] in [file.read_text().splitlines()[:3] for file in exports]


def test_a_new_version_that_ends_after_a_kill_can_be_rolled_back(tmp_path: Path) -> None:
    """It has run, and does not start any more. The next run leaves the list as it is, and the one after it rolls back."""
    world = Machine(tmp_path / "world", {"v1": OLD, "v2": NEW})
    world.is_killed_after_a_start()
    world.add("3 Ani")
    world.put(f"{world.versions}/v2/about", f"{BROKEN}\n")
    (backup,) = world.folder.rglob("mahasiswa-*.db")
    refused = world.run("v2")
    assert (refused.returncode, world.records()) == (1, [*RECORDS, "3 Ani"]), refused.stderr
    assert "v2 does not run" in refused.stderr.splitlines()[-1]
    world.ends_as(OLD, RECORDS, "v1", str(backup))


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
    assert "in use already, and runs" in world.run().stderr
    file = tmp_path / "list"
    with_file = world.run("main", str(file))
    assert with_file.stderr.splitlines()[-1].endswith(
        f"To restore it: mahasiswa-run restore {file}"
    )
    assert with_file.returncode == 1
    assert world.folders() == {"app"}
    world.call("systemctl", "stop", "mahasiswa")
    done = world.run()
    assert (done.returncode, "in use already, and does not run" in done.stderr) == (1, True)
    world.call("systemctl", "start", "mahasiswa")
    run("git", "clone", "--quiet", world.origin, tmp_path / "srv/mahasiswa" / world.first)
    world.release("new")
    assert world.run().returncode == 0
    assert (world.text(), world.running(), world.records()) == ("new", OLD, RECORDS)


def test_a_kill_while_the_first_folder_gets_its_name_is_healed(tmp_path: Path) -> None:
    """The folder has been moved, and there is no link to it yet."""
    for number in range(1, 100):
        shutil.rmtree(tmp_path)
        world = Cloned(tmp_path)
        world.release("new")
        if not world.run_with_fault(number, "kill"):
            break
        world.boot()
        assert world.run().returncode == 0
        assert (world.text(), world.running(), world.records()) == ("new", OLD, RECORDS)
    assert number > 10


def test_a_folder_that_an_older_program_has_moved_without_a_link_is_in_use_again(
    tmp_path: Path,
) -> None:
    """It was killed between two commands, with the next version prepared and the service stopped."""
    world = Cloned(tmp_path)
    srv = tmp_path / "srv/mahasiswa"
    new = world.release("new")
    run("git", "clone", "--quiet", world.origin, srv / new)
    world.call("systemctl", "stop", "mahasiswa")
    (srv / "app").rename(srv / world.first)
    assert world.run(world.first).returncode == 1
    assert (srv / "app").resolve().name == world.first
    assert world.run().returncode == 0
    assert (world.text(), world.running(), world.records()) == ("new", OLD, RECORDS)


def test_the_last_two_old_versions_stay_and_changed_ones_too(tmp_path: Path) -> None:
    """A folder that this program has not made, with a changed file, or with a list, is never removed.

    `make run` in a folder begins a list there, which git ignores.
    """
    world = Cloned(tmp_path)
    (world.origin / ".gitignore").write_text("*.db\n")
    own = tmp_path / "srv/mahasiswa/own"
    own.mkdir()
    names = [world.first]
    for number in range(5):
        names.append(world.release(str(number)))
        assert world.run().returncode == 0
        if number < 2:
            file = ("mahasiswa.db", "text")[number]
            (own.parent / names[-1] / file).write_text("mine")
    assert world.folders() == {"app", "own", *names[1:3], *names[-3:]}


def test_postgresql_is_dumped_before_an_upgrade_and_rolled_back_with_the_dump(
    tmp_path: Path,
) -> None:
    """The timer of the dumps does not run. Without a dump that can be read, nothing is changed."""
    world = Machine(tmp_path, {"v1": OLD, "v2": NEW})
    world.put("postgresql", "list")
    said = world.run("v2").stderr
    assert (world.running(), world.records()) == (NEW, RECORDS)
    dump = said.split()[-1]
    assert dump.endswith(".dump")
    world.add("3 Ani")
    folder = tmp_path / "srv/mahasiswa/v1"
    os.utime(folder, (0, 0))
    done = world.run("v1", dump)
    (line,) = done.stderr.splitlines()
    assert line.startswith("mahasiswa-upgrade: v1 runs.")
    assert done.returncode == 0
    assert folder.stat().st_mtime > 0  # the clean-up keeps the versions that were used last
    assert (world.running(), world.records()) == (OLD, RECORDS)
    world.put("postgresql", "/dev/null")
    assert world.run("v2").returncode == 1
    assert world.running() == OLD


def test_a_list_in_postgresql_is_dumped_before_a_dump_replaces_it(tmp_path: Path) -> None:
    """The new version has run after a kill, was then stopped by hand, and does not start again."""
    world = Machine(tmp_path / "world", {"v1": OLD, "v2": NEW})
    world.put("postgresql", "list")
    world.is_killed_after_a_start()
    world.add("3 Ani")
    world.call("systemctl", "stop", "mahasiswa")
    world.put("srv/mahasiswa/v2/about", f"{BROKEN}\n")
    world.ends_as(OLD, RECORDS, "v2")
    dumps = [dump.read_text() for dump in world.folder.rglob("*.dump")]
    assert any("3 Ani" in dump for dump in dumps)


def test_a_user_without_rights_gets_one_line(tmp_path: Path, unprivileged: list[str]) -> None:
    """Nothing is changed."""
    world = Machine(tmp_path, {"v1": OLD, "v2": NEW})
    folder = tmp_path / "srv/mahasiswa"
    folder.chmod(0o555)
    done = finished(*unprivileged, world.program, "v2", env=world.environment())
    folder.chmod(0o755)
    said = f"mahasiswa-upgrade: this user may not change {folder}. Run it as root.\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert world.running() == OLD

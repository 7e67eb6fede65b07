#!/usr/bin/python3 -I
"""Puts another version of the service in use, or goes back to an earlier one.

mahasiswa-upgrade [VERSION [FILE]]
    under systemd. VERSION is a tag, a branch or a commit of the repository (main), or a folder of
    /srv/mahasiswa.
packaging/mahasiswa_upgrade.py --container IMAGE [FILE]
    of the container `mahasiswa`. IMAGE starts with the options of that container.

With FILE, a back-up, the list is exported first, and VERSION restores FILE. If a step fails, the
version before is started with its list; the last line says whether it runs. If this program is
killed, its next run completes the change from the moment on at which the new version is in use, and
takes it back otherwise. It replaces no list with which the service has run since the kill.
"""

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

ROOT = Path(os.environ.get("DESTDIR", "/"))
# Version folders that stay beside the one in use.
OLD_VERSIONS_KEPT = 2
POLL_SECONDS = 1.0
# From these steps on, the next run completes the change of a run that was killed.
COMPLETED_FROM = ("use", "restore", "rename", "start")


class Failure(Exception):
    """A step that failed. The text is one line for the operator."""


class Step(NamedTuple):
    """One step of a change, and its way back. Both may be repeated."""

    name: str
    do: Callable[[], None]
    back: Callable[[], None] = lambda: None


@dataclass
class Change:
    """A change of the version. Its journal is on disk before each step."""

    old: str
    new: str
    # The back-up that the new version restores, or nothing.
    file: str
    # Whether the service ran before.
    ran: bool
    # The back-up that this change has made.
    backup: str = ""
    # The version that ran between a kill and the next run. Staff may have changed the list with it.
    answered: str = ""
    begun: list[str] = field(default_factory=list)


class Commands:
    """Runs commands, and lets a signal end the change only between two of them."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._child: subprocess.Popen[str] | None = None
        self._is_ended = False
        self.is_going_back = False
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
                signal.signal(number, self._note)

    def _note(self, number: int, _frame: object) -> None:
        self._is_ended = True
        # A terminal sends the others to the command too.
        if number == signal.SIGTERM and self._child and not self.is_going_back:
            self._child.send_signal(number)

    def finish(
        self, *words: str | Path, env: Mapping[str, str] | None = None, is_locked: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. While it runs, another run of this program waits, also if this one is killed."""
        # A command of the way back gets no signal of the terminal.
        with subprocess.Popen(  # noqa: S603 - every word is ours or the operator's
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="surrogateescape",
            env={**os.environ, **(env or {})},
            pass_fds=(self._lock,) if is_locked else (),
            start_new_session=self.is_going_back,
        ) as self._child:
            output, errors = self._child.communicate()
        done = subprocess.CompletedProcess(words, self._child.returncode, output, errors)
        self._child = None
        return done

    def run(
        self, *words: str | Path, env: Mapping[str, str] | None = None, is_locked: bool = True
    ) -> str:
        """Run a command that must succeed; return its standard output; raise Failure."""
        done = self.finish(*words, env=env, is_locked=is_locked)
        if done.returncode:
            raise failed(done)
        if self._is_ended and not self.is_going_back:
            raise Failure("interrupted")
        return done.stdout

    def succeeds(self, *words: str | Path) -> bool:
        return self.finish(*words).returncode == 0


class Place(ABC):
    """Where the service runs: a machine under systemd, or a container."""

    name: str
    command: str
    look_at: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._journal = folder / ".upgrade"
        self.commands = Commands(locked(folder))

    @abstractmethod
    def heal(self) -> None:
        """Put right what a run without a journal has left behind; raise Failure."""

    @abstractmethod
    def current(self) -> str:
        """Return the version in use; raise Failure."""

    @abstractmethod
    def prepare(self, version: str) -> str:
        """Make a version ready while the service runs; return its name; raise Failure."""

    @abstractmethod
    def steps(self, change: Change) -> Sequence[Step]: ...

    @abstractmethod
    def runs(self) -> bool:
        """Return whether the service answers."""

    @abstractmethod
    def answering(self) -> str:
        """Return the version that answers, also during a change; an empty text if none does."""

    @abstractmethod
    def complete(self, change: Change) -> None:
        """Put in use what a change lacks whose new version has answered; raise Failure."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def restore(self, version: str, file: str) -> None:
        """Let a version restore a back-up while the service is stopped; raise Failure."""

    @abstractmethod
    def clean(self, change: Change) -> None:
        """Remove what a change that succeeded does not need any more."""

    def start_again(self, change: Change) -> None:
        """Start the version before with its list."""
        if change.answered:
            if "restore" in change.begun:
                say(f"{change.answered} has run since, so {change.backup} is not restored.")
            self.start()
            return
        if "restore" not in change.begun:
            # If the new version has changed the tables, the old one refuses them. Then the list
            # has no later change than the back-up, because the new version has not answered.
            with suppress(Failure):
                self.start()
                return
            self.stop()
        if change.backup:
            self.restore(change.old, change.backup)
        try:
            self.start()
        except Failure:
            if change.ran:
                raise

    def load(self) -> Change | None:
        if not self._journal.exists():
            return None
        return Change(**json.loads(self._journal.read_text("utf-8")))

    def save(self, change: Change) -> None:
        new = self._journal.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(asdict(change), file)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._journal)
        sync(self.folder)

    def forget(self) -> None:
        self._journal.unlink()
        sync(self.folder)


class Machine(Place):
    """The units of systemd, and the folder of each version. The link `app` leads to the one in use."""

    name = "mahasiswa-upgrade"
    command = "mahasiswa-run"
    look_at = "journalctl -u mahasiswa"

    def __init__(self) -> None:
        super().__init__(ROOT / "srv/mahasiswa")
        self._app = self.folder / "app"
        self._backups = ROOT / "var/lib/mahasiswa-backup"

    def heal(self) -> None:
        """Make the link if an older program, which had no journal, was killed before it made it."""
        if os.path.lexists(self._app):
            return
        folders = [path for path in self.folder.glob("[!.]*") if (path / "Makefile").exists()]
        if not folders:
            raise Failure(f"{self._app} does not exist")
        # A rename sets this time.
        self._link(max(folders, key=lambda path: path.stat().st_ctime).name)

    def current(self) -> str:
        if self._app.is_symlink():
            return self._app.readlink().name
        name = self._described(self._app)
        # An upgrade may have left a folder of that name.
        while (self.folder / name).exists():
            name += "-1"
        return name

    def prepare(self, version: str) -> str:
        folder = (self.folder / version).resolve()
        if (folder / "Makefile").exists():
            name = self.current() if folder == self._app.resolve() else folder.name
        else:
            name = self._fetch(version)
        if name != self.current():
            self.commands.run("make", "--silent", "-C", self.folder / name, ".venv/run.stamp")
            os.sync()
        return name

    def _fetch(self, revision: str) -> str:
        """Clone a version into the folder of its name; return the name."""
        new = self.folder / ".new"
        remove(new)
        git = partial(self.commands.run, "git", "-C")
        origin = git(self._app, "remote", "get-url", "origin").strip()
        self.commands.run("git", "clone", "--quiet", origin, new)
        git(new, "checkout", "--quiet", revision)
        if git(new, "rev-parse", "HEAD") == git(self._app, "rev-parse", "HEAD"):
            name = self.current()
        else:
            name = self._described(new)
        if name != self.current() and not (self.folder / name).exists():
            # A folder that has its name is complete, also after a power cut.
            os.sync()
            new.rename(self.folder / name)
        remove(new)
        return name

    def _described(self, folder: Path) -> str:
        return self.commands.run("git", "-C", folder, "describe", "--tags", "--always").strip()

    def steps(self, change: Change) -> Sequence[Step]:
        use = partial(self._use, change.new), partial(self._use, change.old)
        steps = [
            Step("stop", self.stop, partial(self.start_again, change)),
            Step("backup", partial(self._back_up, change)),
            Step("export", partial(self._export, change.new)),
            Step("name", partial(self._name, change.old), partial(self._link, change.old)),
            Step("use", *use),
            Step("restore", partial(self.restore, change.new, change.file)),
            Step("start", self.start, self.stop),
        ]
        return [step for step in steps if change.file or step.name not in ("export", "restore")]

    def start(self) -> None:
        # It returns when the service answers.
        self.commands.run("systemctl", "start", "mahasiswa")

    def stop(self) -> None:
        self.commands.run("systemctl", "stop", "mahasiswa")

    def runs(self) -> bool:
        return self.commands.succeeds("systemctl", "is-active", "--quiet", "mahasiswa")

    def answering(self) -> str:
        return self.current() if self.runs() else ""

    def complete(self, change: Change) -> None:
        if change.file and "start" not in change.begun:
            command = f"{self.command} restore {change.file}"
            say(f"{change.new} has run since. If the list is not the one that you want: {command}")
        self._install()
        self.stop()
        self.start()

    def _back_up(self, change: Change) -> None:
        done = self.commands.finish("mahasiswa-run", "backup")
        if "database: postgresql:" in done.stderr:
            change.backup = self._dump()
        elif done.returncode:
            raise failed(done)
        else:
            change.backup = backup_of(done.stdout)
        if not Path(change.backup).is_file():
            raise Failure(f"the back-up {change.backup} is missing")

    def _dump(self) -> str:
        """Make a dump of PostgreSQL, whether or not the timer runs, and look whether it can be read."""
        before = set(self._backups.glob("*.dump"))
        self.commands.run("systemctl", "start", "mahasiswa-pgdump")
        made = sorted(set(self._backups.glob("*.dump")) - before)
        if not made:
            raise Failure("mahasiswa-pgdump made no dump: journalctl -u mahasiswa-pgdump")
        self.commands.run("pg_restore", "--list", made[-1])
        return str(made[-1])

    def _export(self, version: str) -> None:
        # Either version can import it.
        file = self._backups / f"before-{version}-{time.time_ns()}.csv"
        self.commands.run("mahasiswa-run", "export", file)

    def _name(self, old: str) -> None:
        """Give the folder `app` of an installation its version's name, if it is no link yet."""
        if self._app.is_dir() and not self._app.is_symlink():
            self._app.rename(self.folder / old)

    def _link(self, version: str) -> None:
        # Before its first upgrade, the only version is the folder `app`.
        if (self.folder / version).exists():
            link = self.folder / ".app"
            link.unlink(missing_ok=True)
            link.symlink_to(version)
            link.replace(self._app)
            sync(self.folder)

    def _use(self, version: str) -> None:
        self._link(version)
        self._install()

    def _install(self) -> None:
        self.commands.run("make", "--silent", "-C", self._app, "install")

    def restore(self, version: str, file: str) -> None:
        del version  # the link leads to it
        command: tuple[str, ...] = ("mahasiswa-run", "restore", file)
        if file.endswith(".dump"):
            # On SQLite, `restore` keeps the replaced records in a file.
            self._dump()
            # As in mahasiswa-pgdump.service.
            as_service = (
                "-p User=mahasiswa -p Group=mahasiswa -p EnvironmentFile=-/etc/mahasiswa.env"
            )
            options = ("--quiet", "--collect", "--wait", "--pipe", *as_service.split())
            # Every user can see a command line, so it must not hold a password.
            python = self._app / ".venv/bin/python"
            program = self._app / "packaging/systemd/pg_program.py"
            words = ["pg_restore", "--clean", "--if-exists", "--single-transaction"]
            command = ("systemd-run", *options, "--", str(python), str(program), *words, file)
        print_errors(self.commands.run(*command))

    def clean(self, change: Change) -> None:
        if change.file and not change.file.endswith(".dump"):
            # This version may not read the newest back-up, which the other version has made.
            self.commands.run("mahasiswa-run", "backup")
        for version in (change.old, change.new):
            os.utime(self.folder / version)
        folders = (path for path in self.folder.iterdir() if self._is_old_version(path))
        newest_first = sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)
        for folder in newest_first[OLD_VERSIONS_KEPT:]:
            say(f"the old version {folder.name} is removed.")
            remove(folder)

    def _is_old_version(self, folder: Path) -> bool:
        """Return whether this program has made a folder, in which nobody has changed a file or begun a list."""
        if not (folder / ".git").is_dir() or folder.resolve() == self._app.resolve():
            return False
        # git ignores the lists that `make run` begins.
        for words in (("status", "--porcelain"), ("ls-files", "--others", "--", "*.db")):
            found = self.commands.finish("git", "-C", folder, *words)
            if found.returncode or found.stdout:
                return False
        return folder.name == self._described(folder)


class Container(Place):
    """The container `mahasiswa` of podman. During a change the one before is `mahasiswa-before`."""

    name = "mahasiswa_upgrade.py --container"
    command = "podman exec -i mahasiswa mahasiswa"
    look_at = "podman logs mahasiswa"

    def __init__(self) -> None:
        folder = Path.home() / ".local/state/mahasiswa"
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder)
        self._podman = partial(self.commands.run, "podman")

    def heal(self) -> None:
        if self._standing() == "mahasiswa-before":
            if self.runs():
                self._remove("mahasiswa-before")
            else:
                self._take_back()
                self.start()

    def current(self) -> str:
        return self._image("mahasiswa")

    def _image(self, container: str) -> str:
        return self._podman("inspect", "--format", "{{.Image}}", container).strip()

    def prepare(self, version: str) -> str:
        inspect = ("image", "inspect", "--format", "{{.Id}}")
        image = self._podman(*inspect, version).strip()
        env = self._env()
        if env.get("DATABASE_URL", "").startswith("postgres"):
            raise Failure("the list is in PostgreSQL. Back it up, and start the new image yourself")
        for mount in json.loads(self._inspect("{{json .Mounts}}")):
            if mount["Destination"] == "/data" and re.fullmatch(
                "[0-9a-f]{64}", mount.get("Name", "")
            ):
                raise Failure("/data is a volume without a name, which no other container gets")
        return self.current() if image == self.current() else version

    def _inspect(self, form: str) -> str:
        return self._podman("inspect", "--format", form, self._standing())

    def _standing(self) -> str:
        """Return the name of the container of the version before."""
        exists = self.commands.succeeds("podman", "container", "exists", "mahasiswa-before")
        return "mahasiswa-before" if exists else "mahasiswa"

    def _env(self) -> dict[str, str]:
        """Return the settings of the container that its commands need too."""
        pairs = (word.split("=", 1) for word in json.loads(self._inspect("{{json .Config.Env}}")))
        return {name: value for name, value in pairs if name in ("BACKUP_DIR", "DATABASE_URL")}

    def steps(self, change: Change) -> Sequence[Step]:
        file = f"/backup/before-{time.time_ns()}.csv"
        steps = [
            Step("stop", self.stop, partial(self.start_again, change)),
            Step("backup", partial(self._back_up, change)),
            Step("export", lambda: print_errors(self._stopped(change.old, "export", file))),
            Step("restore", partial(self.restore, change.new, change.file)),
            Step("rename", self._set_aside, self._take_back),
            Step("start", partial(self._start_new, change.new), self.stop),
        ]
        return [step for step in steps if change.file or step.name not in ("export", "restore")]

    def _back_up(self, change: Change) -> None:
        change.backup = backup_of(self._stopped(change.old, "backup"))

    def _stopped(self, image: str, *words: str) -> str:
        """Run a command with an image while the container stands, so no change comes in between."""
        env = self._env()
        names = [f"--env={name}" for name in env]
        of = ("run", "--rm", f"--volumes-from={self._standing()}", *names)
        return self._podman(*of, image, *words, env=env)

    def restore(self, version: str, file: str) -> None:
        print_errors(self._stopped(version, "restore", file))

    def _set_aside(self) -> None:
        if self._standing() == "mahasiswa":
            self._podman("rename", "mahasiswa", "mahasiswa-before")

    def _take_back(self) -> None:
        if self._standing() == "mahasiswa-before":
            self._remove("mahasiswa")
            self._podman("rename", "mahasiswa-before", "mahasiswa")

    def _remove(self, container: str) -> None:
        if self.commands.succeeds("podman", "container", "exists", container):
            self._podman("rm", "--force", container)

    def _start_new(self, image: str) -> None:
        # Its last word is the image.
        words = json.loads(self._inspect("{{json .Config.CreateCommand}}"))
        # A restart of the computer may have started it.
        self._podman("stop", "mahasiswa-before")
        self._remove("mahasiswa")
        # The process that watches the container inherits its files, so it must not get the lock.
        self.commands.run("podman", *words[1:-1], image, is_locked=False)
        self._wait()

    def start(self) -> None:
        self.commands.run("podman", "start", "mahasiswa", is_locked=False)
        self._wait()

    def stop(self) -> None:
        if self.commands.succeeds("podman", "container", "exists", "mahasiswa"):
            self._podman("stop", "mahasiswa")

    def _wait(self) -> None:
        """Wait until the service answers. A start may upgrade a long list, which takes minutes."""
        state = ("inspect", "--format", "{{.State.Running}} {{.RestartCount}}", "mahasiswa")
        first = self._podman(*state)
        while not self.runs():
            if not first.startswith("true") or self._podman(*state) != first:
                raise Failure("the container does not answer")
            time.sleep(POLL_SECONDS)

    def runs(self) -> bool:
        return self._answers("mahasiswa")

    def _answers(self, container: str) -> bool:
        doctor = self.commands.finish("podman", "exec", container, "mahasiswa", "doctor")
        return "The service answers on " in doctor.stdout

    def answering(self) -> str:
        # A restart of the computer may have started either one.
        containers = filter(self._answers, ("mahasiswa", "mahasiswa-before"))
        return next(map(self._image, containers), "")

    def complete(self, change: Change) -> None:
        del change  # its container exists
        self.start()

    def clean(self, change: Change) -> None:
        del change
        self._remove("mahasiswa-before")


def print_errors(text: str) -> None:
    sys.stderr.write(text)


def say(text: str) -> None:
    print_errors(f"mahasiswa-upgrade: {text}\n")


def fail(text: str) -> NoReturn:
    say(text)
    sys.exit(1)


def failed(done: subprocess.CompletedProcess[str]) -> Failure:
    print_errors(done.stdout + done.stderr)
    return Failure(f"{' '.join(map(str, done.args))} ended with {done.returncode}")


def backup_of(output: str) -> str:
    """Return the file that `mahasiswa backup` names in its last line."""
    return output.rstrip().rpartition("\n")[2].rpartition(": ")[0]


def locked(folder: Path) -> int:
    """Wait for another run of this program; return the descriptor that keeps others waiting."""
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def sync(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def carry_out(place: Place, change: Change, steps: Sequence[Step]) -> None:
    """Take the steps of a change; if one fails, go back and exit."""
    try:
        for step in steps:
            change.begun.append(step.name)
            place.save(change)
            step.do()
    except (Failure, OSError) as error:
        say(f"{error}.")
        say(f"{change.new} does not run ({place.look_at}). {change.old} is put back.")
        go_back(place, change)
        sys.exit(1)
    end(place, change)


def end(place: Place, change: Change) -> None:
    place.forget()
    try:
        place.clean(change)
    except (Failure, OSError) as error:
        say(f"{error}.")


def go_back(place: Place, change: Change) -> None:
    """Take the way back of each step that was begun; exit if the version before does not run then."""
    place.commands.is_going_back = True
    problems = []
    begun = set(change.begun)
    change.begun.append("back")
    with suppress(OSError):
        place.save(change)
    for step in reversed(place.steps(change)):
        if step.name in begun:
            try:
                step.back()
            except (Failure, OSError) as error:
                problems.append(error)
    if problems or (change.ran and not place.runs()):
        for problem in problems:
            say(f"{problem}.")
        fail(f"{change.old} does not run either ({place.look_at}). Then run {place.name} again.")
    place.forget()
    say(f"{change.old} runs." if place.runs() else f"{change.old} does not run, as before.")
    place.commands.is_going_back = False


def resume(place: Place, change: Change) -> str:
    """Complete the change of a run that was killed, or take it back; return the file that this has restored."""
    change.answered = place.answering() or change.answered
    if change.answered not in ("", change.old):
        complete(place, change)
        return ""
    last = change.begun[-1]
    if change.answered or last not in COMPLETED_FROM:
        say(f"the change from {change.old} to {change.new} was not completed. It is taken back.")
        go_back(place, change)
        return ""
    say(f"the change from {change.old} to {change.new} is completed.")
    steps = place.steps(change)
    names = [step.name for step in steps]
    carry_out(place, change, [Step("stop", place.stop), *steps[names.index(last) :]])
    return change.file


def complete(place: Place, change: Change) -> None:
    """Complete a change whose new version has answered; if that fails, start it again and exit."""
    place.save(change)
    try:
        place.complete(change)
    except (Failure, OSError) as error:
        say(f"{error}.")
        place.commands.is_going_back = True
        with suppress(Failure):
            place.start()
        if place.runs():
            fail(f"{change.new} runs. Run {place.name} again.")
        # It is in use, so a roll back can begin, with a back-up of the list as it is now.
        place.forget()
        fail(f"{change.new} does not run ({place.look_at}).")
    say(f"the change from {change.old} to {change.new} is completed.")
    end(place, change)


def upgrade(place: Place, version: str, file: str) -> None:
    """Put a version in use; raise Failure and OSError if nothing was changed."""
    change = place.load()
    restored = resume(place, change) if change else ""
    place.heal()
    old = place.current()
    try:
        new = place.prepare(version)
    except (Failure, OSError) as error:
        say(f"{error}.")
        fail(f"{version} could not be prepared. {old} stays in use, and nothing was changed.")
    ran = place.runs()
    if new == old:
        say(f"{new} is in use already, and {'runs' if ran else 'does not run'}.")
        if file != restored:
            fail(f"{file} was not restored. To restore it: {place.command} restore {file}")
        sys.exit(not ran)
    change = Change(old, new, file, ran)
    carry_out(place, change, place.steps(change))
    back = f"{place.name} {old} {change.backup}"
    say(f"{new} runs. The back-up is {change.backup}. To roll back: {back}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--container", action="store_true", help="of podman, instead of systemd")
    parser.add_argument("version", nargs="?", default="main")
    parser.add_argument("file", nargs="?", default="")
    asked = parser.parse_args()
    # The service runs as another user, who must be able to read a version.
    os.umask(0o022)
    try:
        place = Container() if asked.container else Machine()
        if not os.access(place.folder, os.W_OK):
            fail(f"this user may not change {place.folder}. Run it as root.")
        if asked.file and not asked.container:
            asked.file = str(Path(asked.file).resolve(strict=True))
        upgrade(place, asked.version, asked.file)
    except (Failure, OSError) as error:
        fail(f"{error}.")


if __name__ == "__main__":
    main()

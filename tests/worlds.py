"""A small computer of shell scripts for the programs that upgrade and uninstall, and faults in their steps.

The scripts in tests/install/stubs stand for systemd, podman and others, so that a run takes a tenth of a second.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

from installed import ROOT
from processes import finished, run

STUBS = Path(__file__).parent / "install" / "stubs"

FAULT = """
import errno, os, runpy, signal, sys
number, mode, *sys.argv = int(sys.argv[1]), *sys.argv[2:]
changes = {"os.rename", "os.symlink", "os.remove", "os.rmdir"}
questions = {"inspect", "exists", "is-active", "exec", "git"}
seen = 0
def look(event, arguments):
    global seen
    is_command = event == "subprocess.Popen" and questions.isdisjoint(arguments[1])
    seen += is_command or event in changes
    if seen == number:
        seen += 1
        if mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(os.open(os.environ["DESTDIR"] + "/failed", os.O_CREAT))
        if mode == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            return
        raise OSError(errno.ENOSPC, "No space left on device")
sys.addaudithook(look)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program, and kills or interrupts it before its n-th command or change of a file, or lets that fail, as on a full disk."""

RECORDS = ["1 Siti", "2 Budi"]
OLD, NEW = "tables=1 starts=true builds=true", "tables=2 starts=true builds=true"
BROKEN = "tables=2 starts=false builds=true"


class World:
    """A computer with version v1 of the service, which runs."""

    program = ROOT / "packaging" / "mahasiswa_upgrade.py"
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

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        return finished(self.program, *self.arguments, *arguments, env=self.environment())

    def run_with_fault(self, number: int, mode: str, *arguments: str) -> bool:
        """Return whether the program came to the fault."""
        fault = (sys.executable, "-I", "-S", "-c", FAULT, str(number), mode)
        words = (*self.arguments, *arguments)
        done = finished(*fault, self.program, *words, env=self.environment())
        assert "Traceback" not in done.stderr
        return done.returncode == -SIGKILL or (self.folder / "failed").exists()

    def faults(self, mode: str, *arguments: str) -> Iterator[None]:
        """Run the program with a fault at the first moment, then at the second one, and so on.

        The world is as it is now before each run, and as the fault has left it after each yield.
        """
        first = self.folder.with_name("first")
        shutil.copytree(self.folder, first, symlinks=True)
        number = 1
        try:
            while self.run_with_fault(number, mode, *arguments):
                (self.folder / "failed").unlink(missing_ok=True)
                yield
                shutil.rmtree(self.folder)
                shutil.copytree(first, self.folder, symlinks=True)
                number += 1
        finally:
            shutil.rmtree(first)
        assert number > 3

    def is_killed_after_a_start(self) -> None:
        """Let an upgrade be killed when the new version has run with the list."""
        for _ in self.faults("kill", "v2"):
            if self.boot() and self.tables() == 2:
                break

    def ends_as(self, about: str, records: list[str], *arguments: str) -> None:
        """Run the program. Fail unless a version of this description runs then, with these records."""
        said = self.run(*arguments).stderr
        assert (self.running(), self.records()) == (about, records), said

    def call(self, *words: str) -> str:
        return run(STUBS / words[0], *words[1:], env=self.environment())

    def records(self) -> list[str]:
        return (self.folder / "list").read_text().splitlines()[1:]

    def tables(self) -> int:
        """Return the number of tables that the newest version has made that has run with the list."""
        return int((self.folder / "list").read_text().splitlines()[0])

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

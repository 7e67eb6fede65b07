"""mahasiswa-backup-folder in a failing state. Its systemd is a stand-in; test_machine.py runs it on a booted machine."""

import getpass
import os
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from harness import free_port
from installed import ROOT
from operators import COMMAND
from processes import finished, needs_namespaces

PROGRAM = ROOT / "packaging" / "systemd" / "mahasiswa-backup-folder"
DROP_IN = "/etc/systemd/system/mahasiswa.service.d/backup-folder.conf"
FOLDERS = (
    "set -e; for each in /etc/systemd/system /var/lib /mnt; do mount -t tmpfs none $each; done;"
    " mkdir /var/lib/mahasiswa /mnt/usb"
)
NONE = f"mkdir {Path(DROP_IN).parent}"
OLD = f"{NONE}; echo old >{DROP_IN}"
TRY = f'{{ "$0" /mnt/usb/mahasiswa || echo $?; }}; cd {Path(DROP_IN).parent}; for each in *; do [ ! -e $each ] || cat $each; done'

AGAIN = "The settings before are in use again"
FULL = "mount -o remount,size=8k /etc/systemd/system; cat /dev/zero 2>/dev/null >/etc/systemd/system/full || true"
READ_ONLY = "mount -o remount,ro /etc/systemd/system"


class Fault(NamedTuple):
    """The message of the command, and the shell commands before it, at its restart and at its back-up."""

    said: str
    before: str = "true"
    restart: str = "exit 0"
    backup: str = "exit 0"


INTERRUPTED = f"interrupted. {AGAIN}"
FAULTS = {
    "the service does not start": Fault(
        f"systemctl restart mahasiswa failed. {AGAIN}, and the service does not start: journalctl -u mahasiswa -n 20",
        restart="exit 1",
    ),
    "Ctrl-C": Fault(INTERRUPTED, backup="kill -INT $PPID"),
    "the end of the terminal": Fault(INTERRUPTED, backup="kill -HUP $PPID"),
    "a shutdown": Fault(INTERRUPTED, backup="kill -TERM $PPID"),
    "a full disk": Fault(f"{DROP_IN}: No space left on device. {AGAIN}", FULL),
    "a read-only disk": Fault(f"{DROP_IN}.new: Read-only file system. {AGAIN}", READ_ONLY),
}


def found_first(folder: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def stand_ins(folder: Path, restart: str, backup: str) -> None:
    """Make the programs that the command calls."""
    programs = {
        "systemctl": f'case "$1" in show) echo {getpass.getuser()} ;; restart) {restart} ;; esac',
        "mahasiswa-run": f"[ $# = 1 ] || exit 1; {backup}",
    }
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)


@pytest.mark.root
@pytest.mark.parametrize("old", ["", "old\n"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_settings_before_are_in_use_again_after_a_fault(
    tmp_path: Path, fault: Fault, old: str
) -> None:
    """Nothing else stays in the folder of the drop-in file."""
    needs_namespaces()
    stand_ins(tmp_path, fault.restart, fault.backup)
    script = f"{FOLDERS}; {OLD if old else NONE}; {fault.before}; {TRY}"
    done = finished("unshare", "--mount", "sh", "-c", script, PROGRAM, env=found_first(tmp_path))
    assert done.stdout == f"1\n{old}"
    assert done.stderr.splitlines()[-1] == f"mahasiswa-backup-folder: {fault.said}"
    assert "Traceback" not in done.stderr


@pytest.mark.root
def test_a_folder_whose_disk_is_gone_is_not_made_on_the_disk_of_the_records(tmp_path: Path) -> None:
    """A new folder on that disk is allowed."""
    needs_namespaces()
    stand_ins(tmp_path, "exit 0", "echo /var/lib/usb/mahasiswa/a.db")
    use = '"$0" /var/lib/usb/mahasiswa'
    script = f"{FOLDERS}; mkdir /var/lib/usb; {use}; rmdir /var/lib/usb/mahasiswa; ! {use}; ls /var/lib/usb"
    done = finished("unshare", "--mount", "sh", "-c", script, PROGRAM, env=found_first(tmp_path))
    assert (done.returncode, done.stdout) == (0, "/var/lib/usb/mahasiswa/a.db\n")
    gone = "/var/lib/usb/mahasiswa is gone. Connect its disk, then repeat the command"
    assert done.stderr.splitlines()[-1] == f"mahasiswa-backup-folder: {gone}"


@pytest.mark.root
def test_with_postgresql_one_line_says_where_the_dumps_stay(tmp_path: Path) -> None:
    """The service is not restarted. The command that knows the database is the real one, and its server is away."""
    needs_namespaces()
    program = tmp_path / "mahasiswa-run"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    environment = found_first(tmp_path) | {
        "DATABASE_URL": f"postgresql://127.0.0.1:{free_port()}/x"
    }
    done = finished(PROGRAM, tmp_path / "folder", env=environment)
    said = "the records are in PostgreSQL, whose dumps stay in /var/lib/mahasiswa-backup"
    assert done.stderr == f"mahasiswa-backup-folder: {said}\n"
    assert done.returncode == 1
    assert not (tmp_path / "folder").exists()

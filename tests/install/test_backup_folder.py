"""mahasiswa-backup-folder in a failing state. Its systemd is a stand-in; test_machine.py runs it on a booted machine."""

import getpass
import os
import shlex
from pathlib import Path

import pytest
from harness import free_port
from installed import ROOT
from operators import COMMAND
from processes import finished, needs_namespaces

PROGRAM = ROOT / "packaging" / "systemd" / "mahasiswa-backup-folder"
FOLDERS = "for each in /etc/systemd/system /var/lib /mnt; do mount -t tmpfs none $each; done"
TRY = (
    f"{FOLDERS}; mkdir /var/lib/mahasiswa /mnt/usb;"
    ' "$0" /mnt/usb/mahasiswa; echo $?; ls /etc/systemd/system/mahasiswa.service.d'
)

# For each fault: the result of a restart and of the back-up, then how the last line begins and ends.
FAULTS = {
    "the service does not start": (
        "exit 1",
        "exit 1",
        "systemctl restart mahasiswa failed",
        ", and the service does not start: journalctl -u mahasiswa -n 20",
    ),
    "Ctrl-C": ("exit 0", "kill -INT $PPID", "interrupted", ""),
}


def found_first(folder: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.root
@pytest.mark.parametrize(("restart", "backup", "why", "end"), FAULTS.values(), ids=FAULTS)
def test_the_settings_before_are_in_use_again_after_a_fault(
    tmp_path: Path, restart: str, backup: str, why: str, end: str
) -> None:
    needs_namespaces()
    programs = {
        "systemctl": f'case "$1" in show) echo {getpass.getuser()} ;; restart) {restart} ;; esac',
        "mahasiswa-run": f"[ $# = 1 ] || exit 1; {backup}",
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    done = finished("unshare", "--mount", "sh", "-c", TRY, PROGRAM, env=found_first(tmp_path))
    assert done.stdout == "1\n"
    said = f"mahasiswa-backup-folder: {why}. The settings before are in use again{end}"
    assert done.stderr.splitlines()[-1] == said
    assert "Traceback" not in done.stderr


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

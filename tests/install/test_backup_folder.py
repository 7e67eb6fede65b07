"""mahasiswa-backup-folder in a failing state. Its systemd is a stand-in; test_machine.py runs it on a booted machine."""

import getpass
import os
from pathlib import Path

import pytest
from installed import ROOT
from processes import finished, needs_namespaces

FOLDERS = "for each in /etc/systemd/system /var/lib /mnt; do mount -t tmpfs none $each; done"
TRY = (
    f"{FOLDERS}; mkdir /var/lib/mahasiswa /mnt/usb;"
    ' "$0" /mnt/usb/mahasiswa; echo $?; ls /etc/systemd/system/mahasiswa.service.d'
)

# For each fault: what a restart does, what the back-up does, and the beginning and the end of the last line.
FAULTS = {
    "the service does not start": (
        "exit 1",
        "exit 1",
        "systemctl restart mahasiswa failed",
        ", and the service does not start: journalctl -u mahasiswa -n 20",
    ),
    "Ctrl-C": ("exit 0", "kill -INT $PPID", "interrupted", ""),
}


@pytest.mark.root
@pytest.mark.parametrize(("restart", "backup", "why", "end"), FAULTS.values(), ids=FAULTS)
def test_the_settings_before_are_in_use_again_after_a_fault(
    tmp_path: Path, restart: str, backup: str, why: str, end: str
) -> None:
    needs_namespaces()
    programs = {
        "systemctl": f'case "$1" in show) echo {getpass.getuser()} ;; restart) {restart} ;; esac',
        "mahasiswa-run": backup,
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    program = ROOT / "packaging" / "systemd" / "mahasiswa-backup-folder"
    done = finished("unshare", "--mount", "sh", "-c", TRY, program, env=environment)
    assert done.stdout == "1\n"
    said = f"mahasiswa-backup-folder: {why}. The settings before are in use again{end}"
    assert done.stderr.splitlines()[-1] == said
    assert "Traceback" not in done.stderr

"""Stands in for the programs of systemd, so that `mahasiswa-run` finds the unit of a service on a computer without it."""

import getpass
import os
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = (sys.executable, "-I", str(ROOT / "packaging" / "systemd" / "mahasiswa-run"))
PROGRAM = Path(sys.executable).with_name("mahasiswa")


def pretend_unit(
    folder: Path,
    given: Mapping[str, str],
    *,
    pid: int = 0,
    user: str | None = None,
    file: Path | None = None,
    **properties: str,
) -> dict[str, str]:
    """Write a `systemctl` and a `systemd-run`; return the variable with which programs find them.

    The unit would start in this folder, with the variables `given`, of which some stand in a `file` of settings. If `pid`
    is that of its main process, it is active. The file `calls` gets the arguments of each call of `systemd-run`.
    `properties` replace what systemctl would show of it. `pretend_other_unit` adds a further unit.
    """
    stubs = folder / "stubs"
    stubs.mkdir(exist_ok=True)
    shown = {
        "ActiveState": "active" if pid else "inactive",
        "Environment": "",
        "ExecStart": f"{{ path={PROGRAM} ; argv[]={PROGRAM} ; ignore_errors=no }}",
        "FragmentPath": str(ROOT / "packaging" / "systemd" / "mahasiswa.service"),
        "Group": "",
        "MainPID": str(pid),
        "MemoryMax": "infinity",
        "NeedDaemonReload": "no",
        "StateDirectory": "mahasiswa mahasiswa-backup",
        "UnitFileState": "disabled",
        "User": getpass.getuser() if user is None else user,
        "WorkingDirectory": str(folder),
    }
    if file:
        shown["EnvironmentFiles"] = f"{file} (ignore_errors=yes)"
    pretend_other_unit(folder, "mahasiswa.service", **shown | properties)
    (stubs / "environment").write_text(
        "".join(f"{name}={value}\0" for name, value in given.items())
    )
    programs = {
        # The name of the unit is its fourth argument.
        "systemctl": f'cat "{stubs}/$4" 2>/dev/null || cat {stubs}/no-unit',
        "systemd-run": f'echo "$@" >> {stubs}/calls; cat {stubs}/environment',
    }
    pretend_other_unit(folder, "no-unit", LoadState="not-found", UnitFileState="")
    for name, line in programs.items():
        (stubs / name).write_text(f"#!/bin/sh\n{line}\n")
        (stubs / name).chmod(0o755)
    return {"PATH": f"{stubs}:{os.environ['PATH']}"}


def pretend_other_unit(folder: Path, name: str, **properties: str) -> None:
    """Let systemctl show a unit, which is loaded, enabled and active unless the properties say otherwise."""
    shown = {"LoadState": "loaded", "UnitFileState": "enabled", "ActiveState": "active"}
    shown |= {"ExecMainStartTimestamp": "", "NRestarts": "0"}
    lines = [f"{key}={value}" for key, value in (shown | properties).items()]
    (folder / "stubs" / name).write_text("\n".join(lines))

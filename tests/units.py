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
) -> dict[str, str]:
    """Write a `systemctl` and a `systemd-run`; return the variable with which programs find them.

    The unit would start in this folder, with the variables `given`, of which some stand in a `file` of settings. If `pid`
    is that of its main process, it is active. The file `calls` gets the arguments of each call of `systemd-run`.
    """
    stubs = folder / "stubs"
    stubs.mkdir(exist_ok=True)
    lines = [
        f"ActiveState={'active' if pid else 'inactive'}",
        "Environment=",
        *([f"EnvironmentFiles={file} (ignore_errors=yes)"] if file else []),
        f"ExecStart={{ path={PROGRAM} ; argv[]={PROGRAM} ; ignore_errors=no }}",
        "Group=",
        f"MainPID={pid}",
        "StateDirectory=mahasiswa mahasiswa-backup",
        f"User={getpass.getuser() if user is None else user}",
        f"WorkingDirectory={folder}",
    ]
    (stubs / "properties").write_text("\n".join(lines))
    (stubs / "environment").write_text(
        "".join(f"{name}={value}\0" for name, value in given.items())
    )
    programs = {
        "systemctl": f"cat {stubs}/properties",
        "systemd-run": f'echo "$@" >> {stubs}/calls; cat {stubs}/environment',
    }
    for name, line in programs.items():
        (stubs / name).write_text(f"#!/bin/sh\n{line}\n")
        (stubs / name).chmod(0o755)
    return {"PATH": f"{stubs}:{os.environ['PATH']}"}

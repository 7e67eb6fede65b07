"""Runs the commands that build and install the service, and tries out the installed service."""

import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from harness import Site, led_to
from processes import cannot, run
from spreadsheets import HEADER, csv, numbered
from web.importer import counts, import_file, uploaded

ROOT = Path(__file__).parents[2]

IMPORTED = numbered(4000, alamat="Jalan" * 60)
"""Records whose CSV file is over 1 MB. An upload of that size is kept in a temporary file."""


def needs(*programs: str) -> None:
    """Skip a test if it lacks one of these programs, or may not make namespaces and mount a file system in them."""
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    options = "--pid --ipc --mount --uts --fork --mount-proc mount -t tmpfs tmpfs /mnt"
    try:
        run("unshare", *options.split())
    except AssertionError as error:
        cannot("make namespaces", error)


def make_debian(folder: Path, suite: str, packages: str, python: str) -> None:
    """Make a Debian in `root`, and a folder `wheels` with our packages of Python; skip if it cannot be."""
    needs("git", "mmdebstrap", "nsenter", "systemd-nspawn")
    wheels = (f"--python-version={python}", f"--dest={folder}/wheels", "--only-binary=:all:")
    locked = ("--require-hashes", f"--requirement={ROOT}/requirements-dev.txt")
    run(sys.executable, "-m", "pip", "download", "--quiet", *wheels, *locked)
    options = ("--quiet", "--variant=minbase", f"--include={packages}")
    run("mmdebstrap", *options, suite, folder / "root")


def is_well(site: Site) -> bool:
    with suppress(httpx.TransportError):
        return site.get("/sehat").status_code == 200
    return False


def do_what_staff_do(site: Site) -> None:
    """Add, edit, delete, import and export records in an empty list."""
    led_to(site.add("1", "Siti Aminah", "Solo"))
    led_to(site.edit("1", "Siti Aminah", "Bantul"))
    assert site.records == [("1", "Siti Aminah", "Bantul")]
    led_to(site.delete("1"))
    import_file(site, csv(HEADER, *IMPORTED))
    assert site.records == IMPORTED
    workbook = site.get("/mahasiswa/ekspor.xlsx").content
    assert counts(uploaded(site, workbook, "daftar.xlsx")) == {"Tidak berubah": len(IMPORTED)}


def block(document: str, heading: str) -> str:
    """Return the commands of the first block of a chapter."""
    text = (ROOT / "docs" / document).read_text("utf-8")
    (commands,) = re.findall(rf"\n## {heading}\n.*?\n```sh\n(.*?)```", text, re.DOTALL)
    return str(commands)

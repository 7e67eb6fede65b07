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
from sheets.workbooks import by_openpyxl
from spreadsheets import HEADER, csv, numbered
from web.importer import import_file

ROOT = Path(__file__).parents[2]

IMPORTED = numbered(4000, "Siti Aminah", "Jalan Kaliurang " * 20 + "5")
"""Records whose CSV file is over 1 MB. An upload of that size is kept in a temporary file."""


def needs_namespaces() -> None:
    """Skip a test that makes hosts or containers if this process can neither make namespaces nor mount a file system."""
    options = "--pid --ipc --mount --uts --fork --mount-proc mount -t tmpfs tmpfs /mnt"
    try:
        run("unshare", *options.split())
    except (OSError, AssertionError) as error:
        cannot("make namespaces", error)


def make_debian(root: Path, suite: str, packages: str, python: str, *locks: str) -> None:
    """Make a Debian in `root`, and a folder with the wheels of these lock files beside it; skip if it cannot be."""
    tools = ("git", "mmdebstrap", "nsenter", "systemd-nspawn")
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)}")
    needs_namespaces()
    download = (
        f"{sys.executable} -m pip download --quiet --only-binary=:all: --python-version {python}"
    )
    hashes = ("--require-hashes", *(f"-r{ROOT}/requirements{name}.txt" for name in locks))
    run(*download.split(), "--dest", root.with_name("wheels"), *hashes)
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", suite, root)


def is_well(site: Site) -> bool:
    with suppress(httpx.TransportError):
        return site.get("/sehat").status_code == 200
    return False


def do_what_staff_do(site: Site) -> None:
    """Add, edit, delete, import and export records in an empty list."""
    led_to(site.add("1", "Siti Aminah", "Solo"))
    led_to(site.add("2", "Budi", "Yogyakarta"))
    for answer in (site.edit("1", "Siti Aminah", "Bantul"), site.delete("2")):
        assert answer.status_code == 302
    one = by_openpyxl(HEADER, ("3", "Nur'aini", "Sleman"))
    import_file(site, one, "daftar.xlsx")
    # Two of its NIMs are 1 and 3 but for their zeros, so they must be called right.
    import_file(site, csv(HEADER, *IMPORTED))
    others = ("1", "Siti Aminah", "Bantul"), ("3", "Nur'aini", "Sleman")
    assert {*site.records} == {*others, *IMPORTED}
    assert site.get("/mahasiswa/ekspor.xlsx").content.startswith(b"PK")


def blocks(document: str, heading: str) -> list[str]:
    _, text = (ROOT / "docs" / document).read_text("utf-8").split(f"\n## {heading}\n")
    return re.findall(r"```sh\n(.+?)```", text.partition("\n## ")[0], re.DOTALL)

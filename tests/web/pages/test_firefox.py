"""A day's tasks in Firefox, which speaks WebDriver BiDi: tests/npm/firefox.cjs does them, and says what each page shows."""

import json
import os
import shutil
from pathlib import Path

import pytest
from harness import Service
from processes import run
from spreadsheets import csv

from mahasiswa import wording

pytestmark = pytest.mark.torture

SITI = ["20/456839/TK/50663", "Siti Nur'aini, S.Kom.", "Jl. Solo 1"]
MOVED = [*SITI[:2], "Jl. Kaliurang 5"]
ANI = ["20/456840/TK/50664", "Ani", "Solo"]


def test_a_days_tasks_work_in_firefox(service: Service, node_modules: Path, tmp_path: Path) -> None:
    """Add (typed with outer spaces), search, edit, delete with its question, undo, import with its preview, print."""
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        pytest.skip("Firefox is not installed (Debian: firefox-esr)")
    spreadsheet, pdf = tmp_path / "daftar.csv", tmp_path / "daftar.pdf"
    spreadsheet.write_bytes(csv(("NIM", "Nama", "Alamat"), ANI))
    script = Path(__file__).parents[2] / "npm" / "firefox.cjs"
    environment = {**os.environ, "NODE_PATH": str(node_modules), "HOME": str(tmp_path)}
    said = json.loads(run("node", script, firefox, service.url, spreadsheet, pdf, env=environment))
    assert said["shown"] == {
        "add": [SITI], "search": [SITI], "edit": [MOVED], "delete": [], "undo": [MOVED], "import": [MOVED, ANI],
    }  # fmt: skip
    assert said["questions"] == [wording.CONFIRM_NAMED_DELETION.format(nama=MOVED[1], nim=MOVED[0])]
    printed = run("pdftotext", pdf, "-").split()
    assert {"Hadir", MOVED[0], *ANI} <= set(printed)

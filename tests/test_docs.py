"""The documents: their links lead somewhere, their tests exist, and the picture is the one that its script draws."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "bench" / "README.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file_and_a_heading(document: Path) -> None:
    """Every relative link names a file in the repository and, after `#`, a heading of that file."""
    for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", document.read_text("utf-8")):
        path, _, heading = (target[0] or target[1]).partition("#")
        if "://" in path:
            continue
        file = document.parent / path if path else document
        assert file.exists(), f"{document.name}: {path}"
        if heading:
            assert heading in anchors(file), f"{document.name}: {path}#{heading}"


def test_every_test_that_the_specification_page_names_exists() -> None:
    """A test in docs/specification.md is defined in tests/, and every test of tests/spec but test_texts.py is named."""
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "specification.md").read_text("utf-8")))
    numbered = {name for file in ROOT.glob("tests/spec/test_[0-9]*.py") for name in names_of_tests(file)}
    assert named == numbered


def test_the_picture_of_the_architecture_is_what_its_script_draws(tmp_path: Path) -> None:
    """Running docs/draw_architecture.py changes nothing."""
    script = tmp_path / "draw_architecture.py"
    script.write_bytes((ROOT / "docs" / script.name).read_bytes())
    subprocess.run([sys.executable, str(script)], timeout=30, check=True)
    assert (tmp_path / "architecture.svg").read_bytes() == (ROOT / "docs" / "architecture.svg").read_bytes()


def anchors(file: Path) -> set[str]:
    """Return the names of a document's headings as GitHub and others make them."""
    headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def names_of_tests(file: Path) -> list[str]:
    """Return the names of the test functions that a file defines."""
    return re.findall(r"^(?:async )?def (test_\w+)", file.read_text("utf-8"), re.MULTILINE)

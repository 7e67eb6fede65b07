"""The documents agree with the program: settings, commands, links, names of tests, rules and the picture."""

import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from mahasiswa.commands.cli import main
from mahasiswa.web.app import ROUTES
from mahasiswa.work import EXPORT, POOLED_KINDS

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*.md")),
    ROOT / "bench" / "README.md",
]
SPECIFICATION = ROOT / "docs" / "specification.md"


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)


@cache
def names_of_tests(*paths: Path) -> frozenset[str]:
    text = "\n".join(path.read_text("utf-8") for path in paths)
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE))


def headings(document: Path) -> set[str]:
    texts = re.findall(r"^#+ (.+)$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


def test_the_tables_of_the_documents_are_those_of_the_code() -> None:
    """Settings, commands, metrics, limits and kinds of work: `docs/write_tables.py` would change nothing."""
    tables = runpy.run_path(str(ROOT / "docs" / "write_tables.py"))
    found = []
    for document in tables["DOCUMENTS"]:
        text = (ROOT / document).read_text("utf-8")
        found += tables["WRITTEN"].findall(text)
        assert tables["written"](text) == text, "run: .venv/bin/python docs/write_tables.py"
    assert {name for _, name, _ in found} == tables["TABLES"].keys()


def test_the_map_names_the_tests_of_each_module() -> None:
    """Each module of src is in the map. Only a package without code has no test."""
    _, *rows = runpy.run_path(str(ROOT / "docs" / "write_tables.py"))["modules"]()
    for module, _, tests in rows:
        has_none = module == "`__init__`" or module.endswith("/`")
        assert tests or has_none, f"{module}: name its tests in TESTS of docs/write_tables.py"
        for test in re.findall("`(.+?)`", tests):
            assert (ROOT / "tests" / test).is_file(), f"{module}: {test}"


def test_each_limit_is_tested_from_its_constant() -> None:
    """A test takes the constant, so that a change of the limit changes the test too."""
    limits = str(runpy.run_path(str(ROOT / "docs" / "write_tables.py"))["LIMITS"])
    tests = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    for constant in set(re.findall(r"(\w+)\}", limits)):
        assert re.search(rf"\b{constant}\b", tests), f"no test takes {constant}"


def test_the_documents_name_every_command() -> None:
    """README or a page in docs/ shows how to call each command."""
    text = "\n".join(document.read_text("utf-8") for document in DOCUMENTS)
    called = set(re.findall(r"\bmahasiswa (\w+)\b", text))
    assert sorted(main.commands.keys() - called) == ["serve"]  # which runs without a name too


@every_document
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    """Every relative link of a document leads to an existing file and, after `#`, to a heading of it."""
    for in_markdown, in_html in re.findall(
        r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", document.read_text("utf-8")
    ):
        path, _, heading = (in_markdown or in_html).partition("#")
        if re.match("[a-z]+:", path):
            continue
        target = document.parent / path if path else document
        assert target.exists(), path
        assert not heading or heading in headings(target), f"{path}#{heading}"


@every_document
def test_every_test_that_a_document_names_exists(document: Path) -> None:
    """The test files and the tests that a document names exist."""
    text = document.read_text("utf-8")
    files = re.findall(r"tests/((?:[a-z]+/)*test_\w+\.py)", text)
    assert [path for path in files if not (ROOT / "tests" / path).is_file()] == []
    everywhere = names_of_tests(*(ROOT / "tests").rglob("test_*.py"))
    assert set(re.findall(r"(?:`|::)(test_\w+)\b(?!\.)", text)) <= everywhere


def test_the_specification_names_exactly_the_numbered_tests() -> None:
    """docs/specification.md names every numbered test of tests/spec, and no other."""
    named = set(re.findall(r"`(test_\w+)`", SPECIFICATION.read_text("utf-8")))
    numbered = names_of_tests(*ROOT.glob("tests/spec/test_[0-9]*.py"))
    assert named == numbered


def test_every_rule_that_the_code_cites_is_in_the_specification() -> None:
    """Each number after the word "specification" in src and tests is a heading or a rule of docs/specification.md."""
    rules = set(
        re.findall(r"^(?:#+|-) (\d(?:\.\d)*)\b", SPECIFICATION.read_text("utf-8"), re.MULTILINE)
    )
    citation = re.compile(r"(?i)specification(?:, sections?)? ((?:\d(?:\.\d)*(?:, | and )?)+)")
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for numbers in citation.findall(file.read_text("utf-8")):
            assert set(re.findall(r"\d(?:\.\d)*", numbers)) <= rules, file


def test_the_specification_lists_every_route() -> None:
    """docs/specification.md names the method and the path of each route."""
    text = SPECIFICATION.read_text("utf-8")
    for method, path, *_ in ROUTES:
        assert f"`{method} {path}`" in text or f"`GET` and `POST {path}`" in text, (method, path)


def test_the_picture_of_the_architecture_names_modules_that_exist() -> None:
    drawing = (ROOT / "docs" / "architecture.svg").read_text("utf-8")
    names = re.findall(r"\w[\w/]+\.py", drawing)
    assert len(names) > 10
    for name in names:
        assert list((ROOT / "src").rglob(name)), name


def test_the_reference_has_the_number_of_database_connections() -> None:
    text = (ROOT / "docs" / "reference.md").read_text()
    connections = sum(kind.running for kind in (*POOLED_KINDS, EXPORT))
    assert f"at most {connections} connections" in text

"""`make mutants`: changes the source at random places, one at a time, and lists the changes that no test of `make test` finds.

Half of the changes are in SQL.

Each mutant is tested by the tests of its module, as the map in docs/architecture.md names them, and then by those of its topic.
Those that survive are put into the source together and tested by all tests, then by halves until each is found or survives.
Only a test that fails twice counts. The work is done in a clone of the last commit with an environment of its own.
"""

import ast
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[1]
MAX_SECONDS = 600
SURVIVES, TOO_LONG = "SURVIVES", "TAKES TOO LONG"
SOURCE = ROOT / "src" / "mahasiswa"

PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    *(
        (ast.Lt, ast.LtE),
        (ast.Gt, ast.GtE),
        (ast.Eq, ast.NotEq),
        (ast.In, ast.NotIn),
        (ast.Is, ast.IsNot),
    ),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv)),
]
OPPOSITES = dict(PAIRS) | {second: first for first, second in PAIRS}

# The words after which a condition stands, with the constant that replaces it. It reaches to one of ENDS.
BEGINS = {"WHERE": "true", "AND": "true", "ON": "true", "WHEN": "false", "OR": "false"}
SQL_TOKEN = re.compile(
    r"""BETWEEN\b.+?\bAND\b|'(?:[^']|'')*'|\b(?!ON (?!\S+ = ))[A-Z]+\b|[()";]""", re.DOTALL
)
ENDS = {
    *("AND", "OR", "THEN", "WHEN", "ELSE", "ORDER", "GROUP", "LIMIT", "RETURNING", "UNION"),
    *("WHERE", "LEFT", "JOIN", "WINDOW", "FOR", "DO", "BEGIN", ";", '"'),
}
COMPARISONS = {"=": "<>", "<>": "=", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
COMPARISON = re.compile(r"(?<= )(?:<>|[<>]?=|[<>])(?= )")

SQL_CHANGES = {
    r"\bIS DISTINCT FROM\b": "IS NOT DISTINCT FROM",
    # One column of two is not compared.
    r"\((\S+), \S+\) IS (NOT )?DISTINCT FROM \((\S+), \S+\)": r"\1 IS \2DISTINCT FROM \3",
    r"\(\S+, (\S+)\) IS (NOT )?DISTINCT FROM \(\S+, (\S+)\)": r"\1 IS \2DISTINCT FROM \3",
    # A column is dropped.
    r", (?:\w+\.)?alamat\w*(?!\w|\) IS|\)\n)": "",
    r"\bnama, ": "",
    # A limit is one more; one of a million millions only keeps the planner from merging two queries.
    r"(?<=LIMIT )(?!1000000000000)([\d:?{][\w}]*)": r"\g<1> + 1",
    r"(?<=days => )([\w.]+)|(?<='-' \|\| )(days)\b": r"(\1\2 + 1)",
}

TOPICS = {
    "sheets": "tests/sheets tests/web/imports/test_import.py tests/web/imports/test_import_preview.py tests/web/imports/test_selection.py",
    "store": "tests/store/test_one_field.py tests/store/test_history.py tests/store/test_search.py tests/store tests/web/history/test_undo.py tests/cli/test_backups.py tests/cli/test_cli_restore.py",
    "web": "tests/spec tests/web --ignore-glob=*browser* --ignore-glob=*every_page* --ignore-glob=*panduan*",
    "server": "tests/cli tests/web/service",
    "commands": "tests/cli tests/store",
    "system": "tests/cli tests/store",
    "": "tests/spec tests/test_work.py tests/cli tests/web/service/test_raw.py tests/web/service/test_metrics.py",
}
"""For each folder of the source, and for the modules outside these folders, the tests that are tried first, in this order."""

TESTS_OF_MODULES = {
    module: [f"tests/{test}" for test in re.findall("`(.+?)`", tests)]
    for module, tests in re.findall(
        r"(?m)^\| `(.+?)` \| .+ \| (`.+) \|$",
        (ROOT / "docs" / "architecture.md").read_text("utf-8"),
    )
}
"""The map of docs/architecture.md. Files of SQL are not in it; the tests of their topic begin with those of SQL."""

# The tests of a topic that can find a mutant of one engine.
ENGINE_TESTS = {"postgres": ("-k", "postgres"), "sqlite": ("-k", "not postgres")}

outcomes: Counter[str] = Counter()
"""The number of mutants that a test has killed, that survive, and whose tests have not ended, which proves nothing."""

# A file, and the bytes from the first number to the second that the text replaces.
Mutant = tuple[Path, int, int, str]


def changed(node: ast.AST) -> ast.AST | None:
    """Return another node for this one, or for its condition; None if its kind is not changed."""
    other: Any = copy(node)
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPPOSITES:
            other.ops = [OPPOSITES[type(op)]()]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in OPPOSITES:
            other.op = OPPOSITES[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Constant(value=int() | float() as value):
            other.value = not value if isinstance(value, bool) else value + 1
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.AST()):
            other.value = None
        case (
            ast.Raise()
            | ast.Break()
            | ast.Continue()
            | ast.Expr(value=ast.Call() | ast.Await())
            | ast.AugAssign()
        ):
            return ast.Pass()
        case _:
            return None
    return cast("ast.AST", other)


def mutants_of(path: Path) -> Iterator[Mutant]:
    lines, tree = path.read_bytes().splitlines(keepends=True), ast.parse(path.read_bytes())
    # Python 3.11 does not know the places of the parts of a formatted text.
    formatted = {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node not in formatted and (other := changed(node)):
            place: Any = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
            start = sum(map(len, lines[: place.lineno - 1])) + place.col_offset
            end = sum(map(len, lines[: place.end_lineno - 1])) + place.end_col_offset
            after = f"({ast.unparse(other)})" if isinstance(other, ast.expr) else ast.unparse(other)
            yield path.relative_to(ROOT), start, end, after


def conditions_of(text: str) -> Iterator[tuple[int, int, str]]:
    """Each condition of SQL: its first and its last place, and the constant that would replace it."""
    open_ones: list[tuple[int, int, str]] = []
    depth = 0
    for token in SQL_TOKEN.finditer(text):
        word = token[0]
        depth += (word in ("(", "CASE")) - (word in (")", "END"))
        while open_ones and depth - (word in ENDS) < open_ones[-1][0]:
            _, start, constant = open_ones.pop()
            yield start, token.start(), constant
        if word in BEGINS:
            open_ones.append((depth, token.end(), BEGINS[word]))


def sql_mutants_of(path: Path) -> Iterator[Mutant]:
    text = path.read_text("utf-8")
    # The line with the name of a statement ends the one before it. Other comments hold no SQL.
    sql = re.sub("(?m)^-- name: ", ";        ", text) + ";"
    sql = re.sub("(?m)--.*$", lambda comment: " " * len(comment[0]), sql)

    def mutant(start: int, end: int, after: str) -> Mutant:
        return path.relative_to(ROOT), len(text[:start].encode()), len(text[:end].encode()), after

    compared = set()
    for start, end, constant in conditions_of(sql):
        condition = sql[start:end].strip()
        if condition:
            at = sql.index(condition, start)
            yield mutant(at, at + len(condition), constant)
        compared |= {found.span() for found in COMPARISON.finditer(sql, start, end)}
    for start, end in sorted(compared):
        yield mutant(start, end, COMPARISONS[sql[start:end]])
    for pattern, after in SQL_CHANGES.items():
        for found in re.finditer(pattern, sql):
            yield mutant(*found.span(), found.expand(after))


def failing(folder: Path, tests: Sequence[str]) -> str:
    """Run tests in the clone until one fails; return its name, or an empty text."""
    command = [
        ".venv/bin/python",
        "-m",
        "pytest",
        "-qx",
        "-n3",
        "--max-worker-restart=0",
        "--dist=loadfile",
        "--no-loadscope-reorder",
        *tests,
    ]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=MAX_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return TOO_LONG
    name = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", said, re.MULTILINE)
    return "" if process.returncode == 0 else name[1] if name else said[-500:]


def killer(folder: Path, tests: Sequence[str]) -> str:
    first = failing(folder, tests)
    return (
        first
        if first == TOO_LONG or (first and failing(folder, [first] if "::" in first else tests))
        else ""
    )


@contextmanager
def changed_source(folder: Path, mutants: Sequence[Mutant]) -> Iterator[None]:
    sources = {path: (folder / path).read_bytes() for path, *_ in mutants}
    for path, start, end, after in sorted(mutants, key=itemgetter(1), reverse=True):
        source = (folder / path).read_bytes()
        (folder / path).write_bytes(source[:start] + after.encode() + source[end:])
    try:
        yield
    finally:
        for path, source in sources.items():
            (folder / path).write_bytes(source)


def tell(mutant: Mutant, outcome: str) -> None:
    outcomes[outcome if outcome in (SURVIVES, TOO_LONG) else "killed"] += 1
    (path, start, end, after), source = mutant, (ROOT / mutant[0]).read_bytes()
    line, before = source.count(b"\n", 0, start) + 1, source[start:end].decode()
    print(f"{outcome}\n    {path}:{line}: {before}  ->  {after}", flush=True)


def test_by_all(folder: Path, mutants: Sequence[Mutant]) -> None:
    """Test these mutants together. If a test finds them, test each half by itself."""
    with changed_source(folder, mutants):
        found = killer(folder, [])
    if not found or len(mutants) == 1:
        for mutant in mutants:
            tell(mutant, found or SURVIVES)
        return
    test_by_all(folder, mutants[: len(mutants) // 2])
    test_by_all(folder, mutants[len(mutants) // 2 :])


def main() -> None:
    seed, count = map(int, sys.argv[1:])
    chosen = random.Random(seed)
    python = [mutant for path in sorted(SOURCE.rglob("*.py")) for mutant in mutants_of(path)]
    sources = [*SOURCE.rglob("*sql.py"), *SOURCE.rglob("*.sql"), SOURCE / "store" / "commands.py"]
    sql = [mutant for path in sorted(sources) for mutant in sql_mutants_of(path)]
    sample = chosen.sample(python, count - count // 2) + chosen.sample(sql, count // 2)
    print(f"{count} of {len(python)} and, in SQL, of {len(sql)} mutants, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        subprocess.run(["make", "--silent", ".venv/dev.stamp"], cwd=folder, check=True)
        if broken := killer(folder, []):
            raise SystemExit(f"without a mutant, {broken} fails")
        left = []
        for mutant in sample:
            module = mutant[0].relative_to("src/mahasiswa").with_suffix("").as_posix()
            nearest = TESTS_OF_MODULES.get(module.replace("__init__", ""))
            parts = mutant[0].parts
            topic = TOPICS.get(parts[2], TOPICS[""])
            of_engine = next((only for engine, only in ENGINE_TESTS.items() if engine in parts), ())
            with changed_source(folder, [mutant]):
                found = nearest and killer(folder, nearest)
                found = found or killer(folder, [*topic.split(), *of_engine])
            tell(mutant, found) if found else left.append(mutant)
        print(f"{len(left)} are left for all tests", flush=True)
        test_by_all(folder, left)
    print(dict(outcomes))


main()

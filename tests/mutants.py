"""`make mutants`: changes the source at random places, one at a time, and lists the changes that no test of `make test` finds.

Each mutant is tested by the tests of its folder, and by all tests if it survives. Only a test that fails twice counts. The
work is done in a clone of the last commit with an environment of its own.
"""

import ast
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mahasiswa"

PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv)),
]
OPPOSITES = dict(PAIRS) | {second: first for first, second in PAIRS}


Mutant = tuple[Path, int, int, str]
"""A file, and the bytes from the first number to the second one that the text replaces."""


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
        case ast.Raise() | ast.Break() | ast.Continue() | ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            return ast.Pass()
        case _:
            return None
    return cast("ast.AST", other)


def mutants_of(path: Path) -> Iterator[Mutant]:
    lines, tree = path.read_bytes().splitlines(keepends=True), ast.parse(path.read_bytes())
    # Python 3.11 does not know the places of the parts of a formatted text.
    formatted = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if node not in formatted and (other := changed(node)):
            place: Any = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
            start = sum(map(len, lines[: place.lineno - 1])) + place.col_offset
            end = sum(map(len, lines[: place.end_lineno - 1])) + place.end_col_offset
            after = f"({ast.unparse(other)})" if isinstance(other, ast.expr) else ast.unparse(other)
            yield path.relative_to(ROOT), start, end, after


def failing(folder: Path, tests: Sequence[str]) -> str:
    """Run tests in the clone until one fails; return its name, or an empty text."""
    command = [".venv/bin/python", "-m", "pytest", "-qx", "-n3", "--max-worker-restart=0", "--dist=loadfile", *tests]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=1200)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "they take too long"
    name = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", said, re.MULTILINE)
    return "" if process.returncode == 0 else name[1] if name else said[-500:]


def killer(folder: Path, tests: Sequence[str]) -> str:
    first = failing(folder, tests)
    return first if first and failing(folder, [first] if "::" in first else tests) else ""


def nearest(path: Path) -> list[str]:
    """Return the folder of the tests of a module, and the tests of connections for those that have none."""
    folder = ROOT / "tests" / path.parts[2]
    return [f"tests/{folder.name}"] if folder.is_dir() else ["tests/cli", "tests/web", "tests/faults"]


def main() -> None:
    seed, count = map(int, sys.argv[1:])
    mutants = [mutant for path in sorted(SOURCE.rglob("*.py")) for mutant in mutants_of(path)]
    sample = random.Random(seed).sample(mutants, count)
    print(f"{count} of {len(mutants)} mutants, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        subprocess.run(["make", "--silent", ".venv/dev.stamp"], cwd=folder, check=True)
        if broken := killer(folder, sorted({test for mutant in sample for test in nearest(mutant[0])})):
            raise SystemExit(f"without a mutant, {broken} fails")
        for number, (path, start, end, after) in enumerate(sample, 1):
            began, source = time.monotonic(), (folder / path).read_bytes()
            (folder / path).write_bytes(source[:start] + after.encode() + source[end:])
            found = killer(folder, nearest(path)) or killer(folder, []) or "SURVIVES"
            (folder / path).write_bytes(source)
            before, line = source[start:end].decode(), source.count(b"\n", 0, start) + 1
            print(f"{number}. {found} ({time.monotonic() - began:.0f} s)")
            print(f"    {path}:{line}: {before}  ->  {after}", flush=True)


main()

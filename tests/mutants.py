"""`make mutants`: changes the source at random places, one at a time, and lists the changes that no test finds.

Half of the changes are in SQL.

Each mutant is tested by the tests of its module, as the map in docs/architecture.md names them, or by those with the first
word of the name of its file of SQL, and if none fails by all of `make test` but those in a browser.
The work is done in a clone of the last commit with an environment of its own. A mutant that survives shows that all tests
pass there.
"""

import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_SECONDS = "1800"
QUICK = "not torture and not root and not browser"
SURVIVES = "SURVIVES"
SOURCE = Path("src/mahasiswa")

# A pattern, and its replacement: {0} is the first group. A mutant that is not valid Python is left out.
PYTHON_CHANGES = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
    " not in ": " in ", "(?<! not) in ": " not in ", " is not ": " is ", " is (?!not )": " is not ",
    " and ": " or ", " or ": " and ", r" \+ ": " - ", " - ": " + ", r" \* ": " // ", " // ": " * ",
    r"\bnot (?!in )": "", r"(?<!strict=)\bTrue\b": "False", r"\bFalse\b": "True",
    r"(?<![\w.])(\d[\d_.]*)(?!\w)": "({0} + 1)",
    r"\b((?:el)?if|while) (.+):$": "{0} not ({1}):",
    r"\breturn (?!None$)\S.*$": "return None",
    r"^( +)(?:raise .+|break|continue|(?:await )?[\w.]+\(.*\)|[\w.]+ [-+]= .+)$": "{0}pass",
}  # fmt: skip
# A condition of SQL with at most one pair of parentheses in another, up to the word or the sign after it.
CONDITION = (
    r"\s+(?:[^();]|\((?:[^()]|\([^()]*\))*\))+?(?=\s+(?:AND|OR|THEN|WHEN|ELSE|ORDER|GROUP|LIMIT|"
    r"RETURNING|UNION|WHERE|LEFT|JOIN|WINDOW|FOR|DO|BEGIN)\b|\s*[);\"])"
)
SQL_CHANGES = {
    rf"\b(WHERE|AND|ON){CONDITION}": "{0} true",
    rf"\b(WHEN|OR){CONDITION}": "{0} false",
    " = ": " <> ", " <> ": " = ", " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ",
    r"\bIS DISTINCT FROM\b": "IS NOT DISTINCT FROM",
    # One column of two is not compared.
    r"\((\S+), \S+\) IS (NOT )?DISTINCT FROM \((\S+), \S+\)": "{0} IS {1}DISTINCT FROM {2}",
    r"\(\S+, (\S+)\) IS (NOT )?DISTINCT FROM \(\S+, (\S+)\)": "{0} IS {1}DISTINCT FROM {2}",
    # A column is dropped.
    r", (?:\w+\.)?alamat\w*(?!\w|\) IS|\)\n)": "",
    r"\bnama, ": "",
    # A limit is one more; one of a million millions only keeps the planner from merging two queries.
    r"(?<=LIMIT )(?!1000000000000)([\d:?{][\w}]*)": "{0} + 1",
    r"(?<=days => )([\w.]+)|(?<='-' \|\| )(days)\b": "({0}{1} + 1)",
}  # fmt: skip

TESTS = {
    module: [f"tests/{test}" for test in re.findall("`(.+?)`", tests)]
    for module, tests in re.findall(
        r"(?m)^\| `(.+?)` \| .+ \| (`.+) \|$",
        (ROOT / "docs" / "architecture.md").read_text("utf-8"),
    )
}
"""The tests of a module, by the map of docs/architecture.md."""

# Parts that are not code: comments and, in Python, string literals. Tests import the constants, and cannot see how the
# garbage is collected.
PYTHON_IGNORED = r'(?s:""".*?""")|"[^"\n]*"|#.*$|^[A-Z_]+ = \d.*$|\bgc\..*$'
SQL_IGNORED = r"--.*$"


# A file, and the characters from the first number to the second that the text replaces.
Mutant = tuple[Path, int, int, str]


def is_python(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def mutants_of(files: str, ignored: str, changes: Mapping[str, str]) -> Iterator[Mutant]:
    for path in sorted(SOURCE.rglob(files)):
        text = path.read_text("utf-8")
        # The line with the name of a statement ends the one before it.
        code = text.replace("-- name: ", ";        ")
        code = re.sub(f"(?m){ignored}", lambda found: re.sub(".", " ", found[0]), code)
        for pattern, change in changes.items():
            for found in re.finditer(pattern, code, re.MULTILINE):
                start, end = found.span()
                groups = (text[slice(*found.span(at))] for at in range(1, found.re.groups + 1))
                after = change.format(*groups)
                if path.suffix == ".sql" or is_python(text[:start] + after + text[end:]):
                    yield path, start, end, after


def killer(tests: Sequence[str]) -> str:
    """Run tests until one fails; return its name, or an empty text."""
    options = (
        "-qx",
        "-n3",
        "-m",
        QUICK,
        "--max-worker-restart=0",
        "--dist=loadfile",
        "--no-loadscope-reorder",
    )
    command = ["timeout", MAX_SECONDS, ".venv/bin/python", "-m", "pytest", *options, *tests]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = re.findall(r"(?m)^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout)
    return "" if done.returncode == 0 else [*failed, "the time limit"][0]


def outcome(path: Path, start: int, end: int, after: str) -> str:
    """Change the source, and return the test that finds it, if there is one."""
    module = path.relative_to(SOURCE).with_suffix("").as_posix().replace("__init__", "")
    subject = path.stem.partition("_")[0]
    named_alike = map(str, Path("tests").rglob(f"test_{subject}.py"))
    nearest = TESTS.get(module) or [*named_alike] or ["tests/store"]
    source = path.read_text("utf-8")
    path.write_text(source[:start] + after + source[end:], "utf-8")
    found = killer(nearest) or killer([]) or SURVIVES
    path.write_text(source, "utf-8")
    line = source.count("\n", 0, start) + 1
    print(f"{found}\n    {path}:{line}: {source[start:end]}  ->  {after}", flush=True)
    return found


def main() -> None:
    seed, count = map(int, sys.argv[1:])
    chosen = random.Random(seed)
    with tempfile.TemporaryDirectory() as clone, chdir(clone):
        subprocess.run(["git", "clone", "--quiet", ROOT, "."], check=True)
        subprocess.run(["make", "--silent", ".venv/dev.stamp"], check=True)
        python = list(mutants_of("*.py", PYTHON_IGNORED, PYTHON_CHANGES))
        sql = list(mutants_of("*.sql", SQL_IGNORED, SQL_CHANGES))
        sql += mutants_of("*_sql.py", SQL_IGNORED, SQL_CHANGES)  # in its texts
        sample = chosen.sample(python, count - count // 2) + chosen.sample(sql, count // 2)
        survivors = [outcome(*mutant) for mutant in sample].count(SURVIVES)
    print(f"seed {seed}: {survivors} of {count} mutants survive")


if __name__ == "__main__":
    main()

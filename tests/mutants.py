"""`make mutants`: changes the source at random places, one at a time, and lists the changes that no test of `make test` finds.

Half of the changes are in SQL.

Each mutant is tested by the tests of its module, as the map in docs/architecture.md names them, and if none fails by all.
The work is done in a clone of the last commit with an environment of its own.
"""

import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_SECONDS = "1800"
SURVIVES = "SURVIVES"
SOURCE = ROOT / "src" / "mahasiswa"

# A pattern, and its replacement: {0} is the first group. A mutant that is not valid Python is left out.
PYTHON_CHANGES = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
    " not in ": " in ", "(?<! not) in ": " not in ", " is not ": " is ", " is (?!not )": " is not ",
    " and ": " or ", " or ": " and ", r" \+ ": " - ", " - ": " + ", r" \* ": " // ", " // ": " * ",
    r"\bnot (?!in )": "", r"\bTrue\b": "False", r"\bFalse\b": "True",
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

TESTS_OF_MODULES = {
    module: [f"tests/{test}" for test in re.findall("`(.+?)`", tests)]
    for module, tests in re.findall(
        r"(?m)^\| `(.+?)` \| .+ \| (`.+) \|$",
        (ROOT / "docs" / "architecture.md").read_text("utf-8"),
    )
}
"""The map of docs/architecture.md. Files of SQL are not in it."""

HISTORY = ["tests/store/test_history.py", "tests/store/test_one_field.py"]
TESTS_OF_SQL = {
    "history": HISTORY,
    "undo": HISTORY,
    "triggers": HISTORY,
    "history_triggers": HISTORY,
    "search": ["tests/store/test_search.py"],
    "suspicions": ["tests/web/lists/test_whole_list.py"],
    "import": ["tests/cli/test_cli_transfers.py"],
    "stage": ["tests/web/imports"],
}
"""The tests of a file of SQL, by its subject; those of other files are in tests/store."""


# A file, and the characters from the first number to the second that the text replaces.
Mutant = tuple[Path, int, int, str]


def code_of(path: Path) -> str:
    """Return the text of a file, with spaces in the place of its comments and, in Python, of its texts."""
    ignored = r"--.*$" if path.suffix == ".sql" else r'(?s:""".*?""")|"[^"\n]*"|#.*$'
    # The line with the name of a statement ends the one before it.
    text = path.read_text("utf-8").replace("-- name: ", ";        ")
    return re.sub(f"(?m){ignored}", lambda found: re.sub(".", " ", found[0]), text)


def is_python(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def mutants_of(path: Path, code: str, changes: Mapping[str, str]) -> Iterator[Mutant]:
    text = path.read_text("utf-8")
    for pattern, change in changes.items():
        for found in re.finditer(pattern, code, re.MULTILINE):
            start, end = found.span()
            groups = (text[slice(*found.span(at))] for at in range(1, found.re.groups + 1))
            after = change.format(*groups)
            if path.suffix == ".sql" or is_python(text[:start] + after + text[end:]):
                yield path.relative_to(ROOT), start, end, after


def killer(folder: Path, tests: Sequence[str]) -> str:
    """Run tests in the clone until one fails; return its name, or an empty text."""
    options = ("-qx", "-n3", "--max-worker-restart=0", "--dist=loadfile", "--no-loadscope-reorder")
    command = ["timeout", MAX_SECONDS, ".venv/bin/python", "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    failed = re.findall(r"(?m)^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout)
    return "" if done.returncode == 0 else [*failed, "the time limit"][0]


def outcome(folder: Path, mutant: Mutant) -> str:
    """Change the source of the clone, and return the test that finds it, if there is one."""
    path, start, end, after = mutant
    module = path.relative_to("src/mahasiswa").with_suffix("").as_posix()
    nearest = TESTS_OF_SQL.get(path.stem, ["tests/store"])
    if path.suffix == ".py":
        nearest = TESTS_OF_MODULES.get(module.replace("__init__", ""), nearest)
    source = (folder / path).read_text("utf-8")
    (folder / path).write_text(source[:start] + after + source[end:], "utf-8")
    found = killer(folder, nearest) or killer(folder, []) or SURVIVES
    (folder / path).write_text(source, "utf-8")
    line = source.count("\n", 0, start) + 1
    print(f"{found}\n    {path}:{line}: {source[start:end]}  ->  {after}", flush=True)
    return found


def main() -> None:
    seed, count = map(int, sys.argv[1:])
    chosen = random.Random(seed)
    # The modules with SQL in their texts.
    with_sql = [*SOURCE.rglob("*sql.py"), SOURCE / "store" / "commands.py"]
    texts = [(path, path.read_text("utf-8")) for path in with_sql]
    texts += [(path, code_of(path)) for path in SOURCE.rglob("*.sql")]
    sql = [mutant for path, text in sorted(texts) for mutant in mutants_of(path, text, SQL_CHANGES)]
    modules = [(path, code_of(path)) for path in sorted(SOURCE.rglob("*.py"))]
    python = [mutant for path, code in modules for mutant in mutants_of(path, code, PYTHON_CHANGES)]
    sample = chosen.sample(python, count - count // 2) + chosen.sample(sql, count // 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        subprocess.run(["make", "--silent", ".venv/dev.stamp"], cwd=folder, check=True)
        if broken := killer(folder, []):
            raise SystemExit(f"without a mutant, {broken} fails")
        survivors = [outcome(folder, mutant) for mutant in sample].count(SURVIVES)
    print(f"seed {seed}: {survivors} of {count} mutants survive")


if __name__ == "__main__":
    main()

"""Writes tables of the documents from the code: settings, commands, metrics, limits, kinds of work, and the map.

Usage: .venv/bin/python docs/write_tables.py. A table stands between `<!-- NAME, written by docs/write_tables.py -->` and
`<!-- end -->`. A limit is named by its constant in braces, wherever that constant stands in the package.
"""

import ast
import importlib
import pkgutil
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import mahasiswa
from mahasiswa.commands.cli import main
from mahasiswa.settings import Settings
from mahasiswa.store.backup_folder import Outcome, write_outcome
from mahasiswa.web.metrics import Metrics
from mahasiswa.work import KINDS, Limits

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "docs/reference.md", "docs/architecture.md")
WRITTEN = re.compile(
    r"(<!-- ([a-z ]+), written by docs/write_tables\.py -->\n).*?(<!-- end -->)", re.DOTALL
)

FIRST_SETTINGS = ("HOST", "PORT", "DATABASE_URL", "BASE_URL", "SAME_ORIGIN_ONLY", "TIMEZONE")
# An address, a hash, or made of other settings.
DEFAULTS_IN_WORDS = {
    "HOST": "`::`, or `0.0.0.0` without IPv6",
    "BASE_URL": "`http://localhost:PORT`",
    "CDN_URL": "Bootstrap 5",
    "CDN_INTEGRITY": "that of Bootstrap 5",
}

# What is limited, its maximum, and what happens beyond it.
LIMITS = [
    ("time to send the head of a request", "{HEAD_TIMEOUT_SECONDS}", "the connection is closed"),
    (
        "time to send the body of a request",
        (
            "{BODY_TIMEOUT_SECONDS}, and 1 s more for each {MIN_BYTES_PER_SECOND} received;"
            " {BODY_TIMEOUT_SECONDS} without a byte"
        ),
        "408, and the connection is closed",
    ),
    (
        "time to take an answer",
        ("{WRITE_TIMEOUT_SECONDS} without a byte, of which Linux tells in steps of 32 KB; except for the list page also"
        " {WRITE_TIMEOUT_SECONDS}, and 1 s more for each {MIN_BYTES_PER_SECOND} taken, of which the kernel holds up to"
        " {UNSENT_MAX_BYTES}"),
        "within {mahasiswa.server.http_protocol.CHECK_SECONDS} the connection is reset, and all that was held for it is free",
    ),
    (
        "input that a client sends before it has the answer to the last request",
        "{INPUT_MAX_BYTES} and one more read, within the budget of bodies",
        "it waits; without room in the budget the connection is closed",
    ),
    ("trailers and chunk sizes of a body, without content between them", "{INPUT_MAX_BYTES}", "400"),
    ("body of a form, and of a deletion, which ignores it", "{FORM_MAX_BYTES}", "413"),
    ("fields of a form; of a preview or of ticked rows", "{MAX_FIELDS}; {MAX_REPAIRS}", "400"),
    ("path of an address after that of `BASE_URL`", "{PATH_MAX_BYTES}", "414"),
    (
        "query of an address, without a malformed escape",
        "{QUERY_MAX_BYTES}, {QUERY_MAX_PARAMETERS} parameters",
        "400",
    ),
    ("head of a request; its address", "{INPUT_MAX_BYTES}, {HEAD_MAX_HEADERS} headers; {INPUT_MAX_BYTES}", "431; 414"),
    ("Content-Type of an upload", "{CONTENT_TYPE_MAX_BYTES}", "400"),
    ("length of a page, except the list and pages of more than {INLINE_ROWS} rows", "{PAGE_MAX_BYTES}", "503"),
    (
        "room for temporary files: exports, pages of more than {INLINE_ROWS} rows",
        "the free space in the folder `TMPDIR`",
        "503, nothing is saved",
    ),
    (
        "helper process of a preview",
        "{PREVIEW_MEMORY_BYTES} of memory, {PREVIEW_PROCESSOR_SECONDS} of the processor, {PREVIEW_SILENT_SECONDS} of silence",
        "413",
    ),
    (
        "helper process of a workbook to download",
        "{EXPORT_MEMORY_BYTES} of memory, {EXPORT_PROCESSOR_SECONDS} of the processor, {EXPORT_SILENT_SECONDS} of silence",
        "503",
    ),
    ("uploaded file", "{UPLOAD_MAX_BYTES}, {UPLOAD_MAX_ROWS} rows, {MAX_SHEETS} sheets", "413"),
    (
        "form of a preview or of a selection, as it is sent and unpacked",
        "{MAX_CONFIRMED_BYTES}, {UPLOAD_MAX_ROWS} rows",
        "413; 400 if it is unpacked, or for the rows",
    ),
    (
        "cells that a preview carries whole, so that columns and sheets can be changed",
        "{KEPT_MAX_CHARACTERS} characters, {KEPT_MAX_CELLS} cells, a field of {FIELD_MAX_CHARACTERS} characters",
        "the file must be chosen again for another column or sheet",
    ),
    (
        "time in which the rest of a refused body is read, so that the client gets the page and no reset",
        "{DRAIN_TIMEOUT_SECONDS}",
        "the connection is closed",
    ),
    ("length of a NIM", "{NIM_MAX_CHARACTERS} characters", "400"),
    ("name of a person (`USER_HEADER`)", "{mahasiswa.web.request_guard.NAME_MAX_CHARACTERS} characters", "it is cut"),
    (
        "connections of one worker, and never more than the system allows open files",
        "{MAX_CONNECTIONS}",
        "a bare 503",
    ),
    (
        "characters of a search; of each text that a search or a check looks at",
        "{SEARCH_MAX_CHARACTERS}; {SEARCHED_CHARACTERS}",
        "the rest does not count",
    ),
    (
        "characters of a text on a page, except `/`, forms and previews",
        "{SHOWN_MAX_CHARACTERS}",
        "the page shows the beginning",
    ),
    (
        "records of a page and of a printout; of each part of a check; beginnings of NIMs in a recap",
        "{MAX_ROWS_PER_PAGE}; {SUSPECTS_MAX}; {PREFIXES_MAX}",
        "the page shows the first ones",
    ),
    ("records that *Rapikan* tidies at a time", "{TIDIED_MAX}", "the button says so"),
    ("rows of a change that people undo", "{UNDO_ROWS_MAX}", "the page names the command `mahasiswa undo NUMBER`"),
    (
        "rows of an import that can be undone",
        "{UNDOABLE_ROWS_MAX}",
        "only a command may import more; the history has one line for it",
    ),
    (
        "time in which a change waits for a lock",
        ("{STEP_TIMEOUT_SECONDS}; for a command {mahasiswa.store.sqlite.connection.LOCK_TIMEOUT_SECONDS} on SQLite"
        " and {mahasiswa.store.postgres.postgres_sql.LOCK_TIMEOUT_SECONDS} on PostgreSQL"),
        "503, nothing is saved",
    ),
    ("time in which the event loop of a worker does not run", "{SILENT_SECONDS}", "the worker is killed and replaced"),
    ("time from SIGTERM to the end of the workers", "{SHUTDOWN_SECONDS}", "requests in flight are cut off"),
    ("request bodies in the memory of a worker; the part for forms alone", "{BODIES_MAX_BYTES}; {FORMS_RESERVED_BYTES}", "503"),
    ("uploads and confirmations that arrive at the same time", "{MAX_LARGE_BODIES}", "of the address that has most, the one that has stood for longest is refused"),
    (
        "answers in the memory of a worker that clients have not taken yet; the part for those of {SMALL_BYTES}",
        "{ANSWERS_MAX_BYTES}; {SMALL_ANSWERS_RESERVED_BYTES}",
        "503",
    ),
    (
        "older versions of the list page that clients still take",
        "{SHARED_ANSWERS_MAX_BYTES}",
        "the same: its clients are cut off",
    ),
    (
        "files that are being sent",
        "{SENT_FILES_MAX}, {SENT_FILES_MAX_BYTES} together",
        "the same: its client is cut off",
    ),
]  # fmt: skip


def settings(names: Callable[[str], bool]) -> Iterator[list[str]]:
    yield ["variable", "meaning", "default"]
    for variable, field in Settings.declared():
        if names(variable):
            default = field.metadata["default"]
            shown = DEFAULTS_IN_WORDS.get(variable, f"`{default}`" if default else "none")
            yield [f"`{variable}`", field.metadata["help"], shown]


def commands() -> Iterator[list[str]]:
    yield ["command", "what it does"]
    for name, command in sorted(main.commands.items()):
        arguments = " ".join(
            parameter.make_metavar(command.make_context(name, [], resilient_parsing=True))
            for parameter in command.params
            if parameter.param_type_name == "argument"
        )
        yield [f"`{f'{name} {arguments}'.strip()}`", command.get_short_help_str(limit=200)]


def metrics() -> Iterator[list[str]]:
    yield ["name", "meaning"]
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "mahasiswa.db")
        for file in (database, Path(f"{database}-wal")):
            file.touch()
        write_outcome(database, Outcome(succeeded=1.0, newest=1.0))
        environ = {"DATABASE_URL": f"sqlite:///{database}", "BACKUP_DIR": folder}
        cache = cast("Any", SimpleNamespace(age_seconds=lambda: 0.0))
        shown = Metrics(Settings.from_environment(environ), cache)
        text = shown.text(Limits(), 1, shown.last_backup(""))
    for name, meaning in re.findall("^# HELP ([a-z_]+) (.*)$", text, re.MULTILINE):
        yield [f"`{name}`", meaning]


def limits() -> Iterator[list[str]]:
    constants: dict[str, object] = {}
    for name, value in _constants():
        # A name with two values must be written with its module.
        constants[name] = value if constants.setdefault(name, value) == value else None
    yield ["limit", "maximum", "then"]
    for row in LIMITS:
        yield [
            re.sub(r"\{([\w.]+)\}", lambda name: _shown(name[1], constants), cell) for cell in row
        ]


def _constants() -> Iterator[tuple[str, object]]:
    """Each constant by its name, and by the name of its module and its own."""
    for module in pkgutil.walk_packages(mahasiswa.__path__, "mahasiswa."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                yield name, value
                yield f"{module.name}.{name}", value


def _shown(name: str, constants: dict[str, object]) -> str:
    field: str | None = name.rpartition(".")[2] if name not in constants else None
    found = constants[name.removesuffix(f".{field}")]
    value = cast("float", getattr(found, field) if field else found)
    name = name.upper()
    if name.endswith("SECONDS"):
        return f"{value:g} s"
    if "BYTES" not in name:
        return f"{value:,}"
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if value >= size and value % size == 0:
            return f"{value / size:g} {unit}"
    return f"{value:,} bytes"


def kinds() -> Iterator[list[str]]:
    yield ["kind of work in one worker", "at the same time", "may wait"]
    for kind in KINDS:
        yield [kind.name, f"{kind.running}", f"{kind.waiting:,}"]


def modules() -> Iterator[list[str]]:
    """The map: each module by its folder, with the first sentence of its docstring."""
    source = ROOT / "src" / "mahasiswa"
    yield ["module", "what it does"]
    for file in sorted(source.rglob("*.py"), key=lambda file: (file.parent, file.stem)):
        docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        name = str(file.relative_to(source).with_suffix("")).replace("/__init__", "/")
        yield [f"`{name}`", docstring.partition("\n")[0].replace("|", "\\|")]


TABLES: dict[str, Callable[[], Iterator[list[str]]]] = {
    "first settings": lambda: settings(lambda name: name in FIRST_SETTINGS),
    "settings": lambda: settings(lambda name: name not in FIRST_SETTINGS),
    "commands": commands,
    "metrics": metrics,
    "limits": limits,
    "kinds of work": kinds,
    "map": modules,
}


def table(name: str) -> str:
    head, *rows = TABLES[name]()
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def written(text: str) -> str:
    """Return a document with its tables as the code has them."""
    return WRITTEN.sub(lambda found: f"{found[1]}{table(found[2])}{found[3]}", text)


if __name__ == "__main__":
    for document in DOCUMENTS:
        path = ROOT / document
        path.write_text(written(path.read_text("utf-8")), "utf-8")

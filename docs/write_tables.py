"""Writes tables of the documents from the code: settings, commands, metrics, limits, kinds of work, problems of an import, and the map.

Usage: .venv/bin/python docs/write_tables.py. A table stands between `<!-- NAME, written by docs/write_tables.py -->` and
`<!-- end -->`. A limit is named by its constant in braces, wherever that constant stands in the package.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import mahasiswa
from mahasiswa.commands.cli import main
from mahasiswa.settings import Settings
from mahasiswa.sheets.rules import PROBLEMS, REPAIRS, is_fault
from mahasiswa.web.monitoring import METRICS
from mahasiswa.work import KINDS

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
}

# What is limited, its maximum, and what happens beyond it.
LIMITS = [
    ("time to send the head of a request", "{HEAD_TIMEOUT_SECONDS}", "the connection is closed"),
    (
        "time to send the body of a request",
        (
            "{BODY_TIMEOUT_SECONDS} without a byte; each {MIN_BYTES_PER_SECOND} received give back 1 s"
        ),
        "408, and the connection is closed",
    ),
    (
        "time in which a client takes no byte of an answer; Linux reports it in steps of 32 KB",
        "{WRITE_TIMEOUT_SECONDS}",
        "within {mahasiswa.server.http_protocol.CHECK_SECONDS} the connection is reset, and its memory is free",
    ),
    (
        "time to take an answer; the kernel may hold {UNSENT_MAX_BYTES} more",
        "{WRITE_TIMEOUT_SECONDS}; each {MIN_BYTES_PER_SECOND} taken give back 1 s",
        "the same",
    ),
    (
        "requests that wait on a connection for the answer to an earlier one",
        "{PIPELINE_MAX_REQUESTS}",
        "the connection is closed after the answer to the request that is running",
    ),
    ("trailers and chunk sizes of a body, without content between them", "{INPUT_MAX_BYTES}", "431"),
    ("body of a form, and of a deletion, which ignores it", "{FORM_MAX_BYTES}", "413"),
    ("fields of a form; of a preview or of ticked rows", "{MAX_FIELDS}; {PREVIEW_MAX_FIELDS}", "400"),
    ("path of an address", "{PATH_MAX_BYTES}", "414"),
    (
        "query of an address, without a malformed escape",
        "{QUERY_MAX_BYTES}",
        "400",
    ),
    ("head of a request; its address", "{INPUT_MAX_BYTES} without separators, {HEAD_MAX_HEADERS} headers; {INPUT_MAX_BYTES}", "431; 414"),
    ("part of the Content-Type of an upload that has its boundary", "the first {CONTENT_TYPE_MAX_BYTES}", "400"),
    ("length of a page, except the list and printouts", "{PAGE_MAX_BYTES}", "503"),
    (
        "room for temporary files: exports and printouts",
        "the free space in the folder `TMPDIR`",
        "503, nothing is saved",
    ),
    (
        "child process of a workbook to download",
        "{MEMORY_MAX_BYTES} of memory, {PROCESSOR_MAX_SECONDS} of the processor, {WORKBOOK_TIMEOUT_SECONDS} in all",
        "503",
    ),
    (
        "uploaded file; pasted text",
        "{mahasiswa.web.uploads.FILE_MAX_BYTES}, {UPLOAD_MAX_ROWS} rows; {PASTED_MAX_BYTES}",
        "413; 400 for the rows",
    ),
    (
        "child process that reads an upload",
        "{mahasiswa.sheets.read.MEMORY_BYTES} of memory, {mahasiswa.sheets.read.PROCESSOR_SECONDS} of the processor, {READ_TIMEOUT_SECONDS} in all",
        "413",
    ),
    (
        "uploads that wait for their confirmation; of one address",
        "{STAGES_MAX}; {STAGES_MAX_OF_ADDRESS}",
        "one is removed: a saved one first, then a selection, then the oldest of the address with most",
    ),
    (
        "time until such an upload ends; what it takes of the disk",
        "{MAX_AGE_SECONDS}; {mahasiswa.sheets.stage.MAX_BYTES}",
        "404; 413",
    ),
    ("form of a preview or of a selection", "{PREVIEW_FORM_MAX_BYTES}", "413"),
    (
        "time in which the rest of a refused body is read, so that the client gets the page and no reset",
        "{WRITE_TIMEOUT_SECONDS}",
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
        "records of a page; of a printout; of each part of a check",
        "{MAX_ROWS_PER_PAGE}; {PRINTED_MAX_ROWS}; {SUSPECTS_MAX}",
        "the page shows the first ones",
    ),
    ("records that *Rapikan* tidies at a time", "{TIDIED_MAX}", "the button says so"),
    ("rows of a change that people undo", "{UNDO_ROWS_MAX}", "the page says so"),
    (
        "rows of an import that the history keeps one by one",
        "{ENTRIES_MAX}",
        "only a command may import more; the history has one line for it",
    ),
    (
        "time in which a change waits for a lock",
        ("on SQLite {STEP_TIMEOUT_SECONDS}, and {mahasiswa.store.sqlite.connection.LOCK_TIMEOUT_SECONDS} for a command;"
        " on PostgreSQL {mahasiswa.store.postgres.postgres_sql.LOCK_TIMEOUT_SECONDS}"),
        "503, nothing is saved",
    ),
    ("time in which the event loop does not run", "{SILENT_SECONDS}", "the process ends itself, and is started again"),
    ("time from SIGTERM until requests are cut off", "{GRACEFUL_SHUTDOWN_SECONDS}", "requests in flight are cut off"),
    ("versions of the list page that clients still take", "{mahasiswa.web.list_cache.VERSIONS_MAX}", "clients of the oldest one are cut off"),
]  # fmt: skip


# The tests of a module, in tests/, if no test has its name or if other tests fit better.
TESTS = {
    "__main__": "cli/test_utf8",
    "digits": "cli/test_settings web/lists/test_find",
    "sheets/selection": "web/imports/test_selection",
    "logs": "web/service/test_health cli/test_processes",
    "record": "store/test_one_field web/records/test_edit_conflicts",
    "shared_task": "test_work",
    "commands/transfers": "cli/test_cli_transfers cli/test_cli_interrupt",
    "sheets/cells": "sheets/test_read",
    "sheets/columns": "sheets/test_read",
    "sheets/delimited": "sheets/test_read",
    "sheets/file_kind": "sheets/test_read",
    "sheets/html_table": "sheets/test_read",
    "sheets/pasted": "sheets/test_read",
    "sheets/rules": "sheets/test_read web/imports/test_preview",
    "sheets/workbook": "sheets/test_read",
    "sheets/xlsx_scan": "sheets/test_read",
    "sheets/stage": "web/imports/test_stage",
    "server/listener": "cli/test_server",
    "server/worker": "cli/test_processes cli/test_server cli/test_shutdown",
    "sheets/csv_form": "sheets/test_exports",
    "sheets/xlsx_export": "sheets/test_exports",
    "store/": "store/test_store store/test_one_field",
    "store/backup_folder": "cli/test_backups",
    "store/commands": "cli/test_cli_transfers cli/test_forget",
    "store/engines": "store/test_store",
    "store/folding": "store/test_search",
    "store/sqlite/writer": "store/test_store store/test_sqlite",
    "store/history_items": "store/test_history",
    "store/queries": "store/test_search web/lists/test_find",
    "store/reader": "store/test_store store/test_search store/test_history",
    "store/results": "cli/test_cli_transfers cli/test_cli_restore",
    "store/shared_sql": "store/test_search store/test_history",
    "store/spelling": "store/test_search",
    "store/store_errors": "store/test_store web/records/test_forms",
    "store/postgres/engine": "store/postgres/test_schema cli/test_cli_transfers",
    "store/postgres/pool": "store/postgres/test_connections store/postgres/test_reads",
    "store/postgres/postgres_schema": "store/postgres/test_schema store/test_upgrade",
    "store/postgres/postgres_sql": "store/postgres/test_connections",
    "store/postgres/store": "store/postgres/test_writes store/test_store",
    "store/sqlite/backup": "cli/test_backups cli/test_cli_restore store/test_sqlite_restore",
    "store/sqlite/connection": "store/test_sqlite",
    "store/sqlite/engine": "store/test_sqlite cli/test_cli_transfers",
    "store/sqlite/sqlite_errors": "cli/test_doctor faults/test_file",
    "store/sqlite/sqlite_reader": "store/test_sqlite_cost store/test_sqlite",
    "store/sqlite/sqlite_sql": "store/test_sqlite cli/test_cli_restore",
    "store/sqlite/store": "store/test_sqlite store/test_store",
    "system/administrator": "store/test_history cli/test_cli",
    "system/child": "web/test_limits",
    "system/parent": "cli/test_processes",
    "system/folder_lock": "cli/test_cli_restore web/imports/test_stage",
    "system/unfinished": "cli/test_backups cli/test_cli_files",
    "web/acts": "web/imports/test_preview web/imports/test_selection",
    "web/app": "web/pages/test_every_route web/service/test_routes",
    "web/checks": "web/lists/test_whole_list",
    "server/http_protocol": "web/service/test_raw faults/test_slow_clients",
    "web/connection": "web/service/test_raw",
    "web/exports": "web/lists/test_export",
    "web/guide": "web/pages/test_panduan web/pages/test_every_route",
    "web/history": "web/history/test_history web/history/test_undo",
    "web/imports": "web/imports/test_preview web/imports/test_selection",
    "web/stage_page": "web/imports/test_preview",
    "web/uploads": "web/imports/test_uploads web/imports/test_arrivals",
    "web/list_html": "web/lists/test_pages web/lists/test_list_cache",
    "web/list_query": "web/lists/test_find web/records/test_keep_place",
    "web/lists": "web/lists/test_find web/lists/test_whole_list web/lists/test_print",
    "web/middleware": "web/service/test_health web/lists/test_list_cache",
    "web/monitoring": "web/service/test_health web/service/test_metrics",
    "web/page_renderer": "web/pages/test_every_page web/lists/test_pages",
    "web/request": "web/service/test_routes web/records/test_forms",
    "web/request_guard": "web/service/test_same_origin web/service/test_user_header",
    "web/responses": "web/service/test_answer_bounds web/lists/test_list_cache",
    "web/routes": "web/service/test_routes web/pages/test_every_route",
    "web/students": "spec/test_4_routes web/records/test_one_record",
}


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
    for name, meaning in METRICS.items():
        yield [f"`mahasiswa_{name}`", meaning]


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
        share = f", {kind.of_address} of one address" if kind.of_address < kind.running else ""
        yield [kind.name, f"{kind.running:,}{share}", f"{kind.waiting:,}"]


def problems() -> Iterator[list[str]]:
    yield ["problem of a line", "kind", "repair of all lines"]
    for code, sentence in PROBLEMS.items():
        kind = "fault" if is_fault(code) else "doubt"
        yield [sentence, kind, REPAIRS.get(code, "")]


def modules() -> Iterator[list[str]]:
    """The map: each module by its folder, with the first sentence of its docstring, and its tests."""
    source = ROOT / "src" / "mahasiswa"
    tests = ROOT / "tests"
    yield ["module", "what it does", "its tests"]
    for file in sorted(source.rglob("*.py"), key=lambda file: (file.parent, file.stem)):
        tree = ast.parse(file.read_text("utf-8"))
        docstring = ast.get_docstring(tree) or ""
        name = str(file.relative_to(source).with_suffix("")).replace("/__init__", "/")
        named = (str(path.relative_to(tests)) for path in tests.rglob(f"test_{file.stem}.py"))
        found = TESTS.get(name) or " ".join(named).replace(".py", "")
        if len(tree.body) == 1:  # a package without code
            found = ""
        shown = ", ".join(f"`{test}.py`" for test in found.split())
        yield [f"`{name}`", docstring.partition("\n")[0].replace("|", "\\|"), shown]


TABLES: dict[str, Callable[[], Iterator[list[str]]]] = {
    "first settings": lambda: settings(lambda name: name in FIRST_SETTINGS),
    "settings": lambda: settings(lambda name: name not in FIRST_SETTINGS),
    "commands": commands,
    "metrics": metrics,
    "limits": limits,
    "kinds of work": kinds,
    "problems": problems,
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

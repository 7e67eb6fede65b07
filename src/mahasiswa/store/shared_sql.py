"""The SQL of a store: statements that each engine has in .sql files by subject, under the same names."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mahasiswa.record import INVISIBLE, NEAR_FROM, NEAR_TO, SHOWN_MAX_CHARACTERS, Field
from mahasiswa.store import folding
from mahasiswa.store.history_items import PURGE_ENTRIES, PURGE_SECONDS, UNDO_ROWS_MAX
from mahasiswa.store.queries import Query

COUNT = "SELECT count(*) FROM mahasiswa"
DAYS = "SELECT days FROM mahasiswa_history_state"
SIGNING_KEY = "SELECT signing_key FROM mahasiswa_history_state"

Parameters = Mapping[str, object]

# The statements write these as parameters, such as :SHOWN_MAX_CHARACTERS.
CONSTANTS: Mapping[str, str | int] = {
    "SHOWN_MAX_CHARACTERS": SHOWN_MAX_CHARACTERS,
    "SEARCHED_CHARACTERS": folding.SEARCHED_CHARACTERS,
    "UNDO_ROWS_MAX": UNDO_ROWS_MAX,
    "PURGE_ENTRIES": PURGE_ENTRIES,
    "PURGE_SECONDS": PURGE_SECONDS,
    "NEAR_FROM": NEAR_FROM,
    "NEAR_TO": NEAR_TO,
    "REMOVED_ASCII": folding.REMOVED_ASCII,
    "REPLACEMENTS": folding.REPLACEMENTS_JSON,
    "ODD_CHARACTERS": folding.ODD_SPACES + INVISIBLE,
}


def read_statements(folder: Path) -> dict[str, str]:
    """The statements of the .sql files of an engine, by name, without their comments."""
    statements: dict[str, str] = {}
    for file in folder.glob("*.sql"):
        for named in file.read_text().split("\n-- name: ")[1:]:
            name, *lines = named.splitlines()
            text = "\n".join(line for line in lines if not line.startswith("--")).strip()
            statements[name] = re.sub(":([A-Z_]+)", _literal, text)
    return statements


def _literal(name: re.Match[str]) -> str:
    """The value of a constant in SQL. Other text stays, such as the minutes of a time."""
    value = CONSTANTS.get(name[1])
    if isinstance(value, str):
        return "'{}'".format(value.replace("'", "''"))
    return name[0] if value is None else str(value)


@dataclass(kw_only=True)
class SharedSQL:
    """The statements that both engines have, and the parts of a statement that depend on a query."""

    find: str
    find_locked: str
    find_raw: str
    find_shown: str
    twin: str
    within_bytes: str
    add: str
    update: str
    delete: str
    add_renamed: str
    add_all: str
    update_all: str

    all: str
    found: str
    page: str
    search: str
    count_found: str
    prefixes: str
    first_and_last_nim: str
    words: str
    nims: str

    near: str
    suspects_near: str
    suspects_duplicates: str
    suspects_spaces: str
    suspects_length: str
    suspects_capitals: str
    untidy: str

    items: str
    count_items: str
    item: str
    newest_id: str
    own_item: str
    silent: str
    oldest: str
    entries: str
    count_entries: str
    entries_of: str
    recent_before: str
    new_nim: str
    leave_batches: str
    delete_entries: str
    count_recent: str
    is_known: str
    begin_batch: str
    end_batch: str
    begin_silent: str
    end_silent: str
    clock: str
    purge: str

    undoable: str
    undoable_locked: str
    lock_record: str
    lock_all: str
    count_unchanged: str
    entry_conflicts: str
    batch_conflicts: str
    delete_added: str
    restore_changed: str
    restore_deleted: str

    as_array: Callable[[Sequence[str]], object]  # several texts as one parameter
    moment: Callable[[datetime], object]  # a moment as a parameter
    finds: str  # whether `folded_text` has a text, which is the parameter of a name
    matches: str  # whether a pattern of a `Spelling` matches `folded_text` with a space around it

    def array(self, nims: Iterable[str]) -> object:
        """Several nims as one parameter. Nims with NUL are left out, because no record has one."""
        return self.as_array([nim for nim in nims if "\0" not in nim])

    def conditions(self, searches: Iterable[str], di: Field | str) -> tuple[list[str], Parameters]:
        """For each search the condition that finds all its terms in `folded_text`, and the parameters of all."""
        parameters: dict[str, str] = {}

        def named(condition: str, text: str) -> str:
            name = f"text{len(parameters)}"
            parameters[name] = text
            return condition.format(name)

        def finds(spelling: folding.Spelling) -> str:
            # The search for a text is the faster one.
            found = named(self.finds, spelling.text)
            matches = [named(self.matches, pattern) for pattern in spelling.patterns]
            return f"{found} AND ({' OR '.join(matches)})" if matches else found

        conditions = []
        for cari in searches:
            terms = folding.terms(cari, is_prefix=di == "nim")
            found = (" OR ".join(map(finds, term)) for term in terms)
            conditions.append(" AND ".join(f"({term})" for term in found) or "false")
        return conditions, parameters

    def written(self, statement: str, query: Query) -> tuple[str, dict[str, object]]:
        """A statement with the terms and the order of a query, and their parameters."""
        (condition,), words = self.conditions([query.cari], query.di)
        statement = statement.replace("/*terms*/", f"AND {condition}")
        parameters = {"di": query.di, "is_search": bool(query.cari), **words}
        return statement.replace("/*order*/ nim", _order(query)), parameters


def _order(query: Query) -> str:
    """The order of a query. Equal texts are ordered by nim."""
    direction = " DESC" if query.arah == "turun" else ""
    first = "" if query.urut == "nim" else f"lower({query.urut}){direction}, "
    return f"{first}nim{direction}"

"""The SQL of a store: statements that each engine has in .sql files by subject, under the same names."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mahasiswa.record import INVISIBLE, NEAR_FROM, NEAR_TO, ODD_SPACES, SHOWN_MAX_CHARACTERS
from mahasiswa.store import folding
from mahasiswa.store.history_items import PURGE_ENTRIES, PURGE_SECONDS, UNDO_ROWS_MAX
from mahasiswa.store.queries import Query

COUNT = "SELECT count(*) FROM mahasiswa"
DAYS = "SELECT days FROM mahasiswa_history_state"
SIGNING_KEY = "SELECT signing_key FROM mahasiswa_history_state"

Parameters = Mapping[str, Any]

# The statements write these as parameters, such as :SHOWN_MAX_CHARACTERS.
CONSTANTS: Mapping[str, str | int] = {
    "SHOWN_MAX_CHARACTERS": SHOWN_MAX_CHARACTERS,
    "SEARCHED_CHARACTERS": folding.SEARCHED_CHARACTERS,
    "UNDO_ROWS_MAX": UNDO_ROWS_MAX,
    "PURGE_ENTRIES": PURGE_ENTRIES,
    "PURGE_SECONDS": PURGE_SECONDS,
    "NEAR_FROM": NEAR_FROM,
    "NEAR_TO": NEAR_TO,
    "REPLACEMENTS": folding.REPLACEMENTS_JSON,
    "ODD_CHARACTERS": ODD_SPACES + INVISIBLE,
}


def moment_text(moment: datetime) -> str:
    """A moment as a parameter: its second in UTC, as text.

    Among the moments that SQLite stores as texts, exactly the earlier ones sort before it.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


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


class SharedSQL:
    """The statements that both engines have, by name, and the parts of a statement that depend on a query.

    `finds` is the condition that `folded_text` contains a text. `matches` is the condition that a
    pattern of a `Spelling` matches `folded_text` with a space around it. Both hold `{}` in place of
    the name of their parameter.
    """

    def __init__(
        self,
        statements: Mapping[str, str],
        *,
        finds: str,
        matches: str,
        as_array: Callable[[Sequence[str]], object],
    ) -> None:
        self.statements = statements
        self._finds = finds
        self._matches = matches
        plain = folding.with_plain_rt_rw("folded_text")
        self._matches_rt_rw = matches.replace("folded_text", plain)
        self._as_array = as_array

    def step(self, name: str, parameters: Parameters) -> tuple[str, Parameters]:
        """The statement with that name, and its parameters as the engine takes them. Other SQL stays as it is.

        `nims` become an array, without those with NUL, because no record has one. The terms and the order of a `query`
        are put into the statement, or the counts of several `searches`.
        """
        statement = self.statements.get(name, name)
        if "nims" in parameters:
            nims = [nim for nim in parameters["nims"] if "\0" not in nim]
            parameters = {**parameters, "nims": self._as_array(nims)}
        if "query" in parameters:
            query = parameters["query"]
            (condition,), words = self._conditions([query.cari], query.di)
            statement = statement.replace("/*terms*/", f"AND {condition}")
            statement = statement.replace("/*order*/ nim", _order(query))
            search = {"di": query.di, "is_search": bool(query.cari)}
            parameters = {**parameters, **search, **words}
        if "searches" in parameters:
            conditions, words = self._conditions(parameters["searches"], parameters["di"])
            columns = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
            statement = statement.replace("/*counts*/ count(*)", columns)
            parameters = {**parameters, **words}
        return statement, parameters

    def _conditions(self, searches: Iterable[str], di: str) -> tuple[list[str], Parameters]:
        """For each search the condition that finds all its terms in `folded_text`, and the parameters of all."""
        parameters: dict[str, str] = {}

        def named(condition: str, text: str) -> str:
            name = f"text{len(parameters)}"
            parameters[name] = text
            return condition.format(name)

        def finds(spelling: folding.Spelling) -> str:
            # Look for the text first, because that is faster than to match a pattern.
            found = named(self._finds, spelling.text)
            match = self._matches_rt_rw if spelling.is_rt_rw else self._matches
            matches = [named(match, pattern) for pattern in spelling.patterns]
            return f"{found} AND ({' OR '.join(matches)})" if matches else found

        conditions = []
        for cari in searches:
            terms = folding.terms(cari, is_prefix=di == "nim")
            found = (" OR ".join(map(finds, term)) for term in terms)
            conditions.append(" AND ".join(f"({term})" for term in found) or "false")
        return conditions, parameters


def _order(query: Query) -> str:
    """The order of a query. Equal texts are ordered by nim."""
    direction = " DESC" if query.arah == "turun" else ""
    first = "" if query.urut == "nim" else f"lower({query.urut}){direction}, "
    return f"{first}nim{direction}"

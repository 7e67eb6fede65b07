"""The SQL of a store: statements that each engine has in .sql files by subject, under the same names."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mahasiswa.record import INVISIBLE, NEAR_FROM, NEAR_TO, ODD_SPACES, SHOWN_MAX_CHARACTERS
from mahasiswa.store import folding
from mahasiswa.store.history_items import PURGE_ENTRIES

COUNT = "SELECT count(*) FROM mahasiswa"
DAYS = "SELECT days FROM mahasiswa_history_state"
SIGNING_KEY = "SELECT signing_key FROM mahasiswa_history_state"

Parameters = Mapping[str, Any]

# The statements write these as parameters, such as :SHOWN_MAX_CHARACTERS.
CONSTANTS: Mapping[str, str | int] = {
    "SHOWN_MAX_CHARACTERS": SHOWN_MAX_CHARACTERS,
    "SEARCHED_CHARACTERS": folding.SEARCHED_CHARACTERS,
    "PURGE_ENTRIES": PURGE_ENTRIES,
    "NEAR_FROM": NEAR_FROM,
    "NEAR_TO": NEAR_TO,
    "REPLACEMENTS": folding.REPLACEMENTS_JSON,
    "ODD_CHARACTERS": ODD_SPACES + INVISIBLE,
}
# Both engines have this expression letter by letter: the sound of the column `folded_name`.
SOUND_OF_FOLDED_NAME = folding.sound_in_sql("folded_name")
# The orders of a list. Equal texts are ordered by nim.
ORDERS = {
    "nim naik": "nim",
    "nim turun": "nim DESC",
    "nama naik": "lower(nama), nim",
    "nama turun": "lower(nama) DESC, nim DESC",
    "alamat naik": "lower(alamat), nim",
    "alamat turun": "lower(alamat) DESC, nim DESC",
}
WITH = "-- with: "


def moment_text(moment: datetime) -> str:
    """A moment as a parameter: its second in UTC, as text.

    Among the moments that SQLite stores as texts, exactly the earlier ones sort before it.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def read_statements(folder: Path) -> dict[str, str]:
    """The statements of both engines, and those of the .sql files of one engine, by name, without their comments.

    A statement with a line `-- with:` begins with the parts that this line names. One with `:ORDER`
    is six statements, whose names end with the order, such as `page nama turun`.
    """
    statements: dict[str, str] = {}
    parts: dict[str, Sequence[str]] = {}
    for file in [*folder.glob("*.sql"), *Path(__file__).with_name("sql").glob("*.sql")]:
        for named in file.read_text().split("\n-- name: ")[1:]:
            name, *lines = named.splitlines()
            for line in lines:
                if line.startswith(WITH):
                    parts[name] = line.removeprefix(WITH).split(", ")
            text = "\n".join(line for line in lines if not line.startswith("--")).strip()
            text = text.replace(":SOUND_OF_FOLDED_NAME", SOUND_OF_FOLDED_NAME)
            statements[name] = re.sub(":([A-Z_]+)", _literal, text)

    for name, needed in parts.items():
        first = ",\n".join(map(statements.__getitem__, needed))
        statements[name] = f"WITH {first}\n{statements[name]}"
    used = {part for needed in parts.values() for part in needed}
    whole = {name: text for name, text in statements.items() if name not in used}
    return {
        f"{name} {order}" if ":ORDER" in text else name: text.replace(":ORDER", columns)
        for name, text in whole.items()
        for order, columns in ORDERS.items()
    }


def _literal(name: re.Match[str]) -> str:
    """The value of a constant in SQL. Other text stays, such as the minutes of a time."""
    value = CONSTANTS.get(name[1])
    if isinstance(value, str):
        return "'{}'".format(value.replace("'", "''"))
    return name[0] if value is None else str(value)


class SharedSQL:
    """The statements of an engine, by name, and their parameters as this engine takes them."""

    def __init__(
        self, statements: Mapping[str, str], *, as_array: Callable[[Sequence[str]], object]
    ) -> None:
        self.statements = statements
        self._as_array = as_array

    def step(self, name: str, parameters: Parameters) -> tuple[str, Parameters]:
        """The statement with that name, and its parameters as the engine takes them. Other SQL stays as it is.

        `nims` become an array, without those with NUL, because no record has one. The words of a
        `query`, or those of several `searches`, become JSON.
        """
        if "nims" in parameters:
            nims = [nim for nim in parameters["nims"] if "\0" not in nim]
            parameters = {**parameters, "nims": self._as_array(nims)}
        if query := parameters.get("query"):
            ordered = f"{name} {query.urut} {query.arah}"
            name = ordered if ordered in self.statements else name
            search = {"di": query.di, "is_search": bool(query.cari), "searches": [query.cari]}
            parameters = {**parameters, **search}
        if "searches" in parameters:
            is_prefix = parameters["di"] == "nim"
            words = [
                (number, *word)
                for number, cari in enumerate(parameters["searches"])
                for word in folding.terms(cari, is_prefix=is_prefix)
            ]
            parameters = {**parameters, "words": json.dumps(words)}
        return self.statements.get(name, name), parameters

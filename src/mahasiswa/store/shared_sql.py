"""The SQL of a store: statements that both engines have under the same names, in .sql files by subject."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mahasiswa.record import INVISIBLE, NEAR_FROM, NEAR_TO, ODD_SPACES, SHOWN_MAX_CHARACTERS
from mahasiswa.store import folding
from mahasiswa.store.history_items import PURGE_ENTRIES
from mahasiswa.store.queries import Query

COUNT = "SELECT count(*) FROM mahasiswa"
DAYS = "SELECT days FROM mahasiswa_history_state"
SIGNING_KEY = "SELECT signing_key FROM mahasiswa_history_state"

Parameters = Mapping[str, Any]


def _quoted(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))


# The SQL that stands in a statement for a name in capitals, such as :SHOWN_MAX_CHARACTERS.
PARTS: Mapping[str, str] = {
    "SHOWN_MAX_CHARACTERS": str(SHOWN_MAX_CHARACTERS),
    "SEARCHED_CHARACTERS": str(folding.SEARCHED_CHARACTERS),
    "PURGE_ENTRIES": str(PURGE_ENTRIES),
    "NEAR_FROM": _quoted(NEAR_FROM),
    "NEAR_TO": _quoted(NEAR_TO),
    "REPLACEMENTS": _quoted(folding.REPLACEMENTS_JSON),
    "ODD_CHARACTERS": _quoted(ODD_SPACES + INVISIBLE),
    "SOUND_OF_FOLDED_NAME": folding.sound_in_sql("folded_name"),
}
# The orders of a list. Equal texts are ordered by nim.
ORDERS = {
    "nim naik": "nim",
    "nim turun": "nim DESC",
    "nama naik": "lower(nama), nim",
    "nama turun": "lower(nama) DESC, nim DESC",
    "alamat naik": "lower(alamat), nim",
    "alamat turun": "lower(alamat) DESC, nim DESC",
}


def read_statements(folder: Path) -> dict[str, str]:
    """The statements of both engines, and those of the .sql files of one engine, by name, without their comments.

    A name in capitals stands for one of PARTS, or for the part of that name in the files. A statement with `:ORDER` is
    six statements, whose names end with the order, such as `page nama turun`.
    """
    named = dict(PARTS)
    for file in [*folder.glob("*.sql"), *Path(__file__).with_name("sql").glob("*.sql")]:
        text = re.sub("\n--(?! name: ).*", "", file.read_text())
        for statement in text.split("\n-- name: ")[1:]:
            name, _, named[name] = statement.partition("\n")

    def whole(text: str, order: str) -> str:
        parts = {**named, "ORDER": order}
        return re.sub(":([A-Z_]+)", lambda part: whole(parts[part[1]], order), text).strip()

    return {
        f"{name} {order}" if ":ORDER" in text else name: whole(text, columns)
        for name, text in named.items()
        if name.islower()
        for order, columns in ORDERS.items()
    }


def without_nul(text: str) -> str:
    """A text as PostgreSQL can take it."""
    return text.replace("\0", "")


def as_json(items: Iterable[object]) -> str:
    """Items as one parameter. On PostgreSQL, arrays of texts would take seven times as long."""
    return json.dumps(list(items), ensure_ascii=False)


def named(nims: Iterable[str]) -> Parameters:
    """The parameter `nims`. Those with NUL are left out, because no record has one."""
    return {"nims": as_json(nim for nim in nims if "\0" not in nim)}


def words(di: str, *searches: str) -> Parameters:
    """The parameters of a search in one field, or in all if `di` is empty: the words of each of `searches`."""
    terms = [
        (number, *term)
        for number, cari in enumerate(searches)
        for term in folding.terms(cari, is_prefix=di == "nim")
    ]
    return {"di": di, "words": as_json(terms)}


def ordered(statement: str, query: Query) -> tuple[str, Parameters]:
    """A statement of a list in the order of a query, and the parameters of its search."""
    return f"{statement} {query.urut} {query.arah}", words(query.di, query.cari)


def moment_text(moment: datetime) -> str:
    """A moment as a parameter: its second in UTC, as text.

    Among the moments that SQLite stores as texts, exactly the earlier ones sort before it.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")

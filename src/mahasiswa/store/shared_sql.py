"""The SQL of a store: statements that both engines have under the same names, in .sql files by subject."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mahasiswa.record import INVISIBLE, NEAR_FROM, NEAR_TO, ODD_SPACES
from mahasiswa.store import folding

COUNT = "SELECT count(*) FROM mahasiswa"
SIGNING_KEY = "SELECT signing_key FROM mahasiswa_history_state"

ALL = 1_000_000_000  # as a limit of rows or characters: none

Parameters = Mapping[str, Any]

CONSTANTS: Parameters = {
    "searched_characters": folding.SEARCHED_CHARACTERS,
    "replacements": json.dumps(folding.REPLACEMENTS, ensure_ascii=False),
    "near_from": NEAR_FROM,
    "near_to": NEAR_TO,
    "odd_characters": ODD_SPACES + INVISIBLE,
}
"""Parameters that every statement may use."""


def read_statements(folder: Path) -> dict[str, str]:
    """The statements of both engines, and those of the .sql files of one engine, by name, without their comments."""
    statements = {}
    for file in [*Path(__file__).with_name("sql").glob("*.sql"), *folder.glob("*.sql")]:
        for part in file.read_text().split("-- name: ")[1:]:
            name, _, statement = part.partition("\n")
            statements[name] = re.sub("(?m)^--.*\n", "", statement).strip()
    return statements


def as_json(items: Iterable[object]) -> str:
    """Items as one parameter. On PostgreSQL, arrays of texts would take seven times as long."""
    return json.dumps(list(items), ensure_ascii=False)


def named(nims: Iterable[str]) -> Parameters:
    """The parameter `nims`. Those with NUL are left out, because no record has one."""
    return {"nims": as_json(nim for nim in nims if "\0" not in nim)}


def words(di: str, cari: str) -> Parameters:
    """The parameters of a search in one field, or in all if `di` is empty. A NUL in `cari` does not count."""
    return {
        "di": di,
        "words": as_json(folding.terms(cari.replace("\0", ""), is_prefix=di == "nim")),
    }


def moment_text(moment: datetime) -> str:
    """A moment as a parameter: its second in UTC, as text.

    Among the moments that SQLite stores as texts, exactly the earlier ones sort before it.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")

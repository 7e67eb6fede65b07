"""What a file would change, and how that travels to the browser and back."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote_plus

from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.sheets import wording
from mahasiswa.sheets.cleaning import LONGEST_NIM, Row, Wrong
from mahasiswa.sheets.errors import BadConfirmation

MAX_CONFIRMED_BYTES = 8 << 20
MAX_CONFIRMED_ROWS = 10_000

Existing = Literal["skip", "update"]


class Entry(NamedTuple):
    """A row of the file beside the record that it would make; `before` is None where there is none yet."""

    row: Row
    before: Mahasiswa | None
    after: Mahasiswa


class Plan(NamedTuple):
    """What a file would do, in the order of its rows."""

    new: list[Entry]
    changed: list[Entry]
    same: list[Entry]
    wrong: list[Wrong]


def compare(rows: Iterable[Row | Wrong], existing: Mapping[str, Mahasiswa]) -> Plan:
    """Sorts the rows against the records that exist, by NIM; a blank cell keeps what the record has."""
    plan = Plan([], [], [], [])
    for row in rows:
        if isinstance(row, Wrong):
            plan.wrong.append(row)
            continue
        _, nim, nama, alamat, _, _ = row
        before = existing.get(nim)
        if before is not None:
            after = Mahasiswa(nim, before.nama if nama is None else nama, before.alamat if alamat is None else alamat)
            (plan.same if after == before else plan.changed).append(Entry(row, before, after))
        elif nama is None or alamat is None:
            missing = [field for field, text in (("Nama", nama), ("Alamat", alamat)) if text is None]
            problem = " ".join(wording.NEW_NEEDS.format(field=field) for field in missing)
            plan.wrong.append(Wrong(row.number, problem, (nim, nama or "", alamat or "")))
        else:
            plan.new.append(Entry(row, None, Mahasiswa(nim, nama, alamat)))
    return plan


def writes(plan: Plan, existing: Existing = "update") -> list[Write]:
    """The records to write: the new ones and, unless existing ones are to be skipped, the changed ones."""
    entries = plan.new if existing == "skip" else [*plan.new, *plan.changed]
    return [Write(after, None if before is None else digest(before)) for _, before, after in entries]


def dump(rows: Iterable[Write]) -> str:
    """The writes as one form field: ASCII without line breaks, which no browser alters.

    Raises BadConfirmation where the form would be larger than the 8 MiB that may be sent back.
    """
    text = json.dumps([[*record, versi] for record, versi in rows], separators=(",", ":"))
    # As the browser will send it, beside a few short fields: better said in the preview than after the confirmation.
    if len(quote_plus(text)) > MAX_CONFIRMED_BYTES - 1024:
        raise BadConfirmation(wording.CONFIRMATION_TOO_LARGE.format(limit=MAX_CONFIRMED_BYTES >> 20))
    return text


def load(text: str) -> list[Write]:
    """The writes in a form field that anybody may have sent. Raises BadConfirmation for all that `dump` never makes."""
    if len(text) > MAX_CONFIRMED_BYTES:
        raise BadConfirmation(wording.CONFIRMATION_TOO_LARGE.format(limit=MAX_CONFIRMED_BYTES >> 20))
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list) or not all(map(_is_write, rows)):
        raise BadConfirmation(wording.CONFIRMATION_DAMAGED)
    if len(rows) > MAX_CONFIRMED_ROWS:
        raise BadConfirmation(wording.CONFIRMATION_TOO_LONG.format(limit=wording.number(MAX_CONFIRMED_ROWS)))
    if len({row[0] for row in rows}) < len(rows):
        raise BadConfirmation(wording.CONFIRMATION_DAMAGED)
    return [Write(Mahasiswa(nim, nama, alamat), versi) for nim, nama, alamat, versi in rows]


_is_digest = re.compile(r"[0-9A-Za-z_-]{22}").fullmatch


def _is_write(row: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
    if not isinstance(row, list) or len(row) != 4:
        return False
    nim, nama, alamat, versi = row
    if not (isinstance(nim, str) and isinstance(nama, str) and isinstance(alamat, str)):
        return False
    if not (versi is None or (isinstance(versi, str) and _is_digest(versi))):
        return False
    text = nim + nama + alamat
    return 0 < len(nim) <= LONGEST_NIM and nim not in (".", "..") and "\0" not in text and _is_unicode(text)


def _is_unicode(text: str) -> bool:
    """Whether there is no half of a surrogate pair, which JSON can carry and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

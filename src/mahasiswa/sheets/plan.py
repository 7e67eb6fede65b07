"""Compares the rows of a file with the records that exist, and carries the result to the browser and back."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, Mahasiswa, Write, digest
from mahasiswa.sheets.cleaning import InvalidRow, Row
from mahasiswa.sheets.errors import SheetError

MAX_CONFIRMED_BYTES = 8 << 20
"""Maximum size of a confirmation, as a form of a browser."""

MAX_CONFIRMED_ROWS = 10_000
"""Maximum rows of a confirmation, so also of the file or the cells that a person previews."""

OTHER_FIELDS_BYTES = 1024
"""What the form of a confirmation may hold beside its rows, in bytes."""


class Entry(NamedTuple):
    """A row of the file with the record that it would make. `before` is None if there is no such record yet."""

    row: Row
    before: Mahasiswa | None
    after: Mahasiswa


class Plan(NamedTuple):
    """What a file would change, in the order of its rows."""

    new: list[Entry]
    changed: list[Entry]
    same: list[Entry]
    wrong: list[InvalidRow]


class Confirmed(NamedTuple):
    """A row as the file has it. `versi` is the digest of the record that the preview showed, or None for a new record."""

    row: Row
    versi: str | None


def compare(rows: Iterable[Row | InvalidRow], existing: Mapping[str, Mahasiswa]) -> Plan:
    """Sort the rows into new, changed and unchanged records and invalid rows. A blank cell keeps the record's text."""
    plan = Plan([], [], [], [])
    for row in rows:
        if isinstance(row, InvalidRow):
            plan.wrong.append(row)
            continue
        _, nim, nama, alamat, _, _ = row
        before = existing.get(nim)
        if before is not None:
            after = Mahasiswa(nim, before.nama if nama is None else nama, before.alamat if alamat is None else alamat)
            (plan.same if after == before else plan.changed).append(Entry(row, before, after))
        elif nama is None or alamat is None:
            needs = ((nama, wording.NEW_NEEDS_NAMA), (alamat, wording.NEW_NEEDS_ALAMAT))
            problem = " ".join(sentence for text, sentence in needs if text is None)
            plan.wrong.append(InvalidRow(row.number, problem, (nim, nama or "", alamat or "")))
        else:
            plan.new.append(Entry(row, None, Mahasiswa(nim, nama, alamat)))
    return plan


def writes(confirmed: Iterable[Confirmed], existing: Mapping[str, Mahasiswa]) -> list[Write] | None:
    """The records to write, or None if a record was deleted whose text a blank cell should keep."""
    found = []
    for (_, nim, nama, alamat, _, _), versi in confirmed:
        before = existing.get(nim)
        if nama is not None and alamat is not None:
            record = Mahasiswa(nim, nama, alamat)
        elif before is None:
            return None
        else:
            record = Mahasiswa(nim, before.nama if nama is None else nama, before.alamat if alamat is None else alamat)
        found.append(Write(record, versi))
    return found


def dump(plan: Plan) -> str:
    """What a person may confirm, as one form field: ASCII without line breaks, which no browser alters.

    A blank cell stays blank, so that the row can also be applied to a newer version of the record.
    Raises SheetError if the form that the browser sends back would exceed MAX_CONFIRMED_BYTES.
    """
    entries = [(*row[:4], None if before is None else digest(before)) for row, before, _ in (*plan.new, *plan.changed)]
    text = json.dumps(entries, separators=(",", ":"))
    # This is the field as the browser encodes it. Without the check a person would learn of the limit after confirming.
    if len(quote_plus(text)) > MAX_CONFIRMED_BYTES - OTHER_FIELDS_BYTES:
        raise SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))
    return text


def load(text: str) -> list[Confirmed]:
    """The rows of a form field. Raises SheetError for anything that `dump` never makes."""
    if len(text) > MAX_CONFIRMED_BYTES:
        raise SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list) or not all(map(_is_confirmed, rows)):
        raise SheetError(wording.CONFIRMATION_DAMAGED)
    if len(rows) > MAX_CONFIRMED_ROWS:
        raise SheetError(wording.CONFIRMATION_TOO_LONG.format(limit=wording.number(MAX_CONFIRMED_ROWS)))
    if len({row[1] for row in rows}) < len(rows):
        raise SheetError(wording.CONFIRMATION_DAMAGED)
    return [Confirmed(Row(number, nim, nama, alamat), versi) for number, nim, nama, alamat, versi in rows]


_is_digest = re.compile(r"[0-9A-Za-z_-]{22}").fullmatch


def _is_confirmed(row: Any) -> bool:  # noqa: ANN401 - any JSON value
    if not isinstance(row, list) or len(row) != 5:
        return False
    number, nim, nama, alamat, versi = row
    if type(number) is not int or number < 1 or not isinstance(nim, str):
        return False
    if not (versi is None or (isinstance(versi, str) and _is_digest(versi))):
        return False
    texts = [nim, nama, alamat] if versi is None else [nim, nama or "", alamat or ""]
    if not all(isinstance(text, str) for text in texts):
        return False
    text = "".join(texts)
    storable = 0 < len(nim) <= NIM_MAX_CHARACTERS and nim not in UNADDRESSABLE_NIMS and "\0" not in text
    return storable and _is_unicode(text)


def _is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogate: JSON can hold one, UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

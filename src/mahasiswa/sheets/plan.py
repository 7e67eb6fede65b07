"""Compares the rows of a file with the records that exist, and carries the result to the browser and back."""

import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from mahasiswa import wording
from mahasiswa.record import NIM_MAX_CHARACTERS, UNADDRESSABLE_NIMS, Mahasiswa, Write, digest
from mahasiswa.sheets.cleaning import InvalidRow, Row
from mahasiswa.sheets.errors import SheetError

MAX_CONFIRMED_BYTES = 8 << 20
"""Maximum size of a confirmation, as a form of a browser."""

MAX_CONFIRMED_ROWS = 10_000
"""Maximum rows of a confirmation, so also of the file or the cells that a person previews."""

OTHER_FIELDS_BYTES = 1024
"""Maximum bytes of a confirmation besides its rows."""


class Entry(NamedTuple):
    """A row of the file with the record that it would make. `before` is None if there is no such record yet."""

    row: Row
    before: Mahasiswa | None
    after: Mahasiswa


class Plan(NamedTuple):
    """The changes that a file would make, in the order of its rows."""

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
    """The rows that a person may confirm, as one form field: ASCII without line breaks, which no browser alters.

    A blank cell stays blank, so that the row can also be applied to a newer version of the record.
    Raises SheetError if the form that the browser sends back would exceed MAX_CONFIRMED_BYTES.
    """
    rows = []
    size = OTHER_FIELDS_BYTES
    for row, before, _ in chain(plan.new, plan.changed):
        text = _encode((*row[:4], None if before is None else digest(before)))
        # The size as the browser encodes it. Without the check a person would learn of the limit after confirming.
        size += len("%2C") + len(text) + 2 * len(text.encode().translate(None, delete=_UNCHANGED_BY_BROWSER))
        if size > MAX_CONFIRMED_BYTES:
            raise SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))
        rows.append(text)
    return f"[{','.join(rows)}]"


def load(text: str) -> list[Confirmed]:
    """The rows of a form field. Raises SheetError for anything that `dump` never makes."""
    if len(text) > MAX_CONFIRMED_BYTES:
        raise SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=wording.size(MAX_CONFIRMED_BYTES)))
    rows: list[Confirmed] = []
    nims = set()
    for confirmed in _confirmed(text):
        if len(rows) == MAX_CONFIRMED_ROWS:
            raise SheetError(wording.CONFIRMATION_TOO_LONG.format(limit=wording.number(MAX_CONFIRMED_ROWS)))
        rows.append(confirmed)
        nims.add(confirmed.row.nim)
    if len(nims) < len(rows):
        raise SheetError(wording.CONFIRMATION_DAMAGED)
    return rows


_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode

# Every other ASCII character becomes three in the body of a form, such as `%5B` (URL Standard).
_UNCHANGED_BY_BROWSER = (string.ascii_letters + string.digits + "*-._ ").encode()

_NUMBER = re.compile(r"\[([1-9][0-9]{0,9}),")
_VERSI = re.compile(r',(?:null|"([0-9A-Za-z_-]{22})")\]')


def _confirmed(text: str) -> Iterator[Confirmed]:
    """The rows of a JSON array, one by one. `json.loads` would let no other thread run, for a second.

    Only strings go to the JSON decoder, so the text of a stranger cannot nest arrays in arrays.
    """
    if text == "[]":
        return
    at = 0
    while text.startswith("," if at else "[", at):
        number = _NUMBER.match(text, at + 1)
        if not number:
            raise SheetError(wording.CONFIRMATION_DAMAGED)
        nim, at = _text(text, number.end())
        nama, at = _text(text, _after_comma(text, at))
        alamat, at = _text(text, _after_comma(text, at))
        versi = _VERSI.match(text, at)
        if not versi or nim is None or (versi[1] is None and (nama is None or alamat is None)):
            raise SheetError(wording.CONFIRMATION_DAMAGED)
        if len(nim) > NIM_MAX_CHARACTERS or nim in UNADDRESSABLE_NIMS:
            raise SheetError(wording.CONFIRMATION_DAMAGED)
        at = versi.end()
        yield Confirmed(Row(int(number[1]), nim, nama, alamat), versi[1])
    if not at or text[at:] != "]":
        raise SheetError(wording.CONFIRMATION_DAMAGED)


def _after_comma(text: str, at: int) -> int:
    if not text.startswith(",", at):
        raise SheetError(wording.CONFIRMATION_DAMAGED)
    return at + 1


def _text(text: str, at: int) -> tuple[str | None, int]:
    """The JSON string or null that begins at this index, and the index after it."""
    if text.startswith("null", at):
        return None, at + len("null")
    try:
        if text.startswith('"', at):
            value, end = _decode(text, at)
            if "\0" not in value and _is_unicode(value):
                return value, end
    except ValueError:
        pass
    raise SheetError(wording.CONFIRMATION_DAMAGED)


def _is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogate: JSON can hold one, UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

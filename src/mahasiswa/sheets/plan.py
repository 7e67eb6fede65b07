"""What a file would change, and how that travels to the browser and back."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, Write, digest
from mahasiswa.sheets.cleaning import LONGEST_NIM, InvalidRow, Row
from mahasiswa.sheets.errors import BadConfirmation

MAX_CONFIRMED_BYTES = 8 << 20
MAX_CONFIRMED_ROWS = 10_000


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
    wrong: list[InvalidRow]


class Confirmed(NamedTuple):
    """A row as the file has it, and the digest of the record it was shown to replace; None for a new one."""

    row: Row
    versi: str | None


def compare(rows: Iterable[Row | InvalidRow], existing: Mapping[str, Mahasiswa]) -> Plan:
    """Sorts the rows against the records that exist, by NIM; a blank cell keeps what the record has."""
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
            missing = [field for field, text in (("Nama", nama), ("Alamat", alamat)) if text is None]
            problem = " ".join(wording.NEW_NEEDS.format(field=field) for field in missing)
            plan.wrong.append(InvalidRow(row.number, problem, (nim, nama or "", alamat or "")))
        else:
            plan.new.append(Entry(row, None, Mahasiswa(nim, nama, alamat)))
    return plan


def writes(confirmed: Iterable[Confirmed], existing: Mapping[str, Mahasiswa]) -> list[Write] | None:
    """The records to write; None where one that a blank cell keeps a text of is gone."""
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
    """What a person may confirm as one form field: ASCII without line breaks, which no browser alters.

    A cell that the file left blank stays blank, so that it can be laid over a newer record as well.
    Raises BadConfirmation where the form would be larger than the 8 MiB that may be sent back.
    """
    entries = [(*row[:4], None if before is None else digest(before)) for row, before, _ in (*plan.new, *plan.changed)]
    text = json.dumps(entries, separators=(",", ":"))
    # As the browser will send it, beside a few short fields: better said in the preview than after the confirmation.
    if len(quote_plus(text)) > MAX_CONFIRMED_BYTES - 1024:
        raise BadConfirmation(wording.CONFIRMATION_TOO_LARGE.format(limit=MAX_CONFIRMED_BYTES >> 20))
    return text


def load(text: str) -> list[Confirmed]:
    """The rows of a form field that anybody may have sent. Raises BadConfirmation for all that `dump` never makes."""
    if len(text) > MAX_CONFIRMED_BYTES:
        raise BadConfirmation(wording.CONFIRMATION_TOO_LARGE.format(limit=MAX_CONFIRMED_BYTES >> 20))
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list) or not all(map(_is_confirmed, rows)):
        raise BadConfirmation(wording.CONFIRMATION_DAMAGED)
    if len(rows) > MAX_CONFIRMED_ROWS:
        raise BadConfirmation(wording.CONFIRMATION_TOO_LONG.format(limit=wording.number(MAX_CONFIRMED_ROWS)))
    if len({row[1] for row in rows}) < len(rows):
        raise BadConfirmation(wording.CONFIRMATION_DAMAGED)
    return [Confirmed(Row(number, nim, nama, alamat), versi) for number, nim, nama, alamat, versi in rows]


_is_digest = re.compile(r"[0-9A-Za-z_-]{22}").fullmatch


def _is_confirmed(row: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
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
    return 0 < len(nim) <= LONGEST_NIM and nim not in (".", "..") and "\0" not in text and _is_unicode(text)


def _is_unicode(text: str) -> bool:
    """Whether there is no half of a surrogate pair, which JSON can carry and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

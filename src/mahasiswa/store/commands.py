"""Imports rows and forgets a record for a command, in the same steps on both engines."""

from collections.abc import Sequence

from mahasiswa.store.history_items import ENTRIES_MAX, BatchKind
from mahasiswa.store.reader import Steps
from mahasiswa.store.results import Merged
from mahasiswa.store.shared_sql import Parameters, named

# The rows of an imported file are in the temporary table `incoming`.
INCOMPLETE = """
SELECT nim FROM incoming AS i
WHERE (nama IS NULL OR alamat IS NULL) AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)"""
COMPARE = """
SELECT count(*), count(m.nim),
  count(*) FILTER (WHERE coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat)
FROM incoming AS i LEFT JOIN mahasiswa AS m ON m.nim = i.nim"""
UPDATE = """
UPDATE mahasiswa AS m SET nama = coalesce(i.nama, m.nama), alamat = coalesce(i.alamat, m.alamat)
FROM incoming AS i
WHERE i.nim = m.nim AND (coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat)"""
INSERT = """
INSERT INTO mahasiswa (nim, nama, alamat) SELECT nim, nama, alamat FROM incoming AS i
WHERE NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim) ORDER BY nim"""


def merge(*, update: bool, dry_run: bool) -> Steps[Merged]:
    """Merge the rows of the table `incoming` into the records. See SQLiteEngine."""
    ((total, existing, differing),) = yield COMPARE, {}
    changed = differing if update else 0
    incomplete = {nim for (nim,) in (yield INCOMPLETE, {})}
    written = total - existing + changed
    if written and not incomplete and not dry_run:
        statements = (UPDATE, INSERT) if update else (INSERT,)
        yield from recorded("import", statements, {}, written if total > ENTRIES_MAX else None)
    return Merged(total - existing, changed, existing - changed, incomplete)


def forget(nim: str) -> Steps[tuple[bool, Sequence[str]]]:
    """Remove the record with that nim and its history. See SQLiteEngine.

    A silent batch in the history notes who has removed it, without its texts.
    """
    one = {"nim": nim, **named([nim])}
    others = [other for (other,) in (yield "other_nims", one)]
    ((records, was_known),) = yield "is_known", one
    yield from recorded("delete", ("delete",), one, records)
    yield "leave_batches", one
    yield "delete_entries", one
    return bool(was_known), others


def recorded(
    kind: BatchKind,
    statements: Sequence[str],
    parameters: Parameters,
    silent_rows: int | None,
) -> Steps[None]:
    """Make these changes one batch.

    With `silent_rows` it has no entries: they would double the time.
    """
    is_silent = silent_rows is not None
    head = {"kind": kind, "rows": silent_rows}
    yield ("begin_silent" if is_silent else "begin_batch"), head
    for statement in statements:
        yield statement, parameters
    yield ("end_silent" if is_silent else "end_batch"), head

"""Imports rows and forgets a record for a command, in the same steps on both engines."""

from collections.abc import Sequence

from mahasiswa.store.history_items import ENTRIES_MAX, BatchKind
from mahasiswa.store.reader import Steps
from mahasiswa.store.results import Merged
from mahasiswa.store.shared_sql import Parameters, named


def merge(*, update: bool, dry_run: bool) -> Steps[Merged]:
    """Merge the rows of the table `incoming` into the records. See `SQLiteEngine.merge`."""
    ((total, existing, differing),) = yield "compare_incoming", {}
    changed = differing if update else 0
    incomplete = {nim for (nim,) in (yield "incomplete", {})}
    written = total - existing + changed
    if written and not incomplete and not dry_run:
        statements = ("update_existing", "insert_new") if update else ("insert_new",)
        yield from recorded("import", statements, {}, written if total > ENTRIES_MAX else None)
    return Merged(total - existing, changed, existing - changed, incomplete)


def forget(nim: str) -> Steps[tuple[bool, Sequence[str]]]:
    """Remove the record with that nim and its history. See `SQLiteEngine.forget`.

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

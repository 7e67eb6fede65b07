"""The SQL of the history that both engines understand."""

from collections.abc import Callable, Sequence

TEXTS = ("oleh", "nim", "nama_before", "alamat_before", "nama_after", "alamat_after")
"""The columns of an entry in which a search of the history looks."""


class HistorySQL:
    """Statements as one engine writes them.

    `p` is a parameter, `is_any` compares with any text of an array, `raw` gives the expression that reads a text, `is_silent` tells whether the batch i keeps no
    entries, and `is_expired` whether the item i is too old to be undone.
    """

    def __init__(self, *, p: str, is_any: str, raw: Callable[[str], str], is_silent: str, is_expired: str) -> None:
        entry = ", ".join(["e.id", "e.moment", *(raw(f"e.{text}") for text in TEXTS)])
        # An item is an entry that belongs to no batch, or the head of a batch. Beside it stands its entry, also that of
        # a batch of one record. If a batch changed a nim, that is the addition, and the old nim stands beside it.
        self.items = f"""
SELECT i.id, i.moment, i.kind, i.rows, {is_silent}, {raw("i.oleh")},
  CASE WHEN i.kind = 'nim' THEN (
    SELECT {raw("nim")} FROM mahasiswa_history WHERE batch = i.id AND nama_after IS NULL LIMIT 1
  ) END, {entry}
FROM (SELECT * FROM mahasiswa_history WHERE batch IS NULL {{where}} ORDER BY id DESC LIMIT {p} OFFSET {p}) AS i
LEFT JOIN mahasiswa_history AS e ON e.id = CASE
  WHEN i.kind IS NULL THEN i.id
  WHEN i.kind = 'nim' AND i.rows = 2 THEN (
    SELECT id FROM mahasiswa_history WHERE batch = i.id AND nama_after IS NOT NULL LIMIT 1
  )
  WHEN i.rows = 1 THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id)
END
ORDER BY i.id DESC
"""
        self.count_items = "SELECT count(*) FROM mahasiswa_history WHERE batch IS NULL {where}"
        self.last_item = self.items.format(where="")
        self.head = self.items.format(where=f"AND id = {p} AND kind IS NOT NULL")
        self.is_of_kind = f""" AND coalesce(
  kind, CASE WHEN nama_before IS NULL THEN 'add' WHEN nama_after IS NULL THEN 'delete' ELSE 'edit' END
) = {p}"""
        self.is_of_days = f" AND moment >= {p} AND moment < {p}"
        # A batch whose head was purged has entries for a while, which are not shown.
        self.in_batch = f"batch = (SELECT id FROM mahasiswa_history WHERE id = {p} AND kind IS NOT NULL)"
        self.count_entries = f"SELECT count(*) FROM mahasiswa_history WHERE {self.in_batch} {{where}}"
        self.entries = f"""
SELECT {entry} FROM mahasiswa_history AS e WHERE {self.in_batch} {{where}} ORDER BY e.nim LIMIT {p} OFFSET {p}
"""
        self.entries_of = f"SELECT {entry} FROM mahasiswa_history AS e WHERE nim {is_any} ORDER BY id"
        # The kind of a batch, "" for an entry. It is None for a silent batch, a batch that lacks an entry,
        # and an entry of a changed nim, because its two entries can only be undone together.
        self.undoable_kind = f"""
SELECT coalesce(i.kind, '') FROM mahasiswa_history AS i LEFT JOIN mahasiswa_history AS head ON head.id = i.batch
WHERE i.id = {p} AND NOT {is_expired} AND CASE WHEN i.kind IS NOT NULL
  THEN i.rows = (SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = i.id)
  ELSE i.batch IS NULL OR head.kind <> 'nim'
END
"""
        self.of_entry, self.of_batch = f"e.id = {p}", f"e.batch = {p}"
        # Entries whose record differs from the texts after the change and from those before it; and the number of all.
        # With `half_undone`, also entries whose record is as before the change, if that of another entry is as after it.
        self.conflicts = f"""
SELECT count(*) OVER (), {entry}, {raw("m.nama")}, {raw("m.alamat")}
FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim
WHERE {{where}}
AND (m.nama, m.alamat) IS DISTINCT FROM (e.nama_after, e.alamat_after)
AND ((m.nama, m.alamat) IS DISTINCT FROM (e.nama_before, e.alamat_before) {{half_undone}})
ORDER BY e.nim LIMIT {p}
"""
        self.half_undone = """OR EXISTS (
  SELECT 1 FROM mahasiswa_history AS o LEFT JOIN mahasiswa AS r ON r.nim = o.nim
  WHERE o.batch = e.batch AND (r.nama, r.alamat) IS NOT DISTINCT FROM (o.nama_after, o.alamat_after)
)"""
        self.count_unchanged = f"""
SELECT count(*) FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim
WHERE {self.of_batch} AND (m.nama, m.alamat) IS NOT DISTINCT FROM (e.nama_after, e.alamat_after)
"""

    def restore(self, where: str, *, overwrite: bool) -> Sequence[str]:
        """The statements that restore the records of entries, also those that have changed since if `overwrite` is true."""
        unchanged = "" if overwrite else "AND m.nama = e.nama_after AND m.alamat = e.alamat_after"
        deleted = "" if overwrite else "AND e.nama_after IS NULL"
        return (
            f"""
DELETE FROM mahasiswa WHERE nim IN (
  SELECT e.nim FROM mahasiswa_history AS e JOIN mahasiswa AS m ON m.nim = e.nim
  WHERE {where} AND e.nama_before IS NULL {unchanged}
)""",
            f"""
UPDATE mahasiswa AS m SET nama = e.nama_before, alamat = e.alamat_before FROM mahasiswa_history AS e
WHERE {where} AND e.nama_before IS NOT NULL AND e.nim = m.nim {unchanged}""",
            f"""
INSERT INTO mahasiswa (nim, nama, alamat) SELECT e.nim, e.nama_before, e.alamat_before
FROM mahasiswa_history AS e
WHERE {where} AND e.nama_before IS NOT NULL {deleted}
AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = e.nim) ORDER BY e.nim""",
        )

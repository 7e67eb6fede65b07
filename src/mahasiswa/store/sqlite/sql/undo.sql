-- The undo of an item: an entry, whose id is :item, or a batch, whose entries have :item as their
-- batch.

-- name: undoable
-- The kind of a batch, '' for an entry, its rows and its moment. There is no row for a silent batch,
-- a batch that lacks an entry, an entry of a changed nim, or a changed nim of which one entry was
-- forgotten, because its two entries can only be undone together, and an expired item, because the
-- triggers of its own undo may purge it.
SELECT coalesce(i.kind, ''), i.rows, i.moment
FROM mahasiswa_history AS i LEFT JOIN mahasiswa_history AS head ON head.id = i.batch
WHERE i.id = :item AND NOT EXISTS (
  SELECT 1 FROM mahasiswa_history_state
  WHERE NOT has_leapt AND i.moment < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
) AND CASE WHEN i.kind IS NOT NULL
  THEN i.rows = (SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = i.id)
    AND (i.kind <> 'nim' OR i.rows = 2)
  ELSE i.batch IS NULL OR head.kind <> 'nim'
END

-- name: undoable_locked
-- The same again, after lock_all or lock_record: another program may have purged it meanwhile.
SELECT coalesce(i.kind, ''), i.rows, i.moment
FROM mahasiswa_history AS i LEFT JOIN mahasiswa_history AS head ON head.id = i.batch
WHERE i.id = :item AND NOT EXISTS (
  SELECT 1 FROM mahasiswa_history_state
  WHERE NOT has_leapt AND i.moment < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
) AND CASE WHEN i.kind IS NOT NULL
  THEN i.rows = (SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = i.id)
    AND (i.kind <> 'nim' OR i.rows = 2)
  ELSE i.batch IS NULL OR head.kind <> 'nim'
END

-- name: lock_record
-- BEGIN IMMEDIATE keeps other programs from writing.

-- name: lock_all
-- As above.

-- name: count_unchanged
SELECT count(*) FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim
WHERE e.batch = :item
  AND (m.nama, m.alamat) IS NOT DISTINCT FROM (e.nama_after, e.alamat_after)

-- name: entry_conflicts
-- The entries whose record differs both from its texts after the change and from its texts before
-- the change, and the number of such entries. An added record that is missing because its nim was
-- replaced is not as before the change: it has another nim.
SELECT count(*) OVER (), e.id, e.moment, CAST(e.oleh AS BLOB), CAST(e.nim AS BLOB),
  CAST(e.nama_before AS BLOB), CAST(e.alamat_before AS BLOB),
  CAST(e.nama_after AS BLOB), CAST(e.alamat_after AS BLOB),
  CAST(m.nim AS BLOB), CAST(m.nama AS BLOB), CAST(m.alamat AS BLOB)
FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim
WHERE e.id = :item
  AND (m.nama, m.alamat) IS DISTINCT FROM (e.nama_after, e.alamat_after)
  AND (
    (m.nama, m.alamat) IS DISTINCT FROM (e.nama_before, e.alamat_before)
    OR (e.nama_before IS NULL AND e.nim IN (
      SELECT r.nim FROM mahasiswa_history AS head JOIN mahasiswa_history AS r ON r.batch = head.id
      WHERE head.batch IS NULL AND head.id > :item AND head.kind = 'nim' AND r.nama_after IS NULL
    ))
  )

-- name: batch_conflicts
-- The same of a batch, as a page shows them. If the batch can only be undone as a whole, the entries
-- of one that was undone in part are among them: the record of this entry is as before the change,
-- and the record of another entry is as after the change.
SELECT count(*) OVER (), e.id, e.moment,
  CAST(CASE WHEN length(e.oleh) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.oleh, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.oleh END AS BLOB),
  CAST(e.nim AS BLOB),
  CAST(CASE WHEN length(e.nama_before) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.nama_before, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.nama_before END AS BLOB),
  CAST(CASE WHEN length(e.alamat_before) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.alamat_before, 1, :SHOWN_MAX_CHARACTERS - 1) || '…'
    ELSE e.alamat_before END AS BLOB),
  CAST(CASE WHEN length(e.nama_after) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.nama_after, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.nama_after END AS BLOB),
  CAST(CASE WHEN length(e.alamat_after) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.alamat_after, 1, :SHOWN_MAX_CHARACTERS - 1) || '…'
    ELSE e.alamat_after END AS BLOB),
  CAST(m.nim AS BLOB),
  CAST(CASE WHEN length(m.nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(m.nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE m.nama END AS BLOB),
  CAST(CASE WHEN length(m.alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(m.alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE m.alamat END AS BLOB)
FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim
WHERE e.batch = :item
  AND (m.nama, m.alamat) IS DISTINCT FROM (e.nama_after, e.alamat_after)
  AND (
    (m.nama, m.alamat) IS DISTINCT FROM (e.nama_before, e.alamat_before)
    OR (e.nama_before IS NULL AND e.nim IN (
      SELECT r.nim FROM mahasiswa_history AS head JOIN mahasiswa_history AS r ON r.batch = head.id
      WHERE head.batch IS NULL AND head.id > :item AND head.kind = 'nim' AND r.nama_after IS NULL
    ))
    OR (:is_whole AND EXISTS (
      SELECT 1 FROM mahasiswa_history AS o LEFT JOIN mahasiswa AS r ON r.nim = o.nim
      WHERE o.batch = e.batch
        AND (r.nama, r.alamat) IS NOT DISTINCT FROM (o.nama_after, o.alamat_after)
    ))
  )
ORDER BY e.nim LIMIT :limit

-- name: delete_added
-- Of each statement that restores records: a record that has changed since is left alone, unless it
-- is to be overwritten.
DELETE FROM mahasiswa WHERE nim IN (
  SELECT e.nim FROM mahasiswa_history AS e JOIN mahasiswa AS m ON m.nim = e.nim
  WHERE (e.id = :item OR e.batch = :item) AND e.nama_before IS NULL
    AND (:overwrite OR (m.nama = e.nama_after AND m.alamat = e.alamat_after))
)

-- name: restore_changed
UPDATE mahasiswa AS m SET nama = e.nama_before, alamat = e.alamat_before
FROM mahasiswa_history AS e
WHERE (e.id = :item OR e.batch = :item) AND e.nama_before IS NOT NULL AND e.nim = m.nim
  AND (:overwrite OR (m.nama = e.nama_after AND m.alamat = e.alamat_after))

-- name: restore_deleted
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT e.nim, e.nama_before, e.alamat_before
FROM mahasiswa_history AS e
WHERE (e.id = :item OR e.batch = :item) AND e.nama_before IS NOT NULL
  AND (:overwrite OR e.nama_after IS NULL)
  AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = e.nim)
ORDER BY e.nim

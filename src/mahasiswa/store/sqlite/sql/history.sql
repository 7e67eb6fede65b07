-- The history. An item is an entry without a batch, or the head of a batch.

-- name: items
-- with: words, found_entries
-- The row of an item ends with the columns of one entry: of the item itself, or of the only entry
-- of the batch. If the batch changed a nim, these columns are those of the addition, and the column
-- before them is the old nim. Other batches have NULL there, or the entry of the nim that is
-- searched. The number of records that are as after the change is not counted beyond the rows that
-- people undo.
SELECT i.id, i.moment, i.kind, i.rows,
  i.kind IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM mahasiswa_history AS s WHERE s.batch = i.id),
  CASE WHEN i.rows <= :UNDO_ROWS_MAX THEN (
    SELECT count(*) FROM mahasiswa_history AS c LEFT JOIN mahasiswa AS m ON m.nim = c.nim
    WHERE c.batch = i.id
      AND (m.nama, m.alamat) IS NOT DISTINCT FROM (c.nama_after, c.alamat_after)
  ) ELSE i.rows END,
  CAST(i.oleh AS BLOB),
  CASE WHEN i.kind = 'nim' THEN (
    SELECT CAST(nim AS BLOB) FROM mahasiswa_history
    WHERE batch = i.id AND nama_after IS NULL LIMIT 1
  ) END,
  e.id, e.moment,
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
    ELSE e.alamat_after END AS BLOB)
FROM (
  SELECT * FROM mahasiswa_history
  WHERE batch IS NULL
    AND (:kind IS NULL OR :kind = coalesce(kind, CASE
      WHEN nama_before IS NULL THEN 'add' WHEN nama_after IS NULL THEN 'delete' ELSE 'edit'
    END))
    AND (:first IS NULL OR (moment >= :first AND moment < :end))
    AND (NOT :is_search OR id IN (SELECT coalesce(batch, id) FROM found_entries))
  ORDER BY id DESC LIMIT :limit OFFSET :offset
) AS i
LEFT JOIN mahasiswa_history AS e ON e.id = CASE
  WHEN i.kind IS NULL THEN i.id
  WHEN i.kind = 'nim' THEN (
    SELECT id FROM mahasiswa_history WHERE batch = i.id AND nama_after IS NOT NULL LIMIT 1
  )
  WHEN i.rows = 1 THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id)
  WHEN :nim <> '' THEN (
    SELECT id FROM mahasiswa_history WHERE batch = i.id AND nim = :nim LIMIT 1
  )
END
ORDER BY i.id DESC

-- name: count_items
-- with: words, found_entries
SELECT count(*) FROM mahasiswa_history
WHERE batch IS NULL
  AND (:kind IS NULL OR :kind = coalesce(kind, CASE
    WHEN nama_before IS NULL THEN 'add' WHEN nama_after IS NULL THEN 'delete' ELSE 'edit'
  END))
  AND (:first IS NULL OR (moment >= :first AND moment < :end))
  AND (NOT :is_search OR id IN (SELECT coalesce(batch, id) FROM found_entries))

-- name: item
-- The item with this id, or the newest one, as `items` has it. Of the newest one the records that
-- are as after the change are not counted, because that would delay each page of the list.
SELECT i.id, i.moment, i.kind, i.rows,
  i.kind IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM mahasiswa_history AS s WHERE s.batch = i.id),
  CASE WHEN i.rows <= :UNDO_ROWS_MAX AND :id IS NOT NULL THEN (
    SELECT count(*) FROM mahasiswa_history AS c LEFT JOIN mahasiswa AS m ON m.nim = c.nim
    WHERE c.batch = i.id
      AND (m.nama, m.alamat) IS NOT DISTINCT FROM (c.nama_after, c.alamat_after)
  ) ELSE i.rows END,
  CAST(i.oleh AS BLOB),
  CASE WHEN i.kind = 'nim' THEN (
    SELECT CAST(nim AS BLOB) FROM mahasiswa_history
    WHERE batch = i.id AND nama_after IS NULL LIMIT 1
  ) END,
  e.id, e.moment, CAST(e.oleh AS BLOB), CAST(e.nim AS BLOB),
  CAST(e.nama_before AS BLOB), CAST(e.alamat_before AS BLOB),
  CAST(e.nama_after AS BLOB), CAST(e.alamat_after AS BLOB)
FROM mahasiswa_history AS i
LEFT JOIN mahasiswa_history AS e ON e.id = CASE
  WHEN i.kind IS NULL THEN i.id
  WHEN i.kind = 'nim' THEN (
    SELECT id FROM mahasiswa_history WHERE batch = i.id AND nama_after IS NOT NULL LIMIT 1
  )
  WHEN i.rows = 1 THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id)
END
WHERE i.batch IS NULL AND i.id = coalesce(
  :id, (SELECT id FROM mahasiswa_history WHERE batch IS NULL ORDER BY id DESC LIMIT 1)
)
AND (:id IS NULL OR NOT EXISTS (
  SELECT 1 FROM mahasiswa_history_state
  WHERE NOT has_leapt AND i.moment < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
))

-- name: is_undone
-- Whether a later undo has changed a record of this item.
SELECT EXISTS (
  SELECT 1 FROM mahasiswa_history AS u
  WHERE u.id > :id AND u.kind = 'undo' AND u.batch IS NULL AND EXISTS (
    SELECT 1 FROM mahasiswa_history AS e WHERE e.batch = u.id AND e.nim IN (
      SELECT nim FROM mahasiswa_history WHERE id = :id OR batch = :id
    )
  )
)

-- name: newest_id
SELECT coalesce(max(id), 0) AS id FROM mahasiswa_history

-- name: own_item
-- The item that this transaction has written. No other program writes meanwhile.
SELECT id, moment FROM mahasiswa_history
WHERE id > :id AND batch IS NULL ORDER BY id DESC LIMIT 1

-- name: entries
-- with: words, found_entries
-- The entries of a batch, as `items` has items. If its head was purged, its entries are not shown.
SELECT e.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, e.id, e.moment,
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
    ELSE e.alamat_after END AS BLOB)
FROM mahasiswa_history AS e
WHERE e.batch = (SELECT id FROM mahasiswa_history WHERE id = :batch AND kind IS NOT NULL)
  AND (NOT :is_search OR e.id IN (SELECT id FROM found_entries))
ORDER BY e.nim LIMIT :limit OFFSET :offset

-- name: count_entries
-- with: words, found_entries
SELECT count(*) FROM mahasiswa_history AS e
WHERE e.batch = (SELECT id FROM mahasiswa_history WHERE id = :batch AND kind IS NOT NULL)
  AND (NOT :is_search OR e.id IN (SELECT id FROM found_entries))

-- name: entries_of
-- The entries of a nim. If its nim was changed, both entries of that change are among them.
SELECT e.id, e.moment, CAST(e.oleh AS BLOB), CAST(e.nim AS BLOB),
  CAST(e.nama_before AS BLOB), CAST(e.alamat_before AS BLOB),
  CAST(e.nama_after AS BLOB), CAST(e.alamat_after AS BLOB)
FROM mahasiswa_history AS e WHERE e.nim IN (SELECT value FROM json_each(:nims)) OR e.batch IN (
  SELECT o.batch FROM mahasiswa_history AS o
  JOIN mahasiswa_history AS head ON head.id = o.batch AND head.kind = 'nim'
  WHERE o.nim IN (SELECT value FROM json_each(:nims))
)
ORDER BY e.id

-- name: recent_before
-- The texts of a record before its last 20 changes. The ids are chosen first, because an entry may
-- have long texts. There is no index on nim, so only the newest 1,000 entries are looked at.
SELECT CAST(nim AS BLOB), CAST(nama_before AS BLOB), CAST(alamat_before AS BLOB)
FROM mahasiswa_history
WHERE nama_before IS NOT NULL AND id IN (
  SELECT id FROM (SELECT id, nim FROM mahasiswa_history ORDER BY id DESC LIMIT 1000) AS recent
  WHERE nim IN (SELECT value FROM json_each(:nims)) ORDER BY id DESC LIMIT 20
)
ORDER BY id DESC

-- name: new_nim
-- The other nim, if the newest change of a nim replaced it.
SELECT CAST(added.nim AS BLOB) FROM mahasiswa_history AS removed
JOIN mahasiswa_history AS head ON head.id = removed.batch AND head.kind = 'nim'
JOIN mahasiswa_history AS added ON added.batch = head.id AND added.nama_after IS NOT NULL
WHERE removed.nama_after IS NULL AND removed.id = (
  SELECT id FROM (SELECT id, nim FROM mahasiswa_history ORDER BY id DESC LIMIT 1000) AS recent
  WHERE nim IN (SELECT value FROM json_each(:nims)) ORDER BY id DESC LIMIT 1
)

-- name: leave_batches
-- A batch that loses an entry has one row less, so that the rest can be undone.
UPDATE mahasiswa_history SET rows = rows - 1
WHERE kind IS NOT NULL AND id IN (SELECT batch FROM mahasiswa_history WHERE nim IN (SELECT value FROM json_each(:nims)))

-- name: delete_entries
DELETE FROM mahasiswa_history WHERE nim IN (SELECT value FROM json_each(:nims)) OR rows = 0

-- name: is_known
SELECT EXISTS (SELECT 1 FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims)))
  OR EXISTS (SELECT 1 FROM mahasiswa_history WHERE nim IN (SELECT value FROM json_each(:nims)))

-- name: begin_batch
-- The triggers read the batch from the table of the state. end_batch removes a batch without changes.
INSERT INTO mahasiswa_history (moment, kind, rows, oleh)
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), :kind, 0, oleh
FROM mahasiswa_history_state WHERE days > 0;
UPDATE mahasiswa_history_state SET batch = last_insert_rowid() WHERE days > 0

-- name: end_batch
UPDATE mahasiswa_history SET rows = (
  SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = mahasiswa_history.id
) WHERE id = (SELECT batch FROM mahasiswa_history_state);
DELETE FROM mahasiswa_history
WHERE id = (SELECT batch FROM mahasiswa_history_state) AND rows = 0;
UPDATE mahasiswa_history_state SET batch = NULL

-- name: begin_silent
-- A batch that keeps no entries: the triggers of the history are away meanwhile. To write the
-- entries would double the time.
DROP TRIGGER IF EXISTS mahasiswa_history_insert;
DROP TRIGGER IF EXISTS mahasiswa_history_update;
DROP TRIGGER IF EXISTS mahasiswa_history_delete

-- name: end_silent
-- The triggers are created before it.
INSERT INTO mahasiswa_history (moment, kind, rows, oleh)
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), :kind, :rows, oleh FROM mahasiswa_history_state

-- name: set_oleh
-- To write the name into the new entries afterwards would take twice as long.
UPDATE mahasiswa_history_state SET oleh = :oleh WHERE oleh IS NOT :oleh

-- name: clock
-- See Reader.clock. It is time to purge if something is to be noted or purged, and no program has
-- purged within the last minute. A leap of the clock by more than two days, either way, is noted, and
-- nothing is purged until a later moment at least a day after it. Then a moment past now counts as
-- now. A clock that is set back for a while, as by a dead battery, would else cost all entries.
SELECT noted, has_leapt,
  noted > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
  OR noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day')
  OR (
    NOT has_leapt
    AND noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || :PURGE_SECONDS || ' seconds')
    AND (
      (SELECT moment FROM mahasiswa_history ORDER BY moment LIMIT 1)
        < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
      OR (SELECT moment FROM mahasiswa_history ORDER BY moment DESC LIMIT 1)
        > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
    )
  )
FROM mahasiswa_history_state

-- name: purge
-- Notes the clock. The writer purges after each change, so also after this one.
UPDATE mahasiswa_history_state SET
  noted = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
  has_leapt = NOT has_leapt AND noted NOT BETWEEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-2 days')
    AND strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '2 days')

-- name: is_purge_due
SELECT noted > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
  OR noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day')
  OR (SELECT moment FROM mahasiswa_history ORDER BY moment LIMIT 1)
    < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
  OR (SELECT moment FROM mahasiswa_history ORDER BY moment DESC LIMIT 1)
    > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
FROM mahasiswa_history_state

-- name: purge_some
-- The head of a batch is older than its entries, so it goes first, and a batch is never shown in
-- part.
UPDATE mahasiswa_history_state SET
  noted = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
  has_leapt = NOT has_leapt AND noted NOT BETWEEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-2 days')
    AND strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '2 days')
WHERE noted > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
  OR noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day');
DELETE FROM mahasiswa_history WHERE id IN (
  SELECT id FROM mahasiswa_history WHERE moment < (
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
    FROM mahasiswa_history_state WHERE NOT has_leapt
  ) ORDER BY moment, id LIMIT :PURGE_ENTRIES
);
UPDATE mahasiswa_history SET moment = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id IN (
  SELECT id FROM mahasiswa_history
  WHERE moment > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
    AND NOT (SELECT has_leapt FROM mahasiswa_history_state)
  ORDER BY moment DESC LIMIT :PURGE_ENTRIES
)

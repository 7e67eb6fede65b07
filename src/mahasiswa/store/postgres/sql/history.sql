-- The history. An item is an entry without a batch, or the head of a batch. A moment is read as a
-- text, because the driver cannot read each format that DateStyle allows.

-- name: items
-- with: words, found_entries
-- The row of an item ends with the columns of one entry: of the item itself, or of the only entry
-- of the batch. If the batch changed a nim, these columns are those of the addition, and the column
-- before them is the old nim. Other batches have NULL there, or the entry of the nim that is
-- searched. The number of records that are as after the change is not counted beyond the rows that
-- people undo.
SELECT i.id, to_char(i.moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), i.kind, i.rows,
  i.is_silent,
  CASE WHEN i.rows <= :UNDO_ROWS_MAX THEN (
    SELECT count(*) FROM mahasiswa_history AS c LEFT JOIN mahasiswa AS m ON m.nim = c.nim
    WHERE c.batch = i.id
      AND (m.nama, m.alamat) IS NOT DISTINCT FROM (c.nama_after, c.alamat_after)
  ) ELSE i.rows END,
  i.oleh,
  CASE WHEN i.kind = 'nim' THEN (
    SELECT nim FROM mahasiswa_history
    WHERE batch = i.id AND nama_after IS NULL LIMIT 1
  ) END,
  e.id, to_char(e.moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
  CASE WHEN length(e.oleh) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.oleh, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.oleh END,
  e.nim,
  CASE WHEN length(e.nama_before) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.nama_before, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.nama_before END,
  CASE WHEN length(e.alamat_before) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.alamat_before, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.alamat_before END,
  CASE WHEN length(e.nama_after) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.nama_after, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.nama_after END,
  CASE WHEN length(e.alamat_after) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.alamat_after, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.alamat_after END
FROM (
  SELECT * FROM mahasiswa_history
  WHERE batch IS NULL
    AND (:kind IS NULL OR :kind = coalesce(kind, CASE
      WHEN nama_before IS NULL THEN 'add' WHEN nama_after IS NULL THEN 'delete' ELSE 'edit'
    END))
    AND (:first IS NULL OR (
      moment >= :first::timestamp AT TIME ZONE 'UTC' AND moment < :end::timestamp AT TIME ZONE 'UTC'
    ))
    AND (NOT :is_search OR id = ANY (ARRAY(SELECT coalesce(batch, id) FROM found_entries)))
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
  AND (:first IS NULL OR (
    moment >= :first::timestamp AT TIME ZONE 'UTC' AND moment < :end::timestamp AT TIME ZONE 'UTC'
  ))
  AND (NOT :is_search OR id = ANY (ARRAY(SELECT coalesce(batch, id) FROM found_entries)))

-- name: item
-- The item with this id, or the newest one, as `items` has it. Of the newest one the records that
-- are as after the change are not counted, because that would delay each page of the list.
SELECT i.id, to_char(i.moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), i.kind, i.rows,
  i.is_silent,
  CASE WHEN i.rows <= :UNDO_ROWS_MAX AND :id IS NOT NULL THEN (
    SELECT count(*) FROM mahasiswa_history AS c LEFT JOIN mahasiswa AS m ON m.nim = c.nim
    WHERE c.batch = i.id
      AND (m.nama, m.alamat) IS NOT DISTINCT FROM (c.nama_after, c.alamat_after)
  ) ELSE i.rows END,
  i.oleh,
  CASE WHEN i.kind = 'nim' THEN (
    SELECT nim FROM mahasiswa_history
    WHERE batch = i.id AND nama_after IS NULL LIMIT 1
  ) END,
  e.id, to_char(e.moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.oleh, e.nim,
  e.nama_before, e.alamat_before, e.nama_after, e.alamat_after
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
  SELECT FROM mahasiswa_history_state
  WHERE NOT has_leapt AND i.moment < now() - make_interval(days => days)
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
-- The item that this transaction has written.
SELECT id, to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM mahasiswa_history
WHERE id > :id AND batch IS NULL AND xmin = pg_current_xact_id_if_assigned()::xid
ORDER BY id DESC LIMIT 1

-- name: entries
-- with: words, found_entries
-- The entries of a batch, as `items` has items. If its head was purged, its entries are not shown.
SELECT e.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, e.id, to_char(e.moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
  CASE WHEN length(e.oleh) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.oleh, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.oleh END,
  e.nim,
  CASE WHEN length(e.nama_before) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.nama_before, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.nama_before END,
  CASE WHEN length(e.alamat_before) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.alamat_before, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.alamat_before END,
  CASE WHEN length(e.nama_after) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.nama_after, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.nama_after END,
  CASE WHEN length(e.alamat_after) > :SHOWN_MAX_CHARACTERS
    THEN substr(e.alamat_after, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE e.alamat_after END
FROM mahasiswa_history AS e
WHERE e.batch = (SELECT id FROM mahasiswa_history WHERE id = :batch AND kind IS NOT NULL)
  AND (NOT :is_search OR e.id = ANY (ARRAY(SELECT id FROM found_entries)))
ORDER BY e.nim LIMIT :limit OFFSET :offset

-- name: count_entries
-- with: words, found_entries
SELECT count(*) FROM mahasiswa_history AS e
WHERE e.batch = (SELECT id FROM mahasiswa_history WHERE id = :batch AND kind IS NOT NULL)
  AND (NOT :is_search OR e.id = ANY (ARRAY(SELECT id FROM found_entries)))

-- name: entries_of
-- The entries of a nim. If its nim was changed, both entries of that change are among them.
SELECT e.id, to_char(e.moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.oleh, e.nim,
  e.nama_before, e.alamat_before, e.nama_after, e.alamat_after
FROM mahasiswa_history AS e WHERE e.nim = ANY(:nims) OR e.batch IN (
  SELECT o.batch FROM mahasiswa_history AS o
  JOIN mahasiswa_history AS head ON head.id = o.batch AND head.kind = 'nim'
  WHERE o.nim = ANY(:nims)
)
ORDER BY e.id

-- name: recent_before
-- The texts of a record before its last 20 changes. The ids are chosen first, because an entry may
-- have long texts.
SELECT nim, nama_before, alamat_before
FROM mahasiswa_history
WHERE nama_before IS NOT NULL AND id IN (
  SELECT id FROM mahasiswa_history WHERE nim = ANY(:nims) ORDER BY id DESC LIMIT 20
)
ORDER BY id DESC

-- name: new_nim
-- The other nim, if the newest change of a nim replaced it.
SELECT added.nim FROM mahasiswa_history AS removed
JOIN mahasiswa_history AS head ON head.id = removed.batch AND head.kind = 'nim'
JOIN mahasiswa_history AS added ON added.batch = head.id AND added.nama_after IS NOT NULL
WHERE removed.nama_after IS NULL AND removed.id = (
  SELECT id FROM mahasiswa_history AS recent
  WHERE nim = ANY(:nims) ORDER BY id DESC LIMIT 1
)

-- name: leave_batches
-- A batch that loses an entry has one row less, so that the rest can be undone.
UPDATE mahasiswa_history SET rows = rows - 1
WHERE kind IS NOT NULL AND id IN (SELECT batch FROM mahasiswa_history WHERE nim = ANY(:nims))

-- name: delete_entries
DELETE FROM mahasiswa_history WHERE nim = ANY(:nims) OR rows = 0

-- name: is_known
SELECT EXISTS (SELECT 1 FROM mahasiswa WHERE nim = ANY(:nims))
  OR EXISTS (SELECT 1 FROM mahasiswa_history WHERE nim = ANY(:nims))

-- name: begin_batch
-- The triggers read this until the end of the transaction: its changes are one batch of this kind.
SELECT set_config('mahasiswa.batch', :kind, true)

-- name: end_batch
-- The setting ends with the transaction.

-- name: begin_silent
-- A batch that keeps no entries. To write them would double the time.
SELECT set_config('mahasiswa.batch', :kind, true), set_config('mahasiswa.silent', 'on', true)

-- name: end_silent
-- The settings end with the transaction.

-- name: clock
-- See Reader.clock. It is time to purge if something is to be noted or purged, and no program has
-- purged within the last minute. A standby cannot purge.
SELECT noted::text, has_leapt, NOT pg_is_in_recovery() AND (
  noted > now() + interval '1 minute' OR noted <= now() - interval '1 day'
  OR (
    NOT has_leapt AND noted <= now() - make_interval(secs => :PURGE_SECONDS) AND (
      (SELECT moment FROM mahasiswa_history ORDER BY moment, id LIMIT 1)
        < now() - make_interval(days => days)
      OR (SELECT moment FROM mahasiswa_history ORDER BY moment DESC, id DESC LIMIT 1)
        > now() + interval '1 minute'
    )
  )
)
FROM mahasiswa_history_state

-- name: purge
-- If it is time.
SELECT mahasiswa_history_purge(true)

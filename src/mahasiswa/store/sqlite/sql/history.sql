-- The history. An item is an entry without a batch, or the head of a batch. Texts that another
-- program may have stored in another encoding are read as bytes.

-- name: find_items
-- The ids of one page of items, or of the entries of a batch, each with the number of all of them.
-- If the page is empty, one row has the number and no id.
WITH words (word, pattern, sound) AS MATERIALIZED (
  SELECT value ->> 0, '*' || replace(value ->> 1, '.*', '*') || '*', value ->> 2
  FROM json_each(:words)
), found_entries AS MATERIALIZED (
  SELECT CASE WHEN :batch IS NULL THEN coalesce(batch, id) ELSE id END AS id FROM (
    SELECT id, batch, folded_text, substr(folded_text, 1, instr(folded_text, char(10)) - 1) AS folded_name
    FROM (
      SELECT id, batch, CASE WHEN octet_length(t) = length(t)
        THEN replace(replace(replace(replace(replace(
          lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
        ELSE fold(CAST(t AS BLOB))
      END AS folded_text
      FROM (
        SELECT id, batch, concat_ws(
          char(10),
          concat_ws(
            '  ', substr(nama_before, 1, :searched_characters),
            substr(nama_after, 1, :searched_characters)
          ),
          nim, substr(oleh, 1, :searched_characters),
          substr(alamat_before, 1, :searched_characters),
          substr(alamat_after, 1, :searched_characters)
        ) AS t
        FROM mahasiswa_history WHERE :batch IS NULL OR batch = :batch
        LIMIT 1000000000000
      ) AS unfolded
      LIMIT 1000000000000
    ) AS whole
    LIMIT 1000000000000
  ) AS folded
  WHERE EXISTS (SELECT 1 FROM words) AND NOT EXISTS (
    SELECT 1 FROM words WHERE NOT (
      instr(folded_text, word) > 0
      OR (folded_name GLOB pattern AND instr(sound(CAST(folded_name AS BLOB)), sound) > 0)
    )
  )
), chosen AS MATERIALIZED (
  SELECT id, CASE WHEN :batch IS NOT NULL THEN nim END AS nim FROM mahasiswa_history
  WHERE batch IS :batch
    AND (:kind IS NULL OR :kind = coalesce(kind, CASE
      WHEN nama_before IS NULL THEN 'add' WHEN nama_after IS NULL THEN 'delete' ELSE 'edit'
    END))
    AND (:first IS NULL OR (moment >= :first AND moment < :end))
    AND (:cari = '' OR id IN (SELECT id FROM found_entries))
)
SELECT total, id FROM (SELECT count(*) AS total FROM chosen) AS counted LEFT JOIN (
  SELECT id, nim FROM chosen ORDER BY nim, id DESC LIMIT :limit OFFSET :offset
) AS page ON true
ORDER BY nim, id DESC

-- name: items
-- See history_items.item_of. The records that are as an item left them are not counted if it has
-- more than :counted rows. The only entry of a batch is the one with :nim, if there are several.
SELECT
  i.id || '-' || CAST(round((julianday(i.moment) - 2440587.5) * 86400000) AS INTEGER) || '000',
  coalesce(i.kind, CASE
    WHEN i.nama_before IS NULL THEN 'add' WHEN i.nama_after IS NULL THEN 'delete' ELSE 'edit'
  END),
  coalesce(i.rows, 1),
  CASE
    WHEN head.kind = 'nim' OR (i.kind = 'nim' AND i.rows < 2) THEN NULL
    WHEN i.rows > :counted THEN (SELECT i.rows FROM mahasiswa_history WHERE batch = i.id LIMIT 1)
    ELSE (
      SELECT CASE WHEN count(*) = coalesce(i.rows, 1) THEN count(*) FILTER (
        WHERE (m.nama, m.alamat) IS NOT DISTINCT FROM (c.nama_after, c.alamat_after)
      ) END
      FROM mahasiswa_history AS c LEFT JOIN mahasiswa AS m ON m.nim = c.nim
      WHERE c.batch = i.id OR (c.id = i.id AND c.kind IS NULL)
    )
  END,
  CAST(i.oleh AS BLOB),
  CASE WHEN i.rows > 1 AND i.kind <> 'nim' THEN
    a.id || '-' || CAST(round((julianday(a.moment) - 2440587.5) * 86400000) AS INTEGER) || '000'
  END,
  CAST(b.nim AS BLOB), CAST(substr(b.nama_before, 1, :characters) AS BLOB),
  CAST(substr(b.alamat_before, 1, :characters) AS BLOB),
  CAST(a.nim AS BLOB), CAST(substr(a.nama_after, 1, :characters) AS BLOB),
  CAST(substr(a.alamat_after, 1, :characters) AS BLOB)
FROM json_each(:ids) AS asked JOIN mahasiswa_history AS i ON i.id = asked.value
LEFT JOIN mahasiswa_history AS head ON head.id = i.batch
LEFT JOIN mahasiswa_history AS a ON a.id = CASE
  WHEN i.kind IS NULL THEN i.id
  WHEN i.kind = 'nim' THEN (
    SELECT id FROM mahasiswa_history WHERE batch = i.id AND nama_before IS NULL
  )
  WHEN i.rows = 1 THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id)
  WHEN :nim <> '' THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id AND nim = :nim)
END
LEFT JOIN mahasiswa_history AS b ON b.id = CASE
  WHEN i.kind = 'nim' THEN (
    SELECT id FROM mahasiswa_history WHERE batch = i.id AND nama_after IS NULL
  )
  ELSE a.id
END
ORDER BY asked.key

-- name: own_item
-- The item that this transaction has written. No other program writes meanwhile.
SELECT
  id || '-' || CAST(round((julianday(moment) - 2440587.5) * 86400000) AS INTEGER) || '000'
FROM mahasiswa_history WHERE id > :id AND batch IS NULL ORDER BY id DESC LIMIT 1

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

-- name: begin_batch
-- The triggers read the batch from the table of the state. end_batch removes a batch without changes.
INSERT INTO mahasiswa_history (moment, kind, rows, oleh)
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), :kind, 0, oleh FROM mahasiswa_history_state;
UPDATE mahasiswa_history_state SET batch = last_insert_rowid()

-- name: end_batch
UPDATE mahasiswa_history SET rows = (
  SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = mahasiswa_history.id
) WHERE id = (SELECT batch FROM mahasiswa_history_state);
DELETE FROM mahasiswa_history
WHERE id = (SELECT batch FROM mahasiswa_history_state) AND rows = 0;
UPDATE mahasiswa_history_state SET batch = NULL

-- name: begin_silent
-- A batch that keeps no entries, because to write them would double the time.
UPDATE mahasiswa_history_state SET batch = 0

-- name: end_silent
INSERT INTO mahasiswa_history (moment, kind, rows, oleh)
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), :kind, :rows, oleh FROM mahasiswa_history_state;
UPDATE mahasiswa_history_state SET batch = NULL

-- name: set_oleh
-- To write the name into the new entries afterwards would take twice as long.
UPDATE mahasiswa_history_state SET oleh = :oleh WHERE oleh IS NOT :oleh

-- name: purge
-- The head of a batch is older than its entries, so it goes first, and a batch is never shown in
-- part.
DELETE FROM mahasiswa_history WHERE id IN (
  SELECT id FROM mahasiswa_history WHERE moment < (
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
    FROM mahasiswa_history_state
  ) ORDER BY moment, id LIMIT :entries
)
RETURNING id

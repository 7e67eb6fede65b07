-- The history. An item is an entry without a batch, or the head of a batch.

-- name: find_items
-- The ids of one page of items, or of the entries of a batch, each with the number of all of them.
-- If the page is empty, one row has the number and no id.
WITH words (word, pattern, sound) AS MATERIALIZED (
  SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_array_elements(:words::jsonb) AS value
), found_entries AS MATERIALIZED (
  SELECT CASE WHEN :batch IS NULL THEN coalesce(batch, id) ELSE id END AS id FROM (
    SELECT id, batch, folded_text, split_part(folded_text, E'\n', 1) AS folded_name
    FROM (
      SELECT id, batch, CASE WHEN octet_length(t) = length(t)
        THEN replace(replace(replace(replace(replace(
          lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
        ELSE (
          SELECT string_agg(CASE WHEN c > '~' THEN coalesce(:replacements::jsonb ->> c, c)
            ELSE c END, '')
          FROM unnest(string_to_array(replace(replace(replace(replace(replace(
            lower(normalize(replace(t, '´', ''), NFKC)), '''', ''), '`', ''), '.', ''), ',', ''),
            '-', ''), NULL)) AS c
        )
      END AS folded_text
      FROM (
        SELECT id, batch, concat_ws(
          E'\n',
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
      strpos(folded_text, word) > 0
      OR (folded_name ~ pattern AND strpos(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(
        ' ' || folded_name,
        'oe', 'u'), 'dj', 'j'), 'tj', 'c'), 'chr', 'kr'), ' ch', ' c'), 'ch', 'h'),
        'kh', 'h'), 'sy', 's'), 'sj', 's'), 'th', 't'), 'dh', 'd'), 'ph', 'f'), 'z', 's'),
        'v', 'f'), 'q', 'k'), 'iy', 'i'), 'y', 'i'), 'ii', 'i'), 'ie', 'i'), 'll', 'l'),
        'mm', 'm'), 'nn', 'n'), 'ss', 's'), 'ff', 'f'), 'tt', 't'), sound) > 0)
    )
  )
), chosen AS MATERIALIZED (
  SELECT id, CASE WHEN :batch IS NOT NULL THEN nim END AS nim FROM mahasiswa_history
  WHERE (batch = :batch OR (:batch IS NULL AND batch IS NULL))
    AND (:kind IS NULL OR :kind = coalesce(kind, CASE
      WHEN nama_before IS NULL THEN 'add' WHEN nama_after IS NULL THEN 'delete' ELSE 'edit'
    END))
    AND (:first IS NULL OR (
      moment >= :first::timestamp AT TIME ZONE 'UTC' AND moment < :end::timestamp AT TIME ZONE 'UTC'
    ))
    AND (:cari = '' OR id = ANY (ARRAY(SELECT id FROM found_entries)))
)
SELECT total, id FROM (SELECT count(*) AS total FROM chosen) AS counted LEFT JOIN (
  SELECT id, nim FROM chosen ORDER BY nim, id DESC LIMIT :limit OFFSET :offset
) AS page ON true
ORDER BY nim, id DESC

-- name: items
-- See history_items.item_of. The records that are as an item left them are not counted if it has
-- more than :counted rows. The only entry of a batch is the one with :nim, if there are several.
SELECT i.id || '-' || (extract(epoch FROM i.moment) * 1000000)::bigint,
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
  i.oleh,
  CASE WHEN i.rows > 1 AND i.kind <> 'nim' THEN
    a.id || '-' || (extract(epoch FROM a.moment) * 1000000)::bigint
  END,
  b.nim, substr(b.nama_before, 1, :characters),
  substr(b.alamat_before, 1, :characters),
  a.nim, substr(a.nama_after, 1, :characters),
  substr(a.alamat_after, 1, :characters)
FROM json_array_elements_text(:ids) WITH ORDINALITY AS asked (value, place)
JOIN mahasiswa_history AS i ON i.id = asked.value::bigint
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
ORDER BY asked.place

-- name: own_item
-- The item that this transaction has written.
SELECT id || '-' || (extract(epoch FROM moment) * 1000000)::bigint FROM mahasiswa_history
WHERE id > :id AND batch IS NULL AND xmin = pg_current_xact_id_if_assigned()::xid
ORDER BY id DESC LIMIT 1

-- name: recent_before
-- The texts of a record before its last 20 changes. The ids are chosen first, because an entry may
-- have long texts.
SELECT nim, nama_before, alamat_before
FROM mahasiswa_history
WHERE nama_before IS NOT NULL AND id IN (
  SELECT id FROM mahasiswa_history WHERE nim = ANY(ARRAY(SELECT json_array_elements_text(:nims))) ORDER BY id DESC LIMIT 20
)
ORDER BY id DESC

-- name: new_nim
-- The other nim, if the newest change of a nim replaced it.
SELECT added.nim FROM mahasiswa_history AS removed
JOIN mahasiswa_history AS head ON head.id = removed.batch AND head.kind = 'nim'
JOIN mahasiswa_history AS added ON added.batch = head.id AND added.nama_after IS NOT NULL
WHERE removed.nama_after IS NULL AND removed.id = (
  SELECT id FROM mahasiswa_history AS recent
  WHERE nim = ANY(ARRAY(SELECT json_array_elements_text(:nims))) ORDER BY id DESC LIMIT 1
)

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

-- name: purge
-- The head of a batch goes before its entries, so a batch is never shown in part.
DELETE FROM mahasiswa_history WHERE id IN (
  SELECT id FROM mahasiswa_history
  WHERE moment < now() - make_interval(days => (SELECT days FROM mahasiswa_history_state))
  ORDER BY moment, id LIMIT :entries FOR UPDATE SKIP LOCKED
)
RETURNING id

-- Searches. The reader of the store puts the terms of a search in the place of /*terms*/, and the
-- columns of another order in the place of `/*order*/ nim`.
--
-- A search folds texts in the query (`folding`). Texts that are not ASCII are folded letter by
-- letter, because translate() with the same letters is slower. A LIMIT keeps the engine from folding
-- a text again for each word. `strpos` takes linear time for any word, which LIKE does not.

-- name: all
SELECT nim, nama, alamat FROM mahasiswa ORDER BY /*order*/ nim

-- name: found
SELECT nim, nama, alamat FROM (
  SELECT nim, nama, alamat, CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE (
      SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
        ELSE c END, '')
      FROM unnest(string_to_array(replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', ''), NULL)) AS c
    )
  END AS folded_text
  FROM (
    SELECT nim, nama, alamat, CASE :di
      WHEN 'nim' THEN E'\n' || replace(nim, ' ', '')
      WHEN 'nama' THEN substr(nama, 1, :SEARCHED_CHARACTERS)
      WHEN 'alamat' THEN substr(alamat, 1, :SEARCHED_CHARACTERS)
      ELSE concat_ws(
        E'\n', nim, substr(nama, 1, :SEARCHED_CHARACTERS), substr(alamat, 1, :SEARCHED_CHARACTERS)
      )
    END AS t
    FROM mahasiswa
    LIMIT 1000000000000
  ) AS unfolded
  LIMIT 1000000000000
) AS folded WHERE true /*terms*/ ORDER BY /*order*/ nim

-- name: page
-- One page of all records. Each row also has the number of all records. If the page is empty, one
-- row has the number and no record.
SELECT total, nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT count(*) AS total FROM mahasiswa) AS counted LEFT JOIN (
  SELECT nim, nama, alamat FROM mahasiswa
  WHERE nim IN (SELECT nim FROM mahasiswa ORDER BY /*order*/ nim LIMIT :limit OFFSET :offset)
) AS page ON true
ORDER BY /*order*/ nim

-- name: search
-- The same of the records that are found. Keys are sorted first, because whole records take twice
-- as long.
WITH found AS MATERIALIZED (
  SELECT nim, nama, alamat FROM (
    SELECT nim, nama, alamat, CASE WHEN octet_length(t) = length(t)
      THEN replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
      ELSE (
        SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
          ELSE c END, '')
        FROM unnest(string_to_array(replace(replace(replace(replace(replace(
          lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', ''), NULL)) AS c
      )
    END AS folded_text
    FROM (
      SELECT nim, nama, alamat, CASE :di
        WHEN 'nim' THEN E'\n' || replace(nim, ' ', '')
        WHEN 'nama' THEN substr(nama, 1, :SEARCHED_CHARACTERS)
        WHEN 'alamat' THEN substr(alamat, 1, :SEARCHED_CHARACTERS)
        ELSE concat_ws(
          E'\n', nim, substr(nama, 1, :SEARCHED_CHARACTERS), substr(alamat, 1, :SEARCHED_CHARACTERS)
        )
      END AS t
      FROM mahasiswa
      LIMIT 1000000000000
    ) AS unfolded
    LIMIT 1000000000000
  ) AS folded WHERE true /*terms*/
)
SELECT total, nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT count(*) AS total FROM found) AS counted LEFT JOIN (
  SELECT nim, nama, alamat FROM mahasiswa
  WHERE nim IN (SELECT nim FROM found ORDER BY /*order*/ nim LIMIT :limit OFFSET :offset)
) AS page ON true
ORDER BY /*order*/ nim

-- name: count_found
-- The numbers of records that several searches find: one column for each stands in the place of
-- `/*counts*/ count(*)`.
SELECT /*counts*/ count(*) FROM (
  SELECT CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE (
      SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
        ELSE c END, '')
      FROM unnest(string_to_array(replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', ''), NULL)) AS c
    )
  END AS folded_text
  FROM (
    SELECT CASE :di
      WHEN 'nim' THEN E'\n' || replace(nim, ' ', '')
      WHEN 'nama' THEN substr(nama, 1, :SEARCHED_CHARACTERS)
      WHEN 'alamat' THEN substr(alamat, 1, :SEARCHED_CHARACTERS)
      ELSE concat_ws(
        E'\n', nim, substr(nama, 1, :SEARCHED_CHARACTERS), substr(alamat, 1, :SEARCHED_CHARACTERS)
      )
    END AS t
    FROM mahasiswa
    LIMIT 1000000000000
  ) AS unfolded
  LIMIT 1000000000000
) AS folded

-- name: prefixes
-- The folded beginnings of nims, as a search of a nim finds them.
SELECT substr(folded_text, 2, :length) AS prefix, count(*) FROM (
  SELECT CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE (
      SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
        ELSE c END, '')
      FROM unnest(string_to_array(replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', ''), NULL)) AS c
    )
  END AS folded_text
  FROM (
    SELECT E'\n' || replace(nim, ' ', '') AS t
    FROM mahasiswa
    LIMIT 1000000000000
  ) AS unfolded
  LIMIT 1000000000000
) AS folded
GROUP BY prefix ORDER BY prefix LIMIT :limit

-- name: first_and_last_nim
SELECT min(substr(folded_text, 2)), max(substr(folded_text, 2)) FROM (
  SELECT CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE (
      SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
        ELSE c END, '')
      FROM unnest(string_to_array(replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', ''), NULL)) AS c
    )
  END AS folded_text
  FROM (
    SELECT E'\n' || replace(nim, ' ', '') AS t
    FROM mahasiswa
    LIMIT 1000000000000
  ) AS unfolded
  LIMIT 1000000000000
) AS folded
WHERE length(folded_text) > 1

-- name: words
-- The words of the names and addresses at both ends of the list, the most frequent first.
SELECT value FROM (
  SELECT substr(text, 1, 100) AS text FROM (
    SELECT * FROM (SELECT nama AS text FROM mahasiswa ORDER BY nim LIMIT :names / 2) AS low_names
    UNION ALL
    SELECT * FROM (SELECT nama FROM mahasiswa ORDER BY nim DESC LIMIT :names / 2) AS high_names
    UNION ALL
    SELECT * FROM (
      SELECT alamat FROM mahasiswa ORDER BY nim LIMIT :addresses / 2
    ) AS low_addresses
    UNION ALL
    SELECT * FROM (
      SELECT alamat FROM mahasiswa ORDER BY nim DESC LIMIT :addresses / 2
    ) AS high_addresses
  ) AS texts
) AS both_ends CROSS JOIN unnest(string_to_array(text, ' ')) AS value
GROUP BY value ORDER BY count(*) DESC, value DESC LIMIT 10000

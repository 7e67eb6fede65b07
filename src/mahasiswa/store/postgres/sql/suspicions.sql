-- The parts of the looks for records that may be wrong, and the look for nearly equal nims.

-- name: NEAR_KEYS
-- The near_key of each nim (`record.near_key`).
near_keys (nim, nama, alamat, key) AS (
  SELECT nim, nama, alamat, CASE WHEN octet_length(nim) = length(nim)
    THEN ltrim(translate(lower(nim), 'lio .-', '110'), '0')
    ELSE ltrim(translate(lower(normalize(nim, NFKC)), :NEAR_FROM, :NEAR_TO), '0')
  END FROM mahasiswa
)

-- name: TWIN_KEYS
-- Name and address, folded as by a search, and without spaces.
twin_keys (nim, key) AS MATERIALIZED (
  SELECT nim, replace(CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE (
      SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
        ELSE c END, '')
      FROM unnest(string_to_array(replace(replace(replace(replace(replace(
        lower(normalize(replace(t, '´', ''), NFKC)), '''', ''), '`', ''), '.', ''), ',', ''),
        '-', ''), NULL)) AS c
    )
  END, ' ', '')
  FROM (
    SELECT nim,
      substr(nama, 1, :SEARCHED_CHARACTERS) || '|' || substr(alamat, 1, :SEARCHED_CHARACTERS) AS t
    FROM mahasiswa
    LIMIT 1000000000000
  ) AS unfolded
)

-- name: SPACED
-- Records with needless spaces in the name or the address, or only in the nim. A blank text has
-- nothing to tidy.
spaced (nim, part) AS MATERIALIZED (
  SELECT nim, min(part) FROM (
    SELECT nim, 'nim' AS part, ' ' || nim || ' ' AS t FROM mahasiswa
    UNION ALL
    SELECT nim, 'nama',
      coalesce(substr(' ' || nullif(nama, '') || ' ', 1, :SEARCHED_CHARACTERS), '') || '|'
      || coalesce(substr(' ' || nullif(alamat, '') || ' ', 1, :SEARCHED_CHARACTERS), '')
    FROM mahasiswa
  ) AS texts
  WHERE t ~ ('  |[' || :ODD_CHARACTERS || ']')
  GROUP BY nim
)

-- name: near
WITH :NEAR_KEYS
SELECT nim FROM near_keys WHERE key IN (SELECT json_array_elements_text(:nims)) LIMIT :limit

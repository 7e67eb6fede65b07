-- The parts of the looks for records that may be wrong, and the look for nearly equal nims.

-- name: NEAR_KEYS
-- The near_key of each nim (`record.near_key`). Most nims have digits only.
near_keys (nim, nama, alamat, key) AS (
  SELECT nim, nama, alamat, CASE
    WHEN nim NOT GLOB '*[^0-9]*' THEN ltrim(nim, '0')
    WHEN octet_length(nim) = length(nim)
    THEN ltrim(replace(replace(replace(replace(replace(replace(
      lower(nim), 'l', '1'), 'i', '1'), 'o', '0'), ' ', ''), '.', ''), '-', ''), '0')
    ELSE near_key(CAST(nim AS BLOB))
  END FROM mahasiswa
)

-- name: TWIN_KEYS
-- Name and address, folded as by a search, and without spaces.
twin_keys (nim, key) AS MATERIALIZED (
  SELECT nim, replace(CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE fold(CAST(t AS BLOB))
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
  WHERE instr(t, '  ')
    OR t GLOB '*[' || char(9) || '-' || char(13) || char(28) || '-' || char(31) || ']*'
    OR (length(t) <> octet_length(t) AND t GLOB '*[' || :ODD_CHARACTERS || ']*')
  GROUP BY nim
)

-- name: near
WITH :NEAR_KEYS
SELECT nim FROM near_keys WHERE key IN (SELECT value FROM json_each(:nims)) LIMIT :limit

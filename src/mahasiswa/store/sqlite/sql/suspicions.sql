-- Records that may be wrong, each with the number of all of them, and the look for nearly equal nims.

-- name: near
-- Records with nearly the same nim (`record.near_key`). Similar ones stand together.
WITH keys AS MATERIALIZED (
  SELECT nim, CASE
      WHEN nim NOT GLOB '*[^0-9]*' THEN ltrim(nim, '0')
      WHEN octet_length(nim) = length(nim)
      THEN ltrim(replace(replace(replace(replace(replace(replace(
        lower(nim), 'l', '1'), 'i', '1'), 'o', '0'), ' ', ''), '.', ''), '-', ''), '0')
      ELSE near_key(CAST(nim AS BLOB))
    END AS key FROM mahasiswa
)
SELECT count(*) OVER (), nim FROM keys
WHERE key IN (SELECT key FROM keys WHERE key <> '' GROUP BY key HAVING count(*) > 1)
ORDER BY key, nim LIMIT :limit

-- name: twins
-- Records whose name and address are equal, folded as by a search, and without spaces.
WITH keys (nim, key) AS MATERIALIZED (
  SELECT nim, replace(CASE WHEN octet_length(t) = length(t)
      THEN replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
      ELSE fold(CAST(t AS BLOB))
    END, ' ', '')
  FROM (
    SELECT nim, substr(nama, 1, :searched_characters) || '|'
      || substr(alamat, 1, :searched_characters) AS t
    FROM mahasiswa
    LIMIT 1000000000000
  ) AS unfolded
)
SELECT count(*) OVER (), nim FROM keys
WHERE key IN (SELECT key FROM keys GROUP BY key HAVING count(*) > 1)
ORDER BY key, nim LIMIT :limit

-- name: spaces
-- Records with needless spaces in the name or the address, and then those with some only in the nim. A
-- blank text has nothing to tidy.
SELECT count(*) OVER (), nim FROM (
  SELECT nim, 'nim' AS part, ' ' || nim || ' ' AS t FROM mahasiswa
  UNION ALL
  SELECT nim, 'nama',
    coalesce(substr(' ' || nullif(nama, '') || ' ', 1, :searched_characters), '') || '|'
    || coalesce(substr(' ' || nullif(alamat, '') || ' ', 1, :searched_characters), '')
  FROM mahasiswa
) AS texts
WHERE instr(t, '  ')
  OR t GLOB '*[' || char(9) || '-' || char(13) || char(28) || '-' || char(31) || ']*'
  OR (length(t) <> octet_length(t) AND t GLOB '*[' || :odd_characters || ']*')
GROUP BY nim ORDER BY min(part), nim LIMIT :limit

-- name: near_nims
SELECT nim FROM (
  SELECT nim, CASE
      WHEN nim NOT GLOB '*[^0-9]*' THEN ltrim(nim, '0')
      WHEN octet_length(nim) = length(nim)
      THEN ltrim(replace(replace(replace(replace(replace(replace(
        lower(nim), 'l', '1'), 'i', '1'), 'o', '0'), ' ', ''), '.', ''), '-', ''), '0')
      ELSE near_key(CAST(nim AS BLOB))
    END AS key FROM mahasiswa
) AS keyed
WHERE key IN (SELECT value FROM json_each(:nims)) LIMIT :limit

-- name: alike
-- Another record with nearly the same nim, or else one with the same name and address. A look at
-- more records would delay the page after each addition.
WITH keyed AS (
  SELECT nim, nama, alamat, CASE
      WHEN nim NOT GLOB '*[^0-9]*' THEN ltrim(nim, '0')
      WHEN octet_length(nim) = length(nim)
      THEN ltrim(replace(replace(replace(replace(replace(replace(
        lower(nim), 'l', '1'), 'i', '1'), 'o', '0'), ' ', ''), '.', ''), '-', ''), '0')
      ELSE near_key(CAST(nim AS BLOB))
    END AS key FROM mahasiswa ORDER BY nim DESC LIMIT 40000
), added AS MATERIALIZED (
  SELECT nim, lower(nama) AS nama, lower(alamat) AS alamat FROM mahasiswa WHERE nim = :nim
)
SELECT key = :key AND key <> '' AS is_near, other.nim, substr(other.nama, 1, 100)
FROM added JOIN keyed AS other ON other.nim <> added.nim AND (
  (key = :key AND key <> '')
  OR (lower(other.nama) = added.nama AND lower(other.alamat) = added.alamat)
)
ORDER BY is_near DESC, other.nim LIMIT 1

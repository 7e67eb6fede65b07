-- Records that may be wrong, each with the number of all of them, and the look for nearly equal nims.

-- name: near
-- Records with nearly the same nim (`record.near_key`). Similar ones stand together.
WITH keys AS MATERIALIZED (
  SELECT nim, CASE WHEN octet_length(nim) = length(nim)
      THEN ltrim(translate(lower(nim), 'lio .-', '110'), '0')
      ELSE ltrim(translate(lower(normalize(nim, NFKC)), :near_from, :near_to), '0')
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
      ELSE (
        SELECT string_agg(CASE WHEN c > '~' THEN coalesce(:replacements::jsonb ->> c, c)
          ELSE c END, '')
        FROM unnest(string_to_array(replace(replace(replace(replace(replace(
          lower(normalize(replace(t, '´', ''), NFKC)), '''', ''), '`', ''), '.', ''), ',', ''),
          '-', ''), NULL)) AS c
      )
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
WHERE t ~ ('  |[' || :odd_characters || ']')
GROUP BY nim ORDER BY min(part), nim LIMIT :limit

-- name: near_nims
SELECT nim FROM (
  SELECT nim, CASE WHEN octet_length(nim) = length(nim)
      THEN ltrim(translate(lower(nim), 'lio .-', '110'), '0')
      ELSE ltrim(translate(lower(normalize(nim, NFKC)), :near_from, :near_to), '0')
    END AS key FROM mahasiswa
) AS keyed
WHERE key IN (SELECT json_array_elements_text(:nims)) LIMIT :limit

-- name: alike
-- Another record with nearly the same nim, or else one with the same name and address. A look at
-- more records would delay the page after each addition.
WITH keyed AS (
  SELECT nim, nama, alamat, CASE WHEN octet_length(nim) = length(nim)
      THEN ltrim(translate(lower(nim), 'lio .-', '110'), '0')
      ELSE ltrim(translate(lower(normalize(nim, NFKC)), :near_from, :near_to), '0')
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

-- Records that may be wrong, and the key that similar records share. Each row also has the number
-- of all of them.

-- name: near
SELECT nim FROM mahasiswa
WHERE ltrim(translate(lower(nim), :NEAR_FROM, :NEAR_TO), '0') = ANY(:nims) LIMIT :limit

-- name: suspects_near
WITH keys AS MATERIALIZED (
  SELECT nim, ltrim(translate(lower(nim), :NEAR_FROM, :NEAR_TO), '0') AS key FROM mahasiswa
), found AS MATERIALIZED (
  SELECT nim, key FROM keys
  WHERE key IN (SELECT key FROM keys WHERE key <> '' GROUP BY key HAVING count(*) > 1)
)
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: suspects_duplicates
WITH keys AS MATERIALIZED (
  SELECT nim,
    replace(replace(replace(replace(replace(
      lower(trim(substr(nama, 1, :SEARCHED_CHARACTERS))) || '|'
      || lower(trim(substr(alamat, 1, :SEARCHED_CHARACTERS))),
      '''', ''), '`', ''), '.', ''), ',', ''), '-', '') AS key
  FROM mahasiswa
), found AS MATERIALIZED (
  SELECT nim, key FROM keys
  WHERE key IN (SELECT key FROM keys GROUP BY key HAVING count(*) > 1)
)
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: suspects_spaces
-- Records with a name or an address to tidy come first, because nims are not tidied.
WITH found AS MATERIALIZED (
  SELECT nim, NOT names ~ ('  |[' || :ODD_CHARACTERS || ']') AS key FROM (
    SELECT nim, ' ' || nim || ' ' AS nims,
      substr(' ' || nama || ' ', 1, :SEARCHED_CHARACTERS) || '|'
      || substr(' ' || alamat || ' ', 1, :SEARCHED_CHARACTERS) AS names
    FROM mahasiswa LIMIT 1000000000000
  ) AS beginnings
  WHERE nims ~ ('  |[' || :ODD_CHARACTERS || ']') OR names ~ ('  |[' || :ODD_CHARACTERS || ']')
)
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: suspects_length
WITH found AS MATERIALIZED (
  SELECT nim, length(nim) AS key FROM mahasiswa WHERE length(nim) <> (
    SELECT length FROM (
      SELECT length(nim) AS length, count(*) AS shared FROM mahasiswa GROUP BY length(nim)
    ) AS lengths
    WHERE shared * 10 >= (SELECT count(*) FROM mahasiswa) * 9
  )
)
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: suspects_capitals
WITH capitals AS MATERIALIZED (
  SELECT nim FROM mahasiswa WHERE nama = upper(nama) AND nama <> lower(nama)
), found AS MATERIALIZED (
  SELECT nim, '' AS key FROM capitals
  WHERE (SELECT count(*) FROM capitals) * 2 < (SELECT count(*) FROM mahasiswa)
)
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: suspects_letters
WITH letters AS MATERIALIZED (
  SELECT nim FROM mahasiswa WHERE nim ~ '[0-9].*[A-Za-z].*[0-9]'
), found AS MATERIALIZED (
  SELECT nim, '' AS key FROM letters
  WHERE (SELECT count(*) FROM letters) * 10 < (SELECT count(*) FROM mahasiswa)
)
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: suspects_digits
WITH found AS MATERIALIZED (SELECT nim, '' AS key FROM mahasiswa WHERE nama ~ '[0-9]')
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: suspects_swapped
WITH found AS MATERIALIZED (
  SELECT nim, '' AS key FROM mahasiswa
  WHERE alamat LIKE '% %' AND alamat !~ '[0-9]'
  AND lower(substr(alamat, 1, strpos(alamat, ' '))) IN (SELECT lower(substr(nama, 1, strpos(nama, ' '))) FROM mahasiswa WHERE nama LIKE '% %')
)
SELECT (SELECT count(*) FROM found), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: compared
-- A sample takes a few milliseconds, because the page after each addition waits for it.
WITH newest AS MATERIALIZED (SELECT nim, nama FROM mahasiswa ORDER BY nim DESC LIMIT 5000)
SELECT
  (SELECT length FROM (
    SELECT length(nim) AS length, count(*) AS shared FROM newest GROUP BY length(nim)
  ) AS lengths WHERE shared * 10 >= (SELECT count(*) FROM newest) * 9),
  (SELECT count(*) FROM newest WHERE nim ~ '[0-9].*[A-Za-z].*[0-9]') * 10 >= (SELECT count(*) FROM newest),
  EXISTS (SELECT 1 FROM newest WHERE nim <> :nim AND lower(nama || ' ') LIKE :first)

-- name: alike
SELECT nim, nama, alamat
FROM (SELECT * FROM mahasiswa ORDER BY nim DESC LIMIT 40000) AS newest
WHERE lower(substr(nama, 1, 3)) = :first
  AND length(nama) BETWEEN :nama_min AND :nama_max
  AND length(alamat) BETWEEN :alamat_min AND :alamat_max
  AND nim <> :nim
LIMIT 500

-- name: untidy
WITH found AS MATERIALIZED (
  SELECT nim, 0 AS key FROM (
    SELECT nim, ' ' || nim || ' ' AS nims,
      substr(' ' || nama || ' ', 1, :SEARCHED_CHARACTERS) || '|'
      || substr(' ' || alamat || ' ', 1, :SEARCHED_CHARACTERS) AS names
    FROM mahasiswa LIMIT 1000000000000
  ) AS beginnings WHERE names ~ ('  |[' || :ODD_CHARACTERS || ']')
)
SELECT (SELECT count(*) FROM found), nim, nama, alamat
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

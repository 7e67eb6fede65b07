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
-- Folded as by a search, and without spaces.
WITH keys AS MATERIALIZED (
  SELECT nim, replace(CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE (
      SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
        ELSE c END, '')
      FROM unnest(string_to_array(replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', ''), NULL)) AS c
    )
  END, ' ', '') AS key
  FROM (
    SELECT nim,
      substr(nama, 1, :SEARCHED_CHARACTERS) || '|' || substr(alamat, 1, :SEARCHED_CHARACTERS) AS t
    FROM mahasiswa
    LIMIT 1000000000000
  ) AS unfolded
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
-- Records with a name or an address to tidy come first, because nims are not tidied. A blank text has
-- nothing to tidy.
WITH found AS MATERIALIZED (
  SELECT nim, NOT names ~ ('  |[' || :ODD_CHARACTERS || ']') AS key FROM (
    SELECT nim, ' ' || nim || ' ' AS nims,
      coalesce(substr(' ' || nullif(nama, '') || ' ', 1, :SEARCHED_CHARACTERS), '') || '|'
      || coalesce(substr(' ' || nullif(alamat, '') || ' ', 1, :SEARCHED_CHARACTERS), '') AS names
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
-- The first word of the address begins at least as many names as addresses.
WITH words AS MATERIALIZED (
  SELECT nim, alamat, lower(substr(nama, 1, strpos(nama, ' '))) AS of_nama,
    lower(substr(alamat, 1, strpos(alamat, ' '))) AS of_alamat
  FROM (
    SELECT nim, ltrim(nama) || ' ' AS nama, ltrim(alamat) || ' ' AS alamat FROM mahasiswa
  ) AS texts
), names AS MATERIALIZED (
  SELECT of_nama AS first, count(*) AS names FROM words GROUP BY of_nama
), addresses AS MATERIALIZED (
  SELECT of_alamat AS first, count(*) AS addresses FROM words GROUP BY of_alamat
), found AS MATERIALIZED (
  SELECT nim, '' AS key
  FROM names JOIN addresses USING (first) JOIN words ON of_alamat = first
  WHERE names >= addresses AND alamat LIKE '% _% ' AND alamat !~ '[0-9]'
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
-- The reason why a record may be wrong (`Doubt`), by the other records.
-- The lowest and the highest NIMs take a few milliseconds, because the page after each addition
-- waits for them. Both must have the usual length, and neither must have many letters.
WITH ends AS MATERIALIZED (
  SELECT * FROM (
    SELECT 'low' AS part, nim, nama, alamat FROM mahasiswa ORDER BY nim LIMIT 2500
  ) AS lowest
  UNION ALL
  SELECT * FROM (
    SELECT 'high', nim, nama, alamat FROM mahasiswa ORDER BY nim DESC LIMIT 2500
  ) AS highest
), lengths AS (
  SELECT part, length(nim) AS length, count(*) AS shared, sum(count(*)) OVER (PARTITION BY part) AS total
  FROM ends GROUP BY part, length(nim)
), words AS (
  SELECT lower(substr(nama, 1, strpos(nama, ' '))) AS of_nama,
    lower(substr(alamat, 1, strpos(alamat, ' '))) AS of_alamat,
    lower(substr(own, 1, strpos(own, ' '))) AS of_own
  FROM (
    SELECT ltrim(nama) || ' ' AS nama, ltrim(alamat) || ' ' AS alamat, ltrim(:alamat::text COLLATE "C") || ' ' AS own
    FROM ends WHERE nim <> :nim
  ) AS texts
)
SELECT CASE
  WHEN :nim::text ~ '[0-9].*[A-Za-z].*[0-9]' AND NOT EXISTS (
    SELECT 1 FROM ends GROUP BY part
    HAVING count(CASE WHEN nim ~ '[0-9].*[A-Za-z].*[0-9]' THEN 1 END) * 10 >= count(*)
  ) THEN 'letters'
  WHEN length(:nim::text) <> (
    SELECT length FROM lengths WHERE shared * 10 >= total * 9 GROUP BY length HAVING count(*) = 2
  ) THEN 'length'
  WHEN :nama::text ~ '[0-9]' THEN 'digits'
  WHEN ltrim(:alamat::text) || ' ' LIKE '% _% ' AND :alamat::text !~ '[0-9]'
    AND (SELECT count(*) FROM words WHERE of_nama = of_own)
      > (SELECT count(*) FROM words WHERE of_alamat = of_own)
  THEN 'swapped'
END

-- name: alike
-- A record whose name and address are the same if they are folded as by `suspects_duplicates`. The
-- first letter and the length leave out most of the others before they are folded.
SELECT nim, nama, alamat FROM (
  SELECT nim, nama, alamat,
    substr(nama, 1, :SEARCHED_CHARACTERS) || '|' || substr(alamat, 1, :SEARCHED_CHARACTERS) AS t
  FROM (SELECT * FROM mahasiswa ORDER BY nim DESC LIMIT 40000) AS newest
  WHERE nim <> :nim AND abs(length(nama) + length(alamat) - :length) <= 8 AND (
    lower(substr(ltrim(nama, ' ''`.,-'), 1, 1)) = :first OR octet_length(nama) <> length(nama)
  )
  LIMIT 1000000000000
) AS unfolded
WHERE replace(CASE WHEN octet_length(t) = length(t)
    THEN replace(replace(replace(replace(replace(
      lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
    ELSE (
      SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
        ELSE c END, '')
      FROM unnest(string_to_array(replace(replace(replace(replace(replace(
        lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', ''), NULL)) AS c
    )
  END, ' ', '') = :key
LIMIT 1

-- name: untidy
WITH found AS MATERIALIZED (
  SELECT nim, 0 AS key FROM (
    SELECT nim, ' ' || nim || ' ' AS nims,
      coalesce(substr(' ' || nullif(nama, '') || ' ', 1, :SEARCHED_CHARACTERS), '') || '|'
      || coalesce(substr(' ' || nullif(alamat, '') || ' ', 1, :SEARCHED_CHARACTERS), '') AS names
    FROM mahasiswa LIMIT 1000000000000
  ) AS beginnings WHERE names ~ ('  |[' || :ODD_CHARACTERS || ']')
)
SELECT (SELECT count(*) FROM found), nim, nama, alamat
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

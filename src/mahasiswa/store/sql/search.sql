-- The list and its searches, for both engines. Each engine has the parts in its own search.sql.
-- `:ORDER` makes six statements of one, each with the columns of another order.

-- name: all
SELECT nim, nama, alamat FROM mahasiswa ORDER BY :ORDER

-- name: all_found
WITH :WORDS, :FOUND
SELECT nim, nama, alamat FROM found ORDER BY :ORDER

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
  WHERE nim IN (SELECT nim FROM mahasiswa ORDER BY :ORDER LIMIT :limit OFFSET :offset)
) AS page ON true
ORDER BY :ORDER

-- name: search
-- The same of the records that are found. Keys are sorted first, because whole records take twice
-- as long.
WITH :WORDS, :FOUND
SELECT total, nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT count(*) AS total FROM found) AS counted LEFT JOIN (
  SELECT nim, nama, alamat FROM mahasiswa
  WHERE nim IN (SELECT nim FROM found ORDER BY :ORDER LIMIT :limit OFFSET :offset)
) AS page ON true
ORDER BY :ORDER

-- name: count_found
-- The numbers of the records that several searches find.
WITH :WORDS, :FOUND
SELECT search, count(*) FROM found GROUP BY search ORDER BY search

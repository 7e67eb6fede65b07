-- Records: finding, reading and changing them. UTF-8 is ordered by bytes, which is the order of
-- code points. `:nims` is one array of JSON, because many statements could not be interrupted
-- together. Texts that another program may have stored in another encoding are read as bytes.

-- name: find
SELECT nim, nama, alamat FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims))

-- name: find_locked
-- There is only one writer at a time.
SELECT nim, nama, alamat FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims))

-- name: find_raw
SELECT CAST(nim AS BLOB), CAST(nama AS BLOB), CAST(alamat AS BLOB)
FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims))

-- name: within_bytes
-- The first of the records after a nim: as many as have that number of bytes, and one more. The
-- lengths are read without the texts, which a window would copy for each record.
SELECT nim, nama, alamat FROM mahasiswa JOIN (
  SELECT nim, sum(bytes) OVER (ORDER BY nim ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
  FROM (
    SELECT nim, octet_length(nama) + octet_length(alamat) AS bytes FROM mahasiswa
    WHERE nim >= coalesce(:after, '') AND nim IS DISTINCT FROM :after
    ORDER BY nim LIMIT :limit
  ) AS measured
) AS counted USING (nim)
WHERE bytes_before < :bytes ORDER BY nim

-- name: add
INSERT INTO mahasiswa (nim, nama, alamat) VALUES (:nim, :nama, :alamat)

-- name: update
UPDATE mahasiswa SET nama = :nama, alamat = :alamat WHERE nim = :nim

-- name: delete
DELETE FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims))

-- name: add_renamed
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT :nim, nama, alamat FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims))
RETURNING 1

-- name: add_all
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:records)
RETURNING nim

-- name: update_all
UPDATE mahasiswa SET nama = value ->> 1, alamat = value ->> 2
FROM json_each(:records) WHERE nim = value ->> 0

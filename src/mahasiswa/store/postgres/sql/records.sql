-- Records: finding, reading and changing them. UTF-8 is ordered by bytes, which is the order of
-- code points. `:nims` is an array.

-- name: find
SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ANY(:nims)

-- name: find_locked
-- In order, so that two transactions which lock the same records cannot deadlock.
SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ANY(:nims) ORDER BY nim FOR UPDATE

-- name: find_raw
SELECT nim, nama, alamat
FROM mahasiswa WHERE nim = ANY(:nims)

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
DELETE FROM mahasiswa WHERE nim = ANY(:nims)

-- name: add_renamed
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT :nim, nama, alamat FROM mahasiswa WHERE nim = ANY(:nims) FOR UPDATE
RETURNING 1

-- name: add_all
-- If a nim occurs twice, the first record is added. In order, as find_locked is.
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT record->>0, record->>1, record->>2
FROM json_array_elements(:records::json) WITH ORDINALITY AS i (record, number)
ORDER BY (record->>0) COLLATE "C", number
ON CONFLICT (nim) DO NOTHING
RETURNING nim

-- name: update_all
UPDATE mahasiswa SET nama = record->>1, alamat = record->>2
FROM json_array_elements(:records::json) AS i (record) WHERE nim = record->>0

-- Records: finding and changing several of them. `:nims` is one array of JSON, because many
-- statements could not be interrupted together. Texts that another program may have stored in
-- another encoding are read as bytes.

-- name: find
-- Longer texts are cut.
SELECT nim,
  CASE WHEN length(nama) > :characters
    THEN substr(nama, 1, :characters - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :characters
    THEN substr(alamat, 1, :characters - 1) || '…' ELSE alamat END
FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims))

-- name: find_locked
-- There is only one writer at a time.
SELECT nim, nama, alamat FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(:nims))

-- name: update
UPDATE mahasiswa SET nama = :nama, alamat = :alamat WHERE nim IN (SELECT value FROM json_each(:nims))

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

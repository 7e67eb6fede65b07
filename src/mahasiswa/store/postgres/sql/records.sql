-- Records: finding and changing several of them. `:nims` is an array of JSON.

-- name: find
-- Longer texts are cut.
SELECT nim,
  CASE WHEN length(nama) > :characters
    THEN substr(nama, 1, :characters - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :characters
    THEN substr(alamat, 1, :characters - 1) || '…' ELSE alamat END
FROM mahasiswa WHERE nim = ANY(ARRAY(SELECT json_array_elements_text(:nims)))

-- name: find_locked
-- In order, so that two transactions which lock the same records cannot deadlock.
SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ANY(ARRAY(SELECT json_array_elements_text(:nims))) ORDER BY nim FOR UPDATE

-- name: update
UPDATE mahasiswa SET nama = :nama, alamat = :alamat WHERE nim = ANY(ARRAY(SELECT json_array_elements_text(:nims)))

-- name: delete
DELETE FROM mahasiswa WHERE nim = ANY(ARRAY(SELECT json_array_elements_text(:nims)))

-- name: add_renamed
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT :nim, nama, alamat FROM mahasiswa WHERE nim = ANY(ARRAY(SELECT json_array_elements_text(:nims))) FOR UPDATE
RETURNING 1

-- name: add_all
-- The records come in order, as those of find_locked do.
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT record->>0, record->>1, record->>2
FROM json_array_elements(:records::json) AS i (record)
ON CONFLICT (nim) DO NOTHING
RETURNING nim

-- name: update_all
UPDATE mahasiswa SET nama = record->>1, alamat = record->>2
FROM json_array_elements(:records::json) AS i (record) WHERE nim = record->>0

-- An import by command. The rows of the file are in the temporary table `incoming`.

-- name: incomplete
SELECT nim FROM incoming AS i
WHERE (nama IS NULL OR alamat IS NULL) AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)

-- name: compare_incoming
SELECT count(*), count(m.nim),
  count(*) FILTER (WHERE coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat)
FROM incoming AS i LEFT JOIN mahasiswa AS m ON m.nim = i.nim

-- name: update_existing
UPDATE mahasiswa AS m SET nama = coalesce(i.nama, m.nama), alamat = coalesce(i.alamat, m.alamat)
FROM incoming AS i
WHERE i.nim = m.nim AND (coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat)

-- name: insert_new
INSERT INTO mahasiswa (nim, nama, alamat) SELECT nim, nama, alamat FROM incoming AS i
WHERE NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim) ORDER BY nim

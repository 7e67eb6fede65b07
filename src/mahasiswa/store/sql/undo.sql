-- The undo of an item: an entry, whose id is :item, or a batch, whose entries have :item as their
-- batch. A record that has changed since is left alone.

-- name: delete_added
DELETE FROM mahasiswa WHERE (nim, nama, alamat) IN (
  SELECT nim, nama_after, alamat_after FROM mahasiswa_history
  WHERE (id = :item OR batch = :item) AND nama_before IS NULL
)

-- name: restore_changed
UPDATE mahasiswa AS m SET nama = e.nama_before, alamat = e.alamat_before
FROM mahasiswa_history AS e
WHERE (e.id = :item OR e.batch = :item) AND e.nama_before IS NOT NULL AND e.nim = m.nim
  AND m.nama = e.nama_after AND m.alamat = e.alamat_after

-- name: restore_deleted
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT nim, nama_before, alamat_before FROM mahasiswa_history
WHERE (id = :item OR batch = :item) AND nama_before IS NOT NULL AND nama_after IS NULL
ORDER BY nim
ON CONFLICT (nim) DO NOTHING

-- name: count_restored
-- The records of an item that are as they were before it.
SELECT count(*) FROM mahasiswa_history AS i LEFT JOIN mahasiswa AS m ON m.nim = i.nim
WHERE (i.id = :item OR i.batch = :item) AND i.nim IS NOT NULL
  AND (m.nama, m.alamat) IS NOT DISTINCT FROM (i.nama_before, i.alamat_before)

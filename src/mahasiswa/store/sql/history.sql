-- The history: statements of both engines.

-- name: newest_id
SELECT coalesce(max(id), 0) AS id FROM mahasiswa_history

-- name: newest_item
SELECT id FROM mahasiswa_history WHERE batch IS NULL ORDER BY id DESC LIMIT 1

-- name: other_nims
-- The nims that a record had immediately before or after this one.
SELECT DISTINCT other.nim FROM mahasiswa_history AS one
JOIN mahasiswa_history AS head ON head.id = one.batch AND head.kind = 'nim'
JOIN mahasiswa_history AS other ON other.batch = head.id AND other.nim <> one.nim
WHERE one.nim = :nim ORDER BY 1

-- name: is_known
-- The number of records with a nim, and whether there is one or an entry of one.
SELECT count(*), count(*) > 0 OR EXISTS (SELECT 1 FROM mahasiswa_history WHERE nim = :nim)
FROM mahasiswa WHERE nim = :nim

-- name: leave_batches
-- A batch that loses an entry has one row less, so that the rest can be undone.
UPDATE mahasiswa_history SET rows = rows - 1
WHERE kind IS NOT NULL AND id IN (SELECT batch FROM mahasiswa_history WHERE nim = :nim)

-- name: delete_entries
DELETE FROM mahasiswa_history WHERE nim = :nim OR rows = 0

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

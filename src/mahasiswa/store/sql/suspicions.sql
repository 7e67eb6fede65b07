-- Records that may be wrong, for both engines. The parts stand in the suspicions.sql of each engine.

-- name: suspicious
-- The records of one suspicion, with the number of all of them. Similar ones share a key.
WITH :NEAR_KEYS, :TWIN_KEYS, :SPACED, suspects (nim, key) AS MATERIALIZED (
  SELECT nim, key FROM near_keys WHERE :suspicion = 'near' AND key IN (
    SELECT key FROM near_keys WHERE key <> '' GROUP BY key HAVING count(*) > 1
  )
  UNION ALL
  SELECT nim, key FROM twin_keys WHERE :suspicion = 'twins' AND key IN (
    SELECT key FROM twin_keys GROUP BY key HAVING count(*) > 1
  )
  UNION ALL
  SELECT nim, part FROM spaced WHERE :suspicion = 'spaces'
)
SELECT (SELECT count(*) FROM suspects), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM suspects ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: untidy
WITH :SPACED
SELECT nim, nama, alamat FROM mahasiswa
WHERE nim IN (SELECT nim FROM spaced WHERE part = 'nama' ORDER BY nim LIMIT :limit)
ORDER BY nim

-- name: alike
-- Another record with nearly the same nim, or else one with the same name and address. A look at
-- more records would delay the page after each addition.
WITH :NEAR_KEYS, added AS MATERIALIZED (
  SELECT nim, key, lower(nama) AS nama, lower(alamat) AS alamat FROM near_keys WHERE nim = :nim
)
SELECT other.key = added.key AND added.key <> '' AS is_near, other.nim,
  CASE WHEN length(other.nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(other.nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE other.nama END,
  CASE WHEN length(other.alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(other.alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE other.alamat END
FROM added JOIN (SELECT * FROM near_keys ORDER BY nim DESC LIMIT 40000) AS other
  ON other.nim <> added.nim AND (
    (other.key = added.key AND added.key <> '')
    OR (lower(other.nama) = added.nama AND lower(other.alamat) = added.alamat)
  )
ORDER BY is_near DESC, other.nim LIMIT 1

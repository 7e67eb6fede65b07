-- Records that may be wrong, for both engines. The parts stand in the suspicions.sql of each engine.

-- name: suspects
-- The nims of one suspicion, and the key that similar records share.
suspects (nim, key) AS MATERIALIZED (
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

-- name: suspicious
-- with: near_keys, twin_keys, spaced, suspects
-- Each row also has the number of all of them.
SELECT (SELECT count(*) FROM suspects), nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT nim, key FROM suspects ORDER BY key, nim LIMIT :limit) AS first
JOIN mahasiswa USING (nim)
ORDER BY key, nim

-- name: untidy
-- with: spaced
SELECT nim, nama, alamat FROM mahasiswa
WHERE nim IN (SELECT nim FROM spaced WHERE part = 'nama' ORDER BY nim LIMIT :limit)
ORDER BY nim

-- name: alike
-- with: near_keys
-- Another record with nearly the same nim, or else one with the same name and address. A look at
-- more records would delay the page after each addition.
SELECT key = :key AS is_near, nim,
  CASE WHEN length(nama) > :SHOWN_MAX_CHARACTERS
    THEN substr(nama, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE nama END,
  CASE WHEN length(alamat) > :SHOWN_MAX_CHARACTERS
    THEN substr(alamat, 1, :SHOWN_MAX_CHARACTERS - 1) || '…' ELSE alamat END
FROM (SELECT * FROM near_keys ORDER BY nim DESC LIMIT 40000) AS newest
WHERE nim <> :nim
  AND (key = :key AND key <> '' OR lower(nama) = :nama AND lower(alamat) = :alamat)
ORDER BY is_near DESC, nim LIMIT 1

-- Records: statements of both engines. UTF-8 is ordered by bytes, which is the order of code points.

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

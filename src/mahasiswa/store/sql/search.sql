-- The list without a search, for both engines: the nims of one page in each order. Equal texts are
-- ordered by nim. Nims are read first, and then the records of a page, because whole records take
-- twice as long to sort.

-- name: whole
SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim

-- name: nim naik
SELECT nim FROM mahasiswa ORDER BY nim LIMIT :limit OFFSET :offset

-- name: nim turun
SELECT nim FROM mahasiswa ORDER BY nim DESC LIMIT :limit OFFSET :offset

-- name: nama naik
SELECT nim FROM mahasiswa ORDER BY lower(nama), nim LIMIT :limit OFFSET :offset

-- name: nama turun
SELECT nim FROM mahasiswa ORDER BY lower(nama) DESC, nim DESC LIMIT :limit OFFSET :offset

-- name: alamat naik
SELECT nim FROM mahasiswa ORDER BY lower(alamat), nim LIMIT :limit OFFSET :offset

-- name: alamat turun
SELECT nim FROM mahasiswa ORDER BY lower(alamat) DESC, nim DESC LIMIT :limit OFFSET :offset

-- name: some_texts
-- Names and addresses whose words correct a search that has found nothing, from both ends of the list.
SELECT substr(nama, 1, 100) FROM (
  SELECT * FROM (SELECT nama FROM mahasiswa ORDER BY nim LIMIT 10000) AS low_names
  UNION ALL
  SELECT * FROM (SELECT nama FROM mahasiswa ORDER BY nim DESC LIMIT 10000) AS high_names
  UNION ALL
  SELECT * FROM (SELECT alamat FROM mahasiswa ORDER BY nim LIMIT 5000) AS low_addresses
  UNION ALL
  SELECT * FROM (SELECT alamat FROM mahasiswa ORDER BY nim DESC LIMIT 5000) AS high_addresses
) AS texts

-- The problem of each line: its own fault, then those that depend on the other lines and on the stored records, then doubts.
WITH usual AS (
    SELECT length(nim) AS length, count(*) AS lines
    FROM line WHERE skipped = '' GROUP BY 1 ORDER BY 2 DESC LIMIT 1
),
twice AS (
    SELECT nim FROM line WHERE skipped = '' AND nim <> ''
    GROUP BY nim HAVING count(DISTINCT nama || char(31) || alamat) > 1
)
UPDATE line SET problem = CASE
    WHEN skipped <> '' THEN ''
    WHEN is_fault(own) THEN own
    WHEN nim IN (SELECT nim FROM twice) THEN 'nim_twice'
    WHEN stored_nama IS NULL AND nama = '' THEN 'no_nama'
    WHEN stored_nama IS NULL AND alamat = '' THEN 'no_alamat'
    WHEN own <> '' THEN own
    WHEN stored_nama IS NULL AND near <> '' THEN 'near'
    WHEN stored_nama IS NULL
        AND length(nim) <> (SELECT length FROM usual)
        AND (SELECT lines FROM usual) * 10 >= (SELECT count(*) FROM line WHERE skipped = '') * 9
        THEN 'odd_length'
    WHEN stored_nama IS NOT NULL AND nama <> '' AND shares_no_word(nama, stored_nama) THEN 'other_nama'
    ELSE ''
END;

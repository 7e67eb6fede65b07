-- A line that has become equal to one before it, because a person has typed it, is skipped like every repetition.
UPDATE line SET skipped = 'same'
WHERE skipped = '' AND nim <> '' AND EXISTS (
    SELECT 1 FROM line AS first
    WHERE first.nim = line.nim AND first.nama = line.nama AND first.alamat = line.alamat AND first.skipped = ''
        AND (first.sheet, first.number) < (line.sheet, line.number)
);

-- The problem of each line: its own fault, then those that depend on the other lines and on the stored records, then doubts.
WITH usual AS (
    SELECT length(nim) AS length, count(*) AS lines
    FROM line WHERE skipped = '' GROUP BY 1 ORDER BY 2 DESC LIMIT 1
),
twice AS (
    SELECT nim FROM line WHERE skipped = '' AND nim <> '' GROUP BY nim HAVING count(*) > 1
),
judged AS (
    SELECT
        sheet, number, nim, nama, alamat, stored_nama, stored_alamat, near,
        ' ' || accepted || ' ' AS accepted,
        -- A NIM that is stored is right.
        CASE
            WHEN own = '' THEN ''
            WHEN stored_nama IS NULL THEN first_open(own, accepted)
            ELSE first_open(own, accepted || ' separators no_digit zeros')
        END AS own
    FROM line WHERE skipped = ''
),
found AS (
    SELECT sheet, number, CASE
        WHEN nim IN (SELECT nim FROM twice) THEN 'nim_twice'
        -- Nothing would be written.
        WHEN coalesce(nullif(nama, ''), stored_nama) = stored_nama
            AND coalesce(nullif(alamat, ''), stored_alamat) = stored_alamat THEN ''
        WHEN own <> '' AND is_fault(own) THEN own
        WHEN stored_nama IS NULL AND nama = '' THEN 'no_nama'
        WHEN stored_nama IS NULL AND alamat = '' THEN 'no_alamat'
        WHEN own <> '' THEN own
        WHEN stored_nama IS NULL AND near <> '' AND NOT instr(accepted, ' near ') THEN 'near'
        WHEN stored_nama IS NULL
            AND length(nim) <> (SELECT length FROM usual)
            AND (SELECT lines FROM usual) * 10 >= (SELECT count(*) FROM line WHERE skipped = '') * 9
            AND NOT instr(accepted, ' odd_length ')
            THEN 'odd_length'
        WHEN stored_nama IS NOT NULL AND nama <> '' AND NOT instr(accepted, ' other_nama ')
            AND shares_no_word(nama, stored_nama) THEN 'other_nama'
        ELSE ''
    END AS problem
    FROM judged
    UNION ALL
    SELECT sheet, number, '' FROM line WHERE skipped <> ''
)
UPDATE line SET problem = found.problem
FROM found
WHERE found.sheet = line.sheet AND found.number = line.number AND line.problem <> found.problem;

-- The statements of stages, by their names. A stage holds one upload: `sheet` what was read, `line` the records that it would make.

-- open: PRAGMAs of a connection. After a power cut the upload may be lost, but no process that dies can damage it.
-- A worker waits at most 2 s for another one. An upload has at most 4,096 pages of 4,096 bytes.
PRAGMA busy_timeout = 2000;
PRAGMA trusted_schema = OFF;
PRAGMA secure_delete = ON;
PRAGMA synchronous = OFF;
PRAGMA max_page_count = 4096;

-- create: an upload
BEGIN;
CREATE TABLE stage (
    purpose TEXT NOT NULL,            -- impor or pilih
    name TEXT NOT NULL,               -- of the file; blank if the cells were pasted
    address TEXT NOT NULL,            -- of the client
    created REAL NOT NULL,            -- seconds since 1970
    version INTEGER NOT NULL DEFAULT 1,  -- each change of a person raises it
    error TEXT NOT NULL DEFAULT '',   -- why the file cannot be read, for the person
    change TEXT,                      -- the change of the history after the lines were saved
    started INTEGER NOT NULL DEFAULT 0  -- the total_changes() of the connection at the beginning of a transaction
) STRICT;

CREATE TABLE sheet (
    id INTEGER NOT NULL PRIMARY KEY,
    facts TEXT NOT NULL,              -- JSON of a Table, see `_packed`
    cells TEXT NOT NULL               -- JSON of its rows, each with its number and its cells
) STRICT;

CREATE TABLE line (
    sheet INTEGER NOT NULL,
    number INTEGER NOT NULL,
    nim TEXT NOT NULL,
    nama TEXT NOT NULL,
    alamat TEXT NOT NULL,
    own TEXT NOT NULL DEFAULT '',       -- the codes of the problems of the line by itself, faults first
    skipped TEXT NOT NULL DEFAULT '',   -- the reason why it is skipped
    accepted TEXT NOT NULL DEFAULT '',  -- the codes of the doubts that a person has called right
    stored_nama TEXT,                   -- of the stored record with this nim
    stored_alamat TEXT,
    near TEXT,                          -- a stored nim that is nearly this one; '' without one, NULL if not looked up
    near_nama TEXT,
    problem TEXT NOT NULL DEFAULT '',   -- the code of the problem that stops the line
    PRIMARY KEY (sheet, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX line_nim ON line (nim);

CREATE VIEW shown AS
SELECT
    *,
    CASE
        WHEN skipped <> '' THEN 'dilewati'
        WHEN problem <> '' THEN 'salah'
        WHEN (SELECT purpose FROM stage) = 'pilih' THEN 'ditemukan'
        WHEN stored_nama IS NULL THEN 'baru'
        WHEN coalesce(nullif(nama, ''), stored_nama) = stored_nama
            AND coalesce(nullif(alamat, ''), stored_alamat) = stored_alamat THEN 'sama'
        ELSE 'berubah'
    END AS state
FROM line;

INSERT INTO stage (purpose, name, address, created) VALUES (?, ?, ?, ?);
COMMIT;

-- facts: about an upload
SELECT purpose, name, address, created, version, error, change FROM stage;

-- begin: a transaction that no other worker can interrupt, if the version is this one
BEGIN IMMEDIATE;
UPDATE stage SET started = total_changes() + 1 WHERE version = ?;

-- commit: the transaction, and raise the version if anything has changed
UPDATE stage SET version = version + 1 WHERE total_changes() > started;
COMMIT;

-- crowded_out: the upload that ends because another one of the address ?2 begins. ?1 has all uploads, each with its name, the time
-- when it was last opened, and its facts; ?3 is the maximum of all, and ?4 that of an address. First go those that
-- are saved, then selections, then of the address with most the one that was not opened for longest.
WITH upload AS (
    SELECT value ->> 0 AS name, value ->> 1 AS opened, value ->> 2 AS purpose, value ->> 4 AS address, value ->> 8 AS change
    FROM json_each(?1)
),
counted AS (
    SELECT
        *, count(*) OVER () AS uploads, count(*) OVER (PARTITION BY address) AS of_address,
        address = ?2 AND count(*) OVER (PARTITION BY address) >= ?4 AS is_of_full_address
    FROM upload
)
SELECT name FROM counted
WHERE uploads >= ?3 OR is_of_full_address
ORDER BY is_of_full_address DESC, change IS NULL, purpose <> 'pilih', of_address DESC, opened
LIMIT 1;

-- fail: the file cannot be read
UPDATE stage SET error = ?;

-- put_sheet: by the child process
INSERT INTO sheet VALUES (?, ?, ?);

-- change_sheet: how it is read now
UPDATE sheet SET facts = ? WHERE id = ?;

-- sheets: in the order of the file
SELECT facts FROM sheet ORDER BY id;

-- cells: of a sheet
SELECT cells FROM sheet WHERE id = ?;

-- drop_lines: before others are put
DELETE FROM line;

-- put_line: by the child process
INSERT INTO line (sheet, number, nim, nama, alamat, own, skipped) VALUES (?, ?, ?, ?, ?, ?, ?);

-- of_state: lines from a number on, in the order of the file
SELECT * FROM shown WHERE state = ? ORDER BY sheet, number LIMIT ? OFFSET ?;

-- of_problem: the same with a problem, and no further line after so many characters that a form could not carry them
SELECT * FROM (
    SELECT *, sum(length(nim) + length(nama) + length(alamat)) OVER (
        ORDER BY sheet, number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS characters
    FROM (SELECT * FROM shown WHERE problem = ?1 ORDER BY sheet, number LIMIT ?2 OFFSET ?3)
)
WHERE ?2 < 0 OR coalesce(characters, 0) <= 200 * ?2 ORDER BY sheet, number;

-- of_reason: the same with a reason why they are skipped
SELECT * FROM shown WHERE skipped = ? ORDER BY sheet, number LIMIT ? OFFSET ?;

-- left: lines that are not saved, because of a problem or because a person has skipped them
SELECT * FROM shown WHERE state = 'salah' OR skipped = 'person' ORDER BY sheet, number;

-- line: by its sheet and its number
SELECT * FROM shown WHERE sheet = ? AND number = ?;

-- counts: lines of each state
SELECT state, count(*) FROM shown GROUP BY state;

-- problems: each with the number of its lines, in the order of the file
SELECT problem, count(*) FROM line WHERE problem <> '' GROUP BY 1 ORDER BY min(sheet), min(number);

-- reasons: why lines are skipped, in the same way
SELECT skipped, count(*) FROM line WHERE skipped <> '' GROUP BY 1 ORDER BY min(sheet), min(number);

-- change_line: replace the texts of a line, and what a person has decided about it
UPDATE line SET
    nim = ?, nama = ?, alamat = ?, own = ?, skipped = ?, accepted = ?,
    stored_nama = NULL, stored_alamat = NULL, near = NULL, near_nama = NULL
WHERE sheet = ? AND number = ?;

-- accept: a person calls all lines with this doubt right
UPDATE line SET accepted = ltrim(accepted || ' ' || problem) WHERE problem = ? AND NOT is_fault(problem);

-- skip: a person skips all lines with this problem, or one line, such as 0.15
UPDATE line SET skipped = 'person' WHERE ?1 <> '' AND ?1 IN (problem, sheet || '.' || number);

-- take_back: no line is skipped any more for this reason
UPDATE line SET skipped = '' WHERE skipped = ?;

-- nims: of all lines that are not skipped
SELECT DISTINCT nim FROM line WHERE skipped = '' AND nim <> '' ORDER BY nim;

-- note_stored: the texts of the record with this nim, and the same as an import would clean them, which are no change
UPDATE line SET
    stored_nama = ?2, stored_alamat = ?3,
    nama = iif(nama = cleaned(?2), coalesce(?2, ''), nama),
    alamat = iif(alamat = cleaned_alamat(?3), coalesce(?3, ''), alamat)
WHERE nim = ?1 AND (stored_nama IS NOT ?2 OR stored_alamat IS NOT ?3);

-- nims_without_near: nims that are not stored, for which no near nim was looked up yet
SELECT DISTINCT nim FROM line
WHERE skipped = '' AND nim <> '' AND stored_nama IS NULL AND near IS NULL ORDER BY nim;

-- note_near: the stored record whose nim is nearly this one; a blank nim if there is none
UPDATE line SET near = ?2, near_nama = ?3 WHERE nim = ?1;

-- finish: the change that has saved the lines, so that a second click leads to the same page
UPDATE stage SET change = ?;
DELETE FROM line;
DELETE FROM sheet;

-- kept: the lines of a selection, in their order
SELECT * FROM shown WHERE skipped = '' ORDER BY sheet, number;

-- match: the stored nim of a line of a selection, and its record
UPDATE line SET nim = ?, nama = ?, skipped = ?, stored_nama = ?, stored_alamat = ? WHERE sheet = ? AND number = ?;

-- settle_selection: the problem of each line of a selection; one whose NIM a person has made blank is dropped
UPDATE line SET skipped = 'person' WHERE own LIKE 'no_nim%' AND skipped = '';
UPDATE line SET problem = CASE
    WHEN skipped <> '' THEN ''
    WHEN stored_nama IS NULL THEN iif(near <> '' AND NOT instr(accepted, 'near'), 'near', 'missing')
    WHEN own = 'hidden' AND first_open(own, accepted) <> '' THEN own
    WHEN nama <> '' AND shares_no_word(nama, stored_nama) THEN first_open('other_nama', accepted)
    ELSE ''
END;

-- settle: the problem of each line
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

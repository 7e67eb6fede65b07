-- begin: an upload
INSERT INTO stage (purpose, name, address, created, version) VALUES (?, ?, ?, ?, 1);

-- facts: about an upload
SELECT * FROM stage;

-- put_sheet: by the child process
INSERT INTO sheet VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- put_row: by the child process
INSERT INTO cell_row VALUES (?, ?, ?, ?);

-- put_line: by the child process
INSERT INTO line (sheet, number, nim, nama, alamat, own, skipped) VALUES (?, ?, ?, ?, ?, ?, ?);

-- fail: the file cannot be read
UPDATE stage SET error = ?;

-- sheets: in the order of the file
SELECT * FROM sheet ORDER BY id;

-- rows: of a sheet
SELECT number, cells, is_hidden FROM cell_row WHERE sheet = ? ORDER BY number;

-- of_state: lines from a number on, in the order of the file
SELECT * FROM shown WHERE state = ? ORDER BY sheet, number LIMIT ? OFFSET ?;

-- of_problem: the same with a problem
SELECT * FROM shown WHERE problem = ? ORDER BY sheet, number LIMIT ? OFFSET ?;

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
UPDATE line SET accepted = ltrim(accepted || ' ' || problem) WHERE problem = ?;

-- skip: a person skips all lines with this problem
UPDATE line SET skipped = 'person' WHERE problem = ?;

-- take_back: no line is skipped any more for this reason
UPDATE line SET skipped = '' WHERE skipped = ?;

-- nims: of all lines that are not skipped
SELECT DISTINCT nim FROM line WHERE skipped = '' AND nim <> '' ORDER BY nim;

-- note_stored: the texts of the record with this nim, and the same as an import would clean them, which are no change
UPDATE line SET
    stored_nama = ?2, stored_alamat = ?3,
    nama = iif(nama = ?4, ?2, nama), alamat = iif(alamat = ?5, ?3, alamat)
WHERE nim = ?1 AND (stored_nama IS NOT ?2 OR stored_alamat IS NOT ?3);

-- nims_without_near: nims that are not stored, for which no near nim was looked up yet
SELECT DISTINCT nim FROM line
WHERE skipped = '' AND nim <> '' AND stored_nama IS NULL AND near IS NULL ORDER BY nim;

-- note_near: the stored record whose nim is nearly this one; a blank nim if there is none
UPDATE line SET near = ?2, near_nama = ?3 WHERE nim = ?1;

-- finish: the change that has saved the lines, so that a second click leads to the same page
UPDATE stage SET change = ?;
DELETE FROM line;
DELETE FROM cell_row;
DELETE FROM sheet;

-- kept: the lines of a selection, in their order
SELECT * FROM shown WHERE skipped = '' ORDER BY sheet, number;

-- found: lines of a selection whose record is stored, and about which there is no doubt
SELECT * FROM shown WHERE state IN ('sama', 'berubah') ORDER BY sheet, number LIMIT ? OFFSET ?;

-- match: the stored nim of a line of a selection, and its record
UPDATE line SET nim = ?, nama = ?, skipped = ?, stored_nama = ?, stored_alamat = ? WHERE sheet = ? AND number = ?;

-- skip_line: a person drops a line
UPDATE line SET skipped = 'person' WHERE sheet = ? AND number = ?;

-- settle_selection: the problem of each line of a selection whose record is stored
UPDATE line SET problem = CASE
    WHEN skipped <> '' OR stored_nama IS NULL THEN ''
    WHEN first_open(own, accepted) <> '' THEN first_open(own, accepted)
    WHEN nama <> '' AND shares_no_word(nama, stored_nama) THEN first_open('other_nama', accepted)
    ELSE ''
END;

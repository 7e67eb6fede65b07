-- The stage of one upload. `sheet` and `cell_row` hold what was read, `line` the records that it would make.
CREATE TABLE stage (
    purpose TEXT NOT NULL,            -- impor or pilih
    name TEXT NOT NULL,               -- of the file; blank if the cells were pasted
    address TEXT NOT NULL,            -- of the client
    created REAL NOT NULL,            -- seconds since 1970
    version INTEGER NOT NULL,         -- each change of a person raises it
    error TEXT NOT NULL DEFAULT '',   -- why the file cannot be read, for the person
    change TEXT                       -- the change of the history after the lines were saved
) STRICT;

CREATE TABLE sheet (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    header INTEGER NOT NULL,          -- the number of the row with the titles; 0 without one
    titles TEXT NOT NULL,             -- JSON: a text for each column
    examples TEXT NOT NULL,           -- JSON: for each column at most three texts
    columns TEXT NOT NULL,            -- JSON: the part of the record that each column has, by its index
    doubt TEXT NOT NULL,              -- why a person must choose the columns; blank if they are sure
    is_read INTEGER NOT NULL
) STRICT;

CREATE TABLE cell_row (
    sheet INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cells TEXT NOT NULL,              -- JSON: texts, numbers, nulls, and [kind, text] of a bad cell
    is_hidden INTEGER NOT NULL,
    PRIMARY KEY (sheet, number)
) STRICT, WITHOUT ROWID;

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
        WHEN stored_nama IS NULL THEN 'baru'
        WHEN coalesce(nullif(nama, ''), stored_nama) = stored_nama
            AND coalesce(nullif(alamat, ''), stored_alamat) = stored_alamat THEN 'sama'
        ELSE 'berubah'
    END AS state
FROM line;

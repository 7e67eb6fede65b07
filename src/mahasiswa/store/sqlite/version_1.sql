-- Version 1 of the schema. Never change a version that was released: add the next one to
-- sqlite_schema.UPGRADES.
--
-- The rules and the triggers use only SQL that SQLite 3.40 (Debian 12) knows, so that its shell can
-- read and write the file. They call no function of this program.

-- A CHECK constraint is named <field>_<reason>, so that sqlite_errors.refusal reads the form's
-- message from it.
CREATE TABLE mahasiswa (
  nim TEXT NOT NULL PRIMARY KEY
    CONSTRAINT nim_nul CHECK (instr(nim, char(0)) = 0)
    CONSTRAINT nim_too_long CHECK (length(nim) <= 255)
    CONSTRAINT nim_unaddressable CHECK (nim NOT IN ('.', '..')),
  nama TEXT NOT NULL
    CONSTRAINT nama_nul CHECK (instr(nama, char(0)) = 0),
  alamat TEXT NOT NULL
    CONSTRAINT alamat_nul CHECK (instr(alamat, char(0)) = 0)
) STRICT, WITHOUT ROWID;

-- A row of the history is an entry, or the head of a batch: it has the batch's kind, and the number
-- of its entries, whose `batch` is its id. AUTOINCREMENT never gives an id again, so a page that is
-- still open cannot undo another change. `oleh` is the name of the person. Triggers write the
-- entries, so it has the changes of every program.
CREATE TABLE mahasiswa_history (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  moment TEXT NOT NULL,
  batch INTEGER,
  kind TEXT CHECK (kind IN ('import', 'delete', 'undo', 'restore', 'nim', 'tidy')),
  rows INTEGER,
  nim TEXT,
  nama_before TEXT,
  alamat_before TEXT,
  nama_after TEXT,
  alamat_after TEXT,
  oleh TEXT
) STRICT;
-- Its keys are (batch, id): the items of the history (batch IS NULL), and the entries of a batch.
-- An index on nim would make each change slower, and only `show` and `forget` would use it.
CREATE INDEX mahasiswa_history_batch ON mahasiswa_history (batch);
CREATE INDEX mahasiswa_history_moment ON mahasiswa_history (moment);

-- One row: HISTORY_DAYS, Store.signing_key as hexadecimal digits, and the batch and the person to
-- which the next changes belong. A transaction sets the batch and the person, and sets both to NULL
-- before it ends. So the changes of another program have no batch and no person. `noted` and
-- `has_leapt` are not used.
CREATE TABLE mahasiswa_history_state (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  days INTEGER NOT NULL,
  batch INTEGER,
  oleh TEXT,
  signing_key TEXT NOT NULL,
  noted TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  has_leapt INTEGER NOT NULL DEFAULT 0
) STRICT;

"""The SQL that only SQLite understands; `shared_sql` has the rest. PRAGMAs, VACUUM and transactions stand where they are used."""

import json
from datetime import UTC

from mahasiswa.record import INVISIBLE, NIM_MAX_CHARACTERS
from mahasiswa.store import folding
from mahasiswa.store.history_items import PURGE_ENTRIES, PURGE_SECONDS
from mahasiswa.store.shared_sql import SharedSQL

# --- Schema

# Every rule of a record stands here and nowhere else. A CHECK constraint is named `<field>_<reason>`, so that
# `sqlite_errors.refusal` reads the form's message from it. A file keeps the text of each CREATE TABLE, and `schema`
# recognises the tables by it: any change of these texts, or of the maximum length, needs another of its UPGRADES.
#
# The rules and the triggers use only SQL that SQLite 3.40 (Debian 12) knows, so that its shell can read and write the
# file. They call no function of this program.
CREATE_MAHASISWA = f"""\
CREATE TABLE mahasiswa (
  nim TEXT NOT NULL PRIMARY KEY
    CONSTRAINT nim_nul CHECK (instr(nim, char(0)) = 0)
    CONSTRAINT nim_too_long CHECK (length(nim) <= {NIM_MAX_CHARACTERS})
    CONSTRAINT nim_unaddressable CHECK (nim NOT IN ('.', '..')),
  nama TEXT NOT NULL
    CONSTRAINT nama_nul CHECK (instr(nama, char(0)) = 0),
  alamat TEXT NOT NULL
    CONSTRAINT alamat_nul CHECK (instr(alamat, char(0)) = 0)
) STRICT, WITHOUT ROWID"""

# --- The history

# Triggers write it, so it has the changes of every program.
#
# A row is an entry or the head of a batch. A head has the kind of the batch and the number of its entries, and their
# `batch` is its id. AUTOINCREMENT never gives an id again, so a page that is still open cannot undo another change.
# `oleh` is the name that a proxy gave. An index on nim would make each change 1 to 5 us slower, and only `forget` would
# use it.
TABLES = {
    "mahasiswa": CREATE_MAHASISWA,
    "mahasiswa_history": """\
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
) STRICT""",
    # One row: HISTORY_DAYS, the last purge, the key of Store.signing_key, and the batch and the person to which the next
    # changes belong. A transaction sets the batch and the person, and sets both to NULL before it ends. So the changes of
    # another program have no batch and no person.
    "mahasiswa_history_state": """\
CREATE TABLE mahasiswa_history_state (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  days INTEGER NOT NULL,
  batch INTEGER,
  purged TEXT,
  oleh TEXT,
  signing_key TEXT NOT NULL
) STRICT""",
}
# Its keys are (batch, id): the items of the history (batch IS NULL) and the entries of a batch, each in order of id.
CREATE_HISTORY_INDEX = (
    "CREATE INDEX IF NOT EXISTS mahasiswa_history_batch ON mahasiswa_history (batch)"
)
STORED_TABLES = f"""
SELECT lower(name), type, sql FROM sqlite_schema WHERE lower(name) IN {tuple(TABLES)} AND type <> 'trigger'"""
STATE = "mahasiswa_history_state"
HAS_KEY = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('mahasiswa_history_state') WHERE name = 'signing_key')"
NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

_INSERT_ENTRY = f"""\
INSERT INTO mahasiswa_history (batch, oleh, moment, nim, nama_before, alamat_before, nama_after, alamat_after)
  SELECT batch, oleh, {NOW},"""

# INSERT OR REPLACE of another program fires no DELETE trigger, unless recursive_triggers is on.
HISTORY_TRIGGERS = {
    "mahasiswa_history_insert": f"""\
CREATE TRIGGER mahasiswa_history_insert AFTER INSERT ON mahasiswa
BEGIN
  {_INSERT_ENTRY} NEW.nim, NULL, NULL, NEW.nama, NEW.alamat FROM mahasiswa_history_state;
END""",
    "mahasiswa_history_update": f"""\
CREATE TRIGGER mahasiswa_history_update AFTER UPDATE ON mahasiswa
WHEN NEW.nama <> OLD.nama OR NEW.alamat <> OLD.alamat
BEGIN
  {_INSERT_ENTRY} OLD.nim, OLD.nama, OLD.alamat, NEW.nama, NEW.alamat FROM mahasiswa_history_state;
END""",
    "mahasiswa_history_delete": f"""\
CREATE TRIGGER mahasiswa_history_delete AFTER DELETE ON mahasiswa
BEGIN
  {_INSERT_ENTRY} OLD.nim, OLD.nama, OLD.alamat, NULL, NULL FROM mahasiswa_history_state;
END""",
}
# Specification 2.2: a nim never changes. The table refuses it without a history too.
NIM_TRIGGER = {
    "mahasiswa_nim": """\
CREATE TRIGGER mahasiswa_nim BEFORE UPDATE OF nim ON mahasiswa WHEN NEW.nim <> OLD.nim
BEGIN
  SELECT RAISE(ABORT, 'a nim never changes; delete the record and add it with the other nim');
END"""
}
STORED_TRIGGERS = """
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND (name LIKE 'mahasiswa_history_%' OR name = 'mahasiswa_nim')
"""
DROP_TRIGGER = "DROP TRIGGER IF EXISTS {}"
DROP_TRIGGERS = "; ".join(map(DROP_TRIGGER.format, HISTORY_TRIGGERS))
CREATE_TRIGGERS = ";\n".join(HISTORY_TRIGGERS.values())

CREATE_STATE = "INSERT INTO mahasiswa_history_state (only_row, days, signing_key) VALUES (1, ?, ?)"
SET_DAYS = "UPDATE mahasiswa_history_state SET days = ?"
CLEAR_HISTORY = "DELETE FROM mahasiswa_history"

# The triggers read the batch from the table of the state. END_BATCH removes a batch without changes.
BEGIN_BATCH = f"""
INSERT INTO mahasiswa_history (moment, kind, rows, oleh) SELECT {NOW}, ?, 0, oleh FROM mahasiswa_history_state WHERE days > 0;
UPDATE mahasiswa_history_state SET batch = last_insert_rowid() WHERE days > 0"""
END_BATCH = """
UPDATE mahasiswa_history SET rows = (
  SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = mahasiswa_history.id
) WHERE id = (SELECT batch FROM mahasiswa_history_state);
DELETE FROM mahasiswa_history WHERE id = (SELECT batch FROM mahasiswa_history_state) AND rows = 0;
UPDATE mahasiswa_history_state SET batch = NULL"""
# One line in the history. The triggers of the records are away meanwhile.
END_SILENT = f"""
{CREATE_TRIGGERS};
INSERT INTO mahasiswa_history (moment, kind, rows, oleh) SELECT {NOW}, '{{kind}}', {{rows}}, oleh FROM mahasiswa_history_state
"""
# It adds 2 us to a change of a group. To write the name into the new entries afterwards would add 4 us.
SET_OLEH = "UPDATE mahasiswa_history_state SET oleh = ?"

_DAYS_AGO = "'-' || (SELECT days FROM mahasiswa_history_state) || ' days'"
_EXPIRED = f"moment < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', {_DAYS_AGO})"

# --- Purging and forgetting

# The head of a batch is older than its entries, so it goes first, and a batch is never shown in part.
HAS_EXPIRED = f"SELECT {_EXPIRED} FROM mahasiswa_history ORDER BY id LIMIT 1"
PURGE_EXPIRED = f"""
DELETE FROM mahasiswa_history WHERE {_EXPIRED} AND id IN (SELECT id FROM mahasiswa_history ORDER BY id LIMIT {PURGE_ENTRIES})
"""
_IF_PURGE_IS_DUE = f"""
WHERE (purged IS NULL OR purged <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-{PURGE_SECONDS} seconds')) AND ({HAS_EXPIRED})
"""

# --- Reading

# The first records as one text, and their number. It takes 1.5 ms for 10,000 records; a row for each of them takes 2.6 ms.
PACKED = """
SELECT CAST(coalesce(group_concat(nim || char(0) || nama || char(0) || alamat, char(0)), '') AS BLOB), count(*)
FROM (SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim LIMIT ?)"""
ALL_AS_BYTES = "SELECT CAST(nim AS BLOB), CAST(nama AS BLOB), CAST(alamat AS BLOB) FROM mahasiswa"

# --- Importing

# The rows go to a temporary table first, so that the records are locked only while they are merged. The file of temporary
# tables has no name and is removed with the connection, so its old texts need not be overwritten.
CREATE_INCOMING = """
CREATE TEMP TABLE incoming (number INTEGER NOT NULL PRIMARY KEY, nim TEXT NOT NULL, nama TEXT, alamat TEXT);
PRAGMA temp.secure_delete = OFF"""
ADD_INCOMING = "INSERT INTO incoming (number, nim, nama, alamat) VALUES (?, ?, ?, ?)"

# --- Restoring

# The history of the back-up is restored only into a database that has neither records nor a history.
IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM main.mahasiswa) AND NOT EXISTS (SELECT 1 FROM main.mahasiswa_history)"
RESTORE_HISTORY = """
INSERT INTO main.mahasiswa_history SELECT * FROM kept.mahasiswa_history WHERE (SELECT days FROM main.mahasiswa_history_state) > 0
"""

# The records of the back-up are in the attached database `kept`. Only records that differ are written.
ATTACH_BACKUP = "ATTACH ? AS kept"
COMPARE_BACKUP = """
SELECT
  (SELECT count(*) FROM kept.mahasiswa AS k WHERE NOT EXISTS (SELECT 1 FROM main.mahasiswa AS m WHERE m.nim = k.nim)),
  (SELECT count(*) FROM kept.mahasiswa AS k JOIN main.mahasiswa AS m USING (nim)
   WHERE m.nama <> k.nama OR m.alamat <> k.alamat),
  (SELECT count(*) FROM main.mahasiswa AS m WHERE NOT EXISTS (SELECT 1 FROM kept.mahasiswa AS k WHERE k.nim = m.nim)),
  (SELECT count(*) FROM kept.mahasiswa)"""
RESTORE_BACKUP = """
DELETE FROM main.mahasiswa WHERE NOT EXISTS (SELECT 1 FROM kept.mahasiswa AS k WHERE k.nim = mahasiswa.nim);
UPDATE main.mahasiswa SET nama = k.nama, alamat = k.alamat FROM kept.mahasiswa AS k
WHERE k.nim = mahasiswa.nim AND (k.nama <> mahasiswa.nama OR k.alamat <> mahasiswa.alamat);
INSERT INTO main.mahasiswa (nim, nama, alamat) SELECT nim, nama, alamat FROM kept.mahasiswa AS k
WHERE NOT EXISTS (SELECT 1 FROM main.mahasiswa AS m WHERE m.nim = k.nim) ORDER BY nim"""

# --- Shared with PostgreSQL

# Texts are read as bytes, because another program may have stored a text that is not UTF-8. Reading it as text would fail,
# and with it the whole page of the history. Only a text beyond ASCII is given to the function `fold` of a reading
# connection.
SHARED = SharedSQL(
    p="?",
    # One array of JSON, because many statements could not be interrupted together. JSON would end a text at a NUL.
    is_any="IN (SELECT value FROM json_each(?))",
    is_any_row="IN ({})",
    as_array=json.dumps,
    raw="CAST({} AS BLOB)".format,
    lock="",
    # It takes linear time for any word; LIKE and GLOB take a minute for 300 records of 64 KB.
    position="instr",
    fold="fold(CAST(t AS BLOB))",
    split="""json_each('[' || replace(json_quote(folded_text), ' ', '","') || ']')""",
    # GLOB takes long, so it reads only texts beyond ASCII.
    has_odd_spaces=f"""(
  instr({{0}}, '  ') OR instr({{0}}, char(9)) OR instr({{0}}, char(10)) OR instr({{0}}, char(13))
  OR (length({{0}}) <> octet_length({{0}}) AND {{0}} GLOB '*[{folding.ODD_SPACES}{INVISIBLE}]*')
)""".format,
    begin_batch=BEGIN_BATCH,
    end_batch=END_BATCH,
    begin_silent=DROP_TRIGGERS,
    end_silent=END_SILENT,
    add_all="""
INSERT INTO mahasiswa (nim, nama, alamat) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
RETURNING nim""",
    update_all="""
UPDATE mahasiswa SET nama = value ->> 1, alamat = value ->> 2 FROM json_each(?) WHERE nim = value ->> 0""",
    lock_all="",  # BEGIN IMMEDIATE keeps other programs from writing
    lock_item="",
    # Before it are only earlier moments.
    moment=lambda moment: moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    # Because there is no index on nim.
    recent="(SELECT id, nim FROM mahasiswa_history ORDER BY id DESC LIMIT 1000)",
    is_silent="i.kind IS NOT NULL AND NOT EXISTS (SELECT 1 FROM mahasiswa_history AS s WHERE s.batch = i.id)",
    is_expired=f"i.{_EXPIRED}",
    find_purge=f"SELECT 1 FROM mahasiswa_history_state {_IF_PURGE_IS_DUE}",
    # It changes a row without any other change, and the writer removes expired entries after each change.
    purge=f"UPDATE mahasiswa_history_state SET purged = {NOW} {_IF_PURGE_IS_DUE}",
)

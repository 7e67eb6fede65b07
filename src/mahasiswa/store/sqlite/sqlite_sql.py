"""The SQL of SQLite: the statements of the folder sql, and others. PRAGMAs, VACUUM and transactions stand where they are used."""

import re
from pathlib import Path

from mahasiswa.store.shared_sql import read_statements

# --- Schema

HAS_OBJECTS = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)"
# Whether a release made the tables. The version alone may be that of another program.
IS_RELEASED = """
SELECT count(*) = 3 FROM sqlite_schema
WHERE name = 'mahasiswa' AND sql LIKE '%nim_too_long%'
  OR name = 'mahasiswa_history' AND type = 'table'
  OR name = 'mahasiswa_history_state' AND sql LIKE '%has_leapt%'"""
STORED_TRIGGERS = """
SELECT name, sql FROM sqlite_schema
WHERE type = 'trigger' AND (name LIKE 'mahasiswa_history_%' OR name = 'mahasiswa_nim')"""
DROP_TRIGGER = "DROP TRIGGER IF EXISTS {}"
_TRIGGERS = Path(__file__).with_name("triggers.sql").read_text()
TRIGGERS = {
    trigger.split()[2]: trigger
    for trigger in re.findall(r"(?ms)^CREATE TRIGGER .*?^END", _TRIGGERS)
}

# The days of a start win, and those of a command only in a new database.
SET_STATE = """
INSERT INTO mahasiswa_history_state (only_row, days, signing_key) VALUES (1, coalesce(?1, ?2), ?3)
ON CONFLICT (only_row) DO UPDATE SET days = ?1 WHERE days <> ?1"""

# --- The statements of the .sql files

STATEMENTS = read_statements(Path(__file__).with_name("sql"))
SET_OLEH = STATEMENTS.pop("set_oleh")

# --- Reading

# The first records as one text, with NUL between the cells, and their number. One row for each
# record would take longer, and so would a call of char(0) for each cell.
PACKED = """
SELECT CAST(coalesce(group_concat(nim || :nul || nama || :nul || alamat, :nul), '') AS BLOB), count(*)
FROM (SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim LIMIT :records)"""

# --- Importing

# The rows go to a temporary table first, so that the records are locked only while they are merged. The file of temporary
# tables has no name and is removed with the connection, so its old texts need not be overwritten.
CREATE_INCOMING = """
CREATE TEMP TABLE incoming (nim TEXT NOT NULL, nama TEXT, alamat TEXT);
PRAGMA temp.secure_delete = OFF"""
ADD_INCOMING = "INSERT INTO incoming (nim, nama, alamat) VALUES (?, ?, ?)"

# --- Comparing with a back-up, and restoring

# The records of the back-up are in the attached database `kept`. Only records that differ are written.
ATTACH_BACKUP = "ATTACH ? AS kept"
HAS_HALF_OF_BACKUP = """
SELECT 2 * (SELECT count(*) FROM main.mahasiswa) >= (SELECT count(*) FROM kept.mahasiswa)"""
COMPARE_BACKUP = """
SELECT
  (SELECT count(*) FROM kept.mahasiswa AS k WHERE NOT EXISTS (SELECT 1 FROM main.mahasiswa AS m WHERE m.nim = k.nim)),
  (SELECT count(*) FROM kept.mahasiswa AS k JOIN main.mahasiswa AS m USING (nim)
   WHERE m.nama <> k.nama OR m.alamat <> k.alamat),
  (SELECT count(*) FROM main.mahasiswa AS m WHERE NOT EXISTS (SELECT 1 FROM kept.mahasiswa AS k WHERE k.nim = m.nim))"""
# The history of the back-up is restored only into a database that has neither records nor a history.
RESTORE_BACKUP = """
INSERT INTO main.mahasiswa_history SELECT * FROM kept.mahasiswa_history
WHERE NOT EXISTS (SELECT 1 FROM main.mahasiswa) AND NOT EXISTS (SELECT 1 FROM main.mahasiswa_history);
DELETE FROM main.mahasiswa WHERE NOT EXISTS (SELECT 1 FROM kept.mahasiswa AS k WHERE k.nim = mahasiswa.nim);
UPDATE main.mahasiswa SET nama = k.nama, alamat = k.alamat FROM kept.mahasiswa AS k
WHERE k.nim = mahasiswa.nim AND (k.nama <> mahasiswa.nama OR k.alamat <> mahasiswa.alamat);
INSERT INTO main.mahasiswa (nim, nama, alamat) SELECT nim, nama, alamat FROM kept.mahasiswa AS k
WHERE NOT EXISTS (SELECT 1 FROM main.mahasiswa AS m WHERE m.nim = k.nim) ORDER BY nim"""

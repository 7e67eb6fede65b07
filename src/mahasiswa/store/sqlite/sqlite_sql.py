"""The SQL that only SQLite understands; `shared_sql` has the rest. PRAGMAs, VACUUM and transactions stand where they are used."""

import json
import re
from datetime import UTC
from pathlib import Path

from mahasiswa.record import INVISIBLE
from mahasiswa.store import folding
from mahasiswa.store.history_items import PURGE_ENTRIES, PURGE_SECONDS
from mahasiswa.store.shared_sql import SharedSQL

# --- Schema

# Our tables, and whatever else has one of their names.
STORED_TABLES = """
SELECT lower(name), type, sql FROM sqlite_schema
WHERE lower(name) IN ('mahasiswa', 'mahasiswa_history', 'mahasiswa_history_state')
  AND type <> 'trigger'"""
# Whether a release made the tables. The version alone may be that of another program.
IS_RELEASED = """
SELECT EXISTS (SELECT 1 FROM pragma_table_info('mahasiswa_history_state') WHERE name = 'has_leapt')
  AND NOT EXISTS (
    SELECT 1 FROM sqlite_schema WHERE name = 'mahasiswa' AND sql NOT LIKE '%nim_too_long%'
  )"""
STORED_TRIGGERS = """
SELECT name, sql FROM sqlite_schema
WHERE type = 'trigger' AND (name LIKE 'mahasiswa_history_%' OR name = 'mahasiswa_nim')"""
DROP_TRIGGER = "DROP TRIGGER IF EXISTS {}"
_TRIGGERS = Path(__file__).with_name("triggers.sql").read_text()
TRIGGERS = {
    trigger.split()[2]: trigger
    for trigger in re.findall(r"(?ms)^CREATE TRIGGER .*?^END", _TRIGGERS)
}

CREATE_STATE = "INSERT INTO mahasiswa_history_state (only_row, days, signing_key) VALUES (1, ?, ?)"
SET_DAYS = "UPDATE mahasiswa_history_state SET days = ?"
CLEAR_HISTORY = "DELETE FROM mahasiswa_history"

# --- The history

# The triggers read the batch from the table of the state. END_BATCH removes a batch without changes.
BEGIN_BATCH = """
INSERT INTO mahasiswa_history (moment, kind, rows, oleh)
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?, 0, oleh FROM mahasiswa_history_state WHERE days > 0;
UPDATE mahasiswa_history_state SET batch = last_insert_rowid() WHERE days > 0"""
END_BATCH = """
UPDATE mahasiswa_history SET rows = (
  SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = mahasiswa_history.id
) WHERE id = (SELECT batch FROM mahasiswa_history_state);
DELETE FROM mahasiswa_history
WHERE id = (SELECT batch FROM mahasiswa_history_state) AND rows = 0;
UPDATE mahasiswa_history_state SET batch = NULL"""
# One line in the history. The triggers of the records are away meanwhile.
HISTORY_TRIGGERS = [name for name in TRIGGERS if name.startswith("mahasiswa_history_")]
BEGIN_SILENT = "; ".join(map(DROP_TRIGGER.format, HISTORY_TRIGGERS))
END_SILENT = f"""
{"; ".join(TRIGGERS[name] for name in HISTORY_TRIGGERS)};
INSERT INTO mahasiswa_history (moment, kind, rows, oleh)
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), '{{kind}}', {{rows}}, oleh FROM mahasiswa_history_state"""
# It adds 2 us to a change of a group. To write the name into the new entries afterwards would add 4 us.
SET_OLEH = "UPDATE mahasiswa_history_state SET oleh = ?"

# --- Purging

# A leap of the clock by more than two days is noted, and nothing is purged until a later moment at
# least a day after it. A moment past now counts as now.
IS_PURGE_DUE = """
SELECT noted > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
  OR noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day')
  OR (SELECT moment FROM mahasiswa_history ORDER BY moment LIMIT 1)
    < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
  OR (SELECT moment FROM mahasiswa_history ORDER BY moment DESC LIMIT 1)
    > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
FROM mahasiswa_history_state"""
NOTE = """
UPDATE mahasiswa_history_state SET
  noted = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
  has_leapt = NOT has_leapt AND noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-2 days')"""
_IS_TIME_TO_PURGE = f"""({IS_PURGE_DUE}) AND (
  noted > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
  OR noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day')
  OR (
    NOT has_leapt
    AND noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-{PURGE_SECONDS} seconds')
  )
)"""
# The head of a batch is older than its entries, so it goes first, and a batch is never shown in part.
PURGE = f"""
{NOTE}
WHERE noted > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
  OR noted <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day');
DELETE FROM mahasiswa_history WHERE id IN (
  SELECT id FROM mahasiswa_history WHERE moment < (
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
    FROM mahasiswa_history_state WHERE NOT has_leapt
  ) ORDER BY moment, id LIMIT {PURGE_ENTRIES}
);
UPDATE mahasiswa_history SET moment = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id IN (
  SELECT id FROM mahasiswa_history
  WHERE moment > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '1 minute')
  ORDER BY moment DESC LIMIT {PURGE_ENTRIES}
)"""

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
    matches="' ' || folded_text || ' ' GLOB '*' || ? || '*'",
    fold="fold(CAST(t AS BLOB))",
    split="""json_each('[' || replace(json_quote(folded_text), ' ', '","') || ']')""",
    # GLOB takes long, so it reads only texts beyond ASCII.
    has_odd_spaces=f"""(
  instr({{0}}, '  ') OR instr({{0}}, char(9)) OR instr({{0}}, char(10)) OR instr({{0}}, char(13))
  OR (length({{0}}) <> octet_length({{0}}) AND {{0}} GLOB '*[{folding.ODD_SPACES}{INVISIBLE}]*')
)""".format,
    begin_batch=BEGIN_BATCH,
    end_batch=END_BATCH,
    begin_silent=BEGIN_SILENT,
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
    iso="{}".format,
    # Because there is no index on nim.
    recent="(SELECT id, nim FROM mahasiswa_history ORDER BY id DESC LIMIT 1000)",
    is_silent="i.kind IS NOT NULL AND NOT EXISTS (SELECT 1 FROM mahasiswa_history AS s WHERE s.batch = i.id)",
    is_expired="""EXISTS (
  SELECT 1 FROM mahasiswa_history_state
  WHERE NOT has_leapt AND i.moment < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
)""",
    is_own="true",  # no other program writes meanwhile
    clock=f"SELECT noted, has_leapt, {_IS_TIME_TO_PURGE} FROM mahasiswa_history_state",
    # The writer purges after each change, so also after this one.
    purge=f"{NOTE} WHERE {_IS_TIME_TO_PURGE}",
)

"""All SQL that stores and reads records."""

import re
from functools import cache

CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS mahasiswa (
  nim TEXT NOT NULL PRIMARY KEY,
  nama TEXT NOT NULL,
  alamat TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""

# What the table's own constraints leave open, also where another program made the table: without NOT NULL a TEXT
# PRIMARY KEY admits NULL, and nothing bounds a text. TEMP, so that it guards our writes and leaves the file as it is.
# The URL standard resolves `.` and `..` even when percent-encoded: a record with that nim could not be addressed.
REFUSE_INSERT = """
CREATE TEMP TRIGGER refuse_insert BEFORE INSERT ON main.mahasiswa BEGIN
  SELECT RAISE(ABORT, 'nim missing') WHERE NEW.nim IS NULL;
  SELECT RAISE(ABORT, 'nim unaddressable') WHERE NEW.nim IN ('.', '..');
  SELECT RAISE(ABORT, 'nim nul') WHERE instr(NEW.nim, char(0));
  SELECT RAISE(ABORT, 'nim too_long') WHERE length(NEW.nim) > 255;
  SELECT RAISE(ABORT, 'nama missing') WHERE NEW.nama IS NULL;
  SELECT RAISE(ABORT, 'alamat missing') WHERE NEW.alamat IS NULL;
  SELECT RAISE(ABORT, 'nama nul') WHERE instr(NEW.nama, char(0));
  SELECT RAISE(ABORT, 'alamat nul') WHERE instr(NEW.alamat, char(0));
END
"""
REFUSE_UPDATE = """
CREATE TEMP TRIGGER refuse_update BEFORE UPDATE ON main.mahasiswa BEGIN
  SELECT RAISE(ABORT, 'nama missing') WHERE NEW.nama IS NULL;
  SELECT RAISE(ABORT, 'alamat missing') WHERE NEW.alamat IS NULL;
  SELECT RAISE(ABORT, 'nama nul') WHERE instr(NEW.nama, char(0));
  SELECT RAISE(ABORT, 'alamat nul') WHERE instr(NEW.alamat, char(0));
END
"""

# A table that another program made may hold NULLs and blobs: they read as text, and stay what they are.
COLUMNS = "coalesce(CAST(nim AS TEXT), ''), coalesce(CAST(nama AS TEXT), ''), coalesce(CAST(alamat AS TEXT), '')"
# The same as bytes, for a text of theirs that is not UTF-8.
BYTES = "coalesce(CAST(nim AS BLOB), x''), coalesce(CAST(nama AS BLOB), x''), coalesce(CAST(alamat AS BLOB), x'')"

# SQLite's BINARY order of UTF-8 is the order of code points.
LONGER_THAN = "SELECT EXISTS (SELECT 1 FROM mahasiswa ORDER BY nim COLLATE BINARY LIMIT 1 OFFSET ?)"
ALL = f"SELECT {COLUMNS} FROM mahasiswa ORDER BY nim COLLATE BINARY"
SOME = f"{ALL} LIMIT ?"
# A list goes on after the last nim, and in SQLite a blob would come after every text again and again.
FIRST = f"SELECT {COLUMNS} FROM mahasiswa WHERE typeof(nim) = 'text' ORDER BY nim COLLATE BINARY LIMIT ?"
AFTER = f"""
SELECT {COLUMNS} FROM mahasiswa WHERE typeof(nim) = 'text' AND nim > ? COLLATE BINARY
ORDER BY nim COLLATE BINARY LIMIT ?
"""
# By its bytes, also where another program's table compares without regard to case.
GET = f"SELECT {COLUMNS} FROM mahasiswa WHERE nim = ? COLLATE BINARY"
COUNT = "SELECT count(*) FROM mahasiswa"
PAGE = f"SELECT {COLUMNS} FROM mahasiswa"
KEYS = "SELECT nim FROM mahasiswa"
MATCH = " WHERE nim {match} OR nama {match} OR alamat {match}"
ORDERS = {
    ("nim", "naik"): " ORDER BY nim COLLATE BINARY",
    ("nim", "turun"): " ORDER BY nim COLLATE BINARY DESC",
    ("nama", "naik"): " ORDER BY nama COLLATE NOCASE, nim COLLATE BINARY",
    ("nama", "turun"): " ORDER BY nama COLLATE NOCASE DESC, nim COLLATE BINARY DESC",
    ("alamat", "naik"): " ORDER BY alamat COLLATE NOCASE, nim COLLATE BINARY",
    ("alamat", "turun"): " ORDER BY alamat COLLATE NOCASE DESC, nim COLLATE BINARY DESC",
}
LIMIT = " LIMIT ? OFFSET ?"


def cases(letter: str) -> str:
    """`[Ee]` for a letter of two cases, as GLOB and regular expressions write a choice; empty for what has but one."""
    found = {case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1}
    return f"[{''.join(sorted(found))}]" if len(found) > 1 else ""


# OR ABORT: whatever another program's table says of a conflict, a record is neither overwritten nor left out in silence.
ADD = "INSERT OR ABORT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)"
UPDATE = "UPDATE OR ABORT mahasiswa SET nama = ?, alamat = ? WHERE nim = ? COLLATE BINARY"
DELETE = "DELETE FROM mahasiswa WHERE nim = ? COLLATE BINARY"

# An import is laid out apart first, so that the records are locked only for as long as it takes to merge it.
CREATE_INCOMING = """
CREATE TEMP TABLE incoming (
  number INTEGER NOT NULL PRIMARY KEY,
  nim TEXT NOT NULL,
  nama TEXT,
  alamat TEXT
)
"""
ADD_INCOMING = "INSERT INTO incoming (number, nim, nama, alamat) VALUES (?, ?, ?, ?)"
DROP_INCOMING = "DROP TABLE incoming"
INCOMPLETE = """
SELECT number FROM incoming AS i
WHERE (nama IS NULL OR alamat IS NULL) AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)
ORDER BY number
"""
COMPARE_INCOMING = """
SELECT count(*), count(m.nim), count(*) FILTER (
  WHERE coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat
)
FROM incoming AS i LEFT JOIN mahasiswa AS m ON m.nim = i.nim
"""
UPDATE_INCOMING = """
UPDATE mahasiswa SET nama = coalesce(i.nama, mahasiswa.nama), alamat = coalesce(i.alamat, mahasiswa.alamat)
FROM incoming AS i
WHERE i.nim = mahasiswa.nim
AND (coalesce(i.nama, mahasiswa.nama) <> mahasiswa.nama OR coalesce(i.alamat, mahasiswa.alamat) <> mahasiswa.alamat)
"""
INSERT_INCOMING = """
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT nim, nama, alamat FROM incoming AS i
WHERE NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)
ORDER BY nim COLLATE BINARY
"""


def lowered(statement: str) -> str:
    """The same order by texts made for it. SQLite sorts all keys by them a sixth faster; the first few it only compares."""
    return re.sub(r"(\w+) COLLATE NOCASE", r"lower(\1 COLLATE BINARY)", statement)


# --- PostgreSQL: what must differ ---


@cache
def postgres(statement: str) -> bytes:
    """A statement from above as PostgreSQL and psycopg write it."""
    statement = lowered(statement).replace("%", "%%").replace("typeof(nim) = 'text'", "true")
    # What is equal is the same bytes in every collation that `prepare` takes, and its index is of use only so.
    statement = statement.replace("= ? COLLATE BINARY", "= ?").replace("?", "%s").replace(" OR ABORT", "")
    return statement.replace("COLLATE BINARY", 'COLLATE "C"').encode()


# The refusals stand in the table too, for other programs that write to it.
CREATE_TABLE_POSTGRES = """
CREATE TABLE IF NOT EXISTS mahasiswa (
  nim TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (nim NOT IN ('.', '..') AND length(nim) <= 255),
  nama TEXT NOT NULL,
  alamat TEXT NOT NULL
)
"""
DESCRIBE_TABLE = """
SELECT c.relkind IN ('r', 'p'), a.attname, t.typname IN ('text', 'varchar'), coalesce(l.collisdeterministic, true), EXISTS (
  SELECT 1 FROM pg_index AS i
  WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
  AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
)
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type AS t ON t.oid = a.atttypid
LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
WHERE c.oid = to_regclass('mahasiswa')
ORDER BY a.attnum
"""

# Two equal answers prove that nothing was committed in between. A transaction that writes has an id; a snapshot that
# does not see its writes has that id in the list of running ones or not below its upper bound, one that sees them has
# neither: so they differ in their texts. Ids have 64 bits and do not come round. They are given out anew only where a
# server lost the end of its log: the start time tells another server, or the same one started again, and the
# checkpoint one whose processes crashed and were started again by the same postmaster (recovery ends with a
# checkpoint). On a standby the text lacks the running ones: there is no version.
VERSION = """
SELECT CASE WHEN NOT pg_is_in_recovery() THEN concat_ws(
  ' ', pg_current_snapshot(), extract(epoch FROM pg_postmaster_start_time()), (pg_control_checkpoint()).checkpoint_lsn
) END
"""

# Nobody waits long for a lock; and where our host goes away without a word, its transaction does not hold others up.
BEGIN = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '4s'; SET LOCAL idle_in_transaction_session_timeout = '20s'
"""
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '60s'"

# A long read: the cursor lives in its transaction, as all that a pooler lets live.
DECLARE = "DECLARE chunks NO SCROLL CURSOR FOR "
FETCH = "FETCH 2000 FROM chunks"

GET_LOCKED = f"{GET} FOR UPDATE"
FIND = f"SELECT {COLUMNS} FROM mahasiswa WHERE nim = ANY(?)"

# In order, here and below, so that two who change the same records do not wait for each other in a circle.
FIND_LOCKED = f'{FIND} ORDER BY nim COLLATE "C" FOR UPDATE'
UPDATE_ALL = """
UPDATE mahasiswa SET nama = record->>1, alamat = record->>2
FROM json_array_elements(?::json) AS i (record) WHERE nim = record->>0
"""
# Of several with the same nim the first is stored.
ADD_ALL = """
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT record->>0, record->>1, record->>2 FROM json_array_elements(?::json) WITH ORDINALITY AS i (record, number)
ORDER BY (record->>0) COLLATE "C", number
ON CONFLICT (nim) DO NOTHING
RETURNING nim, nama, alamat
"""

# The columns' own types and collations, so that its texts compare with theirs.
CREATE_INCOMING_POSTGRES = """
CREATE TEMP TABLE incoming ON COMMIT DROP AS SELECT 0 AS number, nim, nama, alamat FROM mahasiswa WITH NO DATA
"""
COPY_INCOMING = "COPY incoming (number, nim, nama, alamat) FROM STDIN"
# Who reads goes on meanwhile; who writes waits, so that what was compared stays what it was.
LOCK = "LOCK TABLE mahasiswa IN SHARE ROW EXCLUSIVE MODE"
REFUSED_INCOMING = """
SELECT CASE WHEN nim IN ('.', '..') THEN 'unaddressable' ELSE 'too_long' END FROM incoming AS i
WHERE (nim IN ('.', '..') OR length(nim) > 255) AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)
ORDER BY nim COLLATE "C" LIMIT 1
"""

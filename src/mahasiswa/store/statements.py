"""All SQL that stores and reads records."""

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
COLUMNS = "ifnull(CAST(nim AS TEXT), ''), ifnull(CAST(nama AS TEXT), ''), ifnull(CAST(alamat AS TEXT), '')"

# SQLite's BINARY order of UTF-8 is the order of code points.
LONGER_THAN = "SELECT EXISTS (SELECT 1 FROM mahasiswa ORDER BY nim COLLATE BINARY LIMIT 1 OFFSET ?)"
ALL = f"SELECT {COLUMNS} FROM mahasiswa ORDER BY nim COLLATE BINARY"
FIRST = f"{ALL} LIMIT ?"
AFTER = f"SELECT {COLUMNS} FROM mahasiswa WHERE nim > ? COLLATE BINARY ORDER BY nim COLLATE BINARY LIMIT ?"
GET = f"SELECT {COLUMNS} FROM mahasiswa WHERE nim = ?"
COUNT = "SELECT count(*) FROM mahasiswa"
PAGE = f"SELECT {COLUMNS} FROM mahasiswa"
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

ADD = "INSERT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)"
UPDATE = "UPDATE mahasiswa SET nama = ?, alamat = ? WHERE nim = ?"
DELETE = "DELETE FROM mahasiswa WHERE nim = ?"

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

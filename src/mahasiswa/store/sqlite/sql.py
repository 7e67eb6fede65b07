"""All SQL that the SQLite engine runs. Only PRAGMAs that configure a connection stand elsewhere."""

from typing import Literal, get_args

from mahasiswa.record import NIM_MAX_CHARACTERS, Field

# --- Schema

# Every rule of a record stands here and nowhere else. A CHECK constraint is named `<field>_<reason>`, so that
# `connection.refusal` reads the form's message from it. A file keeps the text of its CREATE TABLE, and `schema`
# recognises a table by it: any change of this text, or of the maximum length, needs a new step there.
#
# The rules stop at what SQLite 3.40 (Debian 12) knows, so that its shell can read and write the file.
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

# The table that release 1.0.0 made, to the letter but for a line feed at the end.
CREATE_MAHASISWA_1_0_0 = """\
CREATE TABLE mahasiswa (
  nim TEXT NOT NULL PRIMARY KEY,
  nama TEXT NOT NULL,
  alamat TEXT NOT NULL
) STRICT, WITHOUT ROWID"""

DESCRIBE_MAHASISWA = """
SELECT coalesce((SELECT type FROM pragma_table_list('mahasiswa') WHERE schema = 'main'), type), rtrim(sql, char(10))
FROM sqlite_schema WHERE name = 'mahasiswa' COLLATE NOCASE AND type <> 'trigger'
"""
COLUMNS = "SELECT lower(name) FROM pragma_table_xinfo('mahasiswa')"

# Objects that would be lost, or would break, if the table were rebuilt. The key of nim itself is not among them. The
# text of a trigger on the table names the table.
DEPENDENT_OBJECTS = """
SELECT iif(origin = 'u', 'the UNIQUE constraint', 'the index'), name FROM pragma_index_list('mahasiswa') AS i
WHERE origin <> 'pk' AND (partial OR origin = 'c' OR (
  SELECT group_concat(lower(name)) FROM pragma_index_info(i.name)
) <> 'nim')
UNION ALL
SELECT 'the ' || type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') AND sql LIKE '%mahasiswa%'
UNION ALL
SELECT 'the foreign key to', "table" FROM pragma_foreign_key_list('mahasiswa')
UNION ALL
SELECT 'the foreign key of', t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k
WHERE t.type = 'table' AND k."table" = 'mahasiswa' COLLATE NOCASE AND t.name <> 'mahasiswa' COLLATE NOCASE
"""

# --- Rebuilding a table that a former release or another program made

SET_ASIDE = "ALTER TABLE mahasiswa RENAME TO mahasiswa_before"
# As bytes, because a text that is not UTF-8 could not be read otherwise.
ROWS_BEFORE = """
SELECT typeof(nim), typeof(nama), typeof(alamat), CAST(nim AS BLOB), CAST(nama AS BLOB), CAST(alamat AS BLOB)
FROM mahasiswa_before ORDER BY nim COLLATE BINARY
"""
# The cast gives nim the affinity of the key, so that the key's index is used whatever type the old column has.
COUNT_BEFORE = "SELECT count(*) FROM mahasiswa_before"
COUNT_KEPT = """
SELECT count(*) FROM mahasiswa_before AS b CROSS JOIN mahasiswa AS m ON m.nim = CAST(b.nim AS TEXT)
WHERE CAST(m.nama AS BLOB) = CAST(b.nama AS BLOB) AND CAST(m.alamat AS BLOB) = CAST(b.alamat AS BLOB)
"""
DROP_BEFORE = "DROP TABLE mahasiswa_before"

# --- Reading

# SQLite orders UTF-8 by bytes, which is the order of code points.
ALL = "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim"
FIRST = "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim LIMIT ?"
AFTER = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim > ? ORDER BY nim LIMIT ?"
GET = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ?"
# As one array of JSON, because many statements could not be interrupted together.
FIND = "SELECT nim, nama, alamat FROM json_each(?) CROSS JOIN mahasiswa ON nim = value"
LONGER_THAN = "SELECT EXISTS (SELECT 1 FROM mahasiswa ORDER BY nim LIMIT 1 OFFSET ?)"

NOTHING = "WHERE false"

ORDERS: dict[tuple[Field, Literal["naik", "turun"]], str] = {
    ("nim", "naik"): "ORDER BY nim",
    ("nim", "turun"): "ORDER BY nim DESC",
    ("nama", "naik"): "ORDER BY nama COLLATE NOCASE, nim",
    ("nama", "turun"): "ORDER BY nama COLLATE NOCASE DESC, nim DESC",
    ("alamat", "naik"): "ORDER BY alamat COLLATE NOCASE, nim",
    ("alamat", "turun"): "ORDER BY alamat COLLATE NOCASE DESC, nim DESC",
}


def contains(replacements: int) -> str:
    """The condition that :cari stands in a field, ignoring the case of letters (see letter_case).

    lower() changes ASCII letters alone. Each replacement puts :b0 in place of :a0, and so on; a text of ASCII letters
    alone needs none. All of it is linear in the text, whatever the pattern; LIKE and GLOB are not: 300 records of
    64 KB take 0.2 s in place of a minute, and 100,000 ordinary ones 28 ms in place of 9 ms.
    """
    return "WHERE " + " OR ".join(_field_contains(field, replacements) for field in get_args(Field))


def _field_contains(field: str, replacements: int) -> str:
    text = f"lower({field})"
    for number in range(replacements):
        text = f"replace({text}, :a{number}, :b{number})"
    found = f"instr({text}, :cari)"
    return f"(length({field}) < octet_length({field}) AND {found})" if replacements else found


def count(where: str) -> str:
    """The number of records that a condition finds."""
    return f"SELECT count(*) FROM mahasiswa {where}"


def found(where: str, order: str) -> str:
    """Every record that a condition finds, in order."""
    return f"SELECT nim, nama, alamat FROM mahasiswa {where} {order}"


def search(where: str, urut: Field, arah: Literal["naik", "turun"]) -> str:
    """At most :limit records that a condition finds, from :offset on, each with the number of all that it finds.

    If there is none from :offset on, one row has the number and no record. The condition is evaluated once. Sorting
    keys alone takes 45 ms for the middle of 100,000 records by nama; sorting whole records takes twice as long.
    """
    order = ORDERS[urut, arah]
    keys = "nim" if urut == "nim" else f"nim, {urut}"
    with_found = f"WITH found AS MATERIALIZED (SELECT {keys} FROM mahasiswa {where})" if where else ""
    source = "found" if where else "mahasiswa"
    return f"""
    {with_found}
    SELECT total, nim, nama, alamat FROM (SELECT count(*) AS total FROM {source}) LEFT JOIN (
      SELECT nim, nama, alamat FROM mahasiswa
      WHERE nim IN (SELECT nim FROM {source} {order} LIMIT :limit OFFSET :offset)
    ) {order}
    """


# --- Writing

ADD = "INSERT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)"
UPDATE = "UPDATE mahasiswa SET nama = ?, alamat = ? WHERE nim = ?"
DELETE = "DELETE FROM mahasiswa WHERE nim = ?"

# --- Importing

# The rows go to a temporary table first, so that the records are locked only while they are merged.
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
ORDER BY nim
"""

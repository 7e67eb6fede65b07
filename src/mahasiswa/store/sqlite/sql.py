"""All SQL that the SQLite engine runs. Only PRAGMAs that configure a connection stand elsewhere."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

from mahasiswa.record import NIM_MAX_CHARACTERS, Field
from mahasiswa.store import SLICE_RECORDS, folding
from mahasiswa.store.history import PURGE_ENTRIES, PURGE_SECONDS

# --- Schema

# Every rule of a record stands here and nowhere else. A CHECK constraint is named `<field>_<reason>`, so that
# `connection.refusal` reads the form's message from it. A file keeps the text of its CREATE TABLE, and `schema`
# recognises a table by it: any change of this text, or of the maximum length, needs a new step there.
#
# The rules use only SQL that SQLite 3.40 (Debian 12) knows, so that its shell can read and write the file.
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

# The table that release 1.0.0 made. Its text ended with a line feed, which DESCRIBE_MAHASISWA removes.
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

# Objects that would be lost, or would break, if the table were rebuilt. The key of nim itself is not one of them. A
# trigger or a view is found by the name of the table in its text.
DEPENDENT_OBJECTS = """
SELECT iif(origin = 'u', 'the UNIQUE constraint', 'the index'), name FROM pragma_index_list('mahasiswa') AS i
WHERE origin <> 'pk' AND (partial OR origin = 'c' OR (
  SELECT group_concat(lower(name)) FROM pragma_index_info(i.name)
) <> 'nim')
UNION ALL
SELECT 'the ' || type, name FROM sqlite_schema
WHERE type IN ('trigger', 'view') AND sql LIKE '%mahasiswa%' AND tbl_name <> 'mahasiswa_cari'
UNION ALL
SELECT 'the foreign key to', "table" FROM pragma_foreign_key_list('mahasiswa')
UNION ALL
SELECT 'the foreign key of', t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k
WHERE t.type = 'table' AND k."table" = 'mahasiswa' COLLATE NOCASE AND t.name <> 'mahasiswa' COLLATE NOCASE
"""

# --- Schema, step 3: the folded texts of the search

# One row for each record: nim, nama and alamat folded (see `folding`), with line feeds between them, which no word of a
# search contains. Triggers keep it current, also when another program writes. They run in SQLite 3.40 too, whose parser
# cannot read more than 28 nested calls of replace().
MAX_NESTED_REPLACES = 20


def _replaced(text: str, letters: Sequence[str]) -> str:
    for letter in letters:
        text = f"replace({text}, {_quoted(letter)}, '{folding.REPLACEMENTS.get(letter, '')}')"
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# The letters beyond ASCII by the first byte of their UTF-8. To look for that byte takes a fifth of one replace().
_LETTERS_BY_BYTE = [
    (byte, list(letters)) for byte, letters in groupby(folding.REPLACEMENTS, lambda letter: letter.encode()[0])
]


def _letter_steps() -> Iterator[str]:
    """The statements that fold the letters beyond ASCII of a new row."""
    for byte, letters in _LETTERS_BY_BYTE:
        for first in range(0, len(letters), MAX_NESTED_REPLACES):
            step = _replaced("teks", letters[first : first + MAX_NESTED_REPLACES])
            yield (
                f"  UPDATE mahasiswa_cari SET teks = {step}\n"
                f"  WHERE nim = NEW.nim AND instr(CAST(NEW.teks AS BLOB), x'{byte:x}');\n"
            )


def _joined(row: str) -> str:
    return f"{row}nim || char(10) || {row}nama || char(10) || {row}alamat"


def _ascii_folded(text: str) -> str:
    return _replaced(f"lower({text})", folding.REMOVED_ASCII)


CREATE_MAHASISWA_CARI = """\
CREATE TABLE mahasiswa_cari (nim TEXT NOT NULL PRIMARY KEY, teks TEXT NOT NULL) STRICT, WITHOUT ROWID"""
FILL_MAHASISWA_CARI = f"""
INSERT INTO mahasiswa_cari SELECT nim, {_ascii_folded(_joined(""))} FROM mahasiswa ORDER BY nim
"""
# The conflict clause of a statement replaces those of its triggers. So the trigger for UPDATE has none: with UPDATE OR
# IGNORE, an INSERT OR REPLACE would keep the old text. The triggers do the same with recursive_triggers.
#
# The constants of a trigger's program are loaded before its WHEN is evaluated, which takes 8 us for all letters. So the
# first trigger, which every row fires, has none of them; it fires the second one by an UPDATE of nim.
SEARCH_TRIGGERS = {
    "mahasiswa_cari_beyond_ascii": """\
CREATE TRIGGER mahasiswa_cari_beyond_ascii AFTER INSERT ON mahasiswa_cari
WHEN length(NEW.teks) < length(CAST(NEW.teks AS BLOB))
BEGIN
  UPDATE mahasiswa_cari SET nim = NEW.nim WHERE nim = NEW.nim;
END""",
    "mahasiswa_cari_letters": f"""\
CREATE TRIGGER mahasiswa_cari_letters AFTER UPDATE OF nim ON mahasiswa_cari
BEGIN
{"".join(_letter_steps())}END""",
    "mahasiswa_cari_insert": f"""\
CREATE TRIGGER mahasiswa_cari_insert AFTER INSERT ON mahasiswa
BEGIN
  INSERT OR REPLACE INTO mahasiswa_cari VALUES (NEW.nim, {_ascii_folded(_joined("NEW."))});
END""",
    "mahasiswa_cari_update": f"""\
CREATE TRIGGER mahasiswa_cari_update AFTER UPDATE ON mahasiswa
BEGIN
  DELETE FROM mahasiswa_cari WHERE nim = OLD.nim;
  INSERT INTO mahasiswa_cari VALUES (NEW.nim, {_ascii_folded(_joined("NEW."))});
END""",
    "mahasiswa_cari_delete": """\
CREATE TRIGGER mahasiswa_cari_delete AFTER DELETE ON mahasiswa
BEGIN
  DELETE FROM mahasiswa_cari WHERE nim = OLD.nim;
END""",
}
DROP_SEARCH_TRIGGERS = ";\n".join(f"DROP TRIGGER IF EXISTS {name}" for name in SEARCH_TRIGGERS)
CREATE_SEARCH_TRIGGERS = ";\n".join(SEARCH_TRIGGERS.values())
DROP_SEARCH = f"{DROP_SEARCH_TRIGGERS};\nDROP TABLE IF EXISTS mahasiswa_cari"
CREATE_SEARCH = f"{CREATE_MAHASISWA_CARI};\n{CREATE_SEARCH_TRIGGERS}"

# --- Rebuilding a table that a former release or another program made

SET_ASIDE = "ALTER TABLE mahasiswa RENAME TO mahasiswa_before"
# As bytes, because a text that is not UTF-8 could not be read otherwise.
ROWS_BEFORE = """
SELECT typeof(nim), typeof(nama), typeof(alamat), CAST(nim AS BLOB), CAST(nama AS BLOB), CAST(alamat AS BLOB)
FROM mahasiswa_before ORDER BY nim COLLATE BINARY
"""
# The cast gives nim the affinity of the key, so that the key's index is used for any type of the old column.
COUNT_BEFORE = "SELECT count(*) FROM mahasiswa_before"
COUNT_KEPT = """
SELECT count(*) FROM mahasiswa_before AS b CROSS JOIN mahasiswa AS m ON m.nim = CAST(b.nim AS TEXT)
WHERE CAST(m.nama AS BLOB) = CAST(b.nama AS BLOB) AND CAST(m.alamat AS BLOB) = CAST(b.alamat AS BLOB)
"""
DROP_BEFORE = "DROP TABLE mahasiswa_before"

# --- The history

# Triggers write it, so it has the changes of every program. They run in every program that writes, so their SQL is
# limited to SQLite 3.40 and calls no function of this program.
#
# A row is an entry or the head of a batch. A head has the kind of the batch and the number of its entries, and their
# `batch` is its id. AUTOINCREMENT never gives an id again, so a page that is still open cannot undo another change.
# An index on nim would make each change 1 to 5 us slower, and only `forget` would use it.
HISTORY_TABLES = {
    "mahasiswa_history": """\
CREATE TABLE mahasiswa_history (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  moment TEXT NOT NULL,
  batch INTEGER,
  kind TEXT CHECK (kind IN ('import', 'delete', 'undo', 'restore')),
  rows INTEGER,
  nim TEXT,
  nama_before TEXT,
  alamat_before TEXT,
  nama_after TEXT,
  alamat_after TEXT
) STRICT""",
    # One row: HISTORY_DAYS, the batch to which the changes of this transaction belong, and the last purge.
    "mahasiswa_history_state": """\
CREATE TABLE mahasiswa_history_state (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  days INTEGER NOT NULL,
  batch INTEGER,
  purged TEXT
) STRICT""",
    # The record that the present statement may replace, or nothing. INSERT OR REPLACE fires no DELETE trigger, so a BEFORE
    # trigger keeps the old record here for the AFTER trigger. INSERT OR IGNORE and an upsert fire only the BEFORE trigger.
    "mahasiswa_history_replaced": """\
CREATE TABLE mahasiswa_history_replaced (
  nim TEXT NOT NULL PRIMARY KEY,
  nama TEXT NOT NULL,
  alamat TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
}
# Its keys are (batch, id): the items of the history (batch IS NULL) and the entries of a batch, each in order of id.
CREATE_HISTORY_INDEX = "CREATE INDEX IF NOT EXISTS mahasiswa_history_batch ON mahasiswa_history (batch)"
DESCRIBE_TABLE = "SELECT sql FROM sqlite_schema WHERE name = ?"
NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

_INSERT_ENTRY = f"""\
INSERT INTO mahasiswa_history (batch, moment, nim, nama_before, alamat_before, nama_after, alamat_after)
  SELECT s.batch, {NOW},"""
_KEEP_REPLACED = """\
DELETE FROM mahasiswa_history_replaced;
  INSERT INTO mahasiswa_history_replaced SELECT nim, nama, alamat FROM mahasiswa WHERE nim = NEW.nim;"""
_MAY_REPLACE = """\
(EXISTS (SELECT 1 FROM mahasiswa WHERE nim = NEW.nim) OR EXISTS (SELECT 1 FROM mahasiswa_history_replaced))"""
_INSERT_REPLACING_ENTRY = f"""\
{_INSERT_ENTRY} NEW.nim, r.nama, r.alamat, NEW.nama, NEW.alamat
  FROM mahasiswa_history_state AS s LEFT JOIN mahasiswa_history_replaced AS r
  WHERE r.nama IS NOT NEW.nama OR r.alamat IS NOT NEW.alamat;
  DELETE FROM mahasiswa_history_replaced;"""

# A changed nim is a deletion and an addition. No event has two triggers that could both apply, because SQLite does not
# define their order.
HISTORY_TRIGGERS = {
    "mahasiswa_history_before_insert": f"""\
CREATE TRIGGER mahasiswa_history_before_insert BEFORE INSERT ON mahasiswa WHEN {_MAY_REPLACE}
BEGIN
  {_KEEP_REPLACED}
END""",
    "mahasiswa_history_insert": f"""\
CREATE TRIGGER mahasiswa_history_insert AFTER INSERT ON mahasiswa
BEGIN
  {_INSERT_REPLACING_ENTRY}
END""",
    "mahasiswa_history_update": f"""\
CREATE TRIGGER mahasiswa_history_update AFTER UPDATE ON mahasiswa
WHEN NEW.nim = OLD.nim AND (NEW.nama <> OLD.nama OR NEW.alamat <> OLD.alamat)
BEGIN
  {_INSERT_ENTRY} OLD.nim, OLD.nama, OLD.alamat, NEW.nama, NEW.alamat FROM mahasiswa_history_state AS s;
END""",
    "mahasiswa_history_before_update_nim": f"""\
CREATE TRIGGER mahasiswa_history_before_update_nim BEFORE UPDATE ON mahasiswa WHEN NEW.nim <> OLD.nim AND {_MAY_REPLACE}
BEGIN
  {_KEEP_REPLACED}
END""",
    "mahasiswa_history_update_nim": f"""\
CREATE TRIGGER mahasiswa_history_update_nim AFTER UPDATE ON mahasiswa WHEN NEW.nim <> OLD.nim
BEGIN
  {_INSERT_ENTRY} OLD.nim, OLD.nama, OLD.alamat, NULL, NULL FROM mahasiswa_history_state AS s;
  {_INSERT_REPLACING_ENTRY}
END""",
    "mahasiswa_history_delete": f"""\
CREATE TRIGGER mahasiswa_history_delete AFTER DELETE ON mahasiswa
BEGIN
  {_INSERT_ENTRY} OLD.nim, OLD.nama, OLD.alamat, NULL, NULL FROM mahasiswa_history_state AS s;
END""",
}
STORED_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'mahasiswa_history_%'"
DROP_TRIGGERS = "; ".join(f"DROP TRIGGER IF EXISTS {name}" for name in HISTORY_TRIGGERS)
CREATE_TRIGGERS = ";\n".join(HISTORY_TRIGGERS.values())

DAYS = "SELECT days FROM mahasiswa_history_state"
SET_DAYS = """
INSERT INTO mahasiswa_history_state (only_row, days) VALUES (1, ?) ON CONFLICT DO UPDATE SET days = excluded.days
"""
CLEAR_HISTORY = "DELETE FROM mahasiswa_history; DELETE FROM mahasiswa_history_replaced"

# The triggers read the batch from the table of the state. END_BATCH removes a batch without changes.
BEGIN_BATCH = f"""
INSERT INTO mahasiswa_history (moment, kind, rows) SELECT {NOW}, ?, 0 FROM mahasiswa_history_state WHERE days > 0;
UPDATE mahasiswa_history_state SET batch = last_insert_rowid() WHERE days > 0
"""
END_BATCH = """
UPDATE mahasiswa_history SET rows = (
  SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = mahasiswa_history.id
) WHERE id = (SELECT batch FROM mahasiswa_history_state);
DELETE FROM mahasiswa_history WHERE id = (SELECT batch FROM mahasiswa_history_state) AND rows = 0;
UPDATE mahasiswa_history_state SET batch = NULL
"""
ADD_SILENT_BATCH = f"INSERT INTO mahasiswa_history (moment, kind, rows) VALUES ({NOW}, ?, ?)"

# Texts are read as bytes, because another program may have stored a text that is not UTF-8. Reading it as text would
# fail, and with it the whole page of the history.
_ENTRY_COLUMNS = """
e.id, e.moment, CAST(e.nim AS BLOB), CAST(e.nama_before AS BLOB), CAST(e.alamat_before AS BLOB),
CAST(e.nama_after AS BLOB), CAST(e.alamat_after AS BLOB)"""

# An item is an entry without a batch, or the head of a batch; e is the entry, or the only entry of a batch of one. A batch
# with rows but no entry is silent.
_ITEMS = f"""
SELECT i.id, i.moment, i.kind, i.rows, i.kind IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM mahasiswa_history AS e WHERE e.batch = i.id
), {_ENTRY_COLUMNS}
FROM mahasiswa_history AS i LEFT JOIN mahasiswa_history AS e ON e.id = CASE
  WHEN i.kind IS NULL THEN i.id
  WHEN i.rows = 1 THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id)
END"""
LAST_ITEM = f"{_ITEMS} WHERE i.batch IS NULL ORDER BY i.id DESC LIMIT 1"


def items(found: str) -> str:
    """At most :limit items of the history from :offset on, newest first; `found` is a condition on an entry or ""."""
    return f"{_ITEMS} WHERE {_items_where(found)} ORDER BY i.id DESC LIMIT :limit OFFSET :offset"


def count_items(found: str) -> str:
    """The number of all these items."""
    return f"SELECT count(*) FROM mahasiswa_history AS i WHERE {_items_where(found)}"


def _items_where(found: str) -> str:
    if not found:
        return "i.batch IS NULL"
    return f"i.id IN (SELECT coalesce(batch, id) FROM mahasiswa_history WHERE {found})"


def batch_entries(found: str) -> str:
    """At most :limit entries of a batch from :offset on, ordered by nim; `found` is a condition on an entry or ""."""
    return f"SELECT {_ENTRY_COLUMNS} {_batch_where(found)} ORDER BY e.nim LIMIT :limit OFFSET :offset"


def count_batch_entries(found: str) -> str:
    """The number of all these entries."""
    return f"SELECT count(*) {_batch_where(found)}"


def _batch_where(found: str) -> str:
    return f"""
    FROM mahasiswa_history AS e WHERE batch = (SELECT id FROM mahasiswa_history WHERE id = :batch){found and f" AND ({found})"}
    """


LAST_MOMENT = "SELECT moment FROM mahasiswa_history ORDER BY id DESC LIMIT 1"

# --- Undoing

# Among the newest 1,000 entries, because there is no index on nim.
RECENT_BEFORE = """
SELECT CAST(nim AS BLOB), CAST(nama_before AS BLOB), CAST(alamat_before AS BLOB)
FROM (SELECT * FROM mahasiswa_history ORDER BY id DESC LIMIT 1000)
WHERE nim = ? AND nama_before IS NOT NULL ORDER BY id DESC LIMIT 20
"""
_EXPIRED = (
    "moment < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (SELECT days FROM mahasiswa_history_state) || ' days')"
)

ENTRY_NIM = f"SELECT CAST(nim AS BLOB) FROM mahasiswa_history WHERE id = ? AND batch IS NULL AND kind IS NULL AND NOT {_EXPIRED}"
# False for a silent batch, and for a batch that lacks an entry.
IS_WHOLE_BATCH = f"""
SELECT rows = (SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = b.id)
FROM mahasiswa_history AS b WHERE id = ? AND kind IS NOT NULL AND NOT {_EXPIRED}
"""
ENTRY_WHERE = "e.id = ?"
BATCH_WHERE = "e.batch = ?"


def conflicts(where: str) -> str:
    """Entries whose record differs from the texts after the change and from those before it; and the number of all."""
    return f"""
    SELECT count(*) OVER (), {_ENTRY_COLUMNS}, CAST(m.nama AS BLOB), CAST(m.alamat AS BLOB)
    FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim
    WHERE {where}
    AND NOT (m.nama IS e.nama_after AND m.alamat IS e.alamat_after)
    AND NOT (m.nama IS e.nama_before AND m.alamat IS e.alamat_before)
    ORDER BY e.nim LIMIT ?
    """


def restore(where: str) -> Sequence[str]:
    """The statements that restore the records of entries. They overwrite later changes."""
    return (
        f"""
        DELETE FROM mahasiswa
        WHERE nim IN (SELECT e.nim FROM mahasiswa_history AS e WHERE {where} AND e.nama_before IS NULL)
        """,
        f"""
        UPDATE mahasiswa SET nama = e.nama_before, alamat = e.alamat_before FROM mahasiswa_history AS e
        WHERE {where} AND e.nama_before IS NOT NULL AND e.nim = mahasiswa.nim
        """,
        f"""
        INSERT INTO mahasiswa (nim, nama, alamat) SELECT e.nim, e.nama_before, e.alamat_before
        FROM mahasiswa_history AS e
        WHERE {where} AND e.nama_before IS NOT NULL AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = e.nim)
        """,
    )


# --- Purging and forgetting

# The head of a batch is older than its entries, so it goes first, and a batch is never shown in part.
HAS_EXPIRED = f"SELECT {_EXPIRED} FROM mahasiswa_history ORDER BY id LIMIT 1"
PURGE = f"""
DELETE FROM mahasiswa_history WHERE {_EXPIRED} AND id IN (SELECT id FROM mahasiswa_history ORDER BY id LIMIT {PURGE_ENTRIES})
"""
# It changes a row if it is time for a purge without any other change.
BEGIN_PURGE = f"""
UPDATE mahasiswa_history_state SET purged = {NOW}
WHERE (purged IS NULL OR purged <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-{PURGE_SECONDS} seconds')) AND ({HAS_EXPIRED})
"""

IS_KNOWN = """
SELECT EXISTS (SELECT 1 FROM mahasiswa WHERE nim = :nim) OR EXISTS (SELECT 1 FROM mahasiswa_history WHERE nim = :nim)
"""
# The deletion writes an entry too. A batch that loses an entry has one row less, so that the rest can still be undone.
FORGET = """
DELETE FROM mahasiswa WHERE nim = :nim;
UPDATE mahasiswa_history SET rows = rows - 1
WHERE kind IS NOT NULL AND id IN (SELECT batch FROM mahasiswa_history WHERE nim = :nim);
DELETE FROM mahasiswa_history WHERE nim = :nim OR rows = 0;
DELETE FROM mahasiswa_history_replaced
"""

# --- Reading

# SQLite orders UTF-8 by bytes, which is the order of code points.
# A slice of a snapshot, its last nim and the number of its records. It takes 2.7 us for ten records; a row for each of
# them takes 3.5 us. A nim is read and given as bytes, because another program may have stored a nim in another encoding.
_SLICE = (
    "CAST(group_concat(nim || char(0) || nama || char(0) || alamat, char(0)) AS BLOB), CAST(max(nim) AS BLOB), count(*)"
)
FIRST_SLICE = f"SELECT {_SLICE} FROM (SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim LIMIT {SLICE_RECORDS})"
NEXT_SLICE = f"""
SELECT {_SLICE} FROM (
  SELECT nim, nama, alamat FROM mahasiswa WHERE nim > CAST(? AS TEXT) ORDER BY nim LIMIT {SLICE_RECORDS}
)
"""
FIRST = "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim LIMIT ?"
AFTER = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim > ? ORDER BY nim LIMIT ?"
# The first of these records: as many as have that number of bytes, and one more.
WITHIN_BYTES = """
SELECT nim, nama, alamat FROM (
  SELECT *, sum(bytes) OVER (ORDER BY nim ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
  FROM (SELECT *, octet_length(nama) + octet_length(alamat) AS bytes FROM ({records}) AS records) AS measured
) AS counted
WHERE bytes_before < ? ORDER BY nim
"""
# Ranges of nims, for an export. Their ends are bytes, because another program may have stored a nim that is not UTF-8.
# Every blob is greater than every text, so x'' as the end includes the last nim.
NIM_AFTER = "SELECT CAST(nim AS BLOB) FROM mahasiswa WHERE nim >= CAST(? AS TEXT) ORDER BY nim LIMIT 1 OFFSET ?"
_BETWEEN = "WHERE nim >= CAST(? AS TEXT) AND nim < coalesce(CAST(? AS TEXT), x'')"
BETWEEN = f"SELECT nim, nama, alamat FROM mahasiswa {_BETWEEN} ORDER BY nim"
# As `Store.lines` says. The records come in the order of the key, because they are found by it. ORDER BY in the call
# would sort them once more, which takes as long as the rest.
JOINED = f"""
SELECT CAST(group_concat(
  nim
  || ';' || CASE WHEN instr(nama, ',') THEN '"' || nama || '"' ELSE nama END
  || ';' || CASE WHEN instr(alamat, ',') THEN '"' || alamat || '"' ELSE alamat END
  || char(13, 10), ''
) AS BLOB), count(*) FROM mahasiswa {_BETWEEN}
"""
GET = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ?"
# As one array of JSON, because many statements could not be interrupted together.
FIND = "SELECT nim, nama, alamat FROM json_each(?) CROSS JOIN mahasiswa ON nim = value"
# As record.near_key. It reads every record: 100,000 take 0.05 s.
NEAR = """
SELECT nim, nama, alamat FROM mahasiswa
WHERE ltrim(replace(replace(replace(lower(nim), ' ', ''), '.', ''), '-', ''), '0') IN (SELECT value FROM json_each(?))
LIMIT ?
"""
LONGER_THAN = "SELECT EXISTS (SELECT 1 FROM mahasiswa ORDER BY nim LIMIT 1 OFFSET ?)"

ORDERS: dict[tuple[Field, Literal["naik", "turun"]], str] = {
    ("nim", "naik"): "ORDER BY nim",
    ("nim", "turun"): "ORDER BY nim DESC",
    ("nama", "naik"): "ORDER BY nama COLLATE NOCASE, nim",
    ("nama", "turun"): "ORDER BY nama COLLATE NOCASE DESC, nim DESC",
    ("alamat", "naik"): "ORDER BY alamat COLLATE NOCASE, nim",
    ("alamat", "turun"): "ORDER BY alamat COLLATE NOCASE DESC, nim DESC",
}


def contains(words: int, text: str) -> str:
    """The condition that :w0, :w1 and so on stand in a folded text; false without a word.

    instr() takes linear time for any word. LIKE and GLOB do not: 300 records of 64 KB take a minute.
    """
    return " AND ".join(f"instr({text}, :w{number})" for number in range(words)) or "false"


def _folded(text: str) -> str:
    """A text that no trigger has folded. Only this program's own SQLite can read so many nested calls.

    It takes 2.5 us, and 11 us if the text is not ASCII. Without LIMIT, SQLite would copy each step into the next one.
    """
    folded = f"SELECT {_ascii_folded(text)} AS t"
    for byte, letters in _LETTERS_BY_BYTE:
        step = f"CASE WHEN instr(CAST(t AS BLOB), x'{byte:x}') THEN {_replaced('t', letters)} ELSE t END AS t"
        folded = f"SELECT {step} FROM ({folded} LIMIT 1)"
    return f"CASE WHEN length({text}) = octet_length({text}) THEN {_ascii_folded(text)} ELSE ({folded}) END"


# The texts of an entry of the history. Those that are NULL are left out.
FOLDED_ENTRY = _folded("concat_ws(char(10), nim, nama_before, alamat_before, nama_after, alamat_after)")


def _source(where: str, urut: Field) -> str:
    """The tables that a search reads. If the folded texts are enough, the records are not read."""
    if not where:
        return "mahasiswa"
    return "mahasiswa_cari" if urut == "nim" else "mahasiswa_cari CROSS JOIN mahasiswa USING (nim)"


def count(where: str) -> str:
    """The number of records that a condition finds."""
    return f"SELECT count(*) FROM {_source(where, 'nim')} {where}"


def found(where: str, order: str) -> str:
    """Every record that a condition finds, in order."""
    return f"SELECT nim, nama, alamat FROM {_source(where, 'nama')} {where} {order}"


def search(where: str, urut: Field, arah: Literal["naik", "turun"]) -> str:
    """At most :limit records that a condition finds, from :offset on, each with the number of all that it finds.

    If there is none from :offset on, one row has the number and no record. The condition is evaluated once. Sorting
    keys alone takes 45 ms for the middle of 100,000 records by nama; sorting whole records takes twice as long.
    """
    order = ORDERS[urut, arah]
    keys = "nim" if urut == "nim" else f"nim, {urut}"
    with_found = f"WITH found AS MATERIALIZED (SELECT {keys} FROM {_source(where, urut)} {where})" if where else ""
    source = "found" if where else "mahasiswa"
    return f"""
    {with_found}
    SELECT total, nim, nama, alamat FROM (SELECT count(*) AS total FROM {source}) LEFT JOIN (
      SELECT nim, nama, alamat FROM mahasiswa
      WHERE nim IN (SELECT nim FROM {source} {order} LIMIT :limit OFFSET :offset)
    ) {order}
    """


def exists(where: str) -> str:
    """Whether a condition finds a record."""
    return f"SELECT EXISTS (SELECT 1 FROM mahasiswa_cari {where})"


# The words of the names of the newest 100,000 nims, the most frequent first. Each bound keeps the time below 0.3 s.
NAME_WORDS = """
SELECT value FROM (SELECT substr(nama, 1, 100) AS nama FROM mahasiswa ORDER BY nim DESC LIMIT 100000)
CROSS JOIN json_each('[' || replace(json_quote(nama), ' ', '","') || ']')
GROUP BY value ORDER BY count(*) DESC, value DESC LIMIT 10000
"""


# --- Writing

ADD = "INSERT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)"
UPDATE = "UPDATE mahasiswa SET nama = ?, alamat = ? WHERE nim = ?"
DELETE = "DELETE FROM mahasiswa WHERE nim = ?"
DELETE_ALL = "DELETE FROM mahasiswa WHERE nim IN (SELECT value FROM json_each(?))"

# --- Importing

# The rows go to a temporary table first, so that the records are locked only while they are merged. `teks` is the folded
# text of a record with these three texts, or NULL if one of them is NULL. The file of temporary tables has no name and
# is removed with the connection, so its old texts need not be overwritten.
CREATE_INCOMING = """
CREATE TEMP TABLE incoming (
  number INTEGER NOT NULL PRIMARY KEY,
  nim TEXT NOT NULL,
  nama TEXT,
  alamat TEXT,
  teks TEXT
);
PRAGMA temp.secure_delete = OFF
"""
STAGED_ROWS = 50
"""Rows that one statement writes to it: a million rows take 0.8 s. One by one they take 1.2 s."""


def add_incoming(rows: int) -> str:
    """Write this number of rows."""
    return f"INSERT INTO incoming (number, nim, nama, alamat, teks) VALUES {', '.join(['(?, ?, ?, ?, ?)'] * rows)}"


DROP_INCOMING = "DROP TABLE incoming"
IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM mahasiswa)"
COUNT_INCOMING = "SELECT count(*) FROM incoming"
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
# Into empty tables. Rows in order of their nims need not be sorted. The folded texts of a large import are not left to
# the triggers, which fold them one by one.
INSERT_ALL_INCOMING = "INSERT INTO mahasiswa (nim, nama, alamat) SELECT nim, nama, alamat FROM incoming"
FOLD_ALL_INCOMING = "REPLACE INTO mahasiswa_cari (nim, teks) SELECT nim, teks FROM incoming"
IN_ORDER = " ORDER BY nim"
FOLD_INCOMING = f"""
REPLACE INTO mahasiswa_cari (nim, teks)
SELECT m.nim, CASE WHEN i.nama = m.nama AND i.alamat = m.alamat THEN i.teks ELSE {_folded(_joined("m."))} END
FROM incoming AS i CROSS JOIN mahasiswa AS m ON m.nim = i.nim
ORDER BY m.nim
"""

# --- Restoring

# The records of the back-up are in the attached database `kept`. Only records that differ are written, row by row, so
# that the triggers of every side table fire.
ATTACH_BACKUP = "ATTACH ? AS kept"
COMPARE_BACKUP = """
SELECT
  (SELECT count(*) FROM kept.mahasiswa AS k WHERE NOT EXISTS (SELECT 1 FROM main.mahasiswa AS m WHERE m.nim = k.nim)),
  (SELECT count(*) FROM kept.mahasiswa AS k JOIN main.mahasiswa AS m USING (nim)
   WHERE m.nama <> k.nama OR m.alamat <> k.alamat),
  (SELECT count(*) FROM main.mahasiswa AS m WHERE NOT EXISTS (SELECT 1 FROM kept.mahasiswa AS k WHERE k.nim = m.nim)),
  (SELECT count(*) FROM kept.mahasiswa)
"""
RESTORE_BACKUP = """
DELETE FROM main.mahasiswa WHERE NOT EXISTS (SELECT 1 FROM kept.mahasiswa AS k WHERE k.nim = mahasiswa.nim);
UPDATE main.mahasiswa SET nama = k.nama, alamat = k.alamat FROM kept.mahasiswa AS k
WHERE k.nim = mahasiswa.nim AND (k.nama <> mahasiswa.nama OR k.alamat <> mahasiswa.alamat);
INSERT INTO main.mahasiswa (nim, nama, alamat) SELECT nim, nama, alamat FROM kept.mahasiswa AS k
WHERE NOT EXISTS (SELECT 1 FROM main.mahasiswa AS m WHERE m.nim = k.nim) ORDER BY nim
"""

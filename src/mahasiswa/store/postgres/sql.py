"""All SQL of the PostgreSQL engine. `%s` is a parameter of psycopg; `{...}` is filled in with other SQL of this file."""

import json
from collections.abc import Sequence

from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.store import folding
from mahasiswa.store.history import PURGE_SECONDS

# --- Schema ---

# A constraint is named <field>_<reason>, so that pool.translate reads the reason of a refusal from its name. The table
# has no rule against NUL, because a text of PostgreSQL cannot hold one.
NIM_DUPLICATE = "CONSTRAINT nim_duplicate PRIMARY KEY (nim)"
NIM_TOO_LONG = f"CONSTRAINT nim_too_long CHECK (length(nim) <= {NIM_MAX_CHARACTERS})"
NIM_UNADDRESSABLE = "CONSTRAINT nim_unaddressable CHECK (nim NOT IN ('.', '..'))"
CREATE_TABLE = f"""
CREATE TABLE {{schema}}.mahasiswa (
  nim text COLLATE "C" NOT NULL,
  nama text COLLATE "C" NOT NULL,
  alamat text COLLATE "C" NOT NULL,
  {NIM_DUPLICATE},
  {NIM_TOO_LONG},
  {NIM_UNADDRESSABLE}
)
"""

# The lock ends with the transaction, so it also works through a connection pooler. The number is arbitrary.
LOCK_SCHEMA = "SELECT pg_advisory_xact_lock(5207110482153)"

UNSAFE_SETTINGS = """
SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes']) AS name WHERE current_setting(name) = 'off'
"""

# The connections that users other than superusers may have, and those of all clients now.
CONNECTIONS = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""
CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float"

# The kind of the object, its schema, its comment, its owner, and whether we may alter it.
FIND_TABLE = """
SELECT
  CASE c.relkind WHEN 'r' THEN CASE c.relpersistence WHEN 'u' THEN 'an unlogged table' ELSE 'a table' END
    WHEN 'p' THEN 'a partitioned table' WHEN 'v' THEN 'a view' WHEN 'm' THEN 'a materialized view'
    WHEN 'f' THEN 'a foreign table' ELSE 'another object' END,
  quote_ident(n.nspname),
  coalesce(obj_description(c.oid, 'pg_class'), ''),
  quote_ident(pg_get_userbyid(c.relowner)),
  pg_has_role(c.relowner, 'USAGE')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('mahasiswa')
"""
# The same for a table that does not exist yet.
NEW_TABLE = "SELECT 'nothing', quote_ident(current_schema()), '', quote_ident(current_user), true"

# Everything that belongs to the table: its kind, its name and its definition. Constraints for NOT NULL are left out
# because only PostgreSQL 18 and later have them, and the columns show the same.
DESCRIBE_TABLE = """
SELECT 'column', quote_ident(a.attname), concat(
  format_type(a.atttypid, a.atttypmod),
  (SELECT ' COLLATE ' || quote_ident(collname) FROM pg_collation WHERE oid = a.attcollation AND collname <> 'default'),
  CASE WHEN a.attnotnull THEN ' NOT NULL' END,
  CASE WHEN a.attgenerated <> '' THEN ' GENERATED' WHEN a.atthasdef THEN ' DEFAULT' END
)
FROM pg_attribute AS a WHERE a.attrelid = to_regclass('mahasiswa') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', quote_ident(conname), pg_get_constraintdef(oid)
FROM pg_constraint WHERE conrelid = to_regclass('mahasiswa') AND contype <> 'n'
UNION ALL
SELECT 'foreign key', quote_ident(conname) || ' of ' || conrelid::regclass, pg_get_constraintdef(oid)
FROM pg_constraint WHERE confrelid = to_regclass('mahasiswa') AND conrelid <> confrelid
UNION ALL
SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid)
FROM pg_index WHERE indrelid = to_regclass('mahasiswa')
AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND conrelid = indrelid)
UNION ALL
SELECT 'trigger', quote_ident(tgname), pg_get_triggerdef(oid)
FROM pg_trigger WHERE tgrelid = to_regclass('mahasiswa') AND NOT tgisinternal
UNION ALL
SELECT 'rule', quote_ident(rulename), pg_get_ruledef(oid) FROM pg_rewrite WHERE ev_class = to_regclass('mahasiswa')
UNION ALL
SELECT DISTINCT 'view', r.ev_class::regclass::text, ''
FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
AND d.refobjid = to_regclass('mahasiswa') AND r.ev_class <> d.refobjid
UNION ALL
SELECT 'policy', quote_ident(polname), '' FROM pg_policy WHERE polrelid = to_regclass('mahasiswa')
UNION ALL
SELECT 'child table', inhrelid::regclass::text, '' FROM pg_inherits WHERE inhparent = to_regclass('mahasiswa')
UNION ALL
SELECT 'parent table', inhparent::regclass::text, '' FROM pg_inherits WHERE inhrelid = to_regclass('mahasiswa')
"""

# The table that release 1.0.0 made, as DESCRIBE_TABLE shows it.
RELEASE_1_0_0_CHECK = "CHECK (((nim <> ALL (ARRAY['.'::text, '..'::text])) AND (length(nim) <= 255)))"
RELEASE_1_0_0_TABLE = {
    ("column", "nim", 'text COLLATE "C" NOT NULL'),
    ("column", "nama", "text NOT NULL"),
    ("column", "alamat", "text NOT NULL"),
    ("constraint", "mahasiswa_pkey", "PRIMARY KEY (nim)"),
    ("constraint", "mahasiswa_nim_check", RELEASE_1_0_0_CHECK),
}

# Constraints whose rules CREATE_TABLE has too. Converting a table replaces them.
REPLACED_CONSTRAINTS = {
    "PRIMARY KEY (nim)",
    "UNIQUE (nim)",
    RELEASE_1_0_0_CHECK,
    f"CHECK ((length(nim) <= {NIM_MAX_CHARACTERS}))",
    "CHECK ((nim <> ALL (ARRAY['.'::text, '..'::text])))",
}

# Requests queue behind this one, so it must give up before they do.
ALTER_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '2s'"
DROP_CONSTRAINT = "DROP CONSTRAINT {name},"
# Takes 0.8 s for a million records.
CONVERT_TABLE = f"""
ALTER TABLE {{schema}}.mahasiswa
  {{drop_constraints}}
  ALTER nim DROP DEFAULT, ALTER nim TYPE text COLLATE "C", ALTER nim SET NOT NULL,
  ALTER nama DROP DEFAULT, ALTER nama TYPE text COLLATE "C", ALTER nama SET NOT NULL,
  ALTER alamat DROP DEFAULT, ALTER alamat TYPE text COLLATE "C", ALTER alamat SET NOT NULL,
  ADD {NIM_DUPLICATE}, ADD {NIM_TOO_LONG}, ADD {NIM_UNADDRESSABLE}
"""
SET_VERSION = "COMMENT ON TABLE {schema}.mahasiswa IS 'mahasiswa schema version {version}'"

# The first rows that the constraints of CREATE_TABLE refuse.
FIND_REFUSED_ROWS = f"""
SELECT reason, nim, nama, alamat FROM (
  SELECT nim, nama, alamat, CASE
    WHEN nim IS NULL THEN 'nim_missing'
    WHEN nama IS NULL THEN 'nama_missing'
    WHEN alamat IS NULL THEN 'alamat_missing'
    WHEN length(nim) > {NIM_MAX_CHARACTERS} THEN 'nim_too_long'
    WHEN nim COLLATE "C" IN ('.', '..') THEN 'nim_unaddressable'
    WHEN count(*) OVER (PARTITION BY nim COLLATE "C") > 1 THEN 'nim_duplicate'
  END AS reason FROM mahasiswa
) AS examined WHERE reason IS NOT NULL ORDER BY nim COLLATE "C" NULLS FIRST LIMIT %s
"""

# --- Triggers ---


def _drop_triggers(names: Sequence[str]) -> str:
    return ";\n".join(f"DROP TRIGGER IF EXISTS {name} ON {{schema}}.mahasiswa" for name in names)


def _create_write_triggers(table: str) -> str:
    """Triggers that call `<table>_write` after each statement that changes records, with the old and the new rows."""
    rows = {
        "INSERT": "NEW TABLE AS new_rows",
        "UPDATE": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
        "DELETE": "OLD TABLE AS old_rows",
    }
    return ";\n".join(
        f"CREATE TRIGGER {table}_{event.lower()} AFTER {event} ON {{schema}}.mahasiswa REFERENCING {tables}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.{table}_write()"
        for event, tables in rows.items()
    )


# --- History: schema ---

# A row is an entry, or the head of a batch: it has the batch's kind, and the number of changed records. `batch` is the id
# of the head, which is below those of its entries. A role with rights on the table gets the same rights on its history;
# only the function mahasiswa_history_write inserts.
CREATE_HISTORY = """
CREATE TABLE IF NOT EXISTS {schema}.mahasiswa_history (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  moment timestamptz NOT NULL,
  batch bigint,
  kind text CHECK (kind IN ('import', 'delete', 'undo')),
  rows bigint,
  is_silent boolean,
  nim text COLLATE "C",
  nama_before text COLLATE "C",
  alamat_before text COLLATE "C",
  nama_after text COLLATE "C",
  alamat_after text COLLATE "C"
);
CREATE INDEX IF NOT EXISTS mahasiswa_history_nim ON {schema}.mahasiswa_history (nim, id);
CREATE INDEX IF NOT EXISTS mahasiswa_history_items ON {schema}.mahasiswa_history (id) WHERE batch IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS mahasiswa_history_batches ON {schema}.mahasiswa_history (batch, nim)
  WHERE batch IS NOT NULL;
CREATE TABLE IF NOT EXISTS {schema}.mahasiswa_history_state (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  days integer,
  purged timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO {schema}.mahasiswa_history_state (days) VALUES (NULL) ON CONFLICT (only_row) DO UPDATE SET days = NULL;

CREATE OR REPLACE FUNCTION {schema}.mahasiswa_history_purge() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET enable_seqscan = off AS $$
DECLARE
  oldest_kept timestamptz := (SELECT now() - make_interval(days => days) FROM mahasiswa_history_state WHERE only_row);
BEGIN
  -- Each statement calls this, so it must not look for more than the oldest row if nothing is expired.
  IF (SELECT moment FROM mahasiswa_history ORDER BY id LIMIT 1) < oldest_kept THEN
    DELETE FROM mahasiswa_history WHERE id IN (
      SELECT id FROM mahasiswa_history
      WHERE id IN (SELECT id FROM mahasiswa_history ORDER BY id LIMIT {purge_entries}) AND moment < oldest_kept
      FOR UPDATE SKIP LOCKED
    );
  END IF;
END $$;

CREATE OR REPLACE FUNCTION {schema}.mahasiswa_history_write() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
  now_here timestamptz := clock_timestamp();
  batch_kind text := nullif(current_setting('mahasiswa.batch', true), '');
  batch_id bigint := nullif(current_setting('mahasiswa.batch_id', true), '')::bigint;
  has_no_entries boolean := coalesce(current_setting('mahasiswa.silent', true), '') = 'on';
  changed bigint;
BEGIN
  IF batch_kind IS NOT NULL AND batch_id IS NULL THEN
    batch_id := nextval('mahasiswa_history_id_seq');
  END IF;
  IF has_no_entries AND TG_OP = 'DELETE' THEN
    changed := (SELECT count(*) FROM old_rows);
  ELSIF has_no_entries THEN
    changed := (SELECT count(*) FROM new_rows);
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO mahasiswa_history (moment, batch, nim, nama_after, alamat_after)
    SELECT now_here, batch_id, nim, nama, alamat FROM new_rows;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO mahasiswa_history (moment, batch, nim, nama_before, alamat_before)
    SELECT now_here, batch_id, nim, nama, alamat FROM old_rows;
  ELSE
    -- A changed nim gives two rows: one without texts before, one without texts after.
    INSERT INTO mahasiswa_history (moment, batch, nim, nama_before, alamat_before, nama_after, alamat_after)
    SELECT now_here, batch_id, nim, o.nama, o.alamat, n.nama, n.alamat
    FROM old_rows AS o FULL JOIN new_rows AS n USING (nim)
    WHERE (o.nama, o.alamat) IS DISTINCT FROM (n.nama, n.alamat);
  END IF;
  IF changed IS NULL THEN
    GET DIAGNOSTICS changed = ROW_COUNT;
  END IF;
  IF changed = 0 THEN
    RETURN NULL;
  END IF;
  IF batch_kind IS NOT NULL THEN
    INSERT INTO mahasiswa_history AS h (id, moment, kind, rows, is_silent)
    VALUES (batch_id, now_here, batch_kind, changed, has_no_entries)
    ON CONFLICT (id) DO UPDATE SET rows = h.rows + excluded.rows;
    PERFORM set_config('mahasiswa.batch_id', batch_id::text, true);
  END IF;
  PERFORM mahasiswa_history_purge();
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION {schema}.mahasiswa_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'TRUNCATE would leave no trace in the history of mahasiswa; use DELETE FROM mahasiswa'
  USING ERRCODE = 'feature_not_supported';
END $$;
REVOKE EXECUTE ON FUNCTION {schema}.mahasiswa_history_write() FROM PUBLIC;

ALTER TABLE {schema}.mahasiswa_history OWNER TO {owner};
ALTER TABLE {schema}.mahasiswa_history_state OWNER TO {owner};
ALTER FUNCTION {schema}.mahasiswa_history_purge() OWNER TO {owner};
ALTER FUNCTION {schema}.mahasiswa_history_write() OWNER TO {owner};
ALTER FUNCTION {schema}.mahasiswa_history_refuse() OWNER TO {owner};
DO $$
DECLARE granted record;
BEGIN
  FOR granted IN
    SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS grantee
    FROM pg_class, aclexplode(relacl)
    WHERE pg_class.oid = '{schema}.mahasiswa'::regclass AND grantee <> relowner
    AND privilege_type IN ('SELECT', 'UPDATE', 'DELETE')
  LOOP
    EXECUTE format(
      'GRANT %s ON {schema}.mahasiswa_history, {schema}.mahasiswa_history_state TO %s',
      granted.privilege_type, granted.grantee
    );
  END LOOP;
END $$
"""
HISTORY_TRIGGERS = (
    "mahasiswa_history_insert",
    "mahasiswa_history_update",
    "mahasiswa_history_delete",
    "mahasiswa_history_truncate",
)
DROP_HISTORY_TRIGGERS = _drop_triggers(HISTORY_TRIGGERS)
START_HISTORY = f"""{DROP_HISTORY_TRIGGERS};
{_create_write_triggers("mahasiswa_history")};
CREATE TRIGGER mahasiswa_history_truncate BEFORE TRUNCATE ON {{schema}}.mahasiswa
  FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.mahasiswa_history_refuse()
"""
STOP_HISTORY = f"""{DROP_HISTORY_TRIGGERS};
TRUNCATE {{schema}}.mahasiswa_history
"""
COUNT_HISTORY_TRIGGERS = """
SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('mahasiswa') AND tgname = ANY(%s) AND tgenabled <> 'D'
"""
HISTORY_DAYS = "SELECT days FROM mahasiswa_history_state"
IS_STANDBY = "SELECT 1 WHERE pg_is_in_recovery()"
SET_HISTORY_DAYS = "UPDATE {schema}.mahasiswa_history_state SET days = {days}"
UNREADABLE_TABLES = """
SELECT name FROM unnest(ARRAY['mahasiswa_history', 'mahasiswa_history_state', 'mahasiswa_cari']) AS name
WHERE NOT has_table_privilege(to_regclass(name), 'SELECT')
"""

# --- Search: schema ---

# One row for each record: nim, nama and alamat folded (see `folding`), with line feeds between them, which no word of a
# search contains. Triggers keep it current, also when another program writes. The last function is inlined, so a text of
# ASCII letters costs no call. Another text is folded letter by letter: 64 KB take 9 to 25 ms, with translate() 86 ms.
SEARCH_TRIGGERS = ("mahasiswa_cari_insert", "mahasiswa_cari_update", "mahasiswa_cari_delete", "mahasiswa_cari_truncate")
FOLDED_LETTERS = json.dumps(folding.REPLACEMENTS)
CREATE_SEARCH = f"""
CREATE OR REPLACE FUNCTION {{schema}}.mahasiswa_fold_ascii(teks text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT translate(lower(teks COLLATE "C"), $removed${folding.REMOVED_ASCII}$removed$, '')
$$;
CREATE OR REPLACE FUNCTION {{schema}}.mahasiswa_fold_letters(teks text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT string_agg(CASE WHEN c > '~' THEN coalesce('{{letters}}'::jsonb ->> c, c) ELSE c END, '')
  FROM unnest(string_to_array(teks COLLATE "C", NULL)) AS c
$$;
CREATE OR REPLACE FUNCTION {{schema}}.mahasiswa_fold(teks text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN octet_length(teks) = length(teks) THEN {{schema}}.mahasiswa_fold_ascii(teks)
    ELSE {{schema}}.mahasiswa_fold_letters({{schema}}.mahasiswa_fold_ascii(teks)) END
$$;

CREATE TABLE IF NOT EXISTS {{schema}}.mahasiswa_cari (
  nim text COLLATE "C" PRIMARY KEY,
  teks text COLLATE "C" NOT NULL
);
-- One statement can delete a nim and insert it again, and its triggers may run in any order.
CREATE OR REPLACE FUNCTION {{schema}}.mahasiswa_cari_write() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE mahasiswa_cari;
    RETURN NULL;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM mahasiswa_cari AS c USING old_rows AS o
    WHERE c.nim = o.nim AND NOT EXISTS (SELECT FROM mahasiswa AS m WHERE m.nim = o.nim);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO mahasiswa_cari SELECT nim, {{schema}}.mahasiswa_fold(nim || E'\\n' || nama || E'\\n' || alamat) FROM new_rows
    ON CONFLICT (nim) DO UPDATE SET teks = excluded.teks;
  END IF;
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION {{schema}}.mahasiswa_cari_write() FROM PUBLIC;

ALTER TABLE {{schema}}.mahasiswa_cari OWNER TO {{owner}};
ALTER FUNCTION {{schema}}.mahasiswa_fold_ascii(text) OWNER TO {{owner}};
ALTER FUNCTION {{schema}}.mahasiswa_fold_letters(text) OWNER TO {{owner}};
ALTER FUNCTION {{schema}}.mahasiswa_fold(text) OWNER TO {{owner}};
ALTER FUNCTION {{schema}}.mahasiswa_cari_write() OWNER TO {{owner}};

{_drop_triggers(SEARCH_TRIGGERS)};
{_create_write_triggers("mahasiswa_cari")};
CREATE TRIGGER mahasiswa_cari_truncate AFTER TRUNCATE ON {{schema}}.mahasiswa
  FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.mahasiswa_cari_write();

TRUNCATE {{schema}}.mahasiswa_cari;
INSERT INTO {{schema}}.mahasiswa_cari
SELECT nim, {{schema}}.mahasiswa_fold(nim || E'\\n' || nama || E'\\n' || alamat) FROM {{schema}}.mahasiswa ORDER BY nim;
DO $$
DECLARE reader text;
BEGIN
  FOR reader IN
    SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
    FROM pg_class, aclexplode(relacl)
    WHERE pg_class.oid = '{{schema}}.mahasiswa'::regclass AND grantee <> relowner AND privilege_type = 'SELECT'
  LOOP
    EXECUTE format('GRANT SELECT ON {{schema}}.mahasiswa_cari TO %s', reader);
  END LOOP;
END $$
"""

# --- Transactions ---

# The server, the role or the database may set a weaker value. With `off`, a crash loses acknowledged records. With
# `local` and `remote_write`, the loss of the primary does, because its standby has not written them to its disk.
# `remote_apply` is stronger and stays.
SYNCHRONOUS_COMMIT = """
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""
# READ COMMITTED, because the database may have another default. The lock timeout is shorter than a request's, so the
# request can still say that nothing was done. If our host disappears, the idle timeout releases its locks. A statement
# timeout of 0 is none. The settings end with the transaction, so they also work through a connection pooler.
BEGIN = f"""
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {{milliseconds}};
SET LOCAL lock_timeout = '4s'; SET LOCAL idle_in_transaction_session_timeout = '20s'; {SYNCHRONOUS_COMMIT}
"""
BEGIN_READING = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {milliseconds};
SET LOCAL idle_in_transaction_session_timeout = '60s'
"""
SHORTEN_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '200ms'"

# Two equal answers prove that nothing was committed in between. A transaction that writes has an id. A snapshot that
# does not see its writes lists the id as running, or has an upper bound that is not above it; a snapshot that sees
# them does neither. So the texts of the two snapshots differ. Ids have 64 bits and are never reused, unless a server
# loses the end of its log. The start time tells apart another server or a restart. The checkpoint tells apart a crash
# after which the same postmaster started its processes again, because recovery ends with a checkpoint. On a standby
# the text does not list running transactions, so there is no version.
VERSION = """
SELECT CASE WHEN NOT pg_is_in_recovery() THEN concat_ws(
  ' ', pg_current_snapshot(), extract(epoch FROM pg_postmaster_start_time()), (pg_control_checkpoint()).checkpoint_lsn
) END
"""

# --- Deposed primary ---

# A server's timeline, or NULL if it takes no writes; whether it needs a synchronous standby and has none; whether it
# needs one and hides the state of its standbys from this role.
PRIMARY_STATE = """
SELECT
  CASE WHEN NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off'
    THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
  waits AND NOT EXISTS (SELECT FROM pg_stat_get_wal_senders() WHERE sync_state IS DISTINCT FROM 'async'),
  waits AND EXISTS (SELECT FROM pg_stat_get_wal_senders() WHERE sync_state IS NULL)
FROM (SELECT current_setting('synchronous_standby_names') <> '' AS waits) AS settings
"""

# --- Reading ---

# Whether there are too many records, or too many bytes in them, for a snapshot. It takes 0.7 ms for 10,000 records.
IS_LONGER_THAN = """
SELECT count(*) > %s OR sum(octet_length(nim) + octet_length(nama) + octet_length(alamat) + 3) > %s
FROM (SELECT nim, nama, alamat FROM mahasiswa LIMIT %s) AS m
"""
# The order of COLLATE "C" in UTF-8 is the order of code points.
COLUMNS = "nim, nama, alamat"
# A record as one text takes two thirds of the time of three texts. PostgreSQL has no NUL, which could be between them. If
# a text holds this character, the three texts are read.
JOINT = "\x01"
JOINED = "nim || chr(1) || nama || chr(1) || alamat"
FIRST = "SELECT {columns} FROM mahasiswa ORDER BY nim LIMIT %s"
AFTER = "SELECT {columns} FROM mahasiswa WHERE nim > %s ORDER BY nim LIMIT %s"
# The first of these records: as many as have that number of bytes, and one more.
WITHIN_BYTES = """
SELECT nim, nama, alamat FROM (
  SELECT *, sum(bytes) OVER (ORDER BY nim ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
  FROM (SELECT *, octet_length(nama) + octet_length(alamat) AS bytes FROM ({records}) AS records) AS measured
) AS counted
WHERE bytes_before < %s ORDER BY nim
"""
GET = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim = %s"
GET_LOCKED = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim = %s FOR UPDATE"
# As record.near_key. It reads every record.
NEAR = """
SELECT nim, nama, alamat FROM mahasiswa
JOIN unnest(%s::text[]) AS wanted (key) ON key COLLATE "C" = ltrim(translate(lower(nim), ' .-', ''), '0')
LIMIT %s
"""
FIND = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ANY(%s)"
# Ordered, so that two transactions which lock the same records cannot deadlock.
FIND_LOCKED = "SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ANY(%s) ORDER BY nim FOR UPDATE"

COUNT = "SELECT count(*) FROM {source} {where}"
# The number of records found and one page of them. If the page is empty, there is one row without a record. Sorting
# keys alone takes less time than sorting whole records.
SEARCH = """
WITH found AS {materialized} (SELECT {keys} FROM {source} {where})
SELECT total, m.nim, m.nama, m.alamat FROM (SELECT count(*) AS total FROM found) AS counted
LEFT JOIN ((SELECT nim FROM found {order} LIMIT %s OFFSET %s) AS page JOIN mahasiswa AS m USING (nim)) ON true
{order}
"""
KEYS = {"nim": "nim", "nama": "nim, nama", "alamat": "nim, alamat"}
# If the folded texts are enough, a search does not read the records.
ALL_RECORDS, FOLDED, FOLDED_WITH_RECORDS = "mahasiswa", "mahasiswa_cari", "mahasiswa_cari JOIN mahasiswa USING (nim)"
EXISTS = "SELECT EXISTS (SELECT 1 FROM mahasiswa_cari {where})"
# The words of the names of the newest 100,000 nims, the most frequent first. Each bound keeps the time below 0.3 s.
NAME_WORDS = """
SELECT word FROM (SELECT left(nama, 100) AS nama FROM mahasiswa ORDER BY nim DESC LIMIT 100000) AS newest,
unnest(string_to_array(nama, ' ')) AS word
GROUP BY word ORDER BY count(*) DESC, word DESC LIMIT 10000
"""
# A connection pooler keeps a cursor as long as its transaction.
DECLARE_CHUNKS = "DECLARE chunks NO SCROLL CURSOR FOR SELECT nim, nama, alamat FROM {source} {where} {order}"
FETCH_CHUNK = "FETCH 2000 FROM chunks"

# {text} is a folded text. A regular expression is an automaton here, so its time does not depend on the word: it looks
# for 254 letters in 300 texts of 64,000 in 0.15 s. strpos takes up to 2.2 s, but half the time or less for a short word.
HAS_WORD = "strpos({text}, %s) > 0"
HAS_LONG_WORD = "{text} ~ %s"
ORDERS = {
    ("nim", "naik"): "ORDER BY nim",
    ("nim", "turun"): "ORDER BY nim DESC",
    ("nama", "naik"): "ORDER BY lower(nama), nim",
    ("nama", "turun"): "ORDER BY lower(nama) DESC, nim DESC",
    ("alamat", "naik"): "ORDER BY lower(alamat), nim",
    ("alamat", "turun"): "ORDER BY lower(alamat) DESC, nim DESC",
}

# --- Writing ---

# Several records are one parameter, a JSON array of arrays. If a nim occurs twice, the first record is stored. Ordered
# for the same reason as FIND_LOCKED.
ADD_ALL = """
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT record->>0, record->>1, record->>2 FROM json_array_elements(%s::json) WITH ORDINALITY AS i (record, number)
ORDER BY (record->>0) COLLATE "C", number
ON CONFLICT (nim) DO NOTHING
RETURNING nim
"""
UPDATE_ALL = """
UPDATE mahasiswa SET nama = record->>1, alamat = record->>2
FROM json_array_elements(%s::json) AS i (record) WHERE nim = record->>0
"""
UPDATE = "UPDATE mahasiswa SET nama = %s, alamat = %s WHERE nim = %s"
DELETE = "DELETE FROM mahasiswa WHERE nim = %s"
# Ordered for the same reason.
DELETE_ALL = """
DELETE FROM mahasiswa WHERE nim IN (SELECT nim FROM mahasiswa WHERE nim = ANY(%s) ORDER BY nim FOR UPDATE)
"""

# --- Importing ---

# Rows are copied into this table first, so that `mahasiswa` is locked only while they are merged.
CREATE_INCOMING = """
CREATE TEMP TABLE incoming (
  number integer NOT NULL,
  nim text COLLATE "C" NOT NULL,
  nama text COLLATE "C",
  alamat text COLLATE "C"
) ON COMMIT DROP
"""
COPY_INCOMING = "COPY incoming (number, nim, nama, alamat) FROM STDIN"
# Other transactions can read but not write, so the comparison stays true until the commit.
LOCK_TABLE = "LOCK TABLE mahasiswa IN SHARE ROW EXCLUSIVE MODE"
FIND_INCOMPLETE = """
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
UPDATE mahasiswa AS m SET nama = coalesce(i.nama, m.nama), alamat = coalesce(i.alamat, m.alamat)
FROM incoming AS i
WHERE i.nim = m.nim AND (coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat)
"""
INSERT_INCOMING = """
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT nim, nama, alamat FROM incoming AS i
WHERE NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)
ORDER BY nim
"""

# --- History ---

# The triggers read these until the end of the transaction: its changes are one batch of this kind, and the batch keeps
# no entries.
BATCH = "SELECT set_config('mahasiswa.batch', %s, true)"
SILENT = "SELECT set_config('mahasiswa.silent', 'on', true)"

# An item is an entry that belongs to no batch, or the head of a batch. Beside it stands its entry, also that of a batch
# of one record. `where` is a condition on an item.
COUNT_ITEMS = "SELECT count(*) FROM mahasiswa_history AS i WHERE batch IS NULL {where}"
ITEMS = """
SELECT i.id, i.moment, i.kind, i.rows, i.is_silent,
  e.id, e.moment, e.nim, e.nama_before, e.alamat_before, e.nama_after, e.alamat_after
FROM (
  SELECT * FROM mahasiswa_history AS i WHERE batch IS NULL {where} ORDER BY id DESC LIMIT %s OFFSET %s
) AS i
LEFT JOIN mahasiswa_history AS e ON e.id = CASE
  WHEN i.kind IS NULL THEN i.id
  WHEN i.rows = 1 THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id)
END
ORDER BY i.id DESC
"""
LAST_ITEM = ITEMS.format(where="")
WHERE_ITEM_HAS = "AND id IN (SELECT coalesce(batch, id) FROM mahasiswa_history WHERE {found})"

# A batch whose head was purged has entries for a while, which are not shown.
IN_BATCH = "batch = (SELECT id FROM mahasiswa_history WHERE id = %s AND kind IS NOT NULL)"
COUNT_ENTRIES = f"SELECT count(*) FROM mahasiswa_history WHERE {IN_BATCH} {{where}}"
ENTRIES = f"""
SELECT id, moment, nim, nama_before, alamat_before, nama_after, alamat_after
FROM mahasiswa_history WHERE {IN_BATCH} {{where}} ORDER BY nim LIMIT %s OFFSET %s
"""
HISTORY_TEXTS = "concat_ws(E'\\n', nim, nama_before, alamat_before, nama_after, alamat_after)"
FOLDED_HISTORY_TEXTS = f"mahasiswa_fold({HISTORY_TEXTS})"
RECENT_BEFORE = """
SELECT nim, nama_before, alamat_before FROM mahasiswa_history
WHERE nim = %s AND nama_before IS NOT NULL ORDER BY id DESC LIMIT 20
"""

# An expired change may be purged by the triggers of its own undo, so it is not undone.
NOT_EXPIRED = "moment >= (SELECT now() - make_interval(days => days) FROM mahasiswa_history_state)"
ENTRY = f"""
SELECT id, moment, nim, nama_before, alamat_before, nama_after, alamat_after
FROM mahasiswa_history WHERE id = %s AND batch IS NULL AND kind IS NULL AND {NOT_EXPIRED}
"""
IS_WHOLE_BATCH = f"""
SELECT 1 FROM mahasiswa_history AS b WHERE id = %s AND kind IS NOT NULL AND {NOT_EXPIRED}
AND rows = (SELECT count(*) FROM mahasiswa_history WHERE batch = b.id)
"""
# A purge of another process must not remove entries while a batch is undone.
LOCK_TABLE_AND_HISTORY = "LOCK TABLE mahasiswa, mahasiswa_history IN SHARE ROW EXCLUSIVE MODE"
CONFLICTS = """
SELECT h.id, h.moment, h.nim, h.nama_before, h.alamat_before, h.nama_after, h.alamat_after,
  m.nim, m.nama, m.alamat, count(*) OVER ()
FROM mahasiswa_history AS h LEFT JOIN mahasiswa AS m ON m.nim = h.nim
WHERE h.batch = %s
AND (m.nama, m.alamat) IS DISTINCT FROM (h.nama_after, h.alamat_after)
AND (m.nama, m.alamat) IS DISTINCT FROM (h.nama_before, h.alamat_before)
ORDER BY h.nim LIMIT %s
"""
# These assume that there are no conflicts and that no other transaction writes.
UNDO_ADDITIONS = """
DELETE FROM mahasiswa AS m USING mahasiswa_history AS h WHERE h.batch = %s AND m.nim = h.nim AND h.nama_before IS NULL
"""
UNDO_EDITS = """
UPDATE mahasiswa AS m SET nama = h.nama_before, alamat = h.alamat_before FROM mahasiswa_history AS h
WHERE h.batch = %s AND m.nim = h.nim AND h.nama_before IS NOT NULL AND h.nama_after IS NOT NULL
AND (m.nama, m.alamat) <> (h.nama_before, h.alamat_before)
"""
UNDO_DELETIONS = """
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT nim, nama_before, alamat_before FROM mahasiswa_history WHERE batch = %s AND nama_after IS NULL ORDER BY nim
ON CONFLICT (nim) DO NOTHING
"""

# True if something is expired and no process has purged within the last minute. A standby cannot purge.
IS_PURGE_DUE = f"""
NOT pg_is_in_recovery() AND purged <= now() - make_interval(secs => {PURGE_SECONDS})
AND (SELECT moment FROM mahasiswa_history ORDER BY id LIMIT 1) < now() - make_interval(days => days)
"""
FIND_PURGE = f"SELECT 1 FROM mahasiswa_history_state WHERE {IS_PURGE_DUE}"
# Of several processes that purge at once, one locks the row; the others wait and then find that no purge is due.
PURGE = f"UPDATE mahasiswa_history_state SET purged = now() WHERE {IS_PURGE_DUE} RETURNING mahasiswa_history_purge()"

FORGET_ENTRIES = "DELETE FROM mahasiswa_history WHERE nim = %s RETURNING batch"
# A batch that loses an entry has one row less, so that the rest can still be undone.
FORGET_ROWS = "UPDATE mahasiswa_history SET rows = rows - 1 WHERE id = ANY(%s)"
FORGET_EMPTY_BATCHES = "DELETE FROM mahasiswa_history WHERE id = ANY(%s) AND rows = 0"
TRANSACTION_ID = "SELECT pg_current_xact_id()::xid::text"
# Transactions that still see the rows that a given transaction has deleted. VACUUM keeps these rows until they end.
FIND_OLDER_TRANSACTIONS = """
SELECT pid FROM pg_stat_activity
WHERE age(backend_xmin) >= age(%s::text::xid) AND pid <> pg_backend_pid() AND coalesce(datname, '') IN (current_database(), '')
"""
# FULL, because VACUUM alone marks the space as free and leaves the texts in it.
VACUUM = "VACUUM (FULL) mahasiswa, mahasiswa_history"

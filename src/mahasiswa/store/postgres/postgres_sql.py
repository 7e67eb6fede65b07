"""The SQL of PostgreSQL: the statements of the folder sql, and others, in which `{...}` is filled in with other SQL."""

import re
from pathlib import Path

from mahasiswa.store.shared_sql import CONSTANTS, read_statements
from mahasiswa.work import STEP_TIMEOUT_SECONDS

# --- Schema ---

# The lock ends with the transaction, so it also works through a connection pooler. The number is arbitrary.
LOCK_SCHEMA = "SELECT pg_advisory_xact_lock(5207110482153)"

# Whether the table exists, its comment, whether a release made it, its schema (or the one in which we would make it),
# its triggers with the digest of their functions, and whether the server is a standby.
FIND_TABLE = """
SELECT c.oid IS NOT NULL, coalesce(obj_description(c.oid, 'pg_class'), ''),
  EXISTS (
    SELECT FROM pg_attribute
    WHERE attrelid = to_regclass('mahasiswa_history_state') AND attname = 'has_leapt'
  ),
  quote_ident(coalesce(n.nspname, current_schema())),
  ARRAY(
    SELECT tgname::text FROM pg_trigger
    WHERE tgrelid = c.oid AND tgname ~ '^mahasiswa_(nim|history_.*)$' AND tgenabled <> 'D'
    UNION ALL
    SELECT obj_description(to_regproc('mahasiswa_nim_refuse'), 'pg_proc')
  ),
  pg_is_in_recovery()
FROM (SELECT to_regclass('mahasiswa') AS oid) AS named
LEFT JOIN pg_class AS c USING (oid) LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace"""
# The statements that give us what belongs to another role.
TAKE_OVER = """
SELECT format('ALTER %s %s OWNER TO %I', kind, name, current_user) FROM (
  SELECT 'TABLE', oid::regclass::text, relowner FROM pg_class WHERE oid IN (
    to_regclass('mahasiswa'), to_regclass('mahasiswa_history'),
    to_regclass('mahasiswa_history_state')
  )
  UNION ALL
  SELECT 'FUNCTION', oid::regprocedure::text, proowner FROM pg_proc WHERE oid IN (
    to_regproc('mahasiswa_history_write'), to_regproc('mahasiswa_history_refuse'),
    to_regproc('mahasiswa_nim_refuse')
  )
) AS parts (kind, name, owner)
WHERE NOT pg_has_role(owner, 'USAGE') ORDER BY kind DESC, name"""
# For the statements of an upgrade, and for the functions that they create.
SET_SCHEMA = "SET LOCAL search_path = {schema}, pg_temp"
SET_VERSION = "COMMENT ON TABLE mahasiswa IS 'schema {version} of mahasiswa'"

# The digest of the functions and triggers.
SET_DIGEST = "COMMENT ON FUNCTION mahasiswa_nim_refuse IS '{digest}'"
SET_HISTORY_DAYS = """
UPDATE mahasiswa_history_state SET days = coalesce(%(days)s, days, %(default)s)
WHERE days IS DISTINCT FROM coalesce(%(days)s, days, %(default)s)"""

# --- Transactions ---

REQUEST_TIMEOUT_SECONDS = STEP_TIMEOUT_SECONDS - 0.5
"""Maximum time for a request to get a connection and its answer, so that its page is sent in time."""
LOCK_TIMEOUT_SECONDS = 4

# A transaction sets what it depends on, because the role or the database may have other defaults. The
# settings end with it, so they also work through a connection pooler. The lock timeout is shorter than
# a request's, so the request can still say that nothing was done. If our host disappears, the idle
# timeout releases its locks. commit_checked needs the warnings. With synchronous_commit `off`, a crash
# loses acknowledged records. With `local` and `remote_write`, the loss of the primary does, because its
# standby has not written them to its disk. `remote_apply` is stronger and stays.
SETTINGS = """
SELECT set_config('statement_timeout', %(statement_timeout)s, true),
  set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, true),
  set_config('lock_timeout', '{lock_timeout}', true),
  set_config('client_min_messages', 'warning', true),
  set_config('synchronous_commit', CASE
    WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN 'on'
    ELSE current_setting('synchronous_commit')
  END, true),
  set_config('mahasiswa.oleh', %(oleh)s, true);"""  # the name of the person, or NULL
BEGIN_CHANGE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;" + SETTINGS.format(
    lock_timeout=f"{LOCK_TIMEOUT_SECONDS}s"
)
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;" + SETTINGS.format(
    lock_timeout=0  # none
)
# The parameters of SETTINGS and of the statements.
REQUEST = {
    **CONSTANTS,
    "statement_timeout": f"{REQUEST_TIMEOUT_SECONDS}s",
    "idle_timeout": "20s",
    "oleh": None,
}
COMMAND = {**REQUEST, "statement_timeout": "0"}  # none

# Two equal answers prove that nothing was committed in between. Each transaction that writes has an
# id of 64 bits, which is never used again. Until its commit, a snapshot lists the id as running, or
# ends below it. After its commit, no snapshot does, so the text is another one. A server that loses
# the end of its log gives the same ids again, but then it has another start time, and so has any
# other server. If only the processes of a server were started again, it has another last
# checkpoint. On a standby the text does not list running transactions, so there is no version.
VERSION = """
SELECT CASE WHEN NOT pg_is_in_recovery() THEN concat_ws(
  ' ', pg_current_snapshot(), extract(epoch FROM pg_postmaster_start_time()), (pg_control_checkpoint()).checkpoint_lsn
) END"""

# --- Reading ---

# All records as Snapshot.packed, and their number. There is no row if there are too many records, or too many bytes in
# them, for a snapshot.
PACKED = """
SELECT count(*), coalesce(string_agg(
  convert_to(nim, 'UTF8') || nul || convert_to(nama, 'UTF8') || nul || convert_to(alamat, 'UTF8'), nul ORDER BY nim
), '')
FROM mahasiswa CROSS JOIN decode('00', 'hex') AS nul
HAVING NOT (
  SELECT count(*) > %(records)s
    OR coalesce(sum(octet_length(nim) + octet_length(nama) + octet_length(alamat) + 3) > %(bytes)s, false)
  FROM (SELECT nim, nama, alamat FROM mahasiswa LIMIT %(records)s + 1) AS m
)"""

# The texts of 2,000 records could take 480 MB.
DECLARE_CHUNKS = "DECLARE chunks NO SCROLL CURSOR FOR {found}"
FETCH_CHUNK = "FETCH 100 FROM chunks"

# --- Importing ---

# Rows are copied into this table first, so that `mahasiswa` is locked only while they are merged.
CREATE_INCOMING = """
CREATE TEMP TABLE incoming (
  nim text COLLATE "C" NOT NULL, nama text COLLATE "C", alamat text COLLATE "C"
) ON COMMIT DROP"""
COPY_INCOMING = "COPY incoming (nim, nama, alamat) FROM STDIN"
# Other transactions can read but not write, so the comparison stays true until the commit. They cannot lock a record
# either, because a transaction that locks one before it writes would cause a deadlock.
LOCK_TABLE = "LOCK TABLE mahasiswa IN EXCLUSIVE MODE"

# --- Removed texts ---

SHORT_LOCK_TIMEOUT = "SET lock_timeout = '4s'"
# VACUUM alone marks the space of removed rows as free, and leaves their texts in it.
REWRITE = "VACUUM (FULL) mahasiswa, mahasiswa_history"

# --- The statements of the .sql files ---

# psycopg writes a parameter as %(name)s, and %% for %.
STATEMENTS = {
    name: re.sub(r"(?<!:):([a-z_]+)", r"%(\1)s", text.replace("%", "%%"))
    for name, text in read_statements(Path(__file__).with_name("sql")).items()
}

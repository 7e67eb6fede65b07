"""PostgreSQL: `mahasiswa adopt` converts a table of another program, or gives the reason why it cannot."""

import os
import subprocess
import sys
import time

import psycopg
import pytest
from postgres import RELEASE_1_0_0, describe, execute
from stores import BUDI, SITI, opened, read_all, refusal

from mahasiswa.settings import PostgresURL
from mahasiswa.store import migrate

CONVERTED = {
    "varchar": "CREATE TABLE mahasiswa (nim varchar(300) PRIMARY KEY, nama varchar NOT NULL, alamat varchar(99) NOT NULL)",
    "nullable columns in another order": "CREATE TABLE mahasiswa (alamat text, nama text, nim text PRIMARY KEY)",
    "no key": "CREATE TABLE mahasiswa (nim text, nama text, alamat text)",
    "a unique column": 'CREATE TABLE mahasiswa (nim text CONSTRAINT "Kunci" UNIQUE, nama text, alamat text)',
    "a unique column and a key": "CREATE TABLE mahasiswa (nim text UNIQUE, nama text, alamat text, PRIMARY KEY (nim))",
    "other collations": 'CREATE TABLE mahasiswa (nim text COLLATE pg_c_utf8 PRIMARY KEY, nama text COLLATE "POSIX", alamat text)',
    "defaults": "CREATE TABLE mahasiswa (nim text PRIMARY KEY DEFAULT '', nama text DEFAULT 'x', alamat text DEFAULT now())",
    "a column that was dropped": "CREATE TABLE mahasiswa (nim text PRIMARY KEY, old int, nama text, alamat text);"
    "ALTER TABLE mahasiswa DROP old",
    "release 1.0.0, altered": f"{RELEASE_1_0_0}; ALTER TABLE mahasiswa ALTER nama DROP NOT NULL",
    "this release, without its version": 'CREATE TABLE mahasiswa (nim text COLLATE "C", nama text, alamat text,'
    " CONSTRAINT nim_duplicate PRIMARY KEY (nim), CONSTRAINT nim_too_long CHECK (length(nim) <= 255),"
    " CONSTRAINT nim_unaddressable CHECK (nim NOT IN ('.', '..')))",
}


@pytest.mark.parametrize("table", CONVERTED.values(), ids=CONVERTED)
async def test_a_table_of_another_program_becomes_the_same_as_a_new_one(address: str, table: str) -> None:
    """Every text stays the same to the byte, and the service can start."""
    execute(address, table)
    records = [("", "", ""), SITI, BUDI, ("a", "'é🎓\t\\N\r\n", " x "), ("é ", "É", "Solo")]
    with psycopg.connect(address) as db, db.cursor() as cursor:
        cursor.executemany("INSERT INTO mahasiswa (nim, nama, alamat) VALUES (%s, %s, %s)", records)
    done = run_adopt(address)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 records adopted\n", "")
    adopted = describe(address)
    migrate(PostgresURL(address))
    async with opened(PostgresURL(address)) as store:
        assert await read_all(store) == records
        assert await refusal(store.add("0001", "Ani", "Solo")) == ("nim", "duplicate")
        assert await refusal(store.add("..", "Ani", "Solo")) == ("nim", "unaddressable")
        assert await refusal(store.update("0001", "Siti", None)) == ("alamat", "missing")
    execute(address, "DROP TABLE mahasiswa")
    migrate(PostgresURL(address))
    assert adopted == describe(address)


TABLE = "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text);"
STRUCTURES = {
    "a missing column": ("CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text)", "no column alamat"),
    "an extra column": (TABLE + "ALTER TABLE mahasiswa ADD kelas text", "the column kelas"),
    "a number": ("CREATE TABLE mahasiswa (nim int PRIMARY KEY, nama text, alamat text)", "nim is integer NOT NULL"),
    "padded texts": ("CREATE TABLE mahasiswa (nim text, nama char(9), alamat text)", "nama is character(9)"),
    "an array": ("CREATE TABLE mahasiswa (nim text, nama text, alamat text[])", "alamat is text[]"),
    "a generated column": (
        "CREATE TABLE mahasiswa (nim text PRIMARY KEY, nama text, alamat text GENERATED ALWAYS AS (nim || nama) STORED)",
        "alamat is text GENERATED",
    ),
    "a key of two columns": (
        "CREATE TABLE mahasiswa (nim text, nama text, alamat text, PRIMARY KEY (nim, nama))",
        "the constraint mahasiswa_pkey",
    ),
    "a late key": (
        "CREATE TABLE mahasiswa (nim text UNIQUE DEFERRABLE INITIALLY DEFERRED, nama text, alamat text)",
        "the constraint mahasiswa_nim_key",
    ),
    "another unique column": (TABLE + "ALTER TABLE mahasiswa ADD UNIQUE (nama)", "the constraint mahasiswa_nama_key"),
    "a check": (TABLE + "ALTER TABLE mahasiswa ADD CONSTRAINT terisi CHECK (nama <> '')", "the constraint terisi"),
    "its own foreign key": (
        TABLE
        + "CREATE TABLE orang (nama text PRIMARY KEY); ALTER TABLE mahasiswa ADD FOREIGN KEY (nama) REFERENCES orang",
        "the constraint mahasiswa_nama_fkey",
    ),
    "a foreign key of another table": (
        TABLE + "CREATE TABLE nilai (nim text REFERENCES mahasiswa)",
        "the foreign key nilai_nim_fkey of nilai",
    ),
    "an index": (TABLE + "CREATE INDEX cari ON mahasiswa (lower(nama))", "the index cari"),
    "a trigger": (
        TABLE + "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        'CREATE TRIGGER "Catat" BEFORE INSERT ON mahasiswa FOR EACH ROW EXECUTE FUNCTION f()',
        'the trigger "Catat"',
    ),
    "a rule": (TABLE + "CREATE RULE diam AS ON DELETE TO mahasiswa DO INSTEAD NOTHING", "the rule diam"),
    "a view": (TABLE + "CREATE VIEW daftar AS SELECT nama FROM mahasiswa", "the view daftar"),
    "a policy": (TABLE + "CREATE POLICY kelas ON mahasiswa USING (nim > '5')", "the policy kelas"),
    "a child table": (TABLE + "CREATE TABLE anak () INHERITS (mahasiswa)", "the child table anak"),
    "a partitioned table": (TABLE.rstrip(";") + " PARTITION BY HASH (nim)", "a partitioned table"),
}


@pytest.mark.parametrize(("table", "words"), STRUCTURES.values(), ids=STRUCTURES)
def test_a_table_with_a_part_that_would_be_lost_is_refused(address: str, table: str, words: str) -> None:
    """One line names the part, and nothing changes."""
    execute(address, table)
    before = describe(address)
    done = run_adopt(address)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert describe(address) == before


FREE_TABLE = "CREATE TABLE mahasiswa (nim text, nama text, alamat text);"
ROWS = {
    "no nim": ("(NULL, 'Ani', 'Solo')", "nim_missing [None, 'Ani', 'Solo']"),
    "no nama": ("('1', NULL, 'Solo')", "nama_missing ['1', None, 'Solo']"),
    "no alamat": ("('1', 'Ani', NULL)", "alamat_missing ['1', 'Ani', None]"),
    "a dot": ("('.', 'Ani', 'Solo'), ('..', 'Ani', 'Solo')", "nim_unaddressable ['.', 'Ani', 'Solo']; nim_unaddr"),
    "a long nim": (f"('{'9' * 256}', 'Ani', 'Solo')", "nim_too_long ['99999"),
    "the same nim twice": (
        "('1', 'Ani', E'Solo\\n'), ('1', 'Ina', 'Solo')",
        "nim_duplicate ['1', 'Ani', 'Solo\\n']; nim_duplicate ['1', 'Ina', 'Solo']",
    ),
    "many": ("('1', NULL, ''), ('2', NULL, ''), ('3', NULL, ''), ('4', NULL, '')", "['3', None, '']; and more"),
}


@pytest.mark.parametrize(("rows", "words"), ROWS.values(), ids=ROWS)
def test_a_table_with_rows_that_break_a_rule_is_refused(address: str, rows: str, words: str) -> None:
    """One line names the rule and the first of these rows, and nothing changes."""
    execute(address, f"{FREE_TABLE} INSERT INTO mahasiswa VALUES ('0', 'Siti', 'Solo'), {rows}")
    before = describe(address), execute(address, "SELECT * FROM mahasiswa")
    done = run_adopt(address)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert (describe(address), execute(address, "SELECT * FROM mahasiswa")) == before


def test_adopt_gives_up_soon_if_another_program_uses_the_table(address: str) -> None:
    """Requests queue behind its lock, so it waits for two seconds only."""
    execute(address, FREE_TABLE)
    with psycopg.connect(address) as other:
        other.execute("INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Solo')")
        began = time.monotonic()
        done = run_adopt(address)
        assert time.monotonic() - began < 15
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "mahasiswa: the table mahasiswa is in use; stop the programs that use it, then try again\n"
    assert run_adopt(address).stdout == "1 records adopted\n"


def test_adopt_without_ownership_prints_the_script_for_the_owner(clerk: str, address: str) -> None:
    """Nothing changes until the owner runs the script; then the service can start."""
    execute(address, f"{FREE_TABLE} INSERT INTO mahasiswa VALUES ('1', 'Ani', 'Solo')")
    before = describe(address)
    done = run_adopt(clerk)
    assert (done.returncode, done.stdout) == (1, "")
    assert "belongs to postgres" in done.stderr
    assert describe(address) == before
    execute(address, done.stderr.partition("SQL:")[2])
    migrate(PostgresURL(clerk))
    assert execute(clerk, "SELECT * FROM mahasiswa") == [("1", "Ani", "Solo")]


def test_adopt_without_ownership_names_rows_that_break_a_rule(clerk: str, address: str) -> None:
    """The owner gets a script only if it will succeed."""
    execute(address, f"{FREE_TABLE} INSERT INTO mahasiswa VALUES ('1', NULL, 'Solo')")
    assert "nama_missing ['1', None, 'Solo']" in run_adopt(clerk).stderr


def test_there_is_nothing_to_adopt_without_a_table_of_another_program(address: str) -> None:
    """One line says why, for an empty schema and for the program's own table."""
    assert "there is no table mahasiswa to adopt" in run_adopt(address).stderr
    migrate(PostgresURL(address))
    done = run_adopt(address)
    assert done.returncode == 1
    assert "is this program's own" in done.stderr


def run_adopt(address: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "mahasiswa", "adopt"],
        env={**os.environ, "DATABASE_URL": address},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

"""SQLite: files that other programs made, other programs at the same file, and what reaches the disk.

Another program is always another process: Python's own sqlite3 in this one would drop APSW's locks.
"""

import ast
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import apsw
import httpx
import pytest
from harness import URL_ENCODED, Page, Service
from stores import opened, outcomes, refusal

from mahasiswa.settings import SQLiteURL
from mahasiswa.store import migrate, open_store
from mahasiswa.store.errors import Unavailable, Unusable

OTHER_PROGRAM = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    print(db.execute(line).fetchall(), flush=True)
"""
MAKER = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"

TABLES = {
    "ordinary": "nim TEXT PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL",
    "varchar": "nim VARCHAR(20) PRIMARY KEY, nama VARCHAR(50) NOT NULL, alamat VARCHAR(100) NOT NULL",
    "nothing not null": "nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT",
    "another order": "alamat TEXT NOT NULL, nama TEXT NOT NULL, nim CHARACTER(8) NOT NULL PRIMARY KEY",
    "unique": "nim TEXT NOT NULL, nama TEXT NOT NULL, alamat TEXT NOT NULL, CONSTRAINT satu UNIQUE (nim)",
    "bounded": "nim TEXT PRIMARY KEY CHECK (length(nim) < 300), nama TEXT NOT NULL, alamat TEXT NOT NULL DEFAULT 'Solo'",
}
KEPT = [("0001", "Siti", "Solo"), ("20/2", "Budi", "Bantul")]

UNUSABLE = {
    "a column too few": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT)",
    "a column too many": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT, kelas TEXT)",
    "a view": "CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE VIEW mahasiswa AS SELECT * FROM m",
    "a view of nothing": "CREATE VIEW mahasiswa AS SELECT * FROM nowhere",
    "an index": "CREATE TABLE m (nim TEXT, nama TEXT, alamat TEXT); CREATE INDEX mahasiswa ON m (nama)",
    "no key": "CREATE TABLE mahasiswa (nim TEXT NOT NULL, nama TEXT, alamat TEXT)",
    "another key": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT PRIMARY KEY, alamat TEXT)",
    "half a key": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT, PRIMARY KEY (nim, nama))",
    "the other half": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT, PRIMARY KEY (nama, nim)) WITHOUT ROWID",
    "not unique": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT); CREATE INDEX i ON mahasiswa (nim)",
    "unique for some": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT);"
    " CREATE UNIQUE INDEX i ON mahasiswa (nim) WHERE nama > ''",
    "unique by expression": "CREATE TABLE mahasiswa (nim TEXT, nama TEXT, alamat TEXT);"
    " CREATE UNIQUE INDEX i ON mahasiswa (nim || '')",
    "a number": "CREATE TABLE mahasiswa (nim INTEGER PRIMARY KEY, nama TEXT, alamat TEXT)",
    "a blob": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama BLOB, alamat TEXT)",
    "no type": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat)",
    "numeric by its type": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama DATE, alamat TEXT)",
    # SQLite looks for INT first: what is stored there becomes a number.
    "a whole number by its type": "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat POINTTEXT)",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a database may be made."""
    return tmp_path / "mahasiswa.db"


# ---- files that another program made


@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES)
def test_a_table_of_another_program_is_used_as_it_is(path: Path, columns: str) -> None:
    """Its records are listed, changed and removed, new ones are added, and its declaration stays to the letter."""
    make(path, f"CREATE TABLE mahasiswa ({columns})", KEPT)
    before = ask(path, "SELECT sql FROM sqlite_schema")

    async def use() -> None:
        store = await open_store(SQLiteURL(path))
        assert (await store.snapshot(10)).records == KEPT
        assert contents(path) == KEPT
        await store.update("20/2", "Budi Baru", "Klaten")
        await store.add("0000", "Ani", "")
        await store.delete("0001")
        await store.close()

    migrate(SQLiteURL(path))
    asyncio.run(use())
    assert contents(path) == [("0000", "Ani", ""), ("20/2", "Budi Baru", "Klaten")]
    assert ask(path, "SELECT sql FROM sqlite_schema") == before


@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES)
def test_a_table_of_another_program_refuses_the_same(path: Path, columns: str) -> None:
    """What our own table refuses is refused there too, for the same reason, and nothing is stored."""
    make(path, f"CREATE TABLE mahasiswa ({columns})", KEPT)
    writes: dict[tuple[str, str], list[tuple[str | None, str | None, str | None]]] = {
        ("nim", "missing"): [(None, "Ani", "Klaten")],
        ("nim", "duplicate"): [("0001", "Ani", "Klaten")],
        ("nim", "unaddressable"): [(".", "Ani", "Klaten"), ("..", "Ani", "Klaten")],
        ("nim", "too_long"): [("9" * 256, "Ani", "Klaten")],
        ("nim", "nul"): [("9\0", "Ani", "Klaten")],
        ("nama", "nul"): [("1", "\0Ani", "Klaten")],
        ("alamat", "nul"): [("1", "Ani", "Kla\0ten")],
        ("nama", "missing"): [("1", None, "Klaten")],
        ("alamat", "missing"): [("1", "Ani", None)],
    }

    async def use() -> None:
        store = await open_store(SQLiteURL(path))
        for reason, records in writes.items():
            for record in records:
                assert await refusal(store.add(*record)) == reason
                if reason[0] != "nim":
                    assert await refusal(store.update("0001", *record[1:])) == reason
        await store.close()

    migrate(SQLiteURL(path))
    asyncio.run(use())
    assert contents(path) == KEPT


def test_a_rule_of_another_program_is_a_refusal(path: Path) -> None:
    """A constraint or a trigger that we know nothing of makes a form with a message, not an error; nothing is done."""
    make(
        path,
        "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT NOT NULL UNIQUE, alamat TEXT NOT NULL CHECK (alamat != 'Bulan'));"
        "CREATE TRIGGER t BEFORE DELETE ON mahasiswa WHEN OLD.nim = '0001' BEGIN SELECT RAISE(ABORT, 'tetap'); END",
        KEPT,
    )
    with Service(path) as service, service.site() as site:
        for answer in (site.add("1", "Ani", "Bulan"), site.add("1", "Siti", "Solo"), site.edit("20/2", "Siti", "Solo")):
            assert answer.status_code == 400
            page = Page(answer.text, service.url)
            assert page.record_form.values["nama"] in ("Ani", "Siti")
            assert "Data ditolak oleh aturan basis data" in page.html
        assert site.delete("0001").status_code == 400
        assert [row[1:] for row in site.list().rows] == KEPT


@pytest.mark.parametrize("conflict", ["REPLACE", "IGNORE", "ROLLBACK", "FAIL"])
def test_a_table_that_settles_conflicts_its_own_way(path: Path, conflict: str) -> None:
    """A nim that is there is refused; the record is not overwritten, and neighbours in the transaction are stored."""
    make(path, f"CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY ON CONFLICT {conflict}, nama TEXT, alamat TEXT)", KEPT)
    assert attempts(path, (KEPT[0][0], "Ani", "Klaten"), ("3", "Ina", "Solo")) == [("nim", "duplicate"), None]
    assert contents(path) == [*KEPT, ("3", "Ina", "Solo")]


@pytest.mark.parametrize("action", ["RAISE(ABORT, 'x')", "RAISE(ROLLBACK, 'x')", "json('{')"])
def test_a_trigger_of_another_program_refuses_a_record_alone(path: Path, action: str) -> None:
    """Also one that takes the whole transaction back, or fails: neighbours are stored."""
    make(
        path,
        "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT);"
        f"CREATE TRIGGER rule BEFORE INSERT ON mahasiswa WHEN NEW.alamat = 'x' BEGIN SELECT {action}; END",
    )
    told = attempts(path, ("1", "Siti", "Solo"), ("2", "Ani", "x"), ("3", "Ina", "Solo"))
    assert told == [None, "unavailable" if action.startswith("json") else ("", "rule"), None]
    assert contents(path) == [("1", "Siti", "Solo"), ("3", "Ina", "Solo")]


def attempts(path: Path, *records: tuple[str, str, str]) -> list[tuple[str, str] | str | None]:
    """Add records at the same time; return the outcome of each."""

    async def use() -> list[tuple[str, str] | str | None]:
        async with opened(SQLiteURL(path)) as store:
            return await outcomes(*(store.add(*record) for record in records))

    migrate(SQLiteURL(path))
    return asyncio.run(use())


@pytest.mark.parametrize("nim", ["NULL", "x'00ff'", "CAST(x'ff61' AS TEXT)"])
def test_a_key_that_is_no_text_stands_in_every_sorted_page(path: Path, nim: str) -> None:
    """Also deep in the list, where the keys are sorted alone."""
    make(
        path,
        "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        " INSERT INTO mahasiswa SELECT i, printf('Nama %05d', i), 'Solo' FROM n;"
        f"INSERT INTO mahasiswa VALUES ({nim}, 'Nama 01234 tanpa NIM', 'Solo')",
    )
    with Service(path) as service, service.site() as site:
        pages = [site.get(f"/?urut=nama&per=100&halaman={number}") for number in (12, 13, 14)]
        assert [page.status_code for page in pages] == [200, 200, 200]
        assert "Nama 01234 tanpa NIM" in pages[1].text
        assert pages[1].text.count("<tr>") == 101


def test_cells_that_are_no_text_are_shown_and_left_alone(path: Path) -> None:
    """NULL, a blob and text with a NUL are listed as well as they can be; the other records are as good as ever."""
    make(path, "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)", KEPT)
    ask(path, "INSERT INTO mahasiswa VALUES (NULL, 'tanpa nim', NULL), (NULL, 'lagi', ''), (x'3939', x'416e69', x'')")
    ask(path, "INSERT INTO mahasiswa VALUES ('nul', 'a' || char(0) || 'b', char(0))")
    odd = ask(path, "SELECT quote(nim), hex(nama), quote(alamat) FROM mahasiswa WHERE nama NOT IN ('Siti', 'Budi') ORDER BY rowid")  # fmt: skip
    with Service(path) as service, service.site() as site:
        rows = [row[1:] for row in site.list().rows]
        assert rows[:2] == [("", "tanpa nim", ""), ("", "lagi", "")]
        assert [row for row in rows if row in KEPT] == KEPT
        assert ("99", "Ani", "") in rows
        assert len(rows) == 6
        assert site.edit("0001", "Siti Baru", "Solo").status_code == 302
        assert site.delete("20/2").status_code == 302
        assert site.add("", "kosong", "").status_code == 302  # the empty text is a nim, and not NULL
        assert site.delete("").status_code == 302
        assert site.delete("99").status_code == 302  # a text is not that blob
    assert ask(path, "SELECT quote(nim), hex(nama), quote(alamat) FROM mahasiswa WHERE nama NOT LIKE 'Siti%' ORDER BY rowid") == odd  # fmt: skip


@pytest.mark.parametrize("cell", ["x'ff'", "CAST(x'ff' AS TEXT)"])
def test_bytes_that_are_no_text_do_not_take_the_list_away(path: Path, cell: str) -> None:
    """Cells that another program filled with bytes that are not UTF-8 are shown as such; all others are readable."""
    make(path, "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)", KEPT)
    ask(path, f"INSERT INTO mahasiswa VALUES ({cell}, 'a', 'b'), ('0005', {cell}, 'b'), ('0006', 'a', {cell})")
    with Service(path) as service, service.site() as site:
        rows = [row[1:] for row in site.list().rows]
        assert sorted(rows) == sorted([*KEPT, ("\ufffd", "a", "b"), ("0005", "\ufffd", "b"), ("0006", "a", "\ufffd")])
        form = site.page(site.path("/mahasiswa/edit/", "0005")).record_form
        assert form.values == {"nim": "0005", "nama": "\ufffd", "alamat": "b"}
        assert site.submit(form, nama="Ani").status_code == 302
        assert site.list().row("0005").cells[1:4] == ("0005", "Ani", "b")


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_a_key_that_is_no_text_does_not_trap_who_reads_in_pieces(path: Path, limit: int) -> None:
    """Piece after piece every text nim comes once, and there is an end, also where there are NULLs and blobs."""
    make(path, "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)", KEPT)
    ask(
        path,
        "INSERT INTO mahasiswa VALUES (NULL, 'a', ''), (NULL, 'b', ''), ('', '', ''), (x'30', 'c', ''), (x'39', 'd', '')",
    )

    async def use() -> None:
        store = await open_store(SQLiteURL(path))
        read: list[tuple[str, str, str]] = []
        for _ in range(10):
            if not (piece := await store.after(read[-1][0] if read else None, limit)):
                break
            read += piece
        else:
            pytest.fail("there is no end")
        await store.close()
        assert sorted(record for record in read if record in [("", "", ""), *KEPT]) == [("", "", ""), *KEPT]
        assert len(read) == len(set(read))

    migrate(SQLiteURL(path))
    asyncio.run(use())


def test_a_nim_that_our_own_table_refuses_is_edited_where_another_program_stored_it(path: Path) -> None:
    """A nim of 300 characters is in the file: it is listed, opened, edited and deleted like any other."""
    make(path, "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)", [("9" * 300, "Siti", "Solo")])
    with Service(path) as service, service.site() as site:
        row = site.list().row("9" * 300)
        form = site.page(row.links[0].target).record_form
        assert site.submit(form, nama="Ani").status_code == 302
        assert contents(path) == [("9" * 300, "Ani", "Solo")]
        assert site.submit(row.forms[0]).status_code == 302
        assert contents(path) == []


def test_names_in_another_case_are_the_same_to_sql(path: Path) -> None:
    """SQL does not tell `NIM` from `nim`: such a table is used too."""
    make(path, 'CREATE TABLE "Mahasiswa" (NIM TEXT PRIMARY KEY, Nama TEXT NOT NULL, "ALAMAT" TEXT NOT NULL)', KEPT)
    with Service(path) as service, service.site() as site:
        assert [row[1:] for row in site.list().rows] == KEPT
        assert site.add("0001", "Ani", "Klaten").status_code == 409
        assert site.post(site.path("/mahasiswa/add"), {"nim": "1", "nama": "Ani"}).status_code == 400
        assert site.add("1", "Ani", "Klaten").status_code == 302


def test_a_nim_is_found_by_its_bytes_whatever_the_table_compares_by(path: Path) -> None:
    """In a table that takes `ab` and `AB` for the same, the page of the one is not the page of the other."""
    make(path, "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY COLLATE NOCASE, nama TEXT, alamat TEXT)", [("ab", "Siti", "Solo")])  # fmt: skip
    with Service(path) as service, service.site() as site:
        assert site.get(site.path("/mahasiswa/edit/", "AB")).status_code == 404
        assert site.edit("AB", "Ani", "Klaten").status_code == 302
        assert site.delete("AB").status_code == 302
        assert site.add("AB", "Ani", "Klaten").status_code == 409
        assert contents(path) == [("ab", "Siti", "Solo")]


def test_other_tables_are_left_alone(path: Path) -> None:
    """A file may hold more than ours."""
    make(path, "CREATE TABLE dosen (nip TEXT PRIMARY KEY); INSERT INTO dosen VALUES ('1')")
    with Service(path) as service, service.site() as site:
        assert site.add("0001", "Siti", "Solo").status_code == 302
    assert ask(path, "SELECT * FROM dosen") == [("1",)]
    assert contents(path) == [("0001", "Siti", "Solo")]


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    """A file of no bytes, as `touch` or a mount makes it, is an SQLite database without tables."""
    path.touch()
    migrate(SQLiteURL(path))
    assert contents(path) == []


@pytest.mark.parametrize("script", UNUSABLE.values(), ids=UNUSABLE)
def test_a_table_that_cannot_be_ours_is_refused(path: Path, script: str) -> None:
    """Whatever else is called mahasiswa: one line says why, and the file stays as it is, to the byte."""
    make(path, script)
    before = path.read_bytes()
    with pytest.raises(Unusable) as refused:
        migrate(SQLiteURL(path))
    assert "mahasiswa" in str(refused.value)
    assert "None" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["mahasiswa.db"]


# ---- what is on disk


def test_there_is_a_write_ahead_log(path: Path) -> None:
    """The file's journal is the write-ahead log, for a new file and for one that another program made without."""
    make(path, "CREATE TABLE mahasiswa (nim TEXT PRIMARY KEY, nama TEXT, alamat TEXT)", KEPT)
    assert ask(path, "PRAGMA journal_mode") == [("delete",)]
    for file in (path, path.with_name("new.db")):
        with Service(file) as service, service.site() as site:
            assert ask(file, "PRAGMA journal_mode") == [("wal",)]
            site.add("1", "Ani", "Klaten")
            assert file.with_name(file.name + "-wal").stat().st_size > 0


def test_a_write_is_on_disk_when_it_is_answered(path: Path) -> None:
    """Each write that is committed by itself has had the write-ahead log synchronised before it returns."""
    synchronised: list[str] = []
    real = apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def __init__(self, name: "apsw.URIFilename | str | None", flags: list[int]) -> None:
            super().__init__(real, name, flags)
            self.name = name if isinstance(name, str) or name is None else name.filename()

        def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
            super().xSync(flags)
            synchronised.append(str(self.name))

    class Disk(apsw.VFS):
        def xOpen(self, name: "apsw.URIFilename | str | None", flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
            return File(name, flags)

    async def use() -> None:
        store = await open_store(SQLiteURL(path))
        for number in range(10):
            for write in (
                store.add(f"{number}", "Siti", "Solo"),
                store.update(f"{number}", "Budi", "Bantul"),
                store.delete(f"{number}"),
            ):
                synchronised.clear()
                await write
                assert f"{path}-wal" in synchronised
        synchronised.clear()
        await asyncio.gather(*(store.add(f"{number}", "Siti", "Solo") for number in range(100)))
        assert 0 < synchronised.count(f"{path}-wal") <= 10  # together, not each by itself
        await store.close()

    disk = Disk("observed", real, makedefault=True)
    try:
        migrate(SQLiteURL(path))
        asyncio.run(use())
    finally:
        disk.unregister()


def test_a_file_that_is_removed_does_not_come_back_empty(path: Path) -> None:
    """A worker that starts when the file has gone does not begin anew."""
    migrate(SQLiteURL(path))
    path.unlink()
    with pytest.raises(Unusable):
        asyncio.run(open_store(SQLiteURL(path)))
    assert not path.exists()


def test_a_write_to_a_file_that_is_removed_is_not_answered_as_stored(path: Path) -> None:
    """An answer of 302 means that the record is in the file; where the file has gone, no answer may say so."""
    with Service(path) as service, service.site() as site:
        assert site.add("0001", "Siti", "Solo").status_code == 302
        for file in path.parent.iterdir():
            file.unlink()
        assert site.add("0002", "Budi", "Bantul").status_code == 503


# ---- other programs at the same file


def test_a_change_of_another_program_is_shown_at_once(path: Path) -> None:
    """The list, the edit page and a refusal know what the `sqlite3` shell stored a moment ago."""
    with Service(path) as service, service.site() as site:
        for number in range(5):
            assert len(site.list().rows) == number
            ask(path, f"INSERT INTO mahasiswa VALUES ('{number}', 'Siti', 'Solo')")
            assert len(site.list().rows) == number + 1
            assert site.get(site.path("/mahasiswa/edit/", f"{number}")).status_code == 200
            assert site.add(f"{number}", "Ani", "Klaten").status_code == 409
        ask(path, "UPDATE mahasiswa SET nama = 'Budi' WHERE nim = '3'")
        assert site.list().row("3").cells[2] == "Budi"
        ask(path, "DELETE FROM mahasiswa")
        assert site.list().rows == []


def test_two_services_on_one_file(path: Path) -> None:
    """Each shows at once what the other one stored."""
    with Service(path) as one, Service(path) as two, one.site() as first, two.site() as second:
        for number, (writer, reader) in enumerate([(first, second), (second, first)] * 5):
            assert writer.add(f"{number}", "Siti", "Solo").status_code == 302
            assert len(reader.list().rows) == number + 1
            assert reader.add(f"{number}", "Siti", "Solo").status_code == 409


def test_a_write_waits_for_another_program(path: Path) -> None:
    """While another program writes, additions wait and pages are read; when it is done they are stored."""
    with Service(path) as service, service.site() as site, ThreadPoolExecutor() as threads, other(path) as execute:
        site.add("0001", "Siti", "Solo")
        execute("BEGIN IMMEDIATE")
        waiting = [
            send(threads, service, "/mahasiswa/add", b"nim=0002&nama=Budi&alamat=Bantul"),
            send(threads, service, "/mahasiswa/edit/0001", b"nama=Siti+Baru&alamat=Solo"),
            send(threads, service, "/mahasiswa/add", b"nim=0003&nama=Ani&alamat=Klaten"),
        ]
        execute("INSERT INTO mahasiswa VALUES ('0003', 'yang lain', '')")
        for answer in waiting:
            with pytest.raises(FutureTimeoutError):
                answer.result(0.3)
        assert [row[1:] for row in site.list().rows] == [("0001", "Siti", "Solo")]
        assert site.get(site.path("/mahasiswa/edit/", "0002")).status_code == 404
        execute("COMMIT")
        assert [answer.result(10).status_code for answer in waiting] == [302, 302, 409]
        assert [row[1:] for row in site.list().rows] == [
            ("0001", "Siti Baru", "Solo"),
            ("0002", "Budi", "Bantul"),
            ("0003", "yang lain", ""),
        ]


def test_a_write_that_waited_too_long_is_not_made(path: Path) -> None:
    """Another program does not let go: each write is answered 503, keeps what was typed, and is never made later."""
    with Service(path) as service, service.site() as site, ThreadPoolExecutor() as threads, other(path) as execute:
        site.add("0001", "Siti", "Solo")
        execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        add = send(threads, service, "/mahasiswa/add", b"nim=0002&nama=Budi&alamat=Bantul")
        edit = send(threads, service, "/mahasiswa/edit/0001", b"nama=Siti+Baru&alamat=Klaten")
        delete = send(threads, service, "/mahasiswa/delete/0001", b"")
        for future in (add, edit, delete):
            answer = future.result(20)
            assert answer.status_code == 503
            assert (
                "Data belum tersimpan karena basis data sedang tidak dapat diakses. Coba lagi beberapa saat lagi."
                in answer.text
            )
        assert time.monotonic() - began < 15
        values = [Page(future.result().text, service.url).record_form.values for future in (add, edit)]
        assert values == [
            {"nim": "0002", "nama": "Budi", "alamat": "Bantul"},
            {"nim": "0001", "nama": "Siti Baru", "alamat": "Klaten"},
        ]
        execute("ROLLBACK")
        assert site.add("0003", "Ani", "Klaten").status_code == 302
        assert contents(path) == [("0001", "Siti", "Solo"), ("0003", "Ani", "Klaten")]


def test_a_table_that_another_program_takes_away(path: Path) -> None:
    """Without it each page says that the data cannot be reached; made anew, all is well again, the refusals too."""
    with Service(path) as service, service.site() as site:
        site.add("0001", "Siti", "Solo")
        (declared,) = ask(path, "SELECT sql FROM sqlite_schema")
        ask(path, "DROP TABLE mahasiswa")
        for answer in (site.get(site.path("/")), site.get(site.path("/mahasiswa/edit/", "0001"))):
            assert answer.status_code == 503
            assert "Data sedang tidak dapat ditampilkan. Coba lagi beberapa saat lagi." in answer.text
        for answer in (site.add("0002", "Budi", "Bantul"), site.edit("0001", "Ani", "Solo"), site.delete("0001")):
            assert answer.status_code == 503
            assert "Data belum tersimpan karena basis data sedang tidak dapat diakses." in answer.text
        ask(path, str(declared[0]))
        assert site.list().rows == []
        assert site.add("..", "Budi", "Bantul").status_code == 400
        assert site.add("0002", "Bu\0di", "Bantul").status_code == 400
        assert site.add("0002", "Budi", "Bantul").status_code == 302
        assert site.list().nims == ["0002"]


def test_a_disk_that_is_full_is_unavailable(path: Path) -> None:
    """A write for which there is no room is not made, its neighbours neither, and reading goes on."""
    real = apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def __init__(self, name: "apsw.URIFilename | str | None", flags: list[int]) -> None:
            super().__init__(real, name, flags)

        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
            if full:
                no_room()
            super().xWrite(data, offset)

    class Disk(apsw.VFS):
        def xOpen(self, name: "apsw.URIFilename | str | None", flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
            return File(name, flags)

    def no_room() -> NoReturn:
        raise apsw.FullError("no room")

    async def use() -> None:
        store = await open_store(SQLiteURL(path))
        await store.add("0001", "Siti", "Solo")
        full.append(True)
        outcomes = await asyncio.gather(
            *(store.add(f"{number}", "Siti", "Solo" * 5000) for number in range(3)),
            store.delete("0001"),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [Unavailable] * 4
        assert await store.get("0001") == ("0001", "Siti", "Solo")
        full.clear()
        await store.add("0002", "Budi", "Bantul")
        await store.close()

    full: list[bool] = []
    disk = Disk("small", real, makedefault=True)
    try:
        migrate(SQLiteURL(path))
        asyncio.run(use())
    finally:
        disk.unregister()
    assert contents(path) == [("0001", "Siti", "Solo"), ("0002", "Budi", "Bantul")]


def make(path: Path, script: str, records: Sequence[tuple[str, str, str]] = ()) -> None:
    """Have another program make a database."""
    rows = "".join(
        f"; INSERT INTO mahasiswa (nim, nama, alamat) VALUES ('{nim}', '{nama}', '{alamat}')"
        for nim, nama, alamat in records
    )
    subprocess.run([sys.executable, "-ISc", MAKER, str(path), script + rows], check=True)


def ask(path: Path, statement: str) -> list[tuple[object, ...]]:
    """Have another program run one statement; return its rows."""
    with other(path) as execute:
        return execute(statement)


def contents(path: Path) -> list[tuple[object, ...]]:
    """Return the records as another program reads them."""
    return ask(path, "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim")


@contextmanager
def other(path: Path) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """Run another program that has the file open; what is yielded has it run a statement and returns the rows."""
    with subprocess.Popen(
        [sys.executable, "-ISc", OTHER_PROGRAM, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        ask, answer = process.stdin, process.stdout

        def execute(statement: str) -> list[tuple[object, ...]]:
            print(statement.replace("\n", " "), file=ask, flush=True)
            rows: list[tuple[object, ...]] = ast.literal_eval(answer.readline())
            return rows

        yield execute


def send(threads: ThreadPoolExecutor, service: Service, path: str, body: bytes) -> "Future[httpx.Response]":
    """Send a form from another thread, on a connection of its own."""
    headers = {"content-type": URL_ENCODED}
    return threads.submit(httpx.post, service.url + path, content=body, headers=headers, timeout=30, trust_env=False)

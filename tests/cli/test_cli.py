"""The command line as an operator has it: real commands, their exit codes, what they say and what they leave alone."""

import os
import pty
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from harness import SETTINGS, Service, Site
from spreadsheets import HEADER, Database, Record, by_openpyxl, by_xlsxwriter, cells_of, csv

SECONDS = 60.0
COMMAND = [sys.executable, "-m", "mahasiswa"]
KEPT: list[Record] = [("1", "Ani", "Solo"), ("2", "Budi", "Bantul")]


class Operator:
    """Somebody at a shell, in a folder with a database; every command is run to its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "mahasiswa.db"
        inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        self.environment = inherited | {"DATABASE_URL": f"sqlite:///{self.database}"}

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `mahasiswa` with these arguments and further variables, nothing being a terminal."""
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=SECONDS,
        )

    def done(self, *arguments: str) -> str:
        """Run a command that must succeed in silence but for its result; return that."""
        answer = self.run(*arguments)
        assert (answer.returncode, answer.stderr) == (0, "")
        return answer.stdout

    def failed(self, *arguments: str, code: int = 1, **environment: str) -> list[str]:
        """Run a command that must fail and say nothing on standard output; return the lines of standard error."""
        answer = self.run(*arguments, **environment)
        assert (answer.returncode, answer.stdout) == (code, ""), answer.stderr
        assert "Traceback" not in answer.stderr
        return answer.stderr.splitlines()

    def on_a_terminal(self, *arguments: str) -> tuple[int, str, bytes]:
        """Run a command whose standard error is a terminal; return its exit code, its output and what was drawn."""
        ours, theirs = pty.openpty()
        drawn: list[bytes] = []

        def read() -> None:
            with suppress(OSError):  # EIO when the last writer has gone
                while piece := os.read(ours, 65536):
                    drawn.append(piece)

        reader = threading.Thread(target=read)
        try:
            with subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=self.folder,
                env=self.environment | {"TERM": "xterm"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=theirs,
                encoding="utf-8",
            ) as process:
                os.close(theirs)
                reader.start()
                output, _ = process.communicate(timeout=SECONDS)
            reader.join()
        finally:
            os.close(ours)
        return process.returncode, output, b"".join(drawn)

    def write(self, name: str, data: bytes) -> str:
        """Write a file into the folder; return its name."""
        (self.folder / name).write_bytes(data)
        return name

    def fill(self, records: Sequence[Record]) -> None:
        """Bring records in, as the only ones."""
        self.database.unlink(missing_ok=True)
        self.done("import", self.write("isi.csv", csv(HEADER, *records)))

    def records(self) -> list[Record]:
        """Return every record of the database."""
        return records_of(self.database)

    def names(self) -> set[str]:
        """Return the names of all files in the folder, hidden ones too, but for the database's own."""
        return {path.name for path in self.folder.iterdir()} - {
            self.database.name + ending for ending in ("", "-wal", "-shm")
        }


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """Sit down in an empty folder."""
    return Operator(tmp_path)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service beside which commands are run."""
    with Service(tmp_path_factory.mktemp("cli") / "mahasiswa.db") as service:
        yield service


def records_of(path: Path) -> list[Record]:
    """Return the records of a database that no service of this process has open."""
    with_uri = f"file:{path}?mode=ro"
    db = sqlite3.connect(with_uri, uri=True)
    try:
        return db.execute("SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim").fetchall()
    finally:
        db.close()


# ---- import


def test_import_and_export_on_either_engine(operator: Operator, database: str) -> None:
    """What comes in by one file leaves by another, whichever DATABASE_URL says."""
    operator.environment["DATABASE_URL"] = database
    rows = [HEADER, ("001", "Siti Nur'aini, S.Kom.", "Jl. A, no. 1"), ("20/456839/TK/50663", "Émile 😀", "a\\b%s")]
    assert (
        operator.done("import", operator.write("a.csv", csv(*rows)))
        == "written: 2 new, 0 changed; left as they are: 0\n"
    )
    changed = [*rows[:2], (rows[2][0], "Emil", rows[2][2]), ("3", "Ina", "Solo")]
    said = operator.done("import", "--existing", "update", operator.write("b.csv", csv(*changed)))
    assert said == "written: 1 new, 1 changed; left as they are: 1\n"
    operator.done("export", "c.csv")
    assert (operator.folder / "c.csv").read_bytes() == b"\xef\xbb\xbf" + csv(*changed, separator=";")


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a"])
def test_import(operator: Operator, name: str) -> None:
    """A file of any kind comes in; one line says what was done; the database is made where there is none."""
    rows = [HEADER, ("002", "Budi", "Bantul"), ("001", "Émile", "Jl. “A”; no. 1"), ("", "", "")]
    data = by_xlsxwriter(*rows) if name == "a.xlsx" else csv(*rows, separator="\t")
    assert operator.done("import", operator.write(name, data)) == "written: 2 new, 0 changed; left as they are: 0\n"
    assert operator.records() == [("001", "Émile", "Jl. “A”; no. 1"), ("002", "Budi", "Bantul")]


@pytest.mark.parametrize(
    ("options", "said", "records"),
    [
        ([], "written: 1 new, 0 changed; left as they are: 2", [*KEPT, ("3", "Citra", "Klaten")]),
        (["--existing", "skip"], "written: 1 new, 0 changed; left as they are: 2", [*KEPT, ("3", "Citra", "Klaten")]),
        (
            ["--existing=update"],
            "written: 1 new, 1 changed; left as they are: 1",
            [KEPT[0], ("2", "Budi", "Sleman"), ("3", "Citra", "Klaten")],
        ),
        (["--dry-run"], "would be written: 1 new, 0 changed; left as they are: 2", KEPT),
        (["--dry-run", "--existing", "update"], "would be written: 1 new, 1 changed; left as they are: 1", KEPT),
    ],
)
def test_existing_records(operator: Operator, options: list[str], said: str, records: list[Record]) -> None:
    """They are skipped unless asked; a dry run says the same and writes nothing, not a byte; blank cells keep."""
    operator.fill(KEPT)
    before = operator.database.read_bytes()
    name = operator.write("a.csv", csv(HEADER, ("1", "Ani", "Solo"), ("2", "", "Sleman"), ("3", "Citra", "Klaten")))
    assert operator.done("import", name, *options) == said + "\n"
    assert operator.records() == records
    assert (operator.database.read_bytes() == before) == ("--dry-run" in options)


def test_a_wrong_row_and_nothing_is_written(operator: Operator) -> None:
    """Each is named with the file, its row and the reason; the right rows are not written either."""
    operator.fill(KEPT)
    table = csv(
        HEADER, ("3", "Citra", "Klaten"), ("", "Dewi", "Solo"), ("4", "E", "S"), ("1,2E+11", "F", "S"), ("4", "G", "S")
    )
    name = operator.write("daftar baru.csv", table)
    for options in ([], ["--dry-run"], ["--existing", "update"]):
        lines = operator.failed("import", name, *options)
        assert [line.split(". ")[0] for line in lines] == [
            "daftar baru.csv: Baris 3: NIM kosong atau berisi galat",
            "daftar baru.csv: Baris 5: NIM 1,2E+11 sudah dibulatkan oleh Excel, jadi angka aslinya hilang",
            "daftar baru.csv: Baris 6: NIM 4 sudah ada di baris 4 berkas ini",
        ]
    assert operator.records() == KEPT


def test_a_new_record_needs_every_text(operator: Operator) -> None:
    """A blank cell is no text for a record that is not there yet; the row is named."""
    operator.fill(KEPT)
    name = operator.write("a.csv", csv(HEADER, ("9", "Zainab", "Solo"), ("8", "", "Solo"), ("1", "", "")))
    (line,) = operator.failed("import", name)
    assert line == "a.csv: Baris 3: Nama atau Alamat kosong. Isi keduanya untuk mahasiswa baru."
    assert operator.records() == KEPT


def test_many_wrong_rows_do_not_flood_the_terminal(operator: Operator) -> None:
    """The first hundred are named, the others counted."""
    name = operator.write("a.csv", csv(HEADER, *(("", f"Nama {n}", "x") for n in range(250))))
    lines = operator.failed("import", name)
    assert lines[99].startswith("a.csv: Baris 101: ")
    assert lines[100:] == ["a.csv: and 150 more rows"]


def test_a_doubtful_nim_is_said_and_written(operator: Operator) -> None:
    """A NIM that may have lost its zeros is a warning on standard error; the exit code is still 0."""
    name = operator.write("a.csv", csv(HEADER, ("0012", "A", "S"), ("0013", "B", "S"), ("14", "C", "S")))
    answer = operator.run("import", name)
    assert (answer.returncode, answer.stdout) == (0, "written: 3 new, 0 changed; left as they are: 0\n")
    assert answer.stderr.startswith("a.csv: Baris 4: NIM 14 lebih pendek dari NIM lainnya (4 digit).")
    assert len(operator.records()) == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "Berkas ini bukan lembar kerja yang dapat dibaca."),
        (b"PK\3\4" + bytes(100), "Berkas ini bukan lembar kerja yang dapat dibaca."),
        (b"", "Berkas ini kosong."),
        (b"Nama;Alamat\r\nAni;Solo\r\n", "Kolom NIM tidak ditemukan."),
        (b'NIM;Nama;Alamat\r\n1;"Ani;Solo\r\n', "Baris 2: tanda kutip"),
    ],
    ids=["a picture", "a zip", "empty", "no NIM", "an open quote"],
)
def test_a_file_that_cannot_be_read(operator: Operator, data: bytes, words: str) -> None:
    """One line with the file and the reason."""
    operator.fill(KEPT)
    (line,) = operator.failed("import", operator.write("a.csv", data))
    assert line.startswith(f"a.csv: {words}")
    assert operator.records() == KEPT


def test_more_than_the_web_takes(operator: Operator) -> None:
    """There is no limit of 10,000 rows here, neither for text nor for a workbook."""
    rows = [(f"{n:05}", f"Nama {n}", "Solo") for n in range(12_000)]
    said = operator.done("import", operator.write("a.csv", csv(HEADER, *rows[:11_000])))
    assert said.startswith("written: 11000 new")
    said = operator.done("import", operator.write("a.xlsx", by_xlsxwriter(HEADER, *rows)))
    assert said == "written: 1000 new, 0 changed; left as they are: 11000\n"
    assert operator.records() == rows


# ---- export


def test_export(operator: Operator) -> None:
    """By the ending; a dash is CSV on standard output, and nothing else is."""
    operator.fill([("001", "Émile", "=1+1"), ("12345678901234567890", "Budi", "Bantul")])
    text = "\ufeffNIM;Nama;Alamat\r\n001;Émile;'=1+1\r\n12345678901234567890;Budi;Bantul\r\n".encode()
    assert operator.done("export", "keluar.csv") == "2 records in keluar.csv\n"
    assert (operator.folder / "keluar.csv").read_bytes() == text
    answer = subprocess.run(
        [*COMMAND, "export", "-"], env=operator.environment, capture_output=True, check=True, timeout=SECONDS
    )
    assert (answer.stdout, answer.stderr) == (text, b"")
    assert operator.done("export", "KELUAR.XLSX") == "2 records in KELUAR.XLSX\n"
    rows = cells_of((operator.folder / "KELUAR.XLSX").read_bytes())
    assert [tuple(cell.value for cell in row) for row in rows] == [HEADER, *operator.records()]


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_there_and_back(operator: Operator, name: str) -> None:
    """What was exported is imported to the byte, and a second time changes nothing."""
    operator.fill([("001", "'=1+1", "=1+1"), ("002", "  Émile ", "Gang “B”"), ("X/3", "漢字", "a\\b")])
    records = operator.records()
    operator.done("export", name)
    again = operator.done("import", name, "--existing", "update")
    assert again == "written: 0 new, 0 changed; left as they are: 3\n"
    operator.database.unlink()
    operator.done("import", name)
    assert operator.records() == records


def test_an_export_that_fails_leaves_what_was_there(operator: Operator) -> None:
    """A text that no workbook holds: the reason, the old file as it was, and nothing half-written beside it."""
    operator.fill([*KEPT, ("3", "x" * 40_000, "Solo")])
    operator.write("a.xlsx", b"yang lama")
    names = operator.names()
    (line,) = operator.failed("export", "a.xlsx")
    assert line.startswith("a.xlsx: Nama untuk NIM 3 lebih dari 32.767 karakter, batas sel Excel.")
    assert (operator.folder / "a.xlsx").read_bytes() == b"yang lama"
    assert operator.names() == names


def test_an_export_that_fails_in_the_middle_says_only_why(operator: Operator) -> None:
    """Likewise far down a long list: one line, without a trace of the program's insides."""
    operator.fill([(f"{n:05}", "Ani", "Solo") for n in range(9000)])
    operator.done("import", operator.write("x.csv", csv(HEADER, ("00100x", "x" * 40_000, "Solo"))))
    lines = operator.failed("export", "a.xlsx")
    assert [line.split(" lebih")[0] for line in lines] == ["a.xlsx: Nama untuk NIM 00100x"]


def test_a_reader_that_stops_early(operator: Operator) -> None:
    """`mahasiswa export - | head -n 1`: no trace of the program's insides on the terminal."""
    operator.fill([(f"{n:06}", "x" * 100, "y" * 100) for n in range(9000)])
    with subprocess.Popen(
        [*COMMAND, "export", "-"], env=operator.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "\ufeffNIM;Nama;Alamat\r\n".encode()
        process.stdout.close()
        said = process.stderr.read().decode()
        process.wait(SECONDS)
    assert process.returncode in {0, 1}
    assert len(said.splitlines()) <= 1, said


def test_an_export_is_replaced_by_the_next(operator: Operator) -> None:
    """Whole, under the same name."""
    operator.fill(KEPT)
    operator.done("export", "a.csv")
    operator.done("import", operator.write("b.csv", csv(HEADER, ("3", "Citra", "Klaten"))))
    operator.done("export", "a.csv")
    assert (operator.folder / "a.csv").read_bytes().count(b"\r\n") == 4


# ---- wrong use and what is not there


@pytest.mark.parametrize(
    "arguments",
    [
        ["import"],
        ["import", "tidak-ada.csv"],
        ["import", "."],
        ["import", "a.csv", "--existing", "delete"],
        ["import", "a.csv", "b.csv"],
        ["import", "a.csv", "--force"],
        ["export"],
        ["export", "a.ods"],
        ["export", "a"],
        ["backup"],
        ["hapus"],
        ["--verbose"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_2(operator: Operator, arguments: list[str]) -> None:
    """Nothing is opened or written; standard error says what would have been right."""
    operator.write("a.csv", csv(HEADER, *KEPT))
    assert operator.failed(*arguments, code=2)
    assert operator.names() == {"a.csv"}
    assert not operator.database.exists()


@pytest.mark.parametrize("arguments", [["import", "a.csv"], ["export", "b.csv"], ["backup", "b.db"]], ids=" ".join)
def test_a_wrong_setting_is_2(operator: Operator, arguments: list[str]) -> None:
    """One line names it."""
    operator.write("a.csv", csv(HEADER, *KEPT))
    (line,) = operator.failed(*arguments, code=2, DATABASE_URL="mysql://localhost")
    assert line.startswith("mahasiswa: DATABASE_URL must be ")


@pytest.mark.parametrize("arguments", [["import", "a.csv"], ["export", "b.csv"], ["backup", "b.db"]], ids=" ".join)
def test_a_database_that_cannot_be_used_is_1(operator: Operator, arguments: list[str]) -> None:
    """One line says which and why."""
    operator.write("a.csv", csv(HEADER, *KEPT))
    operator.write("bukan.db", b"bukan basis data" * 100)
    (line,) = operator.failed(*arguments, DATABASE_URL=f"sqlite:///{operator.folder}/bukan.db")
    assert "bukan.db" in line
    (line,) = operator.failed(*arguments, DATABASE_URL=f"sqlite:///{operator.folder}/tidak/ada.db")
    assert "tidak" in line
    assert operator.names() == {"a.csv", "bukan.db"}


@pytest.mark.parametrize("arguments", [["export", "tidak/ada.csv"], ["backup", "tidak/ada.db"]], ids=" ".join)
def test_a_folder_that_is_not_there_is_1(operator: Operator, arguments: list[str]) -> None:
    """One line names it."""
    operator.fill(KEPT)
    (line,) = operator.failed(*arguments)
    assert "tidak" in line


@pytest.mark.parametrize(
    ("command", "examples"),
    [
        ("import", ["mahasiswa import mahasiswa.xlsx --dry-run", "mahasiswa import mahasiswa.csv --existing update"]),
        ("export", ["mahasiswa export mahasiswa.xlsx", "mahasiswa export - | gzip > mahasiswa.csv.gz"]),
        ("backup", ['mahasiswa backup "mahasiswa-$(date +%F).db"']),
    ],
)
def test_help_has_examples(operator: Operator, command: str, examples: list[str]) -> None:
    """Each command explains itself with lines that can be copied."""
    lines = [line.strip() for line in operator.done(command, "--help").splitlines()]
    for example in examples:
        assert example in lines
    assert command in operator.done("--help")
    assert not operator.database.exists()


# ---- a terminal


def test_a_bar_on_a_terminal_and_none_in_a_pipe(operator: Operator) -> None:
    """It goes up to the end, and is drawn on standard error alone; `done` above shows that a pipe gets none of it."""
    name = operator.write("a.csv", csv(HEADER, *((f"{n:05}", f"Nama {n}", "Solo") for n in range(20_000))))
    code, output, drawn = operator.on_a_terminal("import", name)
    assert (code, output) == (0, "written: 20000 new, 0 changed; left as they are: 0\n")
    assert b"Import" in drawn
    assert b"100%" in drawn
    assert drawn.count(b"%") > 2
    code, output, drawn = operator.on_a_terminal("export", "keluar.csv")
    assert (code, output) == (0, "20000 records in keluar.csv\n")
    assert b"Export" in drawn
    assert b"100%" in drawn
    code, output, drawn = operator.on_a_terminal("export", "-")
    assert (code, output.count("\n")) == (0, 20_001)
    assert b"100%" in drawn


def test_an_error_on_a_terminal_stands_on_its_own_line(operator: Operator) -> None:
    """The bar does not run into it."""
    code, output, drawn = operator.on_a_terminal("import", operator.write("a.csv", csv(HEADER, ("", "A", "B"))))
    assert (code, output) == (1, "")
    assert drawn.replace(b"\x1b[?25h", b"").splitlines()[-1].startswith(b"a.csv: Baris 2: NIM kosong")


# ---- while the service runs


@pytest.fixture
def beside(service: Service, tmp_path: Path) -> Iterator[tuple[Operator, Site]]:
    """Sit down beside the running service, whose list is empty."""
    operator = Operator(tmp_path)
    operator.database = database_of(service)
    operator.environment["DATABASE_URL"] = f"sqlite:///{operator.database}"
    other = Database(operator.database)
    other.fill([])
    other.close()
    with service.site() as site:
        yield operator, site


def database_of(service: Service) -> Path:
    """Return where a service keeps its records."""
    (path,) = [Path(value[10:]) for name, value in service._environment.items() if name == "DATABASE_URL"]
    return path


def test_the_next_page_shows_an_import(beside: tuple[Operator, Site]) -> None:
    """What the command has written is in the list at once, in the search and in the count."""
    operator, site = beside
    site.add("0", "Zainab", "Solo")
    assert len(site.list().rows) == 1
    operator.done("import", operator.write("a.csv", csv(HEADER, *KEPT)))
    assert [row[1:] for row in site.list().rows] == [("0", "Zainab", "Solo"), *KEPT]
    assert site.page("/?cari=budi").nims == ["2"]
    site.edit("2", "Budi", "Sleman")
    assert operator.done("export", "-").splitlines()[-1] == "2;Budi;Sleman"


def test_the_service_answers_during_an_import(beside: tuple[Operator, Site]) -> None:
    """Reads and writes go through while a long file comes in; each write that was acknowledged is there after it."""
    operator, site = beside
    rows = [(f"{n:06}", f"Nama {n}", "Jalan Kaliurang 5, Sleman") for n in range(150_000)]
    name = operator.write("a.csv", csv(HEADER, *rows))
    added: list[str] = []
    with subprocess.Popen(
        [*COMMAND, "import", name], cwd=operator.folder, env=operator.environment, stdout=subprocess.PIPE
    ) as process:
        while process.poll() is None:
            nim = f"x{len(added)}"
            assert site.add(nim, "Zainab", "Solo").status_code == 302
            added.append(nim)
            assert site.get("/?cari=Zainab&per=10").status_code == 200
    assert process.returncode == 0
    assert len(added) > 3
    text = operator.done("export", "-")
    assert text.count("\n") == 1 + len(rows) + len(added)
    assert all(f"\n{nim};Zainab;Solo" in text for nim in added)


def test_a_backup_while_the_service_writes(beside: tuple[Operator, Site], service: Service) -> None:
    """Each opens, is sound, and has all that was acknowledged before it began; it stands alone, in one file."""
    operator, _ = beside
    acknowledged: list[str] = []
    ended = threading.Event()

    def write() -> None:
        with service.site() as site:
            while not ended.is_set():
                nim = f"{len(acknowledged):06}"
                assert site.add(nim, "Zainab", "x" * 500).status_code == 302
                acknowledged.append(nim)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            before = list(acknowledged)
            name = f"cadangan-{number}.db"
            said = operator.done("backup", name)
            path = operator.folder / name
            assert said == f"{name}: {path.stat().st_size} bytes, verified\n"
            assert operator.names() == {f"cadangan-{n}.db" for n in range(number + 1)}
            db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            nims = [nim for (nim,) in db.execute("SELECT nim FROM mahasiswa ORDER BY nim")]
            db.close()
            assert set(before) <= set(nims)
            # One moment: no record without those that were acknowledged before it.
            assert nims == [f"{n:06}" for n in range(len(nims))]
    finally:
        ended.set()
        writer.join()
    assert len(acknowledged) > len(before) > 0


def test_a_backup_in_the_database_s_place_is_the_list(operator: Operator) -> None:
    """Restoring is putting the file there; the service starts on it and goes on."""
    operator.fill([*KEPT, ("3", "x" * 5000, "Solo")])
    operator.done("backup", "cadangan.db")
    records = operator.records()
    for ending in ("", "-wal", "-shm"):
        operator.database.with_name(operator.database.name + ending).unlink(missing_ok=True)
    (operator.folder / "cadangan.db").rename(operator.database)
    with Service(operator.database) as service, service.site() as site:
        assert [row[1:] for row in site.list().rows] == records
        assert site.add("4", "Dewi", "Solo").status_code == 302
        assert len(site.list().rows) == 4


@pytest.mark.parametrize("there", ["file", "empty file", "folder", "link to nothing", "database"])
def test_a_backup_never_replaces_anything(operator: Operator, there: str) -> None:
    """Whatever has the name keeps it."""
    operator.fill(KEPT)
    target = operator.folder / "cadangan.db"
    if there == "folder":
        target.mkdir()
    elif there == "link to nothing":
        target.symlink_to("tidak-ada.db")
    elif there == "database":
        target = operator.database
    else:
        target.write_bytes(b"" if there == "empty file" else b"penting")
    before = (target.lstat().st_ino, target.lstat().st_size, stat.S_IFMT(target.lstat().st_mode))
    names = operator.names()
    lines = operator.failed("backup", str(target), code=2 if there == "folder" else 1)
    assert "cadangan.db" in lines[-1] or "mahasiswa.db" in lines[-1]
    assert (target.lstat().st_ino, target.lstat().st_size, stat.S_IFMT(target.lstat().st_mode)) == before
    assert operator.names() == names
    assert operator.records() == KEPT


def test_a_backup_of_nothing_is_none(operator: Operator) -> None:
    """Where there is no database there is no copy, and the database is not made by asking for one."""
    (line,) = operator.failed("backup", "cadangan.db")
    assert "mahasiswa.db" in line
    assert operator.names() == set()
    assert not operator.database.exists()


def test_a_workbook_of_numbers(operator: Operator) -> None:
    """The rules of the pages hold here too: digits without a point, dates refused."""
    data = by_openpyxl(HEADER, (7, "Ani", "Solo"), (8.0, "Budi", 12))
    operator.done("import", operator.write("a.xlsx", data))
    assert operator.records() == [("7", "Ani", "Solo"), ("8", "Budi", "12")]


def test_all_records_are_copied_to_another_database_and_back(tmp_path: Path, database: str) -> None:
    """From SQLite to either engine and back: the same records, to the byte; one that holds records is refused."""
    operator = Operator(tmp_path / "first")
    operator.folder.mkdir()
    operator.fill([*KEPT, ("20/456839/TK/50663", "Siti Nur'aini, S.Kom.", "Jl. <é> & '7'")])
    here, back = f"sqlite:///{operator.database}", f"sqlite:///{operator.folder}/back.db"
    assert operator.done("copy", "--from", here, "--to", database) == "3 records copied\n"
    assert operator.done("copy", "--from", database, "--to", back) == "3 records copied\n"
    assert records_of(operator.folder / "back.db") == operator.records()
    again = operator.run("copy", "--from", here, "--to", database)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "mahasiswa: the database to copy to holds records already\n"


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [("sqlite:///tidak-ada.db", 1, "tidak-ada.db does not exist"), ("mysql://x/y", 2, "--from and --to must be")],
)
def test_a_copy_from_nowhere_is_refused(operator: Operator, source: str, code: int, said: str) -> None:
    """Nothing is made in its place."""
    answer = operator.run("copy", "--from", source, "--to", "sqlite:///lain.db")
    assert answer.returncode == code
    assert said in answer.stderr
    assert not list(operator.folder.iterdir())

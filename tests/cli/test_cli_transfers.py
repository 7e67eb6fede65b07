"""`mahasiswa import`, `export` and `copy`: records, reports, and refused files."""

import shutil
from pathlib import Path

import pytest
from cli.operators import TWO, Operator
from spreadsheets import HEADER, Record, by_openpyxl, cells_of, csv, numbered
from stores import execute

ADVICE = "Mend these rows. If they are only doubtful, the command with --accept-doubts writes them."


def test_records_are_imported_and_exported_on_either_engine(
    operator: Operator, database: str
) -> None:
    """DATABASE_URL chooses the engine."""
    operator.environment["DATABASE_URL"] = database
    rows = [
        HEADER,
        ("001", "Siti Nur'aini, S.Kom.", "Jl. A, no. 1"),
        ("20/456839/TK/50663", "Émile 😀", "a\\b%s"),
    ]
    said = operator.done("import", operator.write("a.csv", csv(*rows)))
    assert said == "written: 2 new, 0 changed; left as they are: 0\n"
    changed = [*rows[:2], (rows[2][0], "Emil", rows[2][2]), ("3", "Ina", "Solo")]
    said = operator.done("import", "--existing", "update", operator.write("b.csv", csv(*changed)))
    assert said == "written: 1 new, 1 changed; left as they are: 1\n"
    operator.done("export", "c.csv")
    quoted = ("001", '"Siti Nur\'aini, S.Kom."', '"Jl. A, no. 1"')
    assert (operator.folder / "c.csv").read_bytes() == b"\xef\xbb\xbf" + csv(
        HEADER, quoted, *changed[2:]
    )


CITRA = ("0003", "Citra", "Klaten")
BOTH = "written: 1 new, 1 changed; left as they are: 1\n"
OPTIONS = [
    ([], "written: 1 new, 0 changed; left as they are: 2\n", [*TWO, CITRA]),
    (["--existing=update"], BOTH, [TWO[0], ("0002", "Budi", "Sleman"), CITRA]),
    (["--dry-run", "--existing", "update"], f"would be {BOTH}", TWO),
]


@pytest.mark.parametrize(("options", "said", "records"), OPTIONS)
def test_import_skips_existing_records_unless_told_to_update(
    operator: Operator, options: list[str], said: str, records: list[Record]
) -> None:
    """A dry run reports the same and changes no byte. A blank cell keeps the text. The name needs no ending."""
    operator.fill(TWO)
    before = operator.database.read_bytes()
    rows = [("0001", "Ani", "Solo"), ("0002", "", "Sleman"), CITRA, ("", "", "")]
    assert (
        operator.done(
            "import", operator.write("a", csv(HEADER, *rows).replace(b";", b"\t")), *options
        )
        == said
    )
    assert operator.records() == records
    assert (operator.database.read_bytes() == before) == ("--dry-run" in options)


def test_an_import_with_doubts_is_refused_unless_they_are_accepted(operator: Operator) -> None:
    """Each row that is doubted or skipped is named with its number and the reason, on standard error."""
    rows = [
        ("0011", "Ani", "Solo"),
        HEADER,
        ("0011", "Ani", "Solo"),
        ("0012", "Budi", "Bantul"),
        ("", "Total", "2"),
        ("0014", "Fauzi 2", "Solo"),
    ]
    name = operator.write_rows(*rows)
    assert operator.failed("import", name) == [
        "mahasiswa: Baris 7: “Fauzi 2” tampaknya bukan nama.",
        ADVICE,
    ]
    assert operator.records() == []
    answer = operator.run("import", name, "--accept-doubts")
    assert answer.returncode == 0
    assert answer.stdout == "written: 3 new, 0 changed; left as they are: 0\n"
    _, *said = answer.stderr.splitlines()
    assert said == [
        "Baris 3: Tampaknya judul kolom, bukan data.",
        "Baris 4: Sama persis dengan baris lain, jadi dihitung sekali.",
        "Baris 6: Tampaknya jumlah atau catatan, bukan data mahasiswa.",
    ]


def test_an_import_of_several_sheets_names_the_sheet_of_each_row(operator: Operator) -> None:
    """Of those that it skips, and of those that it refuses."""
    student = ("0011", "Ani", "Solo")
    sheets = {"Kelas A": [HEADER, student, student], "Kelas B": [HEADER, ("0012", "", "Solo")]}
    name = operator.write("a.xlsx", by_openpyxl(**sheets))
    (line,) = operator.failed("import", name)
    assert line.startswith("mahasiswa: Kelas B, baris 2: Nama atau alamat kosong.")
    operator.fill([("0012", "Budi", "Solo")])
    _, line = operator.run("import", name).stderr.splitlines()
    assert line == "Kelas A, baris 3: Sama persis dengan baris lain, jadi dihitung sekali."


MANY_WRONG = [*(f"Baris {n}: " for n in range(2, 102)), "and 150 more rows", ADVICE]
REFUSED: dict[str, tuple[bytes, list[str]]] = {
    "wrong rows": (
        csv(HEADER, ("3", "Citra", "Klaten"), ("", "Dewi", "Solo"), ("4005", "#N/A", "Solo")),
        ["Baris 3: NIM kosong.", "Baris 4: “#N/A” tampaknya bukan nama.", ADVICE],
    ),
    "more than 100 wrong rows": (
        csv(HEADER, *numbered(250, "Siti", "Jalan {}", nim="#####")),
        MANY_WRONG,
    ),
    "no NIM": (b"Nama;Alamat\r\nAni;Solo\r\n", ["Judul kolom NIM tidak ditemukan."]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_import_writes_nothing(operator: Operator, reason: str) -> None:
    """Each wrong row is named with its number and the reason; at most 100 of them. The others are counted."""
    data, said = REFUSED[reason]
    operator.fill(TWO)
    first, *others = operator.failed("import", operator.write("daftar baru.csv", data))
    for line, beginning in zip([first.removeprefix("mahasiswa: "), *others], said, strict=True):
        assert line.startswith(beginning)
    assert operator.records() == TWO


def test_export_writes_csv_or_xlsx_by_the_ending(operator: Operator) -> None:
    """A dash is CSV on standard output. A file must have one of the two endings."""
    operator.fill([("001", "Émile", "=1+1"), ("12345678901234567890", "Budi", "Bantul")])
    rows = [HEADER, ("001", "Émile", "'=1+1"), ("12345678901234567890", "Budi", "Bantul")]
    operator.done("export", "-", before=["sh", "-c", '"$@" > lain.csv', "sh"])
    assert (operator.folder / "lain.csv").read_bytes() == b"\xef\xbb\xbf" + csv(*rows)
    assert operator.done("export", "KELUAR.XLSX") == "2 records in KELUAR.XLSX\n"
    cells = cells_of((operator.folder / "KELUAR.XLSX").read_bytes())
    assert [tuple(cell.value for cell in row) for row in cells] == [HEADER, *operator.records()]


@pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")
@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_an_export_to_a_full_disk_leaves_no_file(operator: Operator, name: str) -> None:
    """The last part of the file cannot be written either, so closing the file fails, too."""
    operator.fill([(f"{n:06}", f"Nama {n * 7919}", "x" * 100) for n in range(9000)])
    names = operator.names()
    said = operator.failed("export", name, before=["prlimit", "--fsize=100000", "--"])
    assert said == ["mahasiswa: File too large"]
    assert operator.names() == names


def test_an_export_whose_reader_stops_early_ends_silently(operator: Operator) -> None:
    """For example `mahasiswa export - | head -n 1`. The exit code is that of a program that SIGPIPE has ended."""
    operator.fill(numbered(9000, "x" * 100, "y" * 100, nim="{:06}"))
    answer = operator.run(
        "export", "-", before=["bash", "-c", 'set -o pipefail; "$@" | head -n 1', "bash"]
    )
    assert answer.returncode == 141
    assert answer.stdout == "\ufeffNIM;Nama;Alamat\n"
    assert answer.stderr == f"database: {operator.database}\n"


@pytest.fixture
def apart(tmp_path: Path) -> Operator:
    """Run commands in another folder than that of the fixture `database`."""
    (tmp_path / "first").mkdir()
    return Operator(tmp_path / "first")


def test_copy_copies_all_records_to_the_other_engine_and_back(
    apart: Operator, database: str
) -> None:
    """More than a batch of them, with texts that are special in PostgreSQL's COPY. A target that holds records is refused."""
    operator = apart
    operator.fill(
        [
            (f"{n:05}/é🎓\t\\N", "Siti\r\n\\.", "\x01 <é> & '7'" if n % 2 else "")
            for n in range(12_000)
        ]
    )
    here = f"sqlite:///{operator.database}"
    assert operator.done("copy", here, DATABASE_URL=database) == "12000 records copied\n"
    said = "mahasiswa: the database to copy to holds records already"
    assert operator.failed("copy", here, DATABASE_URL=database) == [said]
    back = Operator(operator.folder, operator.folder / "back.db")
    back.done("copy", database)
    assert back.records() == operator.records()


def test_the_history_of_a_copy_begins_with_one_import(operator: Operator) -> None:
    operator.fill(TWO)
    operator.done("import", operator.write_rows(("0001", "Ina", "Solo")), "--existing", "update")
    here = f"sqlite:///{operator.database}"
    operator.done("copy", here, DATABASE_URL="sqlite:///kedua.db")
    kept = execute(
        operator.folder / "kedua.db",
        "SELECT kind, rows, nama_before, nama_after FROM mahasiswa_history",
    )
    assert kept == [
        ("import", 2, None, None),
        (None, None, None, "Ina"),
        (None, None, None, "Budi"),
    ]

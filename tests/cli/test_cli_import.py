"""`mahasiswa import`: the records that it writes, its reports, and the files that it refuses."""

import re

import pytest
from operators import TWO, Operator, operator_in_empty_folder
from spreadsheets import HEADER, Record, by_xlsxwriter, csv

# The fixture, which pytest finds by this name.
__all__ = ["operator_in_empty_folder"]


def test_records_are_imported_and_exported_on_either_engine(operator: Operator, database: str) -> None:
    """DATABASE_URL chooses the engine."""
    operator.environment["DATABASE_URL"] = database
    rows = [HEADER, ("001", "Siti Nur'aini, S.Kom.", "Jl. A, no. 1"), ("20/456839/TK/50663", "Émile 😀", "a\\b%s")]
    assert operator.imported(operator.write("a.csv", csv(*rows))) == "written: 2 new, 0 changed; left as they are: 0"
    changed = [*rows[:2], (rows[2][0], "Emil", rows[2][2]), ("3", "Ina", "Solo")]
    said = operator.imported("--existing", "update", operator.write("b.csv", csv(*changed)))
    assert said == "written: 1 new, 1 changed; left as they are: 1"
    operator.done("export", "c.csv")
    expected = csv(*changed, separator=";").replace(rows[1][1].encode(), f'"{rows[1][1]}"'.encode())
    expected = expected.replace(rows[1][2].encode(), f'"{rows[1][2]}"'.encode())
    assert (operator.folder / "c.csv").read_bytes() == b"\xef\xbb\xbf" + expected


@pytest.mark.parametrize("name", ["a.xlsx", "a"])
def test_import_reads_a_file_of_any_kind(operator: Operator, name: str) -> None:
    """One line reports the result. The database is created if it does not exist."""
    rows = [HEADER, ("002", "Budi", "Bantul"), ("001", "Émile", "Jl. “A”; no. 1"), ("", "", "")]
    data = by_xlsxwriter(*rows) if name == "a.xlsx" else csv(*rows, separator="\t")
    assert operator.imported(operator.write(name, data)) == "written: 2 new, 0 changed; left as they are: 0"
    assert operator.records() == [("001", "Émile", "Jl. “A”; no. 1"), ("002", "Budi", "Bantul")]


@pytest.mark.parametrize(
    ("options", "said", "records"),
    [
        ([], "written: 1 new, 0 changed; left as they are: 2", [*TWO, ("3", "Citra", "Klaten")]),
        (
            ["--existing=update"],
            "written: 1 new, 1 changed; left as they are: 1",
            [TWO[0], ("2", "Budi", "Sleman"), ("3", "Citra", "Klaten")],
        ),
        (["--dry-run", "--existing", "update"], "would be written: 1 new, 1 changed; left as they are: 1", TWO),
    ],
)
def test_import_skips_existing_records_unless_told_to_update(
    operator: Operator, options: list[str], said: str, records: list[Record]
) -> None:
    """A dry run reports the same and changes no byte. A blank cell keeps the text of the record."""
    operator.fill(TWO)
    before = operator.database.read_bytes()
    name = operator.write("a.csv", csv(HEADER, ("1", "Ani", "Solo"), ("2", "", "Sleman"), ("3", "Citra", "Klaten")))
    assert operator.imported(name, *options) == said
    assert operator.records() == records
    assert (operator.database.read_bytes() == before) == ("--dry-run" in options)


def test_an_import_with_a_wrong_row_writes_nothing(operator: Operator) -> None:
    """Each wrong row is named with the file, its number and the reason."""
    operator.fill(TWO)
    table = csv(
        HEADER, ("3", "Citra", "Klaten"), ("", "Dewi", "Solo"), ("4", "E", "S"), ("1,2E+11", "F", "S"), ("4", "G", "S")
    )
    name = operator.write("daftar baru.csv", table)
    for options in ([], ["--dry-run"], ["--existing", "update"]):
        lines = operator.failed("import", name, *options)
        assert [line.split(". ")[0] for line in lines] == [
            "daftar baru.csv: Baris 3: NIM kosong atau berisi kesalahan rumus (misalnya #N/A)",
            "daftar baru.csv: Baris 5: NIM 1,2E+11 sudah dibulatkan oleh Excel, jadi angka aslinya hilang",
            "daftar baru.csv: Baris 6: NIM 4 ada di baris 4 dan baris 6",
        ]
    assert operator.records() == TWO


def test_an_import_reports_the_rows_that_it_sets_aside(operator: Operator) -> None:
    """Each is named with the file, its number and the reason, on standard error. The others are written."""
    rows = [("1", "Ani", "Solo"), HEADER, ("1", "Ani", "Solo"), ("2", "Budi", "Bantul"), ("", "Total", "2")]
    answer = operator.run("import", operator.write("a.csv", csv(HEADER, *rows)))
    assert (answer.returncode, answer.stdout.splitlines()[0]) == (0, "written: 2 new, 0 changed; left as they are: 0")
    assert answer.stderr.splitlines() == [
        "a.csv: Baris 3: Tampaknya judul kolom, bukan data. Baris ini dilewati.",
        "a.csv: Baris 4: Sama persis dengan baris 2, jadi dihitung sekali.",
        "a.csv: Baris 6: Tampaknya jumlah atau catatan, bukan data mahasiswa. Baris ini dilewati.",
    ]


def test_an_import_refuses_a_new_record_that_lacks_a_text(operator: Operator) -> None:
    """A blank cell keeps the text of a record, and a new record has none to keep."""
    operator.fill(TWO)
    name = operator.write("a.csv", csv(HEADER, ("9", "Zainab", "Solo"), ("8", "", "Solo"), ("1", "", "")))
    (line,) = operator.failed("import", name)
    assert line == "a.csv: Baris 3: Nama atau alamat kosong. Mahasiswa baru harus punya keduanya."
    assert operator.records() == TWO


def test_an_import_lists_at_most_100_wrong_rows(operator: Operator) -> None:
    """The others are counted."""
    name = operator.write("a.csv", csv(HEADER, *(("", f"Nama {n}", "x") for n in range(250))))
    lines = operator.failed("import", name)
    assert lines[99].startswith("a.csv: Baris 101: ")
    assert lines[100:] == ["a.csv: and 150 more rows"]


def test_an_import_warns_of_a_doubtful_nim_and_writes_it(operator: Operator) -> None:
    """The NIM may have lost leading zeros. The warning is on standard error, and the exit code is 0."""
    name = operator.write("a.csv", csv(HEADER, ("0012", "A", "S"), ("0013", "B", "S"), ("14", "C", "S")))
    answer = operator.run("import", name)
    assert (answer.returncode, answer.stdout.splitlines()[0]) == (0, "written: 3 new, 0 changed; left as they are: 0")
    assert answer.stderr.startswith("a.csv: Baris 4: NIM ini lebih pendek dari NIM lainnya (4 digit).")
    assert len(operator.records()) == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "Berkas ini bukan lembar kerja yang dapat dibaca."),
        (b"PK\3\4" + bytes(100), "Berkas ini bukan lembar kerja yang dapat dibaca."),
        (b"", "Berkas ini kosong (0 byte)."),
        (b"Nama;Alamat\r\nAni;Solo\r\n", "Kolom NIM tidak ditemukan."),
        (b'NIM;Nama;Alamat\r\n1;"Ani;Solo\r\n', "Baris 2: tanda kutip"),
    ],
    ids=["a picture", "a zip", "empty", "no NIM", "an open quote"],
)
def test_an_import_of_a_file_that_cannot_be_read_fails(operator: Operator, data: bytes, words: str) -> None:
    """One line has the file and the reason."""
    operator.fill(TWO)
    (line,) = operator.failed("import", operator.write("a.csv", data))
    assert line.startswith(f"a.csv: {words}")
    assert operator.records() == TWO


def test_an_import_by_command_has_no_limit_of_rows(operator: Operator) -> None:
    """The web takes 10,000 rows. The command takes more, as CSV and as a workbook."""
    rows = [(f"{n:05}", f"Nama {n}", "Solo") for n in range(12_000)]
    said = operator.imported(operator.write("a.csv", csv(HEADER, *rows[:11_000])))
    assert said.startswith("written: 11000 new")
    said = operator.imported(operator.write("a.xlsx", by_xlsxwriter(HEADER, *rows)))
    assert said == "written: 1000 new, 0 changed; left as they are: 11000"
    assert operator.records() == rows


def test_an_import_says_how_long_the_list_could_not_be_changed(operator: Operator, database: str) -> None:
    """The second line has the seconds, on either engine."""
    operator.environment["DATABASE_URL"] = database
    said = operator.done("import", operator.write("a.csv", csv(HEADER, *TWO)))
    assert re.fullmatch(r"written: 2 new, [^\n]+\nthe list could not be changed for \d+\.\d s\n", said)

"""Files of strangers, read by the child process into a stage: one table for each rule of an import."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import openpyxl  # type: ignore[import-untyped]
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from spreadsheets import by_openpyxl

from mahasiswa import wording
from mahasiswa.sheets.stage import Line, Purpose, Stage

HEADER = "NIM|Nama|Alamat"
SHEET = "xl/worksheets/sheet1.xml"
SITI = "2300018101|Siti Nur Aini|Jl. Kaliurang Km 5, Depok"
BUDI = "2300018102|Budi Santoso|Wates"


class Outcome(NamedTuple):
    """The lines that the child has put into the stage."""

    lines: Sequence[str]  # without problems
    problems: Mapping[int, str]  # the first of each line, by the number of the row
    skipped: Mapping[int, str]
    doubts: Sequence[str]  # of the sheets that are read
    error: str
    code: int


def read(folder: Path, data: bytes, purpose: Purpose = "impor") -> Outcome:
    with Stage.create(folder / "unggahan", purpose, "daftar.xlsx", "127.0.0.1") as stage:
        return read_again(stage, data)


def read_again(
    stage: Stage,
    data: bytes = b"",
    *,
    choice: object = None,
    version: int = 0,
) -> Outcome:
    version = version or stage.facts().version
    arguments = [str(stage.path), json.dumps({"choice": choice, "version": version})]
    (stage.path.parent / "spool").write_bytes(data)
    with (stage.path.parent / "spool").open("rb") as spool:
        command = [sys.executable, "-P", "-m", "mahasiswa.sheets.read", *arguments]
        ended = subprocess.run(command, stdin=spool, capture_output=True, check=False)
    rows = stage.db.execute("SELECT *, '' FROM line ORDER BY sheet, number").fetchall()
    lines = [Line._make(row) for row in rows]
    return Outcome(
        ["|".join(line[2:5]) for line in lines if not line.own + line.skipped],
        {line.number: line.own.split()[0] for line in lines if line.own and not line.skipped},
        {line.number: line.skipped for line in lines if line.skipped},
        [sheet.doubt for sheet in stage.sheets() if sheet.is_read and sheet.doubt],
        stage.facts().error,
        ended.returncode,
    )


def csv(*rows: str, separator: str = ";", encoding: str = "utf-8", end: str = "\r\n") -> bytes:
    return "".join(row.replace("|", separator) + end for row in rows).encode(encoding)


def xlsx(*rows: str) -> bytes:
    return by_openpyxl(*(row.split("|") for row in rows))


def repacked(data: bytes, part: str, old: str, new: str) -> bytes:
    """A workbook with another text in the XML of a part."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(file, "w") as target:
        for name in source.namelist():
            xml = source.read(name)
            target.writestr(name, xml.replace(old.encode(), new.encode()) if name == part else xml)
    return file.getvalue()


PLAIN = (HEADER, SITI, BUDI)
BY_LIBREOFFICE = Path(__file__).with_name("libreoffice")
KINDS = {
    "semicolons": csv(*PLAIN),
    "tabs": csv(*PLAIN, separator="\t"),
    "bars and CR": csv(*PLAIN, separator="|", end="\r"),
    "commas with quotes": csv(HEADER, SITI.replace("Jl. Kaliurang Km 5, Depok", '"Jl. Kaliurang Km 5, Depok"'), BUDI, separator=","),
    "a line that names the separator": csv("sep=;", *PLAIN),
    "UTF-8 with a mark": csv(*PLAIN, encoding="utf-8-sig"),
    "UTF-16 with a mark": csv(*PLAIN, separator="\t", encoding="utf-16"),
    "UTF-16 without a mark": csv(*PLAIN, encoding="utf-16-le"),
    "the end-of-file character of DOS": csv(*PLAIN) + b"\x1a",
    "a web page": f"<p>SIAKAD<table><tr>{''.join(f'<td>{cell}' for row in PLAIN for cell in (row + '|<tr>').split('|'))}</table>".encode(),
    "xlsx": xlsx(*PLAIN),
    "ods by LibreOffice": BY_LIBREOFFICE.with_suffix(".ods").read_bytes(),
    "xls by LibreOffice": BY_LIBREOFFICE.with_suffix(".xls").read_bytes(),
}  # fmt: skip


@pytest.mark.parametrize("data", KINDS.values(), ids=KINDS)
def test_a_list_is_read_from_each_kind_of_file(tmp_path: Path, data: bytes) -> None:
    outcome = read(tmp_path, data)
    assert list(outcome.lines) == [SITI, BUDI]
    assert outcome.error == ""


REFUSED = {
    wording.EMPTY: b"",
    wording.PDF: b"%PDF-1.4\n",
    wording.PICTURE: b"\xff\xd8\xff\xe0\0",
    wording.CONTACTS: b"BEGIN:VCARD\r\n",
    wording.DOCUMENT: b"{\\rtf1",
    wording.PACKED: b"Rar!",
    wording.OLD_EXCEL: b"\x09\x08\x08\0\0\0\x10\0",
    wording.DAMAGED: xlsx(*PLAIN)[:2000],
    wording.GOOGLE_LINK: b'{"doc_id": "1"}',
    wording.NO_ROWS: csv(HEADER),
    wording.OPEN_QUOTE.format(row=2): csv(HEADER, '2300018101|"Siti|Solo', BUDI),
    wording.TOO_MANY_ROWS.format(limit="10.000"): csv(HEADER, *(f"23{n:08}|Ani|Solo" for n in range(10_001))),
    wording.TOO_MANY_SHEETS.format(limit=200): by_openpyxl(**{str(name): [HEADER.split("|")] for name in range(201)}),
    wording.OTHER_TITLES.format(row=3): csv(HEADER, SITI, "NIDN|Nama|Alamat", "0512018801|Tono|Solo"),
    wording.LINES_NOT_READ: b"Nama: Siti\nNIM: 2300018101\nAlamat: Solo\n",
    wording.NAMES_NOT_PARTED: b"2300018101 SITI Jl. Solo 5, Depok\n2300018102 BUDI Jl. Wates 3, Mlati\n",
}  # fmt: skip


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path, sentence: str) -> None:
    outcome = read(tmp_path, REFUSED[sentence])
    assert outcome.error == sentence
    assert outcome.code == 0
    assert list(outcome.lines) == []


def test_a_text_of_windows_is_read_and_letters_of_a_mac_are_a_doubt(tmp_path: Path) -> None:
    row = "2300018101|André Nur’aini|Jl. Méga 5"
    assert read(tmp_path, csv(HEADER, row, encoding="windows-1252")).lines == [row]
    assert read(tmp_path, csv(HEADER, row, encoding="mac_roman")).problems == {2: "letters"}


# ---- columns

SURE = {
    "No|N.I.M.*|NAMA LENGKAP **)|ALAMAT (sesuai KTP) :": "1|2300018101|Ani|Solo",
    "NISN|Nomor Induk Siswa (NIS)|Nama Murid|Domisili": "0061234567|2300018101|Ani|Solo",
    "Tuliskan NIM Anda|Tuliskan nama lengkap Anda sesuai ijazah|Alamat Email|Alamat Tempat Tinggal": "2300018101|Ani|a@b|Solo",
    "NIM Lama|NIM|Nama Ayah|Nama|Alamat Orang Tua|Alamat": "9|2300018101|Budi|Ani|Wates|Solo",
    "First name|Surname|ID number|Address": "Ani|-|2300018101|Solo",
    "Nama Kelompok|NIM|Mahasiswa|Alamat": "Satu|2300018101|Ani|Solo",
    "NIM/NPM|Nama Mahasiswa/i|Jalan|RT": "2300018101|Ani|Solo|0",
}  # fmt: skip


@pytest.mark.parametrize("titles", SURE)
def test_titles_that_say_their_field_and_nothing_else_are_sure(tmp_path: Path, titles: str) -> None:
    assert read(tmp_path, csv(titles, SURE[titles])).lines == ["2300018101|Ani|Solo"]


def test_the_parts_of_an_address_are_joined_with_their_labels(tmp_path: Path) -> None:
    titles = "NIM|Nama|Alamat|RT|RW|Dusun|Desa/Kelurahan|Kecamatan|Kab/Kota|Kode Pos"
    rows = (
        "2300018101|Ani|Jl. A|3|7|Wates|Bener|Kec. Depok|Sleman|55281",
        "2300018102|Budi|Jl. B, RT 2, Wates|2|0|Wates|-|NULL||",
    )
    parts = "Jl. A, RT 3, RW 7, Dusun Wates, Kel. Bener, Kec. Depok, Sleman, Kode Pos 55281"
    lines = read(tmp_path, csv(titles, *rows)).lines
    assert lines == [f"2300018101|Ani|{parts}", "2300018102|Budi|Jl. B, RT 2, Wates"]


UNSURE = [
    (wording.NIM_NOT_TITLED, SITI, BUDI),
    (wording.NIM_NOT_TITLED, "Kode|Nama|Alamat", SITI),
    (wording.NO_OTHER_COLUMN, "NIM|Telepon", "2300018101|0812"),
    (wording.NIM_COUNTS_ROWS, "No|Nama|NIPD|Alamat", "1|Ani||Solo"),
    (wording.NIM_COUNTS_ROWS, HEADER, "1|Ani|Solo", "2|Budi|Wates", "4|Dwi|Bantul"),
    (wording.COLUMN_UNSURE.format(field="NIM"), "NIM|NIM Baru|Nama|Alamat", "9|2300018101|Ani|Solo"),
    (wording.COLUMN_UNSURE.format(field="Alamat"), "NIM|Nama|Alamat KTP|Alamat Domisili", SITI + "|Kos"),
    (wording.COLUMN_UNSURE.format(field="Nama"), "NIM|Nama|Nama Depan|Alamat", "2300018101|Ani|A|Solo"),
    (wording.COLUMN_UNSURE.format(field="Nama"), "NIM|Nama Depan|Alamat", SITI),
    (wording.COLUMN_UNSURE.format(field="Alamat"), "NIM|Nama|Kota", "2300018101|Ani|Solo"),
    (wording.COLUMN_UNSURE.format(field="Alamat"), "NIM|Nama|Alamat|Lahir|Kota", SITI + "|2001|Solo"),
    (wording.CELLS_WITHOUT_TITLE, HEADER, SITI + "|x", BUDI + "|y"),
    (wording.CELLS_WITHOUT_TITLE, "NIM|Nama|Alamat||HP", SITI + "|Sleman|0812"),
    (wording.EXCHANGED, HEADER, *(f"230001810{n}|Sleman|{name}" for n, name in enumerate(("Ani", "Budi", "Dwi", "Eka")))),
]  # fmt: skip


@pytest.mark.parametrize("doubt_and_rows", UNSURE)
def test_a_person_chooses_columns_that_are_not_sure(
    tmp_path: Path, doubt_and_rows: Sequence[str]
) -> None:
    doubt, *rows = doubt_and_rows
    outcome = read(tmp_path, csv(*rows))
    assert outcome.doubts == [doubt]
    assert list(outcome.lines) == []


def test_cells_of_columns_that_excel_hides_are_doubts(tmp_path: Path) -> None:
    data = repacked(
        xlsx(*PLAIN), "xl/worksheets/sheet1.xml",
        "<sheetData>", '<cols><col min="1" max="1" hidden="1"/></cols><sheetData>',
    )  # fmt: skip
    assert read(tmp_path, data).problems == {2: "hidden", 3: "hidden"}


def test_the_columns_that_a_person_chooses_are_read(tmp_path: Path) -> None:
    with Stage.create(tmp_path / "unggahan", "impor", "daftar.csv", "127.0.0.1") as stage:
        read_again(stage, csv("Kode|Nama|Tinggal", SITI, "2300018102|Budi|"))
        choice = [([(0, "nim"), (1, "nama")], True)]
        outcome = read_again(stage, choice=choice)
        assert outcome.lines == ["2300018101|Siti Nur Aini|", "2300018102|Budi|"]
        assert read_again(stage, choice=choice, version=1).code == 3, "another page was faster"


def test_sheets_with_all_fields_are_read_and_others_are_named(tmp_path: Path) -> None:
    sheets: dict[str, Sequence[Sequence[object]]] = {
        "Contoh": [HEADER.split("|"), ["1234567", "Contoh", "Solo"]],
        "A": [HEADER.split("|"), SITI.split("|")],
        "B": [["NIM", "Alamat", "Nama"], ["2300018102", "Wates", "Budi Santoso"]],
        "Nilai": [["NIM", "Nama", "Nilai"], ["2300018101", "Siti", 80]],
    }
    with Stage.create(tmp_path / "unggahan", "impor", "daftar.xlsx", "127.0.0.1") as stage:
        assert read_again(stage, by_openpyxl(**sheets)).lines == [SITI, BUDI]
        named = [(sheet.name, bool(sheet.is_read)) for sheet in stage.sheets()]
    assert named == [("Contoh", False), ("A", True), ("B", True), ("Nilai", False)]


# ---- lines

CLEANED = {
    '="2300018101"|Ani|Solo': "2300018101|Ani|Solo",
    "2300018101|Nur&#039;aini|Jl. A &amp; B": "2300018101|Nur'aini|Jl. A & B",
    "`2300018101|Ani|Solo": "2300018101|Ani|Solo",
    "2300018101.00|  Ani \u00a0 Sri |Jl.\tSolo": "2300018101|Ani Sri|Jl. Solo",
    "2300\u00ad018101|A\u200bni|\ufeffSolo": "2300018101|Ani|Solo",
    "2300018101|Andre\u0301|Solo": "2300018101|André|Solo",
    '2300018101|Ani|"Jl. Solo 1,\nRT 2"': "2300018101|Ani|Jl. Solo 1, RT 2",
    "23.11.5401|'Aisyah|Blok A-1": "23.11.5401|'Aisyah|Blok A-1",
}  # fmt: skip


@pytest.mark.parametrize("row", CLEANED)
def test_what_nobody_could_object_to_is_cleaned(tmp_path: Path, row: str) -> None:
    assert read(tmp_path, csv(HEADER, row, BUDI)).lines == [CLEANED[row], BUDI]


PROBLEMS = {
    "|Ani|Solo": "no_nim",
    f"{'1' * 256}|Ani|Solo": "long_nim",
    "..|Ani|Solo": "dot_nim",
    "2,30E+09|Ani|Solo": "rounded",
    "####|Ani|Solo": "masked",
    "#N/A|Ani|Solo": "error_nim",
    "01-02-2023|Ani|Solo": "date_nim",
    '2300018101|"Ani;Solo\r\n2300018102;Budi"|Wates': "swallowed",
    "2300018101|Ani|Solo|x": "more_cells",
    "TAMU|Ani|Solo": "no_digit",
    "230001800001345000|Ani|Solo": "zeros",
    "2.300.018.101|Ani|Solo": "separators",
    "23OOO18101|Ani|Solo": "separators",
    "NIM. 2300018101|Ani|Solo": "separators",
    "23‑001|Ani|Solo": "separators",
    "2300018101.5|Ani|Solo": "separators",
    "2300018101|Jl. Solo 1|Ani": "exchanged",
    "2300018101|Nurâ€™aini|Solo": "letters",
    "2300018101|Ani|Jl.Â Solo": "letters",
    "2300018101|Nur?aini|Solo": "letters",
    "2300018101|1. Ani|Solo": "not_nama",
    "2300018101|-|Solo": "not_nama",
    "2300018101|Ani|S.Pd, Solo": "degree",
    "2300018101|Ani|Jl. Solo 03-Jul": "date_alamat",
    "2300018101|Ani|0": "not_alamat",
    "2300018101|Ani|NULL": "not_alamat",
    "2300018101|Ani|idem": "not_alamat",
    "2300018101|Ani|08123456789": "not_alamat",
}


@pytest.mark.parametrize("row", PROBLEMS)
def test_each_problem_of_a_line_is_found(tmp_path: Path, row: str) -> None:
    outcome = read(tmp_path, csv(HEADER, row, BUDI))
    assert outcome.problems == {2: PROBLEMS[row]}
    assert outcome.lines == [BUDI]


def test_a_comma_that_moves_cells_is_a_problem(tmp_path: Path) -> None:
    rows = (
        "2301001,Ani, Solo,0812,",
        "2301002,Budi,Wates, Bantul",
        "2301003,Dwi,Klaten,0813",
        "2301004,Eka,Solo,",
    )
    outcome = read(tmp_path, csv("NIM,Nama,Alamat,HP", *rows))
    assert outcome.problems == {2: "more_cells", 3: "more_cells"}


def test_cells_that_calamine_does_not_tell_are_found(tmp_path: Path) -> None:
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    sheet = workbook.active
    for row in (
        HEADER.split("|"),
        [23001, "Ani", "Solo"],
        ["=1/0", "Budi", "Solo"],
        ["2301", "Dwi", "=A1"],
        [18101, "Eka", "Solo"],
    ):
        sheet.append(row)
    sheet["A2"].number_format = "0000000000"
    sheet["A5"].number_format = '"23000"00000'
    sheet.row_dimensions[2].hidden = True
    workbook.save(file)
    outcome = read(tmp_path, file.getvalue())
    assert outcome.problems == {2: "hidden", 3: "formula_nim", 4: "bad_text", 5: "damaged_nim"}


@pytest.mark.parametrize("index", [" 4 ", "-1"])
def test_a_damaged_index_of_a_text_never_gives_the_first_text(tmp_path: Path, index: str) -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet()
        for at, row in enumerate(PLAIN):
            sheet.write_row(at, 0, row.split("|"))
    damaged = repacked(file.getvalue(), SHEET, "<v>4</v>", f"<v>{index}</v>")
    outcome = read(tmp_path, damaged)
    assert outcome.lines == [BUDI]
    assert outcome.problems == {2: "bad_text"}


def test_backslashes_before_quotes_are_escapes(tmp_path: Path) -> None:
    data = csv(HEADER, r'2300018101|"Siti \"Ami\" Aminah"|"Gg. \"Melati\""')
    assert read(tmp_path, data).lines == ['2300018101|Siti "Ami" Aminah|Gg. "Melati"']


def test_rows_of_no_student_are_skipped_with_their_reason(tmp_path: Path) -> None:
    rows = (
        "SMK NEGERI 2 DEPOK|||", "No|" + HEADER, "(1)|(2)|(3)|(4)", "|KELAS X 1||", "1|" + SITI, "2||",
        "No|" + HEADER, "3|" + BUDI, "Jumlah|2||", "|||Sleman, 12 Juli 2026", "|Mengetahui,||Wali Kelas", "|||",
        "|Drs. Agus||Siti, S.Pd.", "|NIP. 19650101||", "4|||",
    )  # fmt: skip
    outcome = read(tmp_path, xlsx(*rows))
    assert outcome.lines == [SITI, BUDI]
    assert outcome.skipped == {
        3: "titles", 4: "heading", 7: "titles", 9: "total",
        10: "signature", 11: "signature", 13: "signature", 14: "signature",
    }  # fmt: skip


@pytest.mark.parametrize("rest", ["|Nur Aini|", "Klaten||", "RT 3/RW 7||"])
def test_a_line_of_one_text_below_a_student_holds_both(tmp_path: Path, rest: str) -> None:
    outcome = read(tmp_path, csv(HEADER, "2300018101|Siti|Solo", rest, BUDI))
    assert outcome.problems == {2: "continued", 3: "rest"}
    assert outcome.lines == [BUDI]


def test_a_student_without_a_nim_at_the_end_is_not_skipped(tmp_path: Path) -> None:
    assert read(tmp_path, csv(*PLAIN, "|Eko Saputra|Jl. Wates 3")).problems == {4: "no_nim"}


# ---- pasted lines, and lists of NIMs

PASTED = (
    "1. 2300018101 Siti Nur Aini, Jl. Kaliurang Km 5, Depok",
    "Siti Nur Aini - 2300018101 - Jl. Kaliurang Km 5, Depok",
    "[12/3 10.15] Bu Rina: Siti Nur Aini NIM 2300018101, Jl. Kaliurang Km 5, Depok",
    "12/03/24 10.15 - Bu Rina: 2300018101 Siti Nur Aini, Jl. Kaliurang Km 5, Depok",
)


@pytest.mark.parametrize("line", PASTED)
def test_a_pasted_line_is_split_at_its_nim_and_confirmed_by_a_person(
    tmp_path: Path, line: str
) -> None:
    with Stage.create(tmp_path / "unggahan", "impor", "", "127.0.0.1") as stage:
        assert read_again(stage, line.encode()).doubts == [wording.LINES_SPLIT]
        choice = [(list(stage.sheets()[0].columns.items()), True)]
        assert read_again(stage, choice=choice).lines == [SITI]


SELECTED = {
    "a column": (xlsx("No|NIM|Nama", "1|2300018101|Siti", "2|2300018102|"), ["2300018101|Siti|", "2300018102||"]),
    "one column without a title": (csv("2300018101", "2300018102"), ["2300018101||", "2300018102||"]),
    "lines": (b"1. 2300018101 Siti, Solo\n2. NIM 2300018102", ["1. 2300018101 Siti, Solo||", "2. NIM 2300018102||"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SELECTED)
def test_a_selection_needs_only_nims(tmp_path: Path, name: str) -> None:
    data, lines = SELECTED[name]
    assert read(tmp_path, data, purpose="pilih").lines == lines


# ---- hostile files

BOMB = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
) + "]>"  # fmt: skip
HOSTILE = {
    "entities that grow": repacked(
        repacked(xlsx(*PLAIN), SHEET, "<worksheet", BOMB + "<worksheet"),
        SHEET, "<sheetData>", "<a hidden=''>&i;</a><sheetData>",
    ),
    "deep XML": repacked(xlsx(*PLAIN), SHEET, "<sheetData>", "<a hidden=''>" * 2_000_000 + "<sheetData>"),
    "16,384 columns": csv("|".join(["x"] * 16_384), *["|".join(["1"] * 16_384)] * 400),
    "a line of 20 MB": b"NIM;Nama;Alamat\n" + b"x" * (20 << 20),
    "a web page that spans a million columns": b"<table><tr>" + b"<td colspan=999999999>x" * 1000,
    "a cell of 20 MB": b"<table><tr><td>" + b"x" * (20 << 20),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_the_child_or_is_refused(tmp_path: Path, name: str) -> None:
    outcome = read(tmp_path, HOSTILE[name])
    assert outcome.error or outcome.code
    assert not outcome.lines

"""An import: every kind of file, its columns, the form and the template."""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from harness import Service, Site
from hypothesis import given, settings
from hypothesis import strategies as st
from spreadsheets import (
    HEADER,
    IMPORT,
    SAVE,
    SHEET,
    Database,
    Importer,
    Record,
    another_program,
    by_libreoffice,
    by_openpyxl,
    by_xlsxwriter,
    csv,
    own_database,
    own_importer,
    own_service,
    own_site,
)

# The fixtures, which pytest finds by these names.
__all__ = ["another_program", "own_database", "own_importer", "own_service", "own_site"]

FIVE: list[Record] = [
    ("00123", "Ani", "Jl. Mawar 1"),
    ("20/456839/TK/50663", "Émile; “Budi”", "Gang 'B', no. 2"),
    ("12345678901234567890", '"Citra"', "Baris satu\nbaris dua"),
    ("A-7", "Dewi <b>", "=1+1"),
    ("B_8", "  Eko  ", "‘kutip’"),
]
"""Records whose texts a careless import would change."""

STORED_FIVE = [(nim, nama, alamat.replace("\n", ", ")) for nim, nama, alamat in FIVE]
"""The same as they are stored: the specification's inputs are single-line."""


def quoted(rows: Sequence[Sequence[str]], separator: str, end: str = "\r\n") -> str:
    """Return CSV with quotes around every cell."""
    return "".join(separator.join('"' + cell.replace('"', '""') + '"' for cell in row) + end for row in rows)


# ---- every kind of file

ALL_FIVE = [HEADER, *FIVE]
FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "csv with semicolons": ("daftar.csv", lambda: quoted(ALL_FIVE, ";").encode()),
    "csv with commas": ("daftar.csv", lambda: quoted(ALL_FIVE, ",").encode()),
    "csv with tabs": ("daftar.csv", lambda: quoted(ALL_FIVE, "\t").encode()),
    "csv with a byte order mark": ("daftar.csv", lambda: quoted(ALL_FIVE, ";").encode("utf-8-sig")),
    "csv in UTF-16": ("daftar.csv", lambda: quoted(ALL_FIVE, "\t").encode("utf-16")),
    "csv in big-endian UTF-16": (
        "daftar.txt",
        lambda: ("\ufeff" + quoted(ALL_FIVE, ";")).encode("utf-16-be"),
    ),
    "csv in Windows-1252": ("daftar.csv", lambda: quoted(ALL_FIVE, ";").encode("windows-1252")),
    "csv with line feeds": ("daftar.csv", lambda: quoted(ALL_FIVE, ",", "\n").encode()),
    "csv that declares its separator": ("daftar.csv", lambda: b"sep=,\r\n" + quoted(ALL_FIVE, ",").encode()),
    "xlsx of XlsxWriter": ("daftar.xlsx", lambda: by_xlsxwriter(*ALL_FIVE)),
    "xlsx under another name": ("daftar.csv", lambda: by_xlsxwriter(*ALL_FIVE)),
}


@pytest.mark.parametrize(("name", "make"), FILES.values(), ids=FILES)
def test_a_file_of_any_kind_is_imported(importer: Importer, name: str, make: Callable[[], bytes]) -> None:
    """The kind is recognised by the content. No text changes, except that a line break becomes a comma.

    Nothing is written before the confirmation.
    """
    preview = importer.upload(make(), name)
    assert preview.counts == {"Baru": 5, "Perlu diperiksa": 1}
    assert [(row.nim, *row.after) for row in preview.new] == STORED_FIVE
    assert (preview.wrong, len(preview.noticed), importer.records()) == ([], 1, [])
    importer.save(preview)
    assert importer.records() == sorted(STORED_FIVE)
    again = importer.upload(make(), name)
    assert again.counts == {"Tidak berubah": 5}
    assert [(row.nim, *row.after) for row in again.same] == STORED_FIVE
    assert again.buttons == []


@pytest.mark.parametrize("ending", ["ods", "xls", "xlsx"])
def test_a_file_of_libreoffice_is_imported(importer: Importer, ending: str, tmp_path: Path) -> None:
    """A number is imported as its digits."""
    rows = [*ALL_FIVE, (9001, "Fajar", 7), (77, "Gita", "Solo")]
    preview = importer.upload(by_libreoffice(by_openpyxl(*rows), ending, tmp_path), f"a.{ending}")
    importer.save(preview)
    # openpyxl writes the text `=1+1` as a formula, and LibreOffice calculates it.
    expected = [(nim, nama, "2" if alamat == "=1+1" else alamat) for nim, nama, alamat in STORED_FIVE]
    assert importer.records() == sorted([*expected, ("9001", "Fajar", "7"), ("77", "Gita", "Solo")])


def test_cells_pasted_from_excel_are_imported(importer: Importer) -> None:
    """Tabs separate the cells, and a cell with a line break has quotes around it."""
    pasted = 'NIM\tNama\tAlamat\r\n007\tAni "A"\t"Baris satu\r\nbaris ""dua"""\r\n008\t"Budi"\tSolo\r\n'
    preview = importer.paste(pasted)
    importer.save(preview)
    assert importer.records() == [("007", 'Ani "A"', 'Baris satu, baris "dua"'), ("008", '"Budi"', "Solo")]


def test_a_file_is_preferred_to_pasted_cells(importer: Importer) -> None:
    """If both were given, only the file is read."""
    preview = importer.shown(
        importer.send(csv(HEADER, ("1", "Berkas", "A")), "a.csv", "NIM\tNama\tAlamat\n2\tTempel\tB")
    )
    assert [row.nim for row in preview.new] == ["1"]


# ---- columns


@pytest.mark.parametrize(
    "header",
    [
        "NIM Nama Alamat",
        "nim NAMA alamat",
        "NPM Nama|Mahasiswa Alamat|Rumah",
        "NIPD Nama|Lengkap Alamat",
        "No.|Mahasiswa nama|mahasiswa ALAMAT|LENGKAP",
        "Nomor|Induk|Mahasiswa Nama|Lengkap|* Alamat|(KTP)",
    ],
)
@pytest.mark.parametrize("order", ["012", "210", "120"])
def test_an_import_finds_its_columns_in_any_order_and_case(importer: Importer, header: str, order: str) -> None:
    """People give the columns different names. Other columns are ignored."""
    names = [name.replace("|", " ") for name in header.split()]
    rows = [names, ["007", "Ani", "Solo"]]
    table = [["No", *(row[int(place)] for place in order), "Telepon"] for row in rows]
    table[1] = ["1", *table[1][1:-1], "0812"]
    importer.save(importer.upload(csv(*table, separator=",")))
    assert importer.records() == [("007", "Ani", "Solo")]


def test_an_import_without_a_header_reads_three_columns_in_order(importer: Importer) -> None:
    """The order is NIM, Nama, Alamat."""
    importer.save(importer.upload(csv(("007", "Ani", "Solo"), ("008", "Budi", "Bantul"))))
    assert importer.records() == [("007", "Ani", "Solo"), ("008", "Budi", "Bantul")]


def test_an_import_finds_the_header_below_a_title(importer: Importer) -> None:
    """Rows keep the numbers that Excel shows."""
    data = by_openpyxl(
        ("DAFTAR MAHASISWA",), (), ("Semester Ganjil",), HEADER, ("1", "Ani", "Solo"), (), ("2", "B", "")
    )
    preview = importer.upload(data, "a.xlsx")
    assert [(row.number, row.nim) for row in preview.new] == [(5, "1")]
    assert preview.wrong == ["Baris 7: Alamat kosong. Mahasiswa baru harus punya alamat. 2 · B"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([("Nama", "Alamat"), ("Ani", "Solo")], "Kolom NIM tidak ditemukan."),
        ([("NIM", "Telepon"), ("1", "0812")], "Kolom Nama dan Alamat tidak ditemukan."),
        ([("NIM", "Nama", "Alamat", "NIM"), ("1", "A", "B", "2")], "Kolom NIM ada dua (kolom A dan D)."),
        ([("1", "Ani", "Solo", "0812")], "Judul kolom tidak ditemukan."),
    ],
)
def test_an_import_without_clear_columns_is_refused(importer: Importer, table: list[Sequence[str]], words: str) -> None:
    """The page names the missing or ambiguous column, and the remedy."""
    for data, name in ((csv(*table), "a.csv"), (by_openpyxl(*table), "a.xlsx")):
        assert importer.refused(importer.send(data, name)).startswith(words)
    assert importer.records() == []


# ---- the form and the template


def test_the_list_links_to_the_import_form(importer: Importer) -> None:
    """The form has a file field and a text area."""
    (link,) = [link for link in importer.site.list().links if link.text == "Impor"]
    page = importer.site.page(link.target)
    assert link.target == IMPORT
    (form,) = page.forms
    assert (form.method, form.target, form.enctype, form.submit) == (
        "post",
        IMPORT,
        "multipart/form-data",
        "Lihat pratinjau",
    )
    assert [(field.name, field.type) for field in form.inputs] == [("berkas", "file")]
    (area,) = page.tree.css("textarea")
    assert area.attributes["name"] == "tempel"
    assert importer.site.send("POST", "/mahasiswa/impor/templat.xlsx").status_code == 405
    assert importer.site.get(SAVE).status_code == 405


def test_the_template_passes_its_own_import_empty_and_filled_in(importer: Importer) -> None:
    """The empty template has nothing to save. A row that another program adds is imported."""
    (link,) = [link for link in importer.site.page(IMPORT).links if link.text == "Unduh templat Excel"]
    answer = importer.site.get(link.target)
    assert answer.headers["content-type"] == SHEET
    assert answer.headers["content-disposition"] == 'attachment; filename="templat-mahasiswa.xlsx"'
    preview = importer.upload(answer.content, "templat.xlsx")
    assert (preview.counts, preview.buttons) == ({}, [])
    workbook = openpyxl.load_workbook(BytesIO(answer.content))
    assert [cell.value for cell in workbook.active[1]] == list(HEADER)
    assert {workbook.active.column_dimensions[column].width > 15 for column in "ABC"} == {True}
    for column, text in enumerate(("00012", "Ani", "Solo"), 1):
        workbook.active.cell(2, column, text)
    file = BytesIO()
    workbook.save(file)
    importer.save(importer.upload(file.getvalue(), "templat.xlsx"))
    assert importer.records() == [("00012", "Ani", "Solo")]


def test_an_import_works_below_the_path_of_base_url(tmp_path: Path) -> None:
    """A proxy may serve the application below a path."""
    with Service(tmp_path / "a.db", {"BASE_URL": "http://localhost:3000/ti"}) as service, service.site() as site:
        importer = Importer(site)
        assert {link.target[:4] for link in site.page("/ti/mahasiswa/impor").links} == {"/ti/"}
        importer.save(importer.upload(csv(HEADER, ("1", "Ani", "Solo"))))
        assert importer.records() == [("1", "Ani", "Solo")]


# ---- any file and any list

NIM = st.text("0123456789/A", min_size=3, max_size=5).filter(lambda nim: nim.strip("/A"))
TEXT = st.text("aé;,\"'<\t =-", max_size=6).map(lambda text: f"N{text}N")
ROWS = st.dictionaries(NIM, st.tuples(TEXT, TEXT), max_size=12)


@given(ROWS, ROWS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_an_import_writes_what_a_model_of_it_writes(
    site: Site, other: Database, stored: dict[str, tuple[str, str]], file: dict[str, tuple[str, str]], update: object
) -> None:
    """It holds for any stored records, any file and either choice, and for the counts of the preview."""
    importer = Importer(site)
    other.fill([(nim, *texts) for nim, texts in stored.items()])
    preview = importer.upload(quoted([HEADER, *((nim, *texts) for nim, texts in file.items())], ";").encode())
    new = file.keys() - stored.keys()
    changed = {nim for nim in file.keys() & stored.keys() if file[nim] != stored[nim]}
    assert (preview.counts.get("Baru", 0), preview.counts.get("Berubah", 0)) == (len(new), len(changed))
    assert preview.counts.get("Tidak berubah", 0) == len(file) - len(new) - len(changed)
    if preview.buttons:
        answer = site.post(SAVE, {"data": preview.data, "ada": "perbarui" if update else "lewati"})
        assert answer.status_code == 302
    assert bool(preview.buttons) == bool(new or changed)
    expected = {**file, **stored, **(file if update else {})}
    assert importer.records() == sorted((nim, *texts) for nim, texts in expected.items())

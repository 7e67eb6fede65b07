"""An import: every kind of file, its columns, the form and the template."""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from harness import Service, Site
from hypothesis import given, settings
from hypothesis import strategies as st
from spreadsheets import HEADER, IMPORT, SAVE, SHEET, Database, Importer, Record, by_xlsxwriter, csv

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
    "csv in big-endian UTF-16": (
        "daftar.txt",
        lambda: ("\ufeff" + quoted(ALL_FIVE, ";")).encode("utf-16-be"),
    ),
    "csv with carriage returns": ("daftar.csv", lambda: quoted(ALL_FIVE, ",", "\r").encode()),
    "csv with line feeds": ("daftar.csv", lambda: quoted(ALL_FIVE, ",", "\n").encode()),
    "xlsx of XlsxWriter": ("daftar.xlsx", lambda: by_xlsxwriter(*ALL_FIVE)),
    "xlsx under another name": ("daftar.csv", lambda: by_xlsxwriter(*ALL_FIVE)),
}


@pytest.mark.parametrize(("name", "make"), FILES.values(), ids=FILES)
def test_a_file_of_any_kind_is_imported(importer: Importer, name: str, make: Callable[[], bytes]) -> None:
    """The kind is recognised by the content. No text changes, except that a line break becomes a comma."""
    preview = importer.upload(make(), name)
    assert preview.counts == {"Baru": 5, "Perlu diperiksa": 2}
    assert [(row.nim, *row.after) for row in preview.new] == STORED_FIVE
    assert (preview.wrong, len(preview.noticed), importer.records()) == ([], 2, [])
    importer.save(preview)
    assert importer.records() == sorted(STORED_FIVE)
    again = importer.upload(make(), name)
    assert again.counts == {"Tidak berubah": 5}
    assert [(row.nim, *row.after) for row in again.same] == STORED_FIVE
    assert again.buttons == []


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


# ---- the form and the template


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

"""Downloads: all records or those of a search, with unchanged texts, as CSV and as a workbook."""

import re

import pytest
from apsw import Connection
from harness import Page, Site
from hostile import HOSTILE
from spreadsheets import HEADER, Record, cells_of
from stores import refill
from web.importer import accepted, counts, save, uploaded

XLSX, CSV = "/mahasiswa/ekspor.xlsx", "/mahasiswa/ekspor.csv"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

AWKWARD: list[Record] = [
    ("000123", "=1+1", "@SUM(A1:A9)"),
    ("12345678901234567890", "+62 812", "-5"),
    ("1E5", "'kutip", "''dua"),
    ("20/456839/TK/50663", "Émile; “Budi”", 'Gang "B", no. 2'),
    ("30", "Baris\nbaru", "\tTab\r\ndi depan"),
    ("31", "<b>&amp;</b> _x0041_", "{=1+1}"),
    ("32", "https://contoh.example/?a=1&b=2", "  spasi  "),
    ("33", "＝penuh", "TRUE"),
    ("34", "漢字 👩🏽‍🎓", "1.50"),
    ("35", '=HYPERLINK("http://jahat.example","klik")', "#N/A"),
]
"""Texts that a spreadsheet might change, in the order of their nims."""


def texts_of(xlsx: bytes) -> list[tuple[str, ...]]:
    """Return the texts of a workbook as Excel reads them. openpyxl does not decode `_x000D_`, and reads no text as None."""
    return [
        tuple(
            re.sub("_x([0-9A-F]{4})_", lambda escape: chr(int(escape[1], 16)), cell.value or "")
            for cell in row
        )
        for row in cells_of(xlsx)
    ]


@pytest.fixture
def awkward(site: Site, other: Connection) -> Site:
    refill(other, AWKWARD)
    return site


def test_every_cell_of_the_workbook_download_is_text(awkward: Site) -> None:
    """There is no formula, number or link. The header is bold and frozen and has filters."""
    data = awkward.get(XLSX).content
    cells = [cell for row in cells_of(data) for cell in row]
    assert texts_of(data) == [HEADER, *AWKWARD]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr"}
    assert {(cell.number_format, cell.hyperlink) for cell in cells} == {("@", None)}
    sheet = cells[0].parent
    assert cells[0].font.bold
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == f"A1:C{len(AWKWARD) + 1}"
    assert sheet.column_dimensions["B"].width >= max(len(nama) for _, nama, _ in AWKWARD)


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [(CSV, "text/csv; charset=utf-8", "mahasiswa.csv"), (XLSX, SHEET, "mahasiswa.xlsx")],
)
def test_a_download_has_a_type_a_name_and_a_length(
    awkward: Site, target: str, kind: str, name: str
) -> None:
    """HEAD has the same headers. Nothing is cached."""
    answer = awkward.get(target)
    head = awkward.request("HEAD", target)
    assert (head.status_code, head.content) == (200, b"")
    for headers in (answer.headers, head.headers):
        assert headers["content-type"] == kind
        assert headers["content-disposition"] == f'attachment; filename="{name}"'
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    assert answer.headers["content-length"] == str(len(answer.content))


COUNTS = {"cari=%C3%A9mile": 1, "cari=3&urut=nim&arah=turun&halaman=2&per=10": 9}


@pytest.mark.parametrize(("query", "count"), COUNTS.items())
def test_a_download_of_a_search_has_all_its_pages(awkward: Site, query: str, count: int) -> None:
    """The records have the order of the list. A wrong parameter is corrected."""
    found = awkward.page(f"/?{query}&halaman=1&per=500").records
    assert len(found) == count
    assert texts_of(awkward.get(f"{XLSX}?{query}").content) == [HEADER, *found]
    data = awkward.get(f"{CSV}?{query}").content
    assert data.startswith("\ufeffNIM;Nama;Alamat\r\n".encode())


def test_a_text_that_excel_cannot_hold_leads_to_a_page(site: Site, other: Connection) -> None:
    """The page names the record and offers CSV, which holds the text. The longest text that Excel holds is whole."""
    longest = ("7", "x" * 32_767, "Bantul")
    refill(other, [longest])
    assert texts_of(site.get(XLSX).content)[-1] == longest
    refill(other, [("7", "x" * 32_768, "Bantul")])
    answer = site.get(XLSX)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "content-disposition" not in answer.headers
    (text,) = Page(answer.text, XLSX).texts("main p:not(:has(a))")
    assert text.startswith("Nama untuk NIM 7 lebih dari 32.767 karakter, batas sel Excel.")
    assert text.endswith("unduh sebagai CSV.")
    assert f"7;{'x' * 32_768};Bantul" in site.get(CSV).text


# The texts that the cleaning of an import leaves alone.
TEXTS = [text for text in HOSTILE if text.strip() and not re.fullmatch("##+", text)]
EXPORTED = {
    CSV: [
        *((f"{n:06}", *texts) for n, texts in enumerate(zip(TEXTS, reversed(TEXTS), strict=True))),
        *((nim, "Ani", "Solo") for nim in ("=1", "-2", "+3", "@4", "＝5")),
    ],
    XLSX: AWKWARD,
}


@pytest.mark.parametrize(("target", "records"), EXPORTED.items(), ids=["csv", "xlsx"])
def test_a_download_of_any_texts_is_imported_unchanged(
    site: Site, other: Connection, target: str, records: list[Record]
) -> None:
    """Into the same list it changes nothing, and into an empty one it brings all back. Texts are tidied."""
    refill(other, records)
    data = site.get(target).content
    same = accepted(site, uploaded(site, data))  # some texts look damaged
    assert counts(same) == {"Tidak berubah": len(records)}
    refill(other, [])
    preview = accepted(site, uploaded(site, data))
    left = counts(preview).get("Perlu diperbaiki", 0)
    assert left <= len(records) / 15  # texts that no person would type
    save(site, preview)
    assert len(other.execute("SELECT 1 FROM mahasiswa").fetchall()) == len(records) - left

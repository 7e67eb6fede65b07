"""Searching, sorting and paging the list by links and one form, and the plain list of the specification."""

import re
from urllib.parse import quote, urlencode

import pytest
from harness import Page, Site
from spreadsheets import (
    Database,
    Record,
    as_records,
)

PEOPLE = as_records("01/A|Émile Zola|Jl. 100% Baru", "02/b|andi|Blok C_4", "03/C|Budi|C:\\rumah", "04/d|ANDINI|gang *Mawar*", "05/e|Ærø Ñandú|Blok [A] no. 5?", "06/f|Łukasz ÉMILE|Jl. Anggrek")  # fmt: skip
LENGTHS = {"10": 10, "11": 11, "500": 500, "501": 500, "9" * 11: 500, "9": 10, "1": 10, "0": 10}
LENGTHS |= dict.fromkeys(("", "-5", "abc", "1e2", "10.0", "٣٠", "²", " 20"), 50)
STARTS = {
    "2": 51,
    "12": 551,
    "13": 551,
    "9" * 10: 551,
    "9" * 40: 551,
    "0": 1,
    "-1": 1,
    "x": 1,
    "1.5": 1,
}
INVALID = """
urut=umur urut= urut=nim;DROP%20TABLE%20mahasiswa arah=samping arah= urut=NAMA&arah=TURUN halaman=%00 cari=%00
per=%FF&halaman=%ED%A0%80 cari cari=%0d%0a
"""


@pytest.fixture
def people(site: Site, other: Database) -> Site:
    other.fill(PEOPLE)
    return site


def many(count: int) -> list[Record]:
    """Return records whose order by nama and by alamat differs from that by nim. Each nama occurs several times."""
    return [
        (f"{n:06}", f"Nama {n * 7 % 50:03}", f"Alamat {n * 13 % 1000:03}") for n in range(count)
    ]


def find(site: Site, **query: str | int) -> Page:
    return site.page("/?" + urlencode(query))


def follow(site: Site, page: Page, text: str) -> Page:
    """Follow the links with this text. The paging above and below the table has the same links."""
    return site.page(page.target(text))


def position(page: Page) -> str:
    """Return the text about the number of records, such as "120 mahasiswa, 51–100 ditampilkan"."""
    (count,) = page.tree.css("p.count")
    return " ".join(count.text().partition("·")[0].split())


def sorts(page: Page) -> dict[str, str]:
    """Return the column by which the table says it is sorted, and the direction."""
    return {
        node.text().strip(): str(node.attributes["aria-sort"])
        for node in page.tree.css("th[aria-sort]")
    }


def link_texts(page: Page) -> list[str]:
    return [link.text for link in page.links if link.text != "Edit"]


@pytest.mark.parametrize("count", [0, 101])
def test_the_list_without_a_query_is_that_of_the_specification(
    site: Site, other: Database, count: int
) -> None:
    """All records stand on one plain page, below links to add, to sort and to download records, and a search.

    The rows stand in bodies of 100.
    """
    records = many(count)
    other.fill(records)
    page = site.list()
    assert page.rows == [(str(no), *record) for no, record in enumerate(records, 1)]
    cells = [(cell.text(), cell.attributes) for cell in page.tree.css("thead > tr > *")]
    assert cells == [(name, {"scope": "col"}) for name in ("No", "NIM", "Nama", "Alamat", "Aksi")]
    assert not page.tree.css("nav.pages, [aria-sort]")
    assert "?" not in "".join(link.href for row in page.table for link in row.links)
    assert page.html.count("<table") == 1
    assert re.search(r"</h1>\s*<a [^>]*>Tambah Data</a>", page.html)
    if not count:
        assert follow(site, page, "Tambah satu per satu").headings == ["Tambah Data Mahasiswa"]
        assert follow(site, page, "impor dari Excel").headings == ["Impor Data Mahasiswa"]
        assert page.forms == []
        assert not [text for text in link_texts(page) if text.startswith("Unduh")]
        # And not that a search found nothing.
        assert "Belum ada data mahasiswa." in find(site, halaman=1).html
        return

    assert page.html.index('name="cari"') < page.html.index("<table")
    assert position(page) == f"{count} mahasiswa"
    assert [len(body.css("tr")) for body in page.tree.css("tbody")] == [100, 1]
    paged = follow(site, page, "Urutkan dan tampilkan per halaman")
    assert paged.rows == page.rows[:50]
    assert sorts(paged) == {"NIM": "ascending"}
    assert {link.text for link in paged.links} >= {"Periksa daftar", "Pilih banyak"}
    for name, kind in (("Unduh CSV", "csv"), ("Unduh Excel", "xlsx")):
        assert page.target(name) == f"/mahasiswa/ekspor.{kind}"


def test_a_search_without_a_match_shows_its_text_and_offers_the_nearest_names(
    site: Site, other: Database
) -> None:
    """It has a hint, a link to all records, and links with other names to searches that find them, all escaped."""
    other.fill([*PEOPLE, ("1", "<b>nuraini&", "x")])
    page = find(site, cari='<b>"Zz"</b> & %', halaman=7)
    assert page.table == []
    hint = (
        'Tidak ada yang cocok dengan “<b>"Zz"</b> & %”. Coba satu kata saja, atau periksa ejaannya.'
    )
    assert page.texts(".empty") == [hint]
    assert not page.tree.css(".empty a")
    assert position(page) == "0 mahasiswa ditemukan"
    assert follow(site, page, "Hapus pencarian").rows == site.list().rows
    assert "“=”. Ketik huruf atau angka." in find(site, cari="=").texts(".empty")[0]
    page = find(site, cari="emilee zolta", urut="nama", per=10)
    assert page.texts(".empty")[0].endswith(
        "periksa ejaannya. Mungkin maksud Anda: Émile Zola (1)."
    )
    assert page.target("Émile Zola") == "/?cari=%C3%89mile+Zola&urut=nama&per=10"
    assert follow(site, page, "Émile Zola").nims == ["01/A"]
    (link,) = find(site, cari="bnuraeni").tree.css(".empty a")
    assert (link.text(), link.attributes["href"]) == ("<b>nuraini&", "/?cari=%3Cb%3Enuraini%26")
    assert site.page("/?cari=%3Cb%3Enuraini%26").nims == ["1"]


def test_the_search_form_keeps_the_query(people: Site) -> None:
    """The search form holds the text, the order and the page length, and starts again at the first page."""
    page = find(people, cari="é\"' <&>", urut="nama", arah="turun", per=10, halaman=3)
    form = page.form("cari")
    assert (form.method, form.target) == ("get", "/")
    assert form.values == {"cari": "é\"' <&>", "urut": "nama", "arah": "turun", "per": "10"}
    assert people.list().form("cari").values == {"cari": ""}


def test_the_column_headers_sort_the_list(people: Site) -> None:
    """A second click reverses the order. The case of ASCII letters does not matter; others follow by code point."""
    page = find(people, cari="a", per=10)
    assert page.columns == ["No", "NIM", "Nama", "Alamat", "Aksi"]
    assert sorts(page) == {"NIM": "ascending"}
    for column, order in (("Nama", "243516"), ("Alamat", "523416"), ("NIM", "123456")):
        page = follow(people, page, column)
        assert sorts(page) == {column: "ascending"}
        assert "".join(nim[1] for nim in page.nims) == order
        back = follow(people, page, column)
        assert sorts(back) == {column: "descending"}
        assert back.nims == page.nims[::-1]
        assert "per=10" in back.url


def test_the_page_links_keep_the_query(site: Site, other: Database) -> None:
    """The links to the next, last, previous and first page keep search, order and page length."""
    records = many(120)
    other.fill([*records, ("x", "lain", "lain")])
    page = find(site, cari="Nama", urut="nama", arah="turun", per=50)
    assert position(page) == "120 mahasiswa ditemukan, 1–50 ditampilkan"
    pages = [page]
    for expected_position in ("51–100", "101–120"):
        pages.append(follow(site, pages[-1], "Berikutnya"))
        assert position(pages[-1]) == f"120 mahasiswa ditemukan, {expected_position} ditampilkan"
    expected = sorted(records, key=lambda record: (record[1], record[0]), reverse=True)
    assert [row for page in pages for row in page.rows] == [
        (str(n), *record) for n, record in enumerate(expected, 1)
    ]
    assert follow(site, page, "Terakhir").rows == pages[2].rows
    assert follow(site, pages[2], "Sebelumnya").rows == pages[1].rows
    assert follow(site, pages[2], "Pertama").rows == page.rows
    assert {"Pertama", "Sebelumnya"}.isdisjoint(link_texts(page))
    for name, kind in (("Unduh CSV", "csv"), ("Unduh Excel", "xlsx")):
        assert page.target(name) == f"/mahasiswa/ekspor.{kind}?cari=Nama&urut=nama&arah=turun"


def test_an_invalid_value_of_a_query_is_corrected(site: Site, other: Database) -> None:
    """A page has 10 to 500 rows, by default 50. A page past the end is the last one. No value is an error."""
    other.fill(many(600))
    expected = {f"per={per}": (1, rows) for per, rows in LENGTHS.items()}
    expected |= {f"cari=nama&halaman={halaman}": (first, 50) for halaman, first in STARTS.items()}
    expected |= dict.fromkeys(INVALID.split(), (1, 50))
    for query, (first, count) in expected.items():
        page = site.page(f"/?{quote(query, safe='=&%;')}")
        rows = many(600)[first - 1 : first - 1 + count]
        assert page.rows == [(str(no), *record) for no, record in enumerate(rows, first)], query
        assert sorts(page) == {"NIM": "ascending"}, query


def test_the_page_length_is_chosen_by_links(site: Site, other: Database) -> None:
    """A link to another page length keeps search, order and the place in the list."""
    other.fill(many(620))
    page = find(site, cari="nama", urut="alamat", halaman=7)
    first = page.rows[0]
    longer = follow(site, page, "100")
    assert (len(longer.rows), first in longer.rows) == (100, True)
    assert longer.url.endswith("/?cari=nama&urut=alamat&halaman=4&per=100")
    assert first in follow(site, longer, "500").rows

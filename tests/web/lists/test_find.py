"""Searching, sorting and paging the list by links and one form, and the plain list of the specification."""

from urllib.parse import urlencode

import pytest
from apsw import Connection
from harness import Page, Site
from spreadsheets import Record, as_records
from stores import refill

PEOPLE = as_records("01/A|Émile Zola|Jl. 100% Baru", "02/b|andi|Blok C_4", "03/C|Budi|C:\\rumah", "04/d|ANDINI|gang *Mawar*", "05/e|Ærø Ñandú|Blok [A] no. 5?", "06/f|Łukasz ÉMILE|Jl. Anggrek")  # fmt: skip
# A query, the number of its first row, and how many rows it shows.
QUERIES = {
    "per=9": (1, 10),
    "per=501": (1, 500),
    "per=abc": (1, 50),
    "per=%FF&halaman=%ED%A0%80": (1, 50),
    "halaman=13": (551, 50),
    "halaman=-1": (1, 50),
    "urut=nim;DROP%20TABLE%20mahasiswa&arah=samping": (1, 50),
    "cari=%00": (1, 50),
}


@pytest.fixture
def people(site: Site, other: Connection) -> Site:
    refill(other, PEOPLE)
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
    (count,) = page.css("p.count")
    return " ".join(count.text().partition("·")[0].split())


def sorts(page: Page) -> dict[str, str]:
    """Return the column by which the table says it is sorted, and the direction."""
    return {
        node.text().strip(): str(node.attributes["aria-sort"]) for node in page.css("th[aria-sort]")
    }


def test_the_list_without_a_query_is_that_of_the_specification(
    site: Site, other: Connection
) -> None:
    """All records stand on one plain page, in bodies of 100, below links to sort and to download records, and a search."""
    records = many(101)
    refill(other, records)
    page = site.list()
    assert page.records == records
    assert not page.css("nav.pages, [aria-sort]")
    assert "?" not in "".join(link.target for row in page.table for link in row.links)
    assert page.html.index('name="cari"') < page.html.index("<table")
    assert position(page) == "101 mahasiswa"
    assert [len(body.css("tr")) for body in page.css("tbody")] == [100, 1]
    paged = follow(site, page, "Urutkan dan tampilkan per halaman")
    assert paged.rows == page.rows[:50]
    assert sorts(paged) == {"NIM": "ascending"}
    assert {link.text for link in paged.links} >= {"Periksa daftar", "Pilih banyak"}
    assert page.target("Unduh Excel") == "/mahasiswa/ekspor.xlsx"


def test_an_empty_list_leads_to_the_first_record(site: Site, other: Connection) -> None:
    """It does not say that a search found nothing."""
    refill(other, [])
    page = site.list()
    assert follow(site, page, "Tambah satu per satu").texts("h1, h2, h3") == [
        "Tambah Data Mahasiswa"
    ]
    assert follow(site, page, "impor dari Excel").texts("h1, h2, h3") == ["Impor Data Mahasiswa"]
    assert page.forms == []
    assert "Belum ada data mahasiswa." in find(site, halaman=1).html


def test_a_search_without_a_match_shows_its_text_and_offers_the_nearest_names(
    site: Site, other: Connection
) -> None:
    """It has a hint, a link to all records, and links with other names to searches that find them, all escaped."""
    refill(other, [*PEOPLE, ("1", "<b>nuraini&", "x")])
    page = find(site, cari='<b>"Zz"</b> & %', halaman=7)
    assert page.table == []
    (hint,) = page.texts(".empty")
    assert hint.startswith('Tidak ada yang cocok dengan “<b>"Zz"</b> & %”. Coba satu kata saja')
    assert not page.css(".empty a")
    assert position(page) == "0 mahasiswa ditemukan"
    assert follow(site, page, "Hapus pencarian").rows == site.list().rows
    page = find(site, cari="emilee zolta", urut="nama", per=10)
    assert page.texts(".empty")[0].endswith("Mungkin maksud Anda: Émile Zola (1).")
    assert page.target("Émile Zola") == "/?cari=%C3%89mile+Zola&urut=nama&per=10"
    assert follow(site, page, "Émile Zola").nims == ["01/A"]
    page = find(site, cari="bnuraeni")
    assert follow(site, page, "<b>nuraini&").nims == ["1"]


def test_the_search_form_keeps_the_query(people: Site) -> None:
    """The search form holds the text, the order and the page length, and starts again at the first page."""
    page = find(people, cari="é\"' <&>", urut="nama", arah="turun", per=10, halaman=3)
    form = page.form("cari")
    assert (form.method, form.target) == ("get", "/")
    assert form.fields == {
        "cari": "é\"' <&>",
        "di": "",
        "urut": "nama",
        "arah": "turun",
        "per": "10",
    }
    assert people.list().form("cari").fields == {"cari": "", "di": ""}


def test_the_column_headers_sort_the_list(people: Site) -> None:
    """A second click reverses the order. The case of ASCII letters does not matter; others follow by code point."""
    page = find(people, cari="a", per=10)
    assert sorts(page) == {"NIM": "ascending"}
    for column, order in (("Nama", "243516"), ("Alamat", "523416"), ("NIM", "123456")):
        page = follow(people, page, column)
        assert sorts(page) == {column: "ascending"}
        assert "".join(nim[1] for nim in page.nims) == order
        back = follow(people, page, column)
        assert sorts(back) == {column: "descending"}
        assert back.nims == page.nims[::-1]
        assert "per=10" in back.url


def test_the_page_links_keep_the_query(site: Site, other: Connection) -> None:
    """The links to the next, last, previous and first page keep search, order and page length."""
    records = many(120)
    refill(other, [*records, ("x", "lain", "lain")])
    page = find(site, cari="Nama", urut="nama", arah="turun", per=50)
    assert position(page) == "120 mahasiswa ditemukan, 1–50 ditampilkan"
    second = follow(site, page, "Berikutnya")
    third = follow(site, second, "Berikutnya")
    assert position(third) == "120 mahasiswa ditemukan, 101–120 ditampilkan"
    expected = sorted(records, key=lambda record: (record[1], record[0]), reverse=True)
    shown = [row[1:] for found in (page, second, third) for row in found.rows]
    assert shown == expected
    assert follow(site, page, "Terakhir").rows == third.rows
    assert follow(site, third, "Sebelumnya").rows == second.rows
    assert follow(site, third, "Pertama").rows == page.rows
    assert {"Pertama", "Sebelumnya"}.isdisjoint(link.text for link in page.links)
    query = "?cari=Nama&urut=nama&arah=turun"
    assert page.target("Unduh Excel") == f"/mahasiswa/ekspor.xlsx{query}"


@pytest.mark.parametrize("query", QUERIES)
def test_an_invalid_value_of_a_query_is_corrected(
    site: Site, other: Connection, query: str
) -> None:
    """A page has 10 to 500 rows, by default 50. A page past the end is the last one. No value is an error."""
    records = many(600)
    refill(other, records)
    first, count = QUERIES[query]
    page = site.page(f"/?{query}")
    rows = [(str(number), *record) for number, record in enumerate(records, 1)]
    assert page.rows == rows[first - 1 : first - 1 + count]
    assert sorts(page) == {"NIM": "ascending"}


def test_the_page_length_is_chosen_by_links(site: Site, other: Connection) -> None:
    """A link to another page length keeps search, order and the place in the list."""
    refill(other, many(620))
    page = find(site, cari="nama", urut="alamat", halaman=7)
    longer = follow(site, page, "100")
    assert len(longer.rows) == 100
    assert page.rows[0] in longer.rows
    assert longer.url.endswith("/?cari=nama&urut=alamat&halaman=4&per=100")

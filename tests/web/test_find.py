"""Finding, sorting and paging the list by plain links and one form; without a query it is the specification's."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from harness import Page, Service, Site
from hypothesis import given, settings
from hypothesis import strategies as st
from spreadsheets import Database, Record, another_program, own_database, own_service, own_site

# The fixtures, which pytest finds by these names.
__all__ = ["another_program", "own_database", "own_service", "own_site"]

PEOPLE = [
    ("01/A", "Émile Zola", "Jl. 100% Baru"),
    ("02/b", "andi", "Blok C_4"),
    ("03/C", "Budi", "C:\\rumah"),
    ("04/d", "ANDINI", "Gang *Mawar*"),
    ("05/e", "Ærø Ñandú", "Blok [A] no. 5?"),
    ("06/f", "Łukasz ÉMILE", "Jl. Anggrek"),
]


@pytest.fixture
def people(site: Site, other: Database) -> Site:
    """Visit the service with a handful of people in its list."""
    other.fill(PEOPLE)
    return site


def many(count: int) -> list[Record]:
    """Return records whose names and addresses are ordered unlike their nims."""
    return [(f"{n:06}", f"Nama {n * 7 % 1000:03}", f"Alamat {n * 13 % 1000:03}") for n in range(count)]


def find(site: Site, **query: str | int) -> Page:
    """Return the page of a query."""
    return site.page("/?" + urlencode(query))


def follow(site: Site, page: Page, text: str) -> Page:
    """Follow the one link of a text."""
    (link,) = [link for link in page.links if link.text == text]
    return site.page(link.target)


def said(page: Page) -> str:
    """Return the words about where this page stands among all."""
    (words,) = page.tree.css("nav.pages span")
    return words.text()


def sorts(page: Page) -> dict[str, str]:
    """Return the column that the table says it is sorted by, and in which direction."""
    return {node.text().strip(): str(node.attributes["aria-sort"]) for node in page.tree.css("th[aria-sort]")}


def texts(page: Page) -> list[str]:
    """Return the texts of the page's links outside the rows."""
    return [link.text for link in page.links if link.text != "Edit"]


# ---- without a query


@pytest.mark.parametrize("count", [0, 3, 1001])
def test_without_a_query_the_list_is_the_specifications(site: Site, other: Database, count: int) -> None:
    """Every record, numbered from 1; the header cells hold the five words, no link and no mark; nothing is paged."""
    records = many(count)
    other.fill(records)
    page = site.list()
    assert page.rows == [(str(no), *record) for no, record in enumerate(records, 1)]
    (head,) = re.findall("<thead>(.*?)</thead>", page.html, re.DOTALL)
    header = "".join(f'<th scope="col">{word}</th>' for word in ("No", "NIM", "Nama", "Alamat", "Aksi"))
    assert re.sub(r">\s+<", "><", head.strip()) == f"<tr>{header}</tr>"
    assert not page.tree.css("nav.pages")
    assert not page.tree.css("[aria-sort]")
    assert page.html.count("<table") == 1


def test_the_heading_comes_first_then_the_link_to_add(people: Site) -> None:
    """The specification's heading and link stand before the search, the search and its links before the table."""
    page = people.list()
    assert page.headings == ["List Data Mahasiswa"]
    assert texts(page)[0] == "Tambah Data"
    places = [page.html.index(mark) for mark in ("<h1", ">Tambah Data<", 'type="search"', "<table")]
    assert places == sorted(places)
    assert not page.tree.css("table [type=search]")


@pytest.mark.parametrize("query", ["x=1", "CARI=andi", "cari[]=andi", "utm_source=wa"])
def test_a_query_of_nobodys_is_the_whole_list(people: Site, query: str) -> None:
    """Parameters that are not ours change nothing."""
    assert people.page(f"/?{query}").rows == people.list().rows


# ---- finding


@pytest.mark.parametrize(
    ("cari", "found"),
    [
        ("andi", "02 04"),
        ("ANDI", "02 04"),
        ("émile", "01 06"),
        ("ÉMILE", "01 06"),
        ("mile z", "01"),
        ("ñANDÚ", "05"),
        ("ærØ", "05"),
        ("łuk", "06"),
        ("/B", "02"),
        ("0", "01 02 03 04 05 06"),
        ("jl.", "01 06"),
        ("%", "01"),
        ("100% b", "01"),
        ("_", "02"),
        ("c_4", "02"),
        ("\\", "03"),
        ("c:\\R", "03"),
        ("*", "04"),
        ("*m", "04"),
        ("é*", ""),
        ("[", "05"),
        ("[a]", "05"),
        ("]", "05"),
        ("[é]", ""),
        ("?", "05"),
        ("Ñ?", ""),
        ("a%i", ""),
        ("  andi  ", "02 04"),
        ("", "01 02 03 04 05 06"),
        ("Zz", ""),
    ],
)
def test_a_text_is_found_in_any_field(people: Site, cari: str, found: str) -> None:
    """Whatever its case, accented letters included; no sign means anything but itself."""
    assert [nim[:2] for nim in find(people, cari=cari).nims] == found.split()


def test_no_match_says_so_and_for_what(people: Site) -> None:
    """Nothing found: the text that was looked for, as text, an empty table and the way back to all."""
    page = find(people, cari='<b>"Zz"</b> & %')
    assert page.table == []
    (empty,) = page.tree.css(".empty")
    assert empty.text() == 'Tidak ada data yang cocok dengan “<b>"Zz"</b> & %”.'
    assert said(page) == "0 data"
    assert follow(people, page, "Tampilkan semua").rows == people.list().rows


def test_an_empty_list_is_no_failed_search(site: Site, other: Database) -> None:
    """A list without records says that, also page by page."""
    other.fill([])
    assert "Belum ada data mahasiswa." in find(site, halaman=1).html


def test_the_search_box_keeps_what_it_was_told(people: Site) -> None:
    """The form sends the text, the order and the page's length, and begins at the first page."""
    page = find(people, cari="é\"' <&>", urut="nama", arah="turun", per=10, halaman=3)
    (form,) = [form for form in page.forms if "cari" in form.values]
    assert (form.method, form.target) == ("get", "/")
    assert form.values == {"cari": "é\"' <&>", "urut": "nama", "arah": "turun", "per": "10"}
    (plain,) = [form for form in people.list().forms if "cari" in form.values]
    assert plain.values == {"cari": ""}
    assert find(people, **plain.values).nims == people.list().nims


def test_a_change_is_found_at_once(people: Site) -> None:
    """What was added is found by the next search, what was deleted is not; the answer to both is the specification's."""
    assert find(people, cari="Zainab").nims == []
    assert people.add("07/g", "Zainab", "Solo").status_code == 302
    page = find(people, cari="zainab", urut="nama")
    assert page.nims == ["07/g"]
    (form,) = page.row("07/g").forms
    answer = people.submit(form)
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    assert find(people, cari="zainab").nims == []


# ---- sorting


@pytest.mark.parametrize("urut", ["nim", "nama", "alamat"])
def test_sorted(site: Site, other: Database, urut: str) -> None:
    """By each column, small letters among the capital ones; equal texts by nim; downwards the very reverse."""
    column = ("nim", "nama", "alamat").index(urut)
    words = ["b", "C", "A", "B", "c", "a", "é", "_", "É"]
    records = [[str(n), "sama", "sama"] for n in range(len(words))]
    for record, word in zip(records, words, strict=True):
        record[column] = word
    other.fill(records)
    upwards = [row[column + 1] for row in find(site, urut=urut).rows]
    assert upwards == list("ABC_abcÉé" if urut == "nim" else "_AabBCcÉé")
    downwards = find(site, urut=urut, arah="turun")
    assert downwards.nims == find(site, urut=urut, arah="naik").nims[::-1]


def test_the_headers_sort_and_say_how(people: Site) -> None:
    """Each header is a link; the column in order says so, and turns round; another one begins upwards."""
    page = find(people, cari="a", per=10)
    assert page.columns == ["No", "NIM", "Nama", "Alamat", "Aksi"]
    assert sorts(page) == {"NIM": "ascending"}
    page = follow(people, page, "Nama")
    assert sorts(page) == {"Nama": "ascending"}
    upwards = page.nims
    page = follow(people, page, "Nama")
    assert sorts(page) == {"Nama": "descending"}
    assert page.nims == upwards[::-1]
    page = follow(people, page, "Alamat")
    assert sorts(page) == {"Alamat": "ascending"}
    assert sorted(page.nims) == sorted(upwards) == find(people, cari="a").nims
    page = follow(people, follow(people, page, "NIM"), "NIM")
    assert sorts(page) == {"NIM": "descending"}
    assert httpx.QueryParams(page.url.partition("?")[2])["per"] == "10"


# ---- paging


def test_every_page_by_its_links(site: Site, other: Database) -> None:
    """Next and last, previous and first keep the search, the order and the length; the numbers count on."""
    records = many(120)
    other.fill([*records, ("x", "lain", "lain")])
    page = find(site, cari="Nama", urut="nama", arah="turun", per=50)
    assert texts(page)[-3:] == ["NIM", "Nama", "Alamat"]
    assert [said(page), *texts(page)[4:-3]] == ["1–50 dari 120", "Berikutnya", "Terakhir", "Tampilkan semua"]
    walked = [page]
    for words in ("51–100 dari 120", "101–120 dari 120"):
        walked.append(follow(site, walked[-1], "Berikutnya"))
        assert said(walked[-1]) == words
    assert {"Berikutnya", "Terakhir"}.isdisjoint(texts(walked[-1]))
    expected = sorted(records, key=lambda record: (record[1], record[0]), reverse=True)
    assert [row for page in walked for row in page.rows] == [(str(n), *record) for n, record in enumerate(expected, 1)]
    assert follow(site, page, "Terakhir").rows == walked[2].rows
    assert follow(site, walked[2], "Sebelumnya").rows == walked[1].rows
    assert follow(site, walked[2], "Pertama").rows == page.rows
    assert {"Pertama", "Sebelumnya"}.isdisjoint(texts(page))


def test_the_count_is_written_as_indonesians_do(site: Site, other: Database) -> None:
    """Thousands have a point; No goes on through all pages."""
    other.fill(many(4812))
    page = find(site, halaman=3)
    assert said(page) == "101–150 dari 4.812"
    assert [row[0] for row in page.rows] == [str(n) for n in range(101, 151)]
    page = follow(site, page, "Terakhir")
    assert said(page) == "4.801–4.812 dari 4.812"
    assert page.rows[-1] == ("4812", *many(4812)[-1])


@pytest.mark.parametrize(
    ("per", "shown"),
    [("10", 10), ("11", 11), ("500", 500), ("501", 500), ("99999999999", 500), ("9", 10), ("1", 10), ("0", 10)]
    + [(wrong, 50) for wrong in ("", "-5", "abc", "1e2", "10.0", "٣٠", "²", " 20")],
)
def test_the_length_of_a_page_has_bounds(site: Site, other: Database, per: str, shown: int) -> None:
    """From 10 to 500; what is no number is 50."""
    other.fill(many(600))
    assert len(find(site, per=per).rows) == shown


@pytest.mark.parametrize(
    ("halaman", "first"),
    [("2", 51), ("3", 101), ("4", 101), ("999999999", 101), ("0", 1), ("-1", 1), ("", 1), ("x", 1), ("1.5", 1)],
)
def test_a_page_that_cannot_be_is_corrected(site: Site, other: Database, halaman: str, first: int) -> None:
    """Past the end is the last page; no number is the first."""
    other.fill(many(120))
    page = find(site, cari="nama", halaman=halaman)
    assert page.rows[0][0] == str(first)
    assert said(page).startswith(f"{first}–")


def test_a_page_far_past_the_end_of_nothing(people: Site) -> None:
    """Where nothing is found there is still a first page."""
    assert said(find(people, cari="Zz", halaman=7)) == "0 data"


@pytest.mark.parametrize("halaman", ["9999999999", "9" * 40])
def test_any_number_past_the_end_is_the_last_page(site: Site, other: Database, halaman: str) -> None:
    """However long the number is."""
    other.fill(many(120))
    assert said(find(site, halaman=halaman)) == "101–120 dari 120"


@pytest.mark.parametrize(
    "query",
    [
        "urut=umur",
        "urut=",
        "urut=nim;DROP TABLE mahasiswa",
        "arah=samping",
        "arah=",
        "urut=NAMA&arah=TURUN",
        "halaman=%00",
        "cari=%00",
        "per=%FF&halaman=%ED%A0%80",
        "cari",
    ],
)
def test_a_value_that_cannot_be_is_corrected(people: Site, query: str) -> None:
    """The page is that of the usual value, never an error."""
    page = people.page("/?" + query.replace(" ", "%20"))
    assert page.nims == [nim for nim, _, _ in PEOPLE]
    assert sorts(page) == {"NIM": "ascending"}


@pytest.mark.parametrize("cari", ["%FF", "%ED%A0%80", "x" * 20_000, "%2525", "%0d%0a"], ids=lambda cari: cari[:12])
def test_any_search_has_an_answer(people: Site, cari: str) -> None:
    """Bytes that are no text, and texts of any length, find nothing or all, and are shown as text."""
    page = people.page(f"/?cari={cari}")
    assert page.columns == ["No", "NIM", "Nama", "Alamat", "Aksi"]
    assert page.nims == ([nim for nim, _, _ in PEOPLE] if cari == "%0d%0a" else [])


# ---- a long list


@pytest.mark.parametrize(("count", "offered"), [(1000, False), (1001, True)])
def test_a_long_list_offers_its_pages(site: Site, other: Database, count: int, *, offered: bool) -> None:
    """Above a list of more than 1,000 records, which it still shows, stands a link to its first page."""
    other.fill(many(count))
    page = site.list()
    assert len(page.rows) == count
    assert ("Tampilkan per halaman" in texts(page)) == offered
    if offered:
        assert page.html.index("Tampilkan per halaman") < page.html.index("<table")
        paged = follow(site, page, "Tampilkan per halaman")
        assert said(paged) == "1–50 dari 1.001"
        assert paged.rows == page.rows[:50]


# ---- together


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_the_export_links_keep_the_search(people: Site, ending: str) -> None:
    """Both downloads are of what was found, in its order, all pages of it; from the plain list, of all."""
    page = find(people, cari="é&", urut="nama", arah="turun", per=10, halaman=2)
    targets = [link.target for link in page.links if link.text.startswith("Ekspor")]
    (target,) = [target for target in targets if f"ekspor.{ending}" in target]
    path, _, query = target.partition("?")
    assert path == f"/mahasiswa/ekspor.{ending}"
    assert dict(httpx.QueryParams(query)) == {"cari": "é&", "urut": "nama", "arah": "turun"}
    (plain,) = [link.target for link in people.list().links if f"ekspor.{ending}" in link.target]
    assert plain == f"/mahasiswa/ekspor.{ending}"


def test_head_and_post(people: Site) -> None:
    """HEAD of a found page has no body; a search is no POST."""
    head = people.send("HEAD", "/?cari=andi")
    assert (head.status_code, head.content) == (200, b"")
    assert people.send("POST", "/?cari=andi").status_code == 405


def test_below_a_path(tmp_path: Path) -> None:
    """Where a proxy serves the application below a path, the search, its links and its pages stay there."""
    with Service(tmp_path / "a.db", {"BASE_URL": "http://localhost:3000/kampus/ti"}) as service, service.site() as site:
        other = Database(tmp_path / "a.db")
        other.fill(many(60))
        other.close()
        page = site.page("/kampus/ti/?cari=nama")
        assert {link.target[:11] for link in page.links} == {"/kampus/ti/"}
        assert {form.target[:11] for form in page.forms} == {"/kampus/ti/"}
        assert said(follow(site, page, "Berikutnya")) == "51–60 dari 60"
        assert sorts(follow(site, page, "Alamat")) == {"Alamat": "ascending"}


LETTERS = "aAbBéÉñÑøØčČžŽ" + "%_\\*?[]^-!" + "'\"&<>/ 0\r\n\t"
SHORT = st.text(LETTERS, max_size=6)
RECORDS = st.lists(st.tuples(SHORT, SHORT, SHORT), max_size=25, unique_by=lambda record: record[0])


QUERIES = st.fixed_dictionaries(
    {"cari": SHORT, "urut": st.sampled_from(["nim", "nama", "alamat"]), "arah": st.sampled_from(["naik", "turun"])}
)


@given(RECORDS, QUERIES)
@settings(max_examples=120, deadline=None)
def test_what_is_found_is_what_a_model_finds(
    site: Site, other: Database, records: list[Record], query: dict[str, str]
) -> None:
    """Page by page the same records in the same order, and the same in the export."""
    other.fill(records)
    expected = model(records, **query)
    page = find(site, **query, per=10)
    rows = list(page.rows)
    while "Berikutnya" in texts(page):
        page = follow(site, page, "Berikutnya")
        rows += page.rows
    assert rows == [(str(no), *record) for no, record in enumerate(expected, 1)]
    exported = site.get("/mahasiswa/ekspor.csv?" + urlencode(query)).content.decode("utf-8-sig")
    lines = list(csv.reader(io.StringIO(exported, newline=""), delimiter=";"))
    assert [tuple(re.sub("^'", "", cell) for cell in line) for line in lines[1:]] == expected


def model(records: Sequence[Record], cari: str, urut: str, arah: str) -> list[Record]:
    """Find and sort without a database."""
    column = ("nim", "nama", "alamat").index(urut)
    wanted = cari.strip().lower()
    found = [record for record in records if any(wanted in text.lower() for text in record)]

    def key(record: Record) -> tuple[str, str]:
        text = record[column]
        return (text if urut == "nim" else re.sub("[A-Z]", lambda letter: letter[0].lower(), text), record[0])

    return sorted(found, key=key, reverse=arah == "turun")

"""Edit, Delete and "Tambah Data" on a page that was searched, sorted or paged lead back to that page."""

from urllib.parse import quote

import httpx
import pytest
from apsw import Connection
from harness import Page, Site, led_to, page_of
from spreadsheets import numbered
from stores import refill

PLACE = "?cari=siti&urut=nama&arah=turun&halaman=2&per=10"
NIM = "20/1%a&b"
SEGMENT = "20%2F1%25a%26b"


@pytest.fixture
def people(site: Site, other: Connection) -> Site:
    """Visit a list with 25 records that a search for "siti" finds; the one with NIM stands on the second page."""
    refill(other, [*numbered(24, "Siti {:02}", nim="{:02}"), (NIM, "Siti 11b", "Sleman")])
    return site


def links(page: Page) -> dict[str, set[str]]:
    """Return the addresses of the links and forms that change a record or leave a form, by their text."""
    leaving = ("Edit", "Tambah Data", "Batal", "Kembali ke daftar", "buka data dengan NIM ini")
    found: dict[str, set[str]] = {}
    for link in page.links:
        if link.text in leaving:
            found.setdefault(link.text, set()).add(link.target)
    for form in page.posts:
        found.setdefault(form.submit, set()).add(form.target)
    return found


def refused(answer: httpx.Response, status: int) -> dict[str, set[str]]:
    return links(page_of(answer, status))


def test_saving_leads_back_to_the_page(people: Site) -> None:
    """Every row carries its page's query to the edit page, whose redirect leads to the row by its id, for any NIM."""
    page = people.page("/" + PLACE)
    segments = [quote(nim, safe="") for nim in page.nims]
    for text, path in (("Edit", "edit"), ("Delete", "delete")):
        targets = {f"/mahasiswa/{path}/{segment}{PLACE}" for segment in segments}
        assert links(page)[text] == targets
    assert links(page)["Tambah Data"] == {f"/mahasiswa/add{PLACE}"}
    edit = people.page(page.table[page.nims.index(NIM)].links[0].target)
    assert links(edit) == {"Batal": {"/" + PLACE}, "Simpan": {f"/mahasiswa/edit/{SEGMENT}{PLACE}"}}
    answer = people.submit(edit.form("alamat"), alamat="Klaten")
    assert led_to(answer) == f"/{PLACE}#m-{SEGMENT}"
    page = people.page("/" + PLACE)
    assert page.table[page.nims.index(NIM)].cells[3] == "Klaten"
    assert page.values("tbody th[scope=row]", "id").count(f"m-{SEGMENT}") == 1
    assert not people.list().css("tbody [id]")


def test_deleting_and_adding_lead_back_to_the_page(people: Site) -> None:
    """If a deletion empties the page, the last one is shown. A search shows the record that was missing from it."""
    last = "?cari=siti&halaman=3&per=10"
    for _ in range(5):
        answer = people.submit(people.page("/" + last).table[0].forms[0])
        assert led_to(answer) == "/" + last
    assert [row[0] for row in people.page("/" + last).rows] == [str(n) for n in range(11, 21)]
    form = people.page(people.page("/?cari=Budi").target("Tambah Data")).form("alamat")
    answer = people.submit(form, nim="99", nama="Budi", alamat="Solo")
    assert led_to(answer) == "/?cari=Budi#m-99"
    assert people.page("/?cari=Budi").nims == ["99"]


def test_a_refused_form_keeps_the_place(people: Site) -> None:
    """The pages of a duplicate, of a missing field and of a conflict send their form with the query again."""
    add = f"/mahasiswa/add{PLACE}"
    edit = f"/mahasiswa/edit/{SEGMENT}{PLACE}"
    record = {"nim": NIM, "nama": "Siti", "alamat": "Solo"}
    back = {"/" + PLACE}
    duplicate = {"Batal": back, "Simpan": {add}, "buka data dengan NIM ini": {edit}}
    assert refused(people.post(add, data=record), 409) == duplicate
    assert refused(people.post(edit, data={"nama": "Siti"}), 400) == {
        "Batal": back,
        "Simpan": {edit},
    }
    page = page_of(people.post(edit, data={**record, "versi": "x"}), 409)
    assert {page.forms[0].target, page.target("Gunakan data terbaru")} == {edit}


def test_an_error_page_of_a_record_keeps_the_place(people: Site) -> None:
    """A query of the history or of an unknown path is not the list's."""
    for path, status, place in (
        ("/mahasiswa/edit/tidak-ada", 404, PLACE),
        ("/mahasiswa/delete/1", 405, PLACE),
        ("/tidak/ada", 404, "?halaman=1"),
        ("/mahasiswa/riwayat/x", 404, "?halaman=1"),
    ):
        answer = people.get(path + PLACE)
        assert refused(answer, status) == {"Kembali ke daftar": {"/" + place}}, path


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("urut=nim&arah=naik&per=50", "?halaman=1"),
        ("utm_source=wa&cari=siti&x=%0d%0aSet-Cookie:a=b", "?cari=siti"),
        ("cari=%0d%0aLocation:%20http://a.id", "?cari=Location%3A+http%3A%2F%2Fa.id"),
        ("cari=%22%3E%3Cscript%3E", "?cari=%22%3E%3Cscript%3E"),
        ("utm_source=wa", ""),
        ("", ""),
    ],
)
def test_only_known_parameters_with_parsed_values_ride_along(
    people: Site, query: str, place: str
) -> None:
    """The query is rebuilt from its parsed values, in the form's address and in the redirect."""
    path = f"/mahasiswa/edit/{SEGMENT}"
    page = people.page(f"{path}?{query}")
    assert links(page) == {"Batal": {"/" + (place or "?halaman=1")}, "Simpan": {path + place}}
    answer = people.post(f"{path}?{query}", data={"nama": "Siti", "alamat": "Solo"})
    fragment = f"#m-{SEGMENT}" if place else ""
    assert led_to(answer) == f"/{place}{fragment}"

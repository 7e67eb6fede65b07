"""Specification, sections 2 and 4: the record, the three pages, the three changes, and the routing."""

from collections.abc import Sequence
from html import unescape

import pytest
from harness import URL_ENCODED, Form, Page, Service, Site, free_port, led_to, visited
from spec.records import TEXT_INPUT, listed, stored
from spreadsheets import as_records, numbered
from stores import BUDI, SITI


# ---- 4, paths and payload
@pytest.mark.beyond
def test_4_0_paths_are_relative_to_base_url(database: str) -> None:
    """The path of BASE_URL is the prefix of every route, link, form action and redirect."""
    port = free_port()
    settings = {"PORT": str(port), "BASE_URL": f"http://127.0.0.1:{port}/data/kampus"}
    with visited(Service(database, settings)) as site:
        assert site.add("0001", "Siti", "Solo").headers["location"] == "/data/kampus/"
        (row,) = site.page("/data/kampus/").table
        assert [link.target for link in row.links] == ["/data/kampus/mahasiswa/edit/0001"]
        assert [form.target for form in row.forms] == ["/data/kampus/mahasiswa/delete/0001"]
        assert "/data/kampus/mahasiswa/add" in [link.target for link in site.list().links]
        edit = site.page("/data/kampus/mahasiswa/edit/0001").form("alamat")
        assert edit.target == "/data/kampus/mahasiswa/edit/0001"
        assert site.submit(edit, nama="Budi").headers["location"] == "/data/kampus/"
        assert (
            site.page("/data/kampus/mahasiswa/add").form("alamat").target
            == "/data/kampus/mahasiswa/add"
        )
        assert site.delete("0001").headers["location"] == "/data/kampus/"
        assert site.list().rows == []


def test_4_0_payload_is_url_encoded(site: Site) -> None:
    """Percent signs and plus signs of a URL-encoded body are decoded once, as UTF-8."""
    body = b"nim=1&nama=Ren%C3%A9+%26+Zo%c3%ab%3D1%2B1&alamat=100%2525+%F0%9F%8F%A0"
    site.post(site.path("/mahasiswa/add"), content=body, headers={"content-type": URL_ENCODED})
    assert stored(site, "1") == ("1", "René & Zoë=1+1", "100%25 🏠")


# ---- 4.1 to 4.3: the pages
TITLES = ["No", "NIM", "Nama", "Alamat", "Aksi"]


def titles_of(page: Page) -> list[str]:
    """Return the texts of the first row of the table."""
    return [title.strip() for title in page.parts("table tr")[0].cells]


def test_4_1_2_list_page_has_heading_and_add_link(site: Site) -> None:
    """The heading comes first, then the link to the add page, then the table with its five columns."""
    page = site.list()
    assert page.target("Tambah Data") == site.path("/mahasiswa/add")
    parts = [
        node.tag if node.tag == "table" else node.text().strip()
        for node in page.css("h1, h2, h3, a, table")
    ]
    assert parts.index("List Data Mahasiswa") < parts.index("Tambah Data") < parts.index("table")
    assert titles_of(page) == TITLES


def test_4_1_4_every_record_is_a_row_with_its_position_nim_nama_alamat(site: Site) -> None:
    """A record is one row of five cells: its position counted from 1, nim, nama, alamat and one more."""
    added = numbered(12, "Nama {}", "Alamat {}")
    for record in added:
        site.add(*record)
    rows = [row.cells for row in site.list().table]
    assert [cells[0].strip() for cells in rows] == [str(number + 1) for number in range(12)]
    assert {len(row) for row in rows} == {5}
    assert listed(site) == added


def test_4_1_5_row_has_an_edit_link_and_a_delete_form(site: Site) -> None:
    """The last cell holds Edit and a form with Delete, whose question a browser asks, and which works without it."""
    site.add(*SITI)
    (row,) = site.list().table
    (link,) = row.links
    (form,) = row.forms
    assert link.text == "Edit"
    assert link.target == site.path("/mahasiswa/edit/0001")
    target = site.path("/mahasiswa/delete/0001")
    assert form.method == "post"
    assert form.target == target
    assert form.submit == "Delete"
    assert "Apakah Anda yakin ingin menghapus data ini?" in unescape(site.list().html)
    site.submit(form)
    assert listed(site) == []


def test_4_1_6_no_records_no_rows(site: Site) -> None:
    """Without records the table has its header and an empty body."""
    page = site.list()
    assert titles_of(page) == TITLES
    assert page.css("tbody td") == []


def the_form(page: Page, heading: str, target: str, values: Sequence[str]) -> Form:
    """Return the form of a page. It must have three required text inputs, and a button to save."""
    assert heading in map(str.strip, page.texts("h1, h2, h3, h4, h5, h6"))
    assert not page.css("form textarea, form select")
    form = page.form("alamat")
    assert form.method == "post"
    assert form.target == target
    assert form.submit == "Simpan"
    assert form.values(TEXT_INPUT, "name") == ["nim", "nama", "alamat"]
    assert form.values(TEXT_INPUT) == list(values)
    assert len(form.css(f"{TEXT_INPUT}[required]:not([disabled])")) == 3
    return form


def test_4_2_2_add_form_has_three_required_text_inputs(site: Site) -> None:
    """The POST form has nim, nama and alamat, empty, required and editable, and Simpan, which adds the texts."""
    target = site.path("/mahasiswa/add")
    form = the_form(site.page(target), "Tambah Data Mahasiswa", target, [""] * 3)
    assert not form.css("[readonly]")
    assert [text.strip() for text in form.texts("label")] == ["NIM", "Nama", "Alamat"]
    led_to(site.submit(form, nim="1", nama="Agus Salim", alamat="Wates"))
    assert listed(site) == as_records("1|Agus Salim|Wates")


def test_4_3_2_edit_form_has_three_required_text_inputs(site: Site) -> None:
    """The POST form has the record's nim, nama and alamat. Only nim is read-only, and a browser sends all three."""
    for added in (SITI, BUDI):
        site.add(*added)
        target = site.path("/mahasiswa/edit/", added.nim)
        form = the_form(site.page(target), "Edit Data Mahasiswa", target, added)
        assert form.values("[readonly]", "name") == ["nim"]


# ---- 4.4 to 4.6: the changes
@pytest.mark.parametrize(
    "text",
    [
        *("007", "1e5", "1.0", "true", "null", "-0"),  # look like numbers or keywords
        "  spasi  di mana-mana  ",
        'O\'Brien "Bob" \\',
        "<b>tebal</b> <script>alert(1)</script>",
        "a & b &amp; &lt; &#65;",
        "'; DROP TABLE mahasiswa; --",
        "100% + 5% = %41",
        "Ünïcödé ꦗꦮ 学生 🎓",
    ],
)
def test_4_4_1_add_stores_the_values_without_changes(site: Site, text: str) -> None:
    """The three values are stored exactly as they were sent, and shown as text."""
    site.add("0001", text, text)
    assert stored(site, "0001") == ("0001", text, text)
    assert listed(site) == [("0001", text.strip(), text.strip())]


def test_4_5_1_edit_sets_nama_and_alamat(site: Site) -> None:
    """The record in the path gets both texts of its form. Its nim never changes, even if the body has another one."""
    site.add(*SITI)
    site.add(*BUDI)
    for nim in (SITI.nim, BUDI.nim, "0003"):
        form = site.page(site.path("/mahasiswa/edit/", SITI.nim)).form("alamat")
        site.submit(form, nim=nim, nama=f" Siti {nim} ", alamat="Jalan <Baru> & Lama")
        assert stored(site, SITI.nim) == (SITI.nim, f" Siti {nim} ", "Jalan <Baru> & Lama")
        assert listed(site)[1:] == [BUDI]


def test_4_6_1_delete_removes_the_record(site: Site) -> None:
    """Only the record in the path is deleted. The row numbers then have no gap, and the others keep their nims."""
    added = numbered(3)
    for record in added:
        site.add(*record)
    site.delete(added[1][0])
    assert [row.cells[0].strip() for row in site.list().table] == ["1", "2"]
    assert listed(site) == [added[0], added[2]]


# ---- 4.7: routing
@pytest.mark.parametrize("path", ["/mahasiswa/delete/", "/mahasiswa/edit/"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_4_7_1_a_route_matches_only_its_own_method(site: Site, method: str, path: str) -> None:
    """A request with another method changes nothing; its answer is not specified."""
    site.add(*SITI)
    target = site.path(path, SITI.nim)
    site.request(method, target, data={"nama": "Lain", "alamat": "Lain"})
    assert listed(site) == [SITI]


def test_4_7_1_a_get_of_the_add_route_adds_nothing(site: Site) -> None:
    """GET /mahasiswa/add with the fields in its query shows the form and adds no record."""
    site.page(site.path("/mahasiswa/add") + "?nim=1&nama=Siti&alamat=Solo")
    assert listed(site) == []


def test_4_7_2_routes_do_not_overlap(site: Site) -> None:
    """In the routes edit and delete the word "add" is a nim."""
    for path in ("/mahasiswa/edit/add", "/mahasiswa/delete/add"):
        answer = site.post(site.path(path), data={"nim": "1", "nama": "Siti", "alamat": "Solo"})
        assert answer.status_code == 302
    assert listed(site) == []


@pytest.mark.parametrize("nim", ["07", "7e1", "a b 7", "7é学🎓", "%25417", "7+%"])
def test_4_7_3_path_parameter_is_text(site: Site, nim: str) -> None:
    """The path parameter is the nim as text: leading zeros are kept, and percent-encoded UTF-8 is decoded, once."""
    site.add(nim, "Siti", "Solo")
    assert stored(site, nim) == (nim, "Siti", "Solo")
    site.edit(nim, "Budi", "Bantul")
    assert listed(site) == [(nim, "Budi", "Bantul")]
    site.delete(nim)
    assert listed(site) == []


def test_4_7_3_nims_that_look_equal_as_numbers_are_two(site: Site) -> None:
    """Two nims that differ only in leading zeros are different records in every route."""
    site.add("7", "Siti", "Solo")
    site.add("007", "Budi", "Bantul")
    assert stored(site, "7") == ("7", "Siti", "Solo")
    site.edit("007", "Ani", "Bantul")
    site.delete("7")
    assert listed(site) == as_records("007|Ani|Bantul")


def test_4_7_4_a_refresh_does_not_repeat_the_change(site: Site) -> None:
    """Each successful POST redirects to a page that can be reloaded without a second change."""
    for answer in (site.add(*SITI), site.edit(SITI.nim, "Budi", "Bantul"), site.delete(SITI.nim)):
        first, second = (site.page(answer.headers["location"]).rows for _ in range(2))
        assert first == second

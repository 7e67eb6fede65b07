"""Specification, sections 2 and 4: the record, the three pages, the three changes, and the routing."""

from collections.abc import Sequence
from html import unescape

import pytest
from harness import URL_ENCODED, Form, Page, Site, free_port, visited
from spec.records import TEXT_INPUT, Records, texts, the_row


# ---- 4, paths and payload
@pytest.mark.beyond
def test_4_0_paths_are_relative_to_base_url(database: str) -> None:
    """The path of BASE_URL is the prefix of every route, link, form action and redirect."""
    port = free_port()
    settings = {"PORT": str(port), "BASE_URL": f"http://127.0.0.1:{port}/data/kampus"}
    with visited(database, settings) as site:
        assert site.add("0001", "Siti", "Solo").headers["location"] == "/data/kampus/"
        row = the_row(site.page("/data/kampus/"), "0001")
        assert [link.target for link in row.links] == ["/data/kampus/mahasiswa/edit/0001"]
        assert [form.target for form in row.forms] == ["/data/kampus/mahasiswa/delete/0001"]
        assert "/data/kampus/mahasiswa/add" in [link.target for link in site.list().links]
        edit = site.page("/data/kampus/mahasiswa/edit/0001").record_form
        assert edit.target == "/data/kampus/mahasiswa/edit/0001"
        assert site.submit(edit, nama="Budi").headers["location"] == "/data/kampus/"
        assert (
            site.page("/data/kampus/mahasiswa/add").record_form.target
            == "/data/kampus/mahasiswa/add"
        )
        assert site.delete("0001").headers["location"] == "/data/kampus/"
        assert site.list().rows == []


def test_4_0_payload_is_url_encoded(site: Site, records: Records) -> None:
    """Percent signs and plus signs of a URL-encoded body are decoded once, as UTF-8."""
    nim = records.new_nim()
    body = f"nim={nim}&nama=Ren%C3%A9+%26+Zo%c3%ab%3D1%2B1&alamat=100%2525+%F0%9F%8F%A0".encode()
    site.send("POST", site.path("/mahasiswa/add"), body, content_type=URL_ENCODED)
    assert records.stored(nim) == (nim, "René & Zoë=1+1", "100%25 🏠")


# ---- 4.1 to 4.3: the pages
def test_4_1_2_list_page_has_heading_and_add_link(site: Site) -> None:
    """The heading comes first, then the link to the add page, then the table with its five columns."""
    page = site.list()
    assert page.target("Tambah Data") == site.path("/mahasiswa/add")
    parts = [
        node.tag if node.tag == "table" else node.text().strip()
        for node in page.css("h1, h2, h3, a, table")
    ]
    assert parts.index("List Data Mahasiswa") < parts.index("Tambah Data") < parts.index("table")
    assert page.columns == ["No", "NIM", "Nama", "Alamat", "Aksi"]


def test_4_1_4_every_record_is_a_row_with_its_position_nim_nama_alamat(
    site: Site, records: Records
) -> None:
    """A record is one row of five cells: its position counted from 1, nim, nama, alamat and one more."""
    added = {records.add(f"Nama {i}", f"Alamat {i}") for i in range(12)}
    rows = list(map(texts, site.list().table))
    assert [row[0] for row in rows] == [str(number + 1) for number in range(len(rows))]
    assert {len(row) for row in rows} == {5}
    assert added <= {tuple(row[1:4]) for row in rows}


def test_4_1_5_row_has_an_edit_link_and_a_delete_form(site: Site, records: Records) -> None:
    """The last cell holds Edit and a form with Delete, whose question a browser asks, and which works without it."""
    nim = records.add().nim
    row = the_row(site.list(), nim)
    (link,), (form,) = row.links, row.forms
    assert (link.text, link.target) == ("Edit", site.path("/mahasiswa/edit/", nim))
    assert (form.method, form.target, form.submit) == (
        "post",
        site.path("/mahasiswa/delete/", nim),
        "Delete",
    )
    assert "Apakah Anda yakin ingin menghapus data ini?" in unescape(site.list().html)
    site.submit(form)
    assert records.listed(nim) is None


def test_4_1_6_no_records_no_rows(site: Site, foreign_url: str) -> None:
    """Without records the table has its header and an empty body. Every test deletes its own records."""
    page = site.list()
    if foreign_url and any(row.forms for row in page.table):
        pytest.skip("the list holds records that are not ours to delete")
    assert page.columns == ["No", "NIM", "Nama", "Alamat", "Aksi"]
    assert page.css("tbody td") == []


def the_form(page: Page, heading: str, target: str, values: Sequence[str]) -> Form:
    """Return the form of a page. It must have three required text inputs, and a button to save."""
    assert heading in page.headings
    assert not page.css("form textarea, form select")
    form = page.record_form
    assert (form.method, form.target, form.submit) == ("post", target, "Simpan")
    assert form.values(TEXT_INPUT, "name") == ["nim", "nama", "alamat"]
    assert form.values(TEXT_INPUT) == list(values)
    assert len(form.css(f"{TEXT_INPUT}[required]:not([disabled])")) == 3
    return form


def test_4_2_2_add_form_has_three_required_text_inputs(site: Site, records: Records) -> None:
    """The POST form has nim, nama and alamat, empty, required and editable, and Simpan, which adds the texts."""
    target = site.path("/mahasiswa/add")
    form = the_form(site.page(target), "Tambah Data Mahasiswa", target, [""] * 3)
    assert not form.css("[readonly]")
    assert [text.strip() for text in form.texts("label")] == ["NIM", "Nama", "Alamat"]
    nim = records.new_nim()
    site.accepts(form, nim=nim, nama="Agus Salim", alamat="Wates")
    assert records.listed(nim) == (nim, "Agus Salim", "Wates")


def test_4_3_2_edit_form_has_three_required_text_inputs(site: Site, records: Records) -> None:
    """The POST form has the record's nim, nama and alamat. Only nim is read-only, and a browser sends all three."""
    for added in (records.add("Siti", "Solo"), records.add("Budi", "Bantul")):
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
def test_4_4_1_add_stores_the_values_without_changes(
    site: Site, records: Records, text: str
) -> None:
    """The three values are stored exactly as they were sent, and shown as text."""
    nim = records.new_nim()
    site.add(nim, text, text)
    assert records.stored(nim) == (nim, text, text)
    assert records.listed(nim) == (nim, text.strip(), text.strip())


def test_4_5_1_edit_sets_nama_and_alamat(site: Site, records: Records) -> None:
    """The record in the path gets both texts of its form. Its nim never changes, even if the body has another one."""
    added, other, unknown = (
        records.add("Siti", "Solo"),
        records.add("Lain", "Lain"),
        records.new_nim(),
    )
    for nim in (added.nim, other.nim, unknown):
        form = site.page(site.path("/mahasiswa/edit/", added.nim)).record_form
        site.submit(form, nim=nim, nama=f" Siti {nim} ", alamat="Jalan <Baru> & Lama")
        assert records.stored(added.nim) == (added.nim, f" Siti {nim} ", "Jalan <Baru> & Lama")
        assert records.listed(other.nim) == other
        assert records.listed(unknown) is None


def test_4_6_1_delete_removes_the_record(site: Site, records: Records) -> None:
    """Only the record in the path is deleted. The row numbers then have no gap, and the others keep their nims."""
    first, removed, last = (records.add(f"Nama {i}") for i in range(3))
    site.delete(removed.nim)
    rows = list(map(texts, site.list().table))
    assert [row[0] for row in rows] == [str(i + 1) for i in range(len(rows))]
    assert [records.listed(each.nim) for each in (first, removed, last)] == [first, None, last]


# ---- 4.7: routing
@pytest.mark.parametrize("path", ["/mahasiswa/delete/", "/mahasiswa/edit/"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_4_7_1_a_route_matches_only_its_own_method(
    site: Site, records: Records, method: str, path: str
) -> None:
    """A request with another method changes nothing; its answer is not specified."""
    added = records.add()
    site.send(
        method, site.path(path, added.nim), b"nama=Lain&alamat=Lain", content_type=URL_ENCODED
    )
    assert records.listed(added.nim) == added


def test_4_7_1_a_get_of_the_add_route_adds_nothing(site: Site, records: Records) -> None:
    """GET /mahasiswa/add with the fields in its query shows the form and adds no record."""
    nim = records.new_nim()
    site.page(site.path("/mahasiswa/add") + f"?nim={nim}&nama=Siti&alamat=Solo")
    assert records.listed(nim) is None


def test_4_7_2_routes_do_not_overlap(site: Site, records: Records) -> None:
    """In the routes edit and delete the word "add" is a nim."""
    if records.listed("add"):
        pytest.skip("the list has a record with the nim 'add' that this test may not change")
    nim = records.new_nim()
    for path in ("/mahasiswa/edit/add", "/mahasiswa/delete/add"):
        answer = site.post(site.path(path), {"nim": nim, "nama": "Siti", "alamat": "Solo"})
        assert answer.status_code == 302
    assert [records.listed(each) for each in (nim, "add")] == [None, None]


@pytest.mark.parametrize("form", ["0{}", "{}e1", "a b {}", "{}é学🎓", "%2541{}", "{}+%"])
def test_4_7_3_path_parameter_is_text(site: Site, records: Records, form: str) -> None:
    """The path parameter is the nim as text: leading zeros are kept, and percent-encoded UTF-8 is decoded, once."""
    nim = records.new_nim(form)
    site.add(nim, "Siti", "Solo")
    assert records.stored(nim) == (nim, "Siti", "Solo")
    site.edit(nim, "Budi", "Bantul")
    assert records.listed(nim) == (nim, "Budi", "Bantul")
    site.delete(nim)
    assert records.listed(nim) is None


def test_4_7_3_nims_that_look_equal_as_numbers_are_two(site: Site, records: Records) -> None:
    """Two nims that differ only in leading zeros are different records in every route."""
    digits = str(int(records.new_nim(), 16))
    nim, zeros = records.forget(digits), records.forget("00" + digits)
    site.add(nim, "Siti", "Solo")
    site.add(zeros, "Budi", "Bantul")
    assert records.stored(nim).nama == "Siti"
    site.edit(zeros, "Ani", "Bantul")
    site.delete(nim)
    assert records.listed(nim) is None
    assert records.listed(zeros) == (zeros, "Ani", "Bantul")


def test_4_7_4_a_refresh_does_not_repeat_the_change(site: Site, records: Records) -> None:
    """Each successful POST redirects to a page that can be reloaded without a second change."""
    nim = records.new_nim()
    for answer in (
        site.add(nim, "Siti", "Solo"),
        site.edit(nim, "Budi", "Bantul"),
        site.delete(nim),
    ):
        first, second = (site.page(answer.headers["location"]).rows for _ in range(2))
        assert first == second

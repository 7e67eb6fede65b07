"""Specification 4.1: GET /, the list page."""

from contextlib import ExitStack
from html import unescape
from pathlib import Path

import pytest
from harness import Service, Site
from spec.records import Records, texts, the_row


def test_4_1_1_list_page_reads_every_record(site: Site, records: Records) -> None:
    """The list contains every record."""
    added = {records.add(f"Nama {i}", f"Alamat {i}") for i in range(12)}
    assert added <= {tuple(texts(row)[1:4]) for row in site.list().table}


def test_4_1_2_list_page_has_heading_and_add_link(site: Site) -> None:
    """The heading comes first, then the link to the add page, then the table."""
    page = site.list()
    (link,) = [link for link in page.links if link.text == "Tambah Data"]
    assert link.target == site.path("/mahasiswa/add")
    parts = [node.tag if node.tag == "table" else node.text().strip() for node in page.tree.css("h1, h2, h3, a, table")]
    assert parts.index("List Data Mahasiswa") < parts.index("Tambah Data") < parts.index("table")


def test_4_1_3_table_has_its_five_columns(site: Site) -> None:
    """The header of the table is No, NIM, Nama, Alamat, Aksi."""
    assert site.list().columns == ["No", "NIM", "Nama", "Alamat", "Aksi"]


def test_4_1_4_a_row_shows_its_position_nim_nama_alamat(site: Site, records: Records) -> None:
    """A record is one row of five cells: its position counted from 1, nim, nama, alamat and one more."""
    added = [records.add("Dewi Lestari", "Klaten"), records.add("Eko", "Solo")]
    page = site.list()
    assert [texts(row)[0] for row in page.table] == [str(number + 1) for number in range(len(page.table))]
    for record in added:
        cells = texts(the_row(page, record.nim))
        assert (len(cells), cells[1:4]) == (5, list(record))


def test_4_1_5_row_has_an_edit_link_and_a_delete_form(site: Site, records: Records) -> None:
    """The last cell holds a link Edit to the edit page, and a POST form to the delete route with a button Delete."""
    nim = records.add().nim
    row = the_row(site.list(), nim)
    (link,), (form,) = row.links, row.forms
    assert (link.text, link.target) == ("Edit", site.path("/mahasiswa/edit/", nim))
    assert (form.method, form.target, form.submit) == ("post", site.path("/mahasiswa/delete/", nim), "Delete")


def test_4_1_5_browser_asks_before_deleting(site: Site, records: Records) -> None:
    """The page contains the question that the browser asks before it submits the form."""
    records.add()
    assert "Apakah Anda yakin ingin menghapus data ini?" in unescape(site.list().html)


def test_4_1_5_service_does_not_check_the_confirmation(site: Site, records: Records) -> None:
    """A delete form that is sent without the confirmation deletes the record."""
    nim = records.add().nim
    (form,) = the_row(site.list(), nim).forms
    site.submit(form)
    assert records.listed(nim) is None


def test_4_1_6_no_records_no_rows(site: Site, foreign_url: str, tmp_path: Path) -> None:
    """Without records the table has its header and an empty body."""
    with ExitStack() as stack:
        if not foreign_url:
            site = stack.enter_context(stack.enter_context(Service(tmp_path / "mahasiswa.db")).site())
        page = site.list()
        if any(row.forms for row in page.table):
            pytest.skip("the list holds records that are not ours to delete")
        assert page.columns == ["No", "NIM", "Nama", "Alamat", "Aksi"]
        assert page.tree.css("tbody td") == []

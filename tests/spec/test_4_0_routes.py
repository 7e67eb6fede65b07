"""Specification, section 4, before 4.1: the six routes and their payload."""

from pathlib import Path

from harness import URL_ENCODED, Service, Site, free_port
from spec.records import Records, the_row


def test_4_0_route_6_delete_needs_no_body(site: Site, records: Records) -> None:
    """POST /mahasiswa/delete/:nim redirects to /, even without a body and a content type."""
    nim = records.add().nim
    assert site.send("POST", site.path("/mahasiswa/delete/", nim)).headers["location"] == site.path("/")
    assert records.listed(nim) is None


def test_4_0_payload_is_url_encoded(site: Site, records: Records) -> None:
    """Percent signs and plus signs of a URL-encoded body are decoded once, as UTF-8."""
    nim = records.new_nim()
    body = f"nim={nim}&nama=Ren%C3%A9+%26+Zo%c3%ab%3D1%2B1&alamat=100%2525+%F0%9F%8F%A0".encode()
    site.send("POST", site.path("/mahasiswa/add"), body, content_type=URL_ENCODED)
    assert records.stored(nim) == (nim, "René & Zoë=1+1", "100%25 🏠")


def test_4_0_paths_are_relative_to_base_url(own_database: Path | str) -> None:
    """The path of BASE_URL is the prefix of every route, link, form action and redirect."""
    port = free_port()
    settings = {"PORT": str(port), "BASE_URL": f"http://127.0.0.1:{port}/data/kampus"}
    with Service(own_database, settings) as service, service.site() as site:
        assert site.add("0001", "Siti", "Solo").headers["location"] == "/data/kampus/"
        row = the_row(site.page("/data/kampus/"), "0001")
        assert [link.target for link in row.links] == ["/data/kampus/mahasiswa/edit/0001"]
        assert [form.target for form in row.forms] == ["/data/kampus/mahasiswa/delete/0001"]
        assert "/data/kampus/mahasiswa/add" in [link.target for link in site.list().links]
        edit = site.page("/data/kampus/mahasiswa/edit/0001").record_form
        assert edit.target == "/data/kampus/mahasiswa/edit/0001"
        assert site.submit(edit, nama="Budi").headers["location"] == "/data/kampus/"
        assert site.page("/data/kampus/mahasiswa/add").record_form.target == "/data/kampus/mahasiswa/add"
        assert site.delete("0001").headers["location"] == "/data/kampus/"
        assert site.list().rows == []

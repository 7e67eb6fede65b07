"""Specification, section 1: the service. Its rules have no numbers; they are counted from the top."""

import socket
from urllib.parse import urlsplit

import pytest
from harness import URL_ENCODED, Page, Service, Site
from spec.records import Records, the_row


def pages(site: Site, records: Records) -> list[str]:
    """Return the targets of the three pages."""
    return [site.path("/"), site.path("/mahasiswa/add"), site.path("/mahasiswa/edit/", records.add().nim)]


def test_1_2_every_get_answers_a_complete_html_page(site: Site, records: Records) -> None:
    """Every GET is answered with a complete HTML document."""
    for target in pages(site, records):
        answer = site.get(target)
        html = answer.text.strip().lower()
        assert answer.headers["content-type"].lower().startswith("text/html")
        assert html.startswith("<!doctype html")
        assert "<html" in html
        assert html.endswith("</html>")


def test_1_3_changes_are_url_encoded_posts(site: Site, records: Records) -> None:
    """All forms that change something are URL-encoded POSTs."""
    nim = records.add().nim
    (delete,) = the_row(site.list(), nim).forms
    add = site.page(site.path("/mahasiswa/add")).record_form
    for form in (delete, add, records.edit_page(nim).record_form):
        assert (form.method, form.enctype) == ("post", URL_ENCODED)


def test_1_4_listens_on_port_3000(own_database: str) -> None:
    """Without the setting PORT the service listens on TCP port 3000."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 3000)) == 0:
            pytest.skip("another program listens on port 3000")
    with Service(own_database, {"PORT": None}) as service:
        assert service.port == 3000
        assert service.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 200"
        )


def test_1_5_pages_use_only_get_and_post(site: Site, records: Records) -> None:
    """The forms of all pages use only the methods GET and POST."""
    for page in map(site.page, pages(site, records)):
        assert {form.method for form in page.forms} <= {"get", "post"}
        assert "_method" not in page.html


def test_1_6_records_persist_between_runs(own_database: str) -> None:
    """A record is still stored after the service is stopped and started again."""
    with Service(own_database) as service, service.site() as site:
        site.add("0001", "Siti Aminah", "Jalan Kaliurang 5")
        service.restart()
        assert site.list().rows == [("1", "0001", "Siti Aminah", "Jalan Kaliurang 5")]


def test_1_6_the_store_is_created_on_first_start(own_database: str) -> None:
    """If the store does not exist, the service creates it and shows an empty list."""
    with Service(own_database) as service, service.site() as site:
        assert site.list().rows == []


def test_1_7_all_pages_share_one_layout(site: Site, records: Records) -> None:
    """Every page has the same title, container with its content, and style sheet from another host."""
    layouts = set()
    for target in pages(site, records):
        page = site.page(target)
        assert page.title == "Program Input Data Mahasiswa"
        assert any(urlsplit(address).netloc not in {"", urlsplit(site.origin).netloc} for address in page.stylesheets)
        content = "table" if target == site.path("/") else "form"
        layouts.add((container(page, content), tuple(page.stylesheets)))
    assert len(layouts) == 1


def test_1_7_the_style_sheet_comes_from_cdn_url(own_database: str) -> None:
    """The pages load the style sheet at the address in CDN_URL."""
    address = "https://cdn.example/dist/sheet.min.css"
    with Service(own_database, {"CDN_URL": address}) as service, service.site() as site:
        assert address in site.list().stylesheets


def container(page: Page, content: str) -> tuple[str, str | None]:
    """Return the tag and the class of the outermost element inside the body that holds heading and content."""
    (heading,) = page.tree.css("h1, h2, h3, h4, h5, h6")[:1]
    around = [node for node in page.tree.css("body > *") if node.css("h1, h2, h3, h4, h5, h6") and node.css(content)]
    assert around, f"no element holds both the heading {heading.text()!r} and the {content}"
    return str(around[0].tag), around[0].attributes.get("class")

"""Specification, sections 1 and 3: the service and its records. The rules of section 1 are counted from the top."""

import socket
from urllib.parse import urlsplit

import pytest
from harness import URL_ENCODED, Page, Service, Site, visited
from spec.records import listed
from stores import SITI

STYLE_SHEET = ("link[rel~=stylesheet]", "href")


def pages(site: Site) -> dict[str, Page]:
    site.add(*SITI)
    targets = [
        site.path("/"),
        site.path("/mahasiswa/add"),
        site.path("/mahasiswa/edit/", SITI.nim),
    ]
    return dict(
        zip(
            ("table", 'form[action*="add"]', 'form[action*="edit"]'),
            map(site.page, targets),
            strict=True,
        )
    )


def test_1_2_every_get_answers_a_complete_html_page(site: Site) -> None:
    """Every GET is answered with a complete HTML document with the same title, container and style sheet of another host."""
    layouts = set()
    for content, page in pages(site).items():
        html = page.html.strip().lower()
        assert html.startswith("<!doctype html")
        assert "<html" in html
        assert html.endswith("</html>")
        assert (
            site.get(urlsplit(page.url).path)
            .headers["content-type"]
            .lower()
            .startswith("text/html")
        )
        assert page.texts("head > title") == ["Program Input Data Mahasiswa"]
        assert any(
            urlsplit(address).netloc not in {"", urlsplit(site.origin).netloc}
            for address in page.values(*STYLE_SHEET)
        )
        layouts.add((container(page, content), tuple(page.values(*STYLE_SHEET))))
    assert len(layouts) == 1


def container(page: Page, content: str) -> tuple[str, str | None]:
    """Return the tag and the class of the outermost element inside the body that holds heading and content."""
    around = [
        node
        for node in page.css("body > *")
        if node.css("h1, h2, h3, h4, h5, h6") and node.css(content)
    ]
    assert around, f"no element holds both the heading and the {content}"
    return str(around[0].tag), around[0].attributes.get("class")


def test_1_3_changes_are_url_encoded_posts(site: Site) -> None:
    """The forms of all pages use only GET and POST, and those that change something are URL-encoded POSTs."""
    shown = pages(site).values()
    (row,) = site.list().table
    (delete,) = row.forms
    for form in (delete, *(page.form("alamat") for page in shown if not page.table)):
        assert form.method == "post"
    for page in shown:
        assert {*page.values("form", "enctype")} <= {"", URL_ENCODED}
        assert {form.method for form in page.forms} <= {"get", "post"}
        assert "_method" not in page.html


@pytest.mark.beyond
def test_1_4_listens_on_port_3000(database: str) -> None:
    """Without the setting PORT the service listens on TCP port 3000."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 3000)) == 0:
            pytest.skip("another program listens on port 3000")
    with Service(database, {"PORT": ""}) as service, service.site() as site:
        assert service.port == 3000
        assert site.get("/").status_code == 200


@pytest.mark.beyond
def test_1_6_records_persist_between_runs(database: str) -> None:
    """The first start creates an empty store. A record is still stored after the service is stopped and started again."""
    with Service(database) as service, service.site() as site:
        assert site.list().rows == []
        site.add("0001", "Siti Aminah", "Jalan Kaliurang 5")
        service.restart()
        assert site.list().rows == [("1", "0001", "Siti Aminah", "Jalan Kaliurang 5")]


@pytest.mark.beyond
def test_1_7_the_style_sheet_comes_from_cdn_url(database: str) -> None:
    """The pages load the style sheet at the address in CDN_URL."""
    address = "https://cdn.example/dist/sheet.min.css"
    with visited(Service(database, {"CDN_URL": address})) as site:
        assert address in site.list().values(*STYLE_SHEET)


def test_3_add_creates_and_delete_removes(site: Site) -> None:
    """A record exists from its addition to its deletion, and can then be added again."""
    for nama in ("Siti", "Budi"):
        site.add("0001", nama, "Solo")
        assert listed(site) == [("0001", nama, "Solo")]
        site.delete("0001")
        assert listed(site) == []

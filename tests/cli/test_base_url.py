"""BASE_URL with a path: a proxy serves the application below this path, and it is the prefix of every address."""

from collections.abc import Iterator

import pytest
from harness import Page, Service, Site, page_of, visited

PREFIX = "/fakultas/mahasiswa-ti"


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Visit a service whose BASE_URL has the path PREFIX."""
    environment = {"BASE_URL": f"https://kampus.example{PREFIX}"}
    database = tmp_path_factory.mktemp("below") / "mahasiswa.db"
    with visited(Service(database, environment)) as site:
        yield site


PAGES = "/ /?cari=nama&per=10 /mahasiswa/add /mahasiswa/edit/01 /mahasiswa/nim/01 /mahasiswa/impor /mahasiswa/pilih"
OTHER_PAGES = "/mahasiswa/riwayat /mahasiswa/periksa /mahasiswa/cetak /mahasiswa/panduan"


def test_every_page_links_to_addresses_with_the_prefix(below: Site) -> None:
    """Redirects lead there, too."""
    for nim in ("00", "01"):
        assert below.add(nim, "Nama", "Solo").headers["location"] == f"{PREFIX}/"
    below.delete("00")
    for target in [*PAGES.split(), *OTHER_PAGES.split()]:
        prefixed(below.page(f"{PREFIX}{target}"))
    undo = below.page(f"{PREFIX}/mahasiswa/riwayat").posts[0]
    location = below.submit(undo).headers["location"]
    assert location.startswith(f"{PREFIX}/")
    for nim in below.nims:
        assert below.delete(nim).headers["location"] == f"{PREFIX}/"


OUTSIDE = f"/ /mahasiswa/add {PREFIX}x/ /fakultas%2Fmahasiswa-ti/ /fakultas/mahasiswa-%74i/"


@pytest.mark.parametrize("target", OUTSIDE.split())
def test_a_path_without_the_prefix_of_base_url_is_404(below: Site, target: str) -> None:
    """A request without exactly the prefix is answered with a 404 page that links to the list. A POST stores nothing."""
    assert below.list().rows == []  # the page is kept from now on
    answer = below.get(target)
    page = prefixed(page_of(answer, 404))
    assert page.target("Kembali ke daftar") == f"{PREFIX}/?halaman=1"
    with Site(below.origin) as root:
        assert root.add("0001", "Siti", "Solo").status_code == 404
    assert below.list().rows == []


def prefixed(page: Page) -> Page:
    """Check that the page has links or forms, and that the addresses of all of them have the prefix once."""
    targets = [link.target for link in page.links] + [form.target for form in page.forms]
    assert targets
    for target in targets:
        assert target.startswith(f"{PREFIX}/")
        assert not target.startswith(PREFIX * 2)
    return page

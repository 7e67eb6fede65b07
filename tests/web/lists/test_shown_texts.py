"""Pages of our own show the beginning of a long text, on both engines; forms and the whole list show all of it."""

from collections.abc import Iterator

import pytest
from engines import EACH_ENGINE
from harness import Page, Service, Site, led_to
from spreadsheets import numbered
from stores import execute, merge
from web.history.test_history import HISTORY

from mahasiswa.record import SHOWN_MAX_CHARACTERS

pytestmark = EACH_ENGINE

# 60,000 letters, most of which take five bytes in HTML.
LONG = "\"'&é" * 15_000
ROWS = 60


@pytest.fixture(scope="module", name="site")
def long_list(service: Service) -> Iterator[Site]:
    """Visit a list whose texts would be longer in one page than a page may be. Each record was edited once."""
    merge(service.database, *numbered(ROWS, LONG, nim="{:03}"))
    execute(service.database, "UPDATE mahasiswa SET alamat = '  ' || nama")
    with service.site() as site:
        yield site


def long_texts(page: Page) -> list[str]:
    """Return the long texts of a table. In some tables each of them is isolated."""
    texts = page.texts("tbody bdi") or page.texts("tbody td")
    return [text for text in texts if '"' in text]


@pytest.mark.parametrize(
    "target", ["/?per=500", "/?cari=0&urut=nama", "/mahasiswa/cetak", "/mahasiswa/periksa", HISTORY]
)
def test_a_page_shows_the_beginning_of_a_long_text(site: Site, target: str) -> None:
    """So no list of long texts makes it too long for everyone."""
    texts = long_texts(site.page(target))
    assert texts
    # The check shows several spaces as one sign.
    assert {len(text) for text in texts} <= {SHOWN_MAX_CHARACTERS - 1, SHOWN_MAX_CHARACTERS}
    assert all(text.endswith("…") for text in texts)


def test_a_selection_on_paper_shows_the_beginning_and_its_file_has_all_of_a_text(
    site: Site,
) -> None:
    selection = site.page(led_to(site.post("/mahasiswa/pilih/hasil?cari=0")))
    assert {len(text) for text in long_texts(selection)} == {SHOWN_MAX_CHARACTERS}
    texts = long_texts(site.page(selection.target("Cetak")))
    assert [len(text) for text in texts] == [SHOWN_MAX_CHARACTERS] * 2 * ROWS
    assert len(site.get(selection.target("Unduh CSV")).text) > 2 * ROWS * len(LONG)


def test_a_form_and_the_whole_list_show_all_of_a_text(site: Site) -> None:
    values = site.page("/mahasiswa/edit/005").form("alamat").fields
    assert values["nama"] == LONG
    assert values["alamat"] == f"  {LONG}"
    assert site.records[5][1:] == (LONG, f"  {LONG}")

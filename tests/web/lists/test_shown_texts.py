"""Pages of our own show the beginning of a long text, on both engines; forms and the whole list show all of it."""

from collections.abc import Iterator

import pytest
from engines import run_elsewhere, service_on_each_engine  # noqa: F401 - a fixture
from harness import Page, Service, Site, led_to
from visitor import page_of
from web.history.test_history import HISTORY

from mahasiswa.record import SHOWN_MAX_CHARACTERS

# 60,000 letters, most of which take five bytes in HTML.
LONG = "\"'&é" * 15_000
MADE = {
    "sqlite": "replace(hex(zeroblob(15000)), '00', '\"''&é')",
    "postgres": "repeat('\"''&é', 15000)",
}
ROWS = 60


@pytest.fixture(scope="module", name="site")
def long_list(service: Service) -> Iterator[Site]:
    """Visit a list whose texts would be longer in one page than a page may be. Each record was edited once."""
    engine = "postgres" if str(service.database).startswith("postgres") else "sqlite"
    text = MADE[engine]
    rows = ", ".join(f"('{number:03}', {text}, 'Solo')" for number in range(ROWS))
    run_elsewhere(service.database, f"INSERT INTO mahasiswa VALUES {rows}")
    run_elsewhere(service.database, f"UPDATE mahasiswa SET alamat = '  ' || {text}")
    with service.site() as site:
        yield site


def long_texts(page: Page) -> list[str]:
    """Return the long texts of a table. In some tables each of them is isolated."""
    texts = page.texts("tbody bdi") or page.texts("tbody td")
    return [text for text in texts if '"' in text]


@pytest.mark.parametrize(
    "target",
    [
        *("/?halaman=1", "/?cari=0&urut=nama", "/?per=500", "/?per=10000", "/mahasiswa/cetak"),
        *("/mahasiswa/periksa", HISTORY, f"{HISTORY}?cari=005"),
    ],
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


@pytest.mark.parametrize(
    ("target", "nim", "names"),
    [
        ("/mahasiswa/impor", "{}", ".reason"),
        ("/mahasiswa/pilih", "{}", ".reason"),
        ("/mahasiswa/pilih", "{:03}", "#other_nama bdi"),
    ],
)
def test_a_preview_shows_the_beginning_of_the_names_of_other_records(
    site: Site, target: str, nim: str, names: str
) -> None:
    """NIMs that have lost their zeros, and names that are not those of the list."""
    rows = "".join(f"{nim.format(number)}\tBudi\tSolo\n" for number in reversed(range(10, ROWS, 7)))
    given = {"tempel": (None, f"NIM\tNama\tAlamat\n{rows}")}
    shown = site.page(led_to(site.client.post(target, files=given))).texts(names)
    texts = [text for text in shown if '"' in text]
    assert texts
    assert max(map(len, texts)) <= SHOWN_MAX_CHARACTERS


def test_a_form_and_the_whole_list_show_all_of_a_text(site: Site) -> None:
    values = site.page("/mahasiswa/edit/005").record_form.values
    assert (values["nama"], values["alamat"]) == (LONG, f"  {LONG}")
    assert site.records[5][1:] == (LONG, f"  {LONG}")


def test_an_undo_restores_all_of_a_text_that_the_history_shows_in_part(site: Site) -> None:
    site.edit("007", "Siti", "Solo")
    page = site.page(f"{HISTORY}?cari=007")
    assert {len(text) for text in long_texts(page)} == {SHOWN_MAX_CHARACTERS}
    site.accepts(page.posts[0])
    assert site.page("/mahasiswa/edit/007").record_form.values["nama"] == LONG


def test_a_conflict_of_an_edit_shows_the_beginning_and_its_form_all_of_a_text(site: Site) -> None:
    nama = LONG[:8000]  # fits into a form
    answer = site.post("/mahasiswa/edit/009", {"nama": nama, "alamat": "Solo", "versi": "0"})
    page = page_of(answer, 409)
    assert {len(text) for text in long_texts(page)} == {SHOWN_MAX_CHARACTERS}
    assert page.record_form.values["nama"] == nama

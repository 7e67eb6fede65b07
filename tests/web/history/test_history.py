"""The history and the line with the latest change, as a person reads them by HTTP on either engine."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from engines import EACH_ENGINE, empty_database
from harness import Page, Service, Site, led_to, visited
from spreadsheets import HEADER, Record, csv, numbered
from stores import execute
from web.importer import import_file

pytestmark = EACH_ENGINE

HISTORY = "/mahasiswa/riwayat"
SITI = ("2207", "Siti Aminah", "Sleman")
ROWS = numbered(120, "Nama {}", nim="{:04}")
LONG_NAME = "Wolfeschlegelsteinhausenbergerdorff" * 20
MOMENT = r"\d{1,2} (?:Jan|Feb|Mar|Apr|Mei|Jun|Jul|Agu|Sep|Okt|Nov|Des) \d\d\.\d\d WIB"


def changes(page: Page) -> list[tuple[str, ...]]:
    """Return the rows of the history: the verb, the nim, and the texts before and after, or the summary of a batch."""
    cells = "td[data-label=Sebelum], td[data-label=Sesudah], td[colspan]"
    return [
        (
            *row.texts("td[id] strong, td[id] bdi"),
            *(" | ".join(cell.texts("bdi, .hint")) or cell.text() for cell in row.parts(cells)),
        )
        for row in page.parts("tbody tr")
    ]


def nims(page: Page) -> list[str]:
    return [nim for _, nim, *_ in changes(page)]


def line(page: Page) -> str:
    """Return the text of the latest change without its moment, or an empty text if the page has no such line."""
    latest = "".join(page.texts("p.latest[role=status]"))
    return re.sub(f"^Terakhir: (.*) {MOMENT}( · Riwayat)?$", r"\1", latest)


def undo_latest(site: Site) -> None:
    led_to(site.submit(site.page(HISTORY).posts[0]))


def import_all(site: Site, *records: Record) -> None:
    import_file(site, csv(HEADER, *records))


def test_the_line_above_the_list_tells_the_latest_change(site: Site) -> None:
    """It names the record and the kind of the change, or the change that was taken back. A long name is cut."""

    def check(change: Callable[[], object], said: str) -> None:
        change()
        assert line(site.list()) == line(site.page("/?cari=siti")) == said

    check(lambda: site.add(*SITI), "Siti Aminah (2207) ditambah")
    check(lambda: undo_latest(site), "penambahan Siti Aminah (2207) dibatalkan")
    check(lambda: undo_latest(site), "Siti Aminah (2207) dikembalikan")
    check(lambda: site.edit("2207", "Siti A.", "Klaten"), "Siti A. (2207) diubah")
    check(lambda: site.delete("2207"), "Siti A. (2207) dihapus")
    check(lambda: import_all(site, *ROWS), "120 mahasiswa diimpor")
    check(lambda: undo_latest(site), "perubahan 120 mahasiswa dibatalkan")
    check(
        lambda: site.add("9" * 255, LONG_NAME, "Solo"), f"{LONG_NAME[:59]}… ({'9' * 39}…) ditambah"
    )
    assert site.list().values("p.latest a", "href") == [HISTORY]


def test_the_history_shows_the_texts_before_and_after_newest_first(
    site: Site, service: Service
) -> None:
    """Each change of any program has its texts before and after, side by side, and its moment in UTC."""
    site.add(*SITI)
    site.edit("2207", "Siti A.", "Sleman")
    execute(service.database, "UPDATE mahasiswa SET alamat = ''")
    site.delete("2207")
    page = site.page(HISTORY)
    assert changes(page)[:4] == [
        ("Dihapus", "2207", "Siti A. | kosong", "dihapus"),
        ("Diubah", "2207", "Siti A. | Sleman", "Siti A. | kosong"),
        ("Diubah", "2207", "Siti Aminah | Sleman", "Siti A. | Sleman"),
        ("Ditambah", "2207", "tidak ada", "Siti Aminah | Sleman"),
    ]
    (deleted, edited, *_) = page.parts("tbody tr")
    assert [row.texts("del, ins") for row in (deleted, edited)] == [[], ["Sleman"]]
    assert all(re.fullmatch(MOMENT, moment) for moment in page.texts("tbody time"))
    moment = datetime.fromisoformat(page.values("tbody time", "datetime")[0])
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=1)


def test_the_history_is_shown_in_pages_and_searched_like_the_list(
    site: Site, service: Service
) -> None:
    """50 changes a page; a page past the end is the last one; a search goes along."""
    rows = ", ".join(map(str, numbered(60, nim="cari-{:02}")))
    execute(service.database, f"INSERT INTO mahasiswa VALUES {rows}")
    first = site.page(f"{HISTORY}?cari=cari-")
    assert nims(first) == [f"cari-{number:02}" for number in range(59, 9, -1)]
    assert "1–50 dari 60 perubahan" in first.html
    texts = [link.text for link in first.links]
    assert texts.count("Berikutnya") == 2, "above and below the table"
    second = site.page(first.target("Berikutnya"))
    assert nims(second) == [f"cari-{number:02}" for number in range(9, -1, -1)]
    last = site.page(f"{HISTORY}?cari=cari-&halaman=999999999")
    assert nims(last) == nims(second)
    assert nims(site.page(f"{HISTORY}?cari=CARI-07&halaman=x")) == ["cari-07"]
    nothing = site.page(f"{HISTORY}?cari=%3Cb%3Etidak-ada").texts(".empty")[0]
    assert nothing.startswith("Tidak ada perubahan yang cocok dengan “<b>tidak-ada”.")


def test_an_import_is_one_line_that_opens_page_by_page(site: Site) -> None:
    """The line leads to its records, 50 a page. A search leads to its hits. One record needs no page of its own."""
    import_all(site, *ROWS)
    page = site.page(HISTORY)
    assert changes(page)[0] == ("Diimpor", "120 mahasiswa. Lihat rinciannya")
    target = page.target("Lihat rinciannya")
    page = site.page(target)
    assert changes(page)[0] == ("Ditambah", "0000", "tidak ada", "Nama 0 | Solo")
    page = site.page(page.target("Berikutnya"))
    assert nims(page) == [nim for nim, *_ in ROWS[50:100]]
    found = site.page(f"{HISTORY}?cari=nama+77&jenis=import")
    hits = found.target("Lihat rinciannya")
    assert hits == f"{target}?cari=nama+77"
    assert nims(site.page(hits)) == ["0077"]
    import_all(site, SITI)
    imported = ("Diimpor", "2207", "tidak ada", "Siti Aminah | Sleman")
    assert changes(site.page(HISTORY))[0] == imported


def test_the_history_is_filtered_by_kind_and_day(site: Site, service: Service) -> None:
    """A kind, a day of the time zone and a search are combined. Each page, and an undo, keeps them."""
    import_all(site, *ROWS[:60])
    execute(service.database, "DELETE FROM mahasiswa")
    for jenis, verb in (("delete", "Dihapus"), ("import", "Diimpor")):
        page = site.page(f"{HISTORY}?jenis={jenis}&cari=nama+54")
        assert {*page.texts("tbody strong")} == {verb}
    forward = site.page(f"{HISTORY}?jenis=delete").target("Berikutnya")
    assert forward == f"{HISTORY}?halaman=2&jenis=delete"
    button = site.page(forward).posts[0]
    assert button.submit == "Kembalikan data yang dihapus"
    assert led_to(site.submit(button)) == forward
    filtered = site.page(f"{HISTORY}?tanggal=2001-02-03&cari=klaten")
    assert filtered.texts(".empty")[0].endswith("“klaten”. Coba semua jenis dan tanggal.")
    for query in ("tanggal=2026-13-01", "tanggal=9999-12-31", "tanggal=0001-01-01", "jenis=x"):
        assert changes(site.page(f"{HISTORY}?{query}")), query
    moment = site.list().values("p.latest time", "datetime")[0]
    today = datetime.fromisoformat(moment).astimezone(ZoneInfo("Asia/Jakarta")).date()
    for days, is_shown in ((-1, False), (0, True), (1, False)):
        tanggal = (today + timedelta(days=days)).isoformat()
        assert bool(changes(site.page(f"{HISTORY}?tanggal={tanggal}"))) is is_shown


def test_the_settings_decide_about_the_moments_of_the_history(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """They are shown in the time zone, and with the year, which HISTORY_DAYS needs."""
    settings = {"TIMEZONE": "Asia/Makassar", "HISTORY_DAYS": "366"}
    database = empty_database(engine, tmp_path, request)
    with visited(Service(database, settings)) as site:
        assert line(site.list()) == line(site.page("/?cari=x")) == ""
        assert site.page(HISTORY).texts(".empty, table") == ["Belum ada perubahan."]
        site.add(*SITI)
        for target in ("/", HISTORY):
            shown = site.page(target).texts("time")[0]
            assert re.fullmatch(MOMENT.replace("WIB", "WITA").replace(") ", ") 20[0-9]{2} "), shown)

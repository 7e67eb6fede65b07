"""The pages of the history, the line with the latest change, and undo, as a person uses them by HTTP on either engine."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from attack import fill
from engines import empty_list, run_elsewhere, service_on_each_engine
from form_answers import assert_error, assert_page
from harness import Form, Page, Service, Site
from naughty import NAUGHTY
from selectolax.lexbor import LexborNode
from spreadsheets import HEADER, Importer, csv

from mahasiswa.web.list_cache import PAGE_MAX_RECORDS

# The fixtures, which pytest finds by these names.
__all__ = ["empty_list", "service_on_each_engine"]

HISTORY = "/mahasiswa/riwayat"
SITI = ("2207", "Siti Aminah", "Sleman")
IMPORTED = [(f"{number:04}", f"Nama {number}", "Solo") for number in range(120)]
MOMENT = r"\d{1,2} (?:Jan|Feb|Mar|Apr|Mei|Jun|Jul|Agu|Sep|Okt|Nov|Des) \d\d\.\d\d WIB"
GONE = "Perubahan ini tidak ada lagi di riwayat, jadi tidak dapat dikembalikan."


class Change(NamedTuple):
    """A row of the history: the verb, the nim, the texts before and after, the form of its button, and its link."""

    verb: str
    nim: str = ""
    before: str = ""
    after: str = ""
    summary: str = ""
    form: Form | None = None
    link: str = ""

    @property
    def texts(self) -> tuple[str, str, str, str]:
        """The verb, the nim, and the texts before and after."""
        return self[:4]


class History(Page):
    """A page of the history."""

    @property
    def changes(self) -> list[Change]:
        """The rows of the page."""
        return [self._change(row) for row in self.tree.css("tbody tr")]

    def _change(self, row: LexborNode) -> Change:
        shown = self._row(row)
        (what,) = row.css("td[id]")
        verb, *nim = [node.text() for node in what.css("strong, bdi")]
        before, after = ([_text(cell) for cell in row.css(f"td[data-label={name}]")] for name in ("Sebelum", "Sesudah"))
        return Change(
            verb,
            "".join(nim),
            "".join(before),
            "".join(after),
            "".join(cell.text() for cell in row.css("td[colspan]")),
            shown.forms[0] if shown.forms else None,
            shown.links[0].target if shown.links else "",
        )


def _text(cell: LexborNode) -> str:
    """Return the two texts of a cell with a bar between them, or the one word that stands there."""
    return " | ".join(node.text() for node in cell.css("bdi, .hint"))


def history(site: Site, target: str = HISTORY) -> History:
    """Return a page of the history; its status must be 200, and its layout that of all pages."""
    answer = site.get(target)
    assert answer.status_code == 200, target
    assert_page(answer, site)
    return History(answer.text, site.origin + target)


def newest(site: Site) -> Change:
    """Return the latest change."""
    return history(site).changes[0]


def restore(site: Site, change: Change, **fields: str) -> httpx.Response:
    """Press the button of a change."""
    assert change.form is not None
    return site.submit(change.form, **fields)


def latest(page: Page) -> str:
    """Return the line with the latest change, with one word for its moment; empty if there is no such line."""
    lines = [node.text() for node in page.tree.css("p.latest")]
    assert len(lines) < 2
    return re.sub(MOMENT, "SAAT", "".join(lines))


def records(site: Site) -> list[tuple[str, ...]]:
    """Return the records of the list."""
    return [row[1:] for row in site.list().rows]


def assert_restored(answer: httpx.Response, target: str = f"{HISTORY}?halaman=1") -> None:
    """Check that the answer is the redirect to the page of the history that the button stood on."""
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, target, b"")


@pytest.fixture(name="importer")
def importer_into_an_empty_list(site: Site) -> Importer:
    """Import through the module's service."""
    return Importer(site)


@pytest.fixture
def imported(importer: Importer) -> Change:
    """Import 120 new records; return that change."""
    importer.save(importer.upload(csv(HEADER, *IMPORTED)))
    return newest(importer.site)


# ---- the line with the latest change


def test_the_line_above_the_list_tells_the_latest_change(site: Site) -> None:
    """After each change the line names the record, the kind of the change and its moment, and leads to the history."""
    site.add(*SITI)
    assert latest(site.list()) == "Terakhir: Siti Aminah (2207) ditambah SAAT · Riwayat"
    site.edit("2207", "Siti A.", "Klaten")
    assert latest(site.list()) == "Terakhir: Siti A. (2207) diubah SAAT · Riwayat"
    site.delete("2207")
    page = site.list()
    assert latest(page) == "Terakhir: Siti A. (2207) dihapus SAAT · Riwayat"
    assert [node.attributes["href"] for node in page.tree.css("p.latest a")] == [HISTORY]


def test_the_line_tells_what_an_undo_did(site: Site) -> None:
    """It names the change that was taken back. A deleted record that came back is “dikembalikan”."""
    site.add(*SITI)
    assert_restored(restore(site, newest(site)))
    assert latest(site.list()) == "Terakhir: penambahan Siti Aminah (2207) dibatalkan SAAT · Riwayat"
    assert_restored(restore(site, newest(site)))
    assert latest(site.list()) == "Terakhir: Siti Aminah (2207) dikembalikan SAAT · Riwayat"


def test_the_line_stands_on_a_searched_and_on_a_streamed_list(tmp_path: Path) -> None:
    """Pages that the cache does not keep show the line, too."""
    with Service(tmp_path / "mahasiswa.db") as service, service.site() as site:
        site.add(*SITI)
        assert latest(site.page("/?cari=siti")) == latest(site.page("/?halaman=1")) == latest(site.list()) != ""
        fill(tmp_path / "mahasiswa.db", PAGE_MAX_RECORDS)
        site.add("baru", "Budi", "Solo")
        answer = site.get("/")
        assert "etag" not in answer.headers, "the list is too long to keep, so it is streamed"
        assert latest(Page(answer.text, site.origin)) == "Terakhir: Budi (baru) ditambah SAAT · Riwayat"


def test_a_change_that_changes_nothing_leaves_the_page_as_it_was(site: Site) -> None:
    """An edit that saves the same texts is no change, so a browser that has the list gets 304.

    If the record was changed and changed back, only the line is another one, so the browser gets the page again.
    """
    site.add(*SITI)
    etag = site.get("/").headers["etag"]
    site.edit(*SITI)
    assert site.send("GET", "/", if_none_match=etag).status_code == 304
    site.edit("2207", "Siti A.", "Sleman")
    site.edit(*SITI)
    assert site.send("GET", "/", if_none_match=etag).status_code == 200


def test_a_long_name_is_cut_in_the_line(site: Site) -> None:
    """The line stays short if a name and a nim are as long as they can be."""
    site.add("9" * 255, "Wolfeschlegelsteinhausenbergerdorff" * 20, "Solo")
    assert re.fullmatch("Terakhir: Wolf[a-zW]{55}… \\(9{39}…\\) ditambah SAAT · Riwayat", latest(site.list()))


def test_a_new_list_has_no_line_and_an_empty_history(database: str) -> None:
    """Before the first change there is no line, and the history says so."""
    with Service(database) as service, service.site() as site:
        assert latest(site.list()) == latest(site.page("/?cari=x")) == ""
        page = history(site)
        assert (page.changes, page.tree.css("table")) == ([], [])
        assert "Belum ada perubahan." in page.html


# ---- the history


def test_the_history_shows_the_texts_before_and_after_newest_first(site: Site, service: Service) -> None:
    """Each change of any program has its texts before and after, side by side."""
    began = datetime.now(UTC)
    site.add(*SITI)
    site.edit("2207", "Siti A.", "Sleman")
    run_elsewhere(service.database, "UPDATE mahasiswa SET alamat = ''")
    site.delete("2207")
    assert [change.texts for change in history(site).changes[:4]] == [
        ("Dihapus", "2207", "Siti A. | kosong", "dihapus"),
        ("Diubah", "2207", "Siti A. | Sleman", "Siti A. | kosong"),
        ("Diubah", "2207", "Siti Aminah | Sleman", "Siti A. | Sleman"),
        ("Ditambah", "2207", "tidak ada", "Siti Aminah | Sleman"),
    ]
    (deleted, edited, *_) = history(site).tree.css("tbody tr")
    assert [[node.text() for node in row.css("del, ins")] for row in (deleted, edited)] == [[], ["Sleman"]]
    moments = history(site).tree.css("tbody time")
    assert all(re.fullmatch(MOMENT, moment.text()) for moment in moments)
    texts = [str(moment.attributes["datetime"]) for moment in moments]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", text) for text in texts)
    deleted_at, *_, added_at = map(datetime.fromisoformat, texts[:4])
    tolerance = timedelta(seconds=1)  # the server's clock, and milliseconds that are cut off
    assert began - tolerance <= added_at <= deleted_at <= datetime.now(UTC) + tolerance


def test_the_history_is_shown_in_pages_and_searched_like_the_list(site: Site) -> None:
    """50 changes a page; a page past the end is the last one; a search keeps its text from page to page."""
    for number in range(60):
        site.add(f"cari-{number:02}", "Nama", "Solo")
    first = history(site, f"{HISTORY}?cari=cari-")
    assert [change.nim for change in first.changes] == [f"cari-{number:02}" for number in range(59, 9, -1)]
    assert "1–50 dari 60 perubahan" in first.html
    forward = [link.target for link in first.links if link.text == "Berikutnya"]
    assert forward == forward[:1] * 2, "above and below the table"
    second = history(site, forward[0])
    assert [change.nim for change in second.changes] == [f"cari-{number:02}" for number in range(9, -1, -1)]
    assert history(site, f"{HISTORY}?cari=cari-&halaman=999999999").changes == second.changes
    assert [change.nim for change in history(site, f"{HISTORY}?cari=CARI-07").changes] == ["cari-07"]
    nothing = history(site, f"{HISTORY}?cari=%3Cb%3Etidak-ada")
    assert nothing.changes == []
    assert "Tidak ada perubahan yang cocok dengan “<b>tidak-ada”." in nothing.tree.css(".empty")[0].text()


@pytest.mark.parametrize("query", ["?halaman=0", "?halaman=-1", "?halaman=x", "?utm_source=x", "?urut=nama&per=10"])
def test_a_query_that_makes_no_sense_shows_the_first_page(site: Site, query: str) -> None:
    """Foreign parameters and impossible numbers are ignored."""
    site.add(*SITI)
    assert history(site, HISTORY + query).changes == history(site).changes


def test_an_import_is_one_line_that_opens_page_by_page(site: Site, imported: Change) -> None:
    """The line of an import leads to its records, of which no page shows more than 50. A search leads to its hits."""
    assert (imported.verb, imported.nim) == ("Diimpor", "")
    assert imported.summary == "120 mahasiswa. Lihat rinciannya"
    shown: list[Change] = []
    target = imported.link
    while target:
        page = history(site, target)
        assert len(page.changes) <= 50
        shown += page.changes
        target = next((link.target for link in page.links if link.text == "Berikutnya"), "")
    assert {change.texts for change in shown} == {
        ("Ditambah", nim, "tidak ada", f"{nama} | {alamat}") for nim, nama, alamat in IMPORTED
    }
    assert {change.form.submit for change in shown if change.form} == {"Batalkan penambahan"}
    site.add(*SITI)
    found = next(change for change in history(site, f"{HISTORY}?cari=nama+77").changes if change.summary)
    assert (found.summary, found.link) == (imported.summary, imported.link + "?cari=nama+77")
    assert [change.nim for change in history(site, found.link).changes] == ["0077"]


def test_an_import_of_one_record_shows_its_texts_at_once(site: Site, importer: Importer) -> None:
    """A batch of one record needs no page of its own."""
    importer.save(importer.upload(csv(HEADER, SITI)))
    change = newest(site)
    assert change.texts == ("Diimpor", "2207", "tidak ada", "Siti Aminah | Sleman")
    assert_restored(restore(site, change))
    assert records(site) == []


def test_every_text_comes_back_unchanged_from_the_history(site: Site, service: Service) -> None:
    """No text becomes markup, and each one is isolated from the direction of the others."""
    texts = {f"{number:03}": text for number, text in enumerate(NAUGHTY) if text}
    for nim, text in texts.items():
        site.add(nim, text, "Solo")
    run_elsewhere(service.database, "UPDATE mahasiswa SET nama = 'Siti', alamat = nama")
    shown: dict[str, list[str]] = {}
    target = HISTORY
    while len(shown) < len(texts):
        page = history(site, target)
        for nim, *both in [[node.text() for node in row.css("bdi")] for row in page.tree.css("tbody tr")]:
            shown.setdefault(nim, both)
        target = next(link.target for link in page.links if link.text == "Berikutnya")
    assert shown == {nim: [text, "Solo", "Siti", text] for nim, text in texts.items()}


# ---- undo


def test_a_deleted_record_is_restored(site: Site) -> None:
    """The button brings it back with its exact texts. The second one of a double click changes nothing more."""
    site.add("20/1", " Siti\r\nA. ", "")
    site.delete("20/1")
    deleted = newest(site)
    for _ in range(2):
        assert_restored(restore(site, deleted))
        assert records(site) == [("20/1", " Siti\r\nA. ", "")]
    assert [change.verb for change in history(site).changes[:2]] == ["Dikembalikan", "Dihapus"]


def test_an_edit_and_an_addition_are_taken_back(site: Site) -> None:
    """The buttons restore the texts before an edit, and remove a record that was added. Each undo can be undone."""
    site.add(*SITI)
    added = newest(site)
    site.edit("2207", "Siti A.", "Klaten")
    assert_restored(restore(site, newest(site)))
    assert records(site) == [SITI]
    assert_restored(restore(site, added))
    assert records(site) == []
    assert_restored(restore(site, newest(site)))
    assert newest(site).texts == ("Dikembalikan", "2207", "tidak ada", "Siti Aminah | Sleman")
    assert records(site) == [SITI]


def test_an_import_is_taken_back_as_a_whole(site: Site, imported: Change) -> None:
    """One button removes every record of an import, and one more brings all of them back. The line counts them."""
    assert latest(site.list()) == "Terakhir: 120 mahasiswa diimpor SAAT · Riwayat"
    assert_restored(restore(site, imported))
    assert records(site) == []
    assert latest(site.list()) == "Terakhir: perubahan 120 mahasiswa dibatalkan SAAT · Riwayat"
    assert_restored(restore(site, newest(site)))
    assert records(site) == IMPORTED


@pytest.mark.parametrize("number", ["0", "9" * 18, "9" * 19, "-1", "x", "", "1%00", "%D9%A3", "1.0", "%FF", ":id"])
@pytest.mark.parametrize("path", ["perubahan", "kelompok"])
def test_a_change_that_is_not_in_the_history_is_404(site: Site, path: str, number: str) -> None:
    """A change that has expired, or never was, is answered with a page that says so, and so is its own page."""
    site.add(*SITI)
    requests = [("POST", f"{HISTORY}/{path}/{number}"), ("GET", f"{HISTORY}/kelompok/{number}")]
    for answer in [site.send(method, target) for method, target in requests]:
        assert answer.status_code == 404
        assert_error(answer, site, GONE)
    assert records(site) == [SITI]


# ---- an undo that would overwrite newer changes


@pytest.fixture
def conflict(site: Site) -> Change:
    """Change a record twice; return the first of the two changes."""
    site.add(*SITI)
    site.edit("2207", "Siti Aminah", "Klaten")
    first = newest(site)
    site.edit("2207", "Siti <b>", "Klaten")
    return first


def compared(answer: httpx.Response, site: Site) -> list[str]:
    """Return the cells of the conflict page: for name and address the present text, then the text to restore."""
    assert answer.status_code == 409
    page = assert_page(answer, site)
    alert = "Data ini sudah berubah lagi sejak perubahan itu. Pilih data mana yang dipakai."
    assert [node.text() for node in page.tree.css("[role=alert]")] == [alert]
    return [cell.text() for cell in page.tree.css("tbody td")]


def nevertheless(answer: httpx.Response, site: Site) -> httpx.Response:
    """Press “Tetap kembalikan” on the conflict page."""
    (button,) = Page(answer.text, site.origin).tree.css("main form button[name=versi]")
    (form,) = Page(answer.text, site.origin).forms
    assert (button.text(), form.inputs) == ("Tetap kembalikan", ())
    return site.submit(form, versi=str(button.attributes["value"]))


def test_an_undo_of_a_record_that_has_changed_since_shows_both_and_asks(site: Site, conflict: Change) -> None:
    """The answer is 409 with the present texts and those before the change. “Tetap kembalikan” overwrites the former.

    If the record changes while the person decides, the newest texts are shown first.
    """
    first = restore(site, conflict)
    assert compared(first, site) == ["Siti <b>", "Siti Aminah", "Klaten", "Sleman"]
    assert records(site) == [("2207", "Siti <b>", "Klaten")]
    (link,) = [link for link in Page(first.text, site.origin).links if link.text == "Gunakan data terbaru"]
    assert link.target == f"{HISTORY}?halaman=1"
    site.edit("2207", "Siti lagi", "Bantul")
    second = nevertheless(first, site)
    assert compared(second, site) == ["Siti lagi", "Siti Aminah", "Bantul", "Sleman"]
    assert records(site) == [("2207", "Siti lagi", "Bantul")]
    assert_restored(nevertheless(second, site))
    assert records(site) == [SITI]


def test_an_undo_that_would_add_or_remove_a_record_asks_too(site: Site, conflict: Change) -> None:
    """An edited record was deleted since, or an added one was edited. The page tells the effect of the undo."""
    _, _, added, *_ = history(site).changes
    answer = restore(site, added)
    assert compared(answer, site) == ["Siti <b>", "tidak ada", "Klaten", "tidak ada"]
    assert "Jika dikembalikan, data ini dihapus dari daftar." in answer.text
    assert records(site) == [("2207", "Siti <b>", "Klaten")]
    assert_restored(nevertheless(answer, site))
    assert records(site) == []
    answer = restore(site, conflict)
    assert compared(answer, site) == ["sudah dihapus", "Siti Aminah", "sudah dihapus", "Sleman"]
    assert records(site) == []
    assert_restored(nevertheless(answer, site))
    assert records(site) == [SITI]


@pytest.mark.parametrize("versi", ["-", "x", "0" * 22, "é", "x" * 10_000])
def test_an_undo_with_a_wrong_version_overwrites_nothing(site: Site, conflict: Change, versi: str) -> None:
    """A text that is not the digest of the present record is a conflict."""
    assert restore(site, conflict, versi=versi).status_code == 409
    assert records(site) == [("2207", "Siti <b>", "Klaten")]


def test_a_batch_with_changed_records_is_not_undone_and_lists_fifty(site: Site, imported: Change) -> None:
    """If any record of an import has changed since, none is restored; the page lists at most 50 of them."""
    site.edit("0007", "Nama <b>", "Solo")
    site.edit("0008", "", "Solo")
    site.delete("0009")  # as it was before the import, so this is no conflict
    before = records(site)
    answer = restore(site, imported)
    assert answer.status_code == 409
    page = assert_page(answer, site)
    assert (
        "2 data sudah berubah lagi sejak perubahan itu, jadi tidak ada yang dikembalikan."
        in page.tree.css("[role=alert]")[0].text()
    )
    rows = [tuple(_text(cell) for cell in row.css("td")) for row in page.tree.css("tbody tr")]
    assert sorted(rows) == [("0007", "Nama <b> | Solo", "tidak ada", ""), ("0008", "kosong | Solo", "tidak ada", "")]
    assert records(site) == before
    for number in range(10, 70):
        site.edit(f"{number:04}", "Lain", "Lain")
    answer = restore(site, imported)
    page = assert_page(answer, site)
    assert len(page.tree.css("tbody tr")) == 50
    assert "50 data pertama ditampilkan." in answer.text
    assert "62 data sudah berubah" in answer.text


def test_a_deleted_record_of_a_batch_is_listed_as_deleted(site: Site, importer: Importer) -> None:
    """The page says that a record which the import had changed was deleted meanwhile, and offers no Edit for it."""
    for record in (SITI, ("3", "Citra", "Solo")):
        site.add(*record)
    importer.save(importer.upload(csv(HEADER, ("2207", "Siti A.", "Sleman"), ("3", "Citra A.", "Solo"))), "Perbarui")
    batch = newest(site)
    site.delete("2207")
    answer = restore(site, batch)
    (row,) = assert_page(answer, site).tree.css("tbody tr")
    assert [_text(cell) for cell in row.css("td")] == ["2207", "sudah dihapus", "Siti Aminah | Sleman", ""]
    assert row.css("a") == []
    assert records(site) == [("3", "Citra A.", "Solo")]


# ---- settings


@pytest.fixture
def old_change(database: str) -> str:
    """Return the address of a database with one change of a record."""
    with Service(database) as service, service.site() as site:
        site.add(*SITI)
    return database


def test_without_days_there_is_no_history(old_change: str) -> None:
    """HISTORY_DAYS=0 hides the line, the history and undo, and removes the entries."""
    with Service(old_change, {"HISTORY_DAYS": "0"}) as service, service.site() as site:
        site.edit("2207", "Siti A.", "Klaten")
        for target in ("/", "/?cari=siti", "/mahasiswa/add"):
            answer = site.get(target)
            assert not re.search("Riwayat|Terakhir:|Batalkan", answer.text), target
        for answer in (site.get(HISTORY), site.get(f"{HISTORY}/kelompok/1"), site.post(f"{HISTORY}/perubahan/1")):
            assert answer.status_code == 404
            assert_error(answer, site, "Periksa kembali tautannya.")
    with Service(old_change) as service, service.site() as site:
        assert (latest(site.list()), history(site).changes) == ("", [])


def test_moments_are_shown_in_the_chosen_time_zone(old_change: str) -> None:
    """The line and the history show each moment in TIMEZONE, with the year only if HISTORY_DAYS needs it.

    A history of a year has two days of each name. test_wording.py tests the names of other zones.
    """
    settings = {"TIMEZONE": "Asia/Makassar", "HISTORY_DAYS": "366"}
    with Service(old_change, settings) as service, service.site() as site:
        for target in ("/", HISTORY):
            (shown, *_) = site.page(target).tree.css("time")
            assert re.fullmatch(MOMENT.replace("WIB", "WITA").replace(") ", ") 20[0-9]{2} "), shown.text())

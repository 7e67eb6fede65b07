"""Taking changes back on both engines: an import in part, one row of it, a changed NIM, from any page of the history."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from engines import empty_list, service_on_each_engine
from form_answers import assert_error
from harness import Form, Page, Site
from spreadsheets import HEADER, Importer, csv

# The fixtures, which pytest finds by these names.
__all__ = ["empty_list", "service_on_each_engine"]

HISTORY = "/mahasiswa/riwayat"
SITI = ("2300018001", "Siti Aminah", "Sleman")
ROWS = [(f"{number:02}", f"Nama {number}", "Solo") for number in range(60)]


@pytest.fixture
def imported(site: Site) -> str:
    """Import ROWS; return the target of the page of that batch."""
    importer = Importer(site)
    importer.save(importer.upload(csv(HEADER, *ROWS)))
    return next(link.target for link in site.page(HISTORY).links if link.text == "Lihat rinciannya")


def records(site: Site) -> list[tuple[str, ...]]:
    """Return the records of the list."""
    return [row[1:] for row in site.list().rows]


def buttons(page: Page) -> list[Form]:
    """Return the forms of the buttons that take something back."""
    return [form for form in page.forms if form.method == "post"]


def latest(site: Site, target: str) -> str:
    """Return the line with the latest change on a page, without its moment."""
    (line,) = site.page(target).tree.css("p.latest[role=status]")
    return line.text().partition(line.css("time")[0].text())[0].strip()


# ---- a part of an import


def test_the_unchanged_rows_of_an_import_are_taken_back_together(site: Site, imported: str) -> None:
    """The page of the conflict offers them with their number. The click decides which they are, and only once."""
    whole, *_ = buttons(site.page(imported))
    assert whole.submit == "Batalkan impor (60 data)"
    site.edit("07", "Nama Baru", "Solo")
    site.delete("08")
    conflict = site.submit(whole)
    assert conflict.status_code == 409
    page = Page(conflict.text, site.origin)
    (part,) = buttons(page)
    assert part.submit == "Kembalikan 58 data yang belum berubah"
    assert len(records(site)) == 59, "the refused undo changed nothing"
    site.edit("09", "Nama Lain", "Solo")  # after the page was shown
    for _ in range(2):
        answer = site.submit(part, sebagian="1")
        assert (answer.status_code, answer.headers["location"], answer.content) == (302, f"{imported}?halaman=1", b"")
        assert records(site) == [("07", "Nama Baru", "Solo"), ("09", "Nama Lain", "Solo")]
        assert latest(site, answer.headers["location"]) == "Terakhir: perubahan 57 mahasiswa dibatalkan"
    newest = buttons(site.page(HISTORY))[0]
    assert newest.submit == "Ulangi perubahan (57 data)"
    assert site.submit(newest).status_code == 302
    assert len(records(site)) == 59


def test_one_row_of_an_import_is_taken_back(site: Site, imported: str) -> None:
    """Each row has a button, which leads back to its page. The rest can still be taken back as a whole."""
    site.edit("51", "Nama Baru", "Solo")
    second = f"{imported}?halaman=2"
    _, first_row, second_row, *_ = buttons(site.page(second))
    assert first_row.submit == "Batalkan penambahan"
    answer = site.submit(first_row)
    assert (answer.status_code, answer.headers["location"]) == (302, second)
    assert latest(site, second) == "Terakhir: penambahan Nama 50 (50) dibatalkan"
    refused = site.submit(second_row)
    assert refused.status_code == 409
    (again,) = [form for form in buttons(Page(refused.text, site.origin)) if form.submit == "Tetap kembalikan"]
    versi = Page(refused.text, site.origin).tree.css("button[name=versi]")[0].attributes["value"] or ""
    assert site.submit(again, versi=versi).headers["location"] == second
    whole, *_ = buttons(site.page(imported))
    assert site.submit(whole).headers["location"] == f"{imported}?halaman=1"
    assert records(site) == []


# ---- a changed NIM


def test_a_changed_nim_is_taken_back_whole_or_not_at_all(site: Site) -> None:
    """It is one line with both NIMs. If either has changed since, nothing is restored, and no part is offered."""
    site.add(*SITI)
    site.submit(site.page("/mahasiswa/nim/2300018001").record_form, nim="2300018002")
    assert latest(site, "/") == "Terakhir: NIM Siti Aminah (2300018002) diganti"
    page = site.page(HISTORY)
    row = page.tree.css("tbody tr")[0]
    assert [node.text() for node in row.css("strong, bdi")] == ["NIM diganti", "Siti Aminah", SITI[0], "2300018002"]
    back, *_ = buttons(page)
    assert back.submit == "Batalkan penggantian NIM"
    batch = back.target.partition("?")[0]
    (only,) = buttons(site.page(batch))
    assert only.submit == "Batalkan penggantian NIM", "no row has a button"
    newest = int(batch.rpartition("/")[2])
    for number in (newest - 2, newest - 1, newest + 1, newest + 2):  # also the entries of the batch
        site.post(f"{HISTORY}/kelompok/{number}", {"sebagian": "1"})
        if number > newest:
            answer = site.post(f"{HISTORY}/perubahan/{number}")
            assert answer.status_code == 404
            assert_error(answer, site, "tidak dapat dikembalikan")
    site.edit("2300018002", "Siti A.", "Sleman")
    for fields in ({}, {"sebagian": "1"}):
        refused = site.post(back.target, fields)
        assert refused.status_code == 409
        assert not buttons(Page(refused.text, site.origin))
    assert records(site) == [("2300018002", "Siti A.", "Sleman")]
    site.edit("2300018002", "Siti Aminah", "Sleman")
    assert site.submit(back).status_code == 302
    assert records(site) == [SITI]
    assert latest(site, "/") == "Terakhir: NIM Siti Aminah (2300018001) diganti"


def test_an_older_change_of_a_nim_makes_no_second_record_and_removes_none(site: Site) -> None:
    """The nim was changed again, the record was removed, or the old nim was given to somebody else with the same texts."""

    def undo_after(*later: tuple[str, dict[str, str]]) -> list[tuple[str, ...]]:
        site.add(*SITI)
        site.submit(site.page("/mahasiswa/nim/2300018001").record_form, nim="2")
        back, *_ = buttons(site.page(HISTORY))
        for path, fields in later:
            site.post(path, fields)
        before = records(site)
        assert site.submit(back).status_code == 409
        assert records(site) == before
        for nim, *_ in before:
            site.post(f"/mahasiswa/delete/{nim}")
        return before

    assert undo_after(("/mahasiswa/nim/2", {"nim": "3"})) == [("3", *SITI[1:])]
    assert undo_after(("/mahasiswa/delete/2", {})) == []
    again = dict(zip(("nim", "nama", "alamat"), SITI, strict=True))
    assert undo_after(("/mahasiswa/add", again)) == [("2", *SITI[1:]), SITI]


# ---- the filter


@pytest.mark.usefixtures("imported")
def test_the_history_is_filtered_by_kind_and_day(site: Site) -> None:
    """A kind, a day and a search are combined. After an undo the same page is shown again, and each page keeps them."""
    site.add(*SITI)
    site.edit(SITI[0], "Siti A.", "Klaten")
    for nim, *_ in ROWS[:55]:
        site.delete(nim)
    counts = {}
    for jenis in ("add", "edit", "delete", "import", "nim", "undo", "restore", "", "x"):
        page = site.page(f"{HISTORY}?jenis={jenis}&cari=nama+54")
        counts[jenis] = {row.css("strong")[0].text() for row in page.tree.css("tbody tr")}
    assert counts["delete"] == {"Dihapus"}
    assert counts["import"] == {"Diimpor"}
    assert {"Dihapus", "Diimpor"} <= counts[""] == counts["x"]
    assert site.page(f"{HISTORY}?jenis=edit&cari=klaten").tree.css("tbody strong")[0].text() == "Diubah"
    page = site.page(f"{HISTORY}?jenis=delete")
    (forward, *_) = [link.target for link in page.links if link.text == "Berikutnya"]
    assert forward == f"{HISTORY}?halaman=2&jenis=delete"
    button = buttons(site.page(forward))[0]
    assert button.submit == "Kembalikan data yang dihapus"
    assert site.submit(button).headers["location"] == forward
    nothing = f"{HISTORY}?tanggal=2001-02-03&jenis=add"
    assert "Tidak ada perubahan dengan jenis dan tanggal itu." in site.page(nothing).html
    for tanggal in ("2026-13-01", "9999-12-31", "0001-01-01", "x", "%00"):
        assert site.page(f"{HISTORY}?tanggal={tanggal}&jenis=edit").tree.css("tbody strong")


def test_a_day_is_one_of_the_time_zone(site: Site) -> None:
    """The filter shows the changes whose printed date is that day."""
    site.add(*SITI)
    shown = {
        tanggal: bool(site.page(f"{HISTORY}?tanggal={tanggal}&cari=aminah").tree.css("tbody tr"))
        for tanggal in neighbouring_days(site)
    }
    assert list(shown.values()) == [False, True, False]


def neighbouring_days(site: Site) -> list[str]:
    """Return yesterday, the day of the latest change in Jakarta, and the day after, in ISO 8601."""
    moment = site.page("/").tree.css("p.latest time")[0].attributes["datetime"] or ""
    day = datetime.fromisoformat(moment).astimezone(ZoneInfo("Asia/Jakarta")).date()
    return [(day + timedelta(days=days)).isoformat() for days in (-1, 0, 1)]


# ---- a NIM that another record nearly has


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ("23000186002", "23000186002 "),
        ("23000186002", " 23000186002"),
        ("23000186002 ", "23000186002"),
        ("23000186002", "23O00186002"),
        ("23000186002", "23000l86002"),
        ("23000I86002", "23000186002"),
        ("23O00186002", "23000186002"),
        ("0230000703", "230000703"),
        ("230000703", "00230000703"),
        ("23000703", "23.000-703"),
        ("H1A020045", "h1a 020 045"),
    ],
)
def test_an_addition_that_may_be_a_twin_is_named_at_once(site: Site, stored: str, typed: str) -> None:
    """The list names the other record and offers to edit, to change the NIM, and to take the addition back."""
    site.add(stored, "Rizki <b>", "Solo")
    site.add(typed, "Rizki", "Solo")
    assert len(records(site)) == 2
    for target in ("/", "/?cari=rizki"):
        (twin,) = site.page(target).tree.css(".twin")
        assert twin.css("span")[0].text() == f"NIM ini mirip dengan {stored} (Rizki <b>)."
    page = site.page("/?cari=rizki&per=10")
    (form,) = [form for form in page.forms if form.submit == "Batalkan penambahan"]
    path = site.path("/mahasiswa/nim/", typed)
    assert f"{path}?cari=rizki&per=10" in [link.target for link in page.links if link.text == "Ganti NIM"]
    assert site.page(path).record_form.values["nim"] == typed
    assert site.page(f"/mahasiswa/add?lagi=1&nim={path.rpartition('/')[2]}").tree.css(".twin")
    answer = site.submit(form)
    assert (answer.status_code, answer.headers["location"]) == (302, "/?cari=rizki&per=10")
    assert records(site) == [(stored, "Rizki <b>", "Solo")]
    assert not site.page("/").tree.css(".twin")


def test_a_usual_addition_has_no_warning_and_a_blank_one_has(site: Site) -> None:
    """Neighbouring NIMs are no twins. A NIM or a name of spaces is said to be empty."""
    for nim in ("2300018001", "2300018002", "230001800", "0", "00", "-"):
        site.add(nim, "Siti", "Solo")
        assert not site.page("/").tree.css(".twin"), nim
    for nim, nama in (("  ", "Siti"), ("3", " ")):
        site.add(nim, nama, "Solo")
        assert site.page("/").tree.css(".twin span")[0].text() == "NIM atau nama data ini kosong."

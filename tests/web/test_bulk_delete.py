"""Bulk delete: NIMs are pasted or come from a file, a preview shows their records, and one confirmation removes them."""

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from form_answers import assert_page
from harness import Page, Service, Site
from spreadsheets import Database, Importer, Record, by_openpyxl, csv

from mahasiswa.sheets import MAX_CONFIRMED_BYTES

CHOOSE = "/mahasiswa/hapus"
CONFIRM = "/mahasiswa/hapus/simpan"
LIST: list[Record] = [
    ("001", "Ani", "Solo"),
    ("002", "Budi", "Bantul"),
    ("003", "Citra", "Klaten"),
    ("20/4", "Dewi", ""),
]


class Deleter:
    """A person who removes many records through the pages."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def send(self, data: bytes = b"", name: str = "", pasted: str = "") -> httpx.Response:
        """Send the form as a browser does: both fields, even if nothing was chosen or typed."""
        return self.site.client.post(
            self.site.path(CHOOSE),
            files={"berkas": (name, data, "application/octet-stream")},
            data={"tempel": pasted},
        )

    def preview(self, data: bytes = b"", name: str = "", pasted: str = "") -> Page:
        """Send the form; the answer must be a preview."""
        answer = self.send(data, name, pasted)
        page = assert_page(answer, self.site)
        assert (answer.status_code, page.headings[0]) == (200, "Hapus Banyak Data"), answer.text
        assert answer.headers["cache-control"] == "no-store"
        return page

    def confirm(self, preview: Page) -> httpx.Response:
        """Press the button of a preview."""
        (form,) = preview.forms
        assert (form.method, form.target) == ("post", CONFIRM)
        return self.site.post(form.target, {"data": form.values["data"]})

    def check_again(self, preview: Page, **fields: str | list[str]) -> Page:
        """Press "Periksa lagi" after changing fields; the answer must be a preview."""
        (form,) = preview.forms
        sent = {"data": form.values["data"], "periksa": "1", **{f"{name}[]": texts for name, texts in fields.items()}}
        return assert_page(
            self.site.post(CONFIRM, [(n, t) for n, v in sent.items() for t in ([v] if isinstance(v, str) else v)]),
            self.site,
        )

    def nims(self) -> list[str]:
        """Return every NIM of the list."""
        return self.site.list().nims


@pytest.fixture(name="deleter")
def a_deleter(site: Site, other: Database) -> Deleter:
    """Remove records from LIST."""
    other.fill(LIST)
    return Deleter(site)


def counts(preview: Page) -> tuple[int, int]:
    """Return how many NIMs were found, and how many were not."""
    found, missing, *_ = (int(node.text().replace(".", "")) for node in preview.tree.css(".summary dd"))
    return found, missing


def found(preview: Page) -> list[Record]:
    """Return the records that a preview shows."""
    rows = preview.tree.css("table tbody tr")
    return [(nim, nama, alamat) for nim, nama, alamat in ([cell.text() for cell in row.css("td")] for row in rows)]


def missing(preview: Page) -> list[str]:
    """Return the NIMs without a record that a preview shows, each with its row and the reason."""
    rows = [(row.css("input[type=text]")[0], row.css(".reason")[0]) for row in preview.tree.css(".repair")]
    named = [(str(field.attributes["aria-label"]), field.attributes["value"], why.text()) for field, why in rows]
    return [" ".join(f"{label.removeprefix('NIM, ').capitalize()}: {nim} {why}".split()) for label, nim, why in named]


# ---- the preview


PASTED = {
    "one a line": "001\n20/4\n999",
    "Windows line ends and blank lines": "\r\n001\r\n\r\n20/4\r\n999\r\n",
    "spaces around them": "  001 \n20/4\t\n\u00a0999",
    "an apostrophe before them": "'001\n'20/4\n'999",
    "a header": "NIM\n001\n20/4\n999",
    "a NIM twice": "001\n20/4\n001\n999\n999",
    "one row of cells": "001\t20/4\t999",
    "one line with commas": "001, 20/4, 999",
    "whole rows with a header": "No\tNPM\tNama\n1\t001\tAni\n2\t20/4\tDewi\n3\t999\tEko",
    "NIM, Nama and Alamat without a header": "001\tAni\tSolo\n20/4\tDewi\t\n999\tEko\tSolo",
}


@pytest.mark.parametrize("pasted", PASTED.values(), ids=PASTED)
def test_pasted_nims_are_shown_with_their_records(deleter: Deleter, pasted: str) -> None:
    """The preview shows the records that were found and the NIMs that were not, and removes nothing."""
    preview = deleter.preview(pasted=pasted)
    assert counts(preview) == (2, 1)
    assert found(preview) == [LIST[0], LIST[3]]
    (line,) = missing(preview)
    assert re.fullmatch(r"Baris \d: '?999", line)
    buttons = [button.text() for button in preview.tree.css("main button")]
    assert buttons == ["Periksa lagi", "Hapus 2 mahasiswa", "Periksa lagi"]
    assert "Dapat dikembalikan lewat Riwayat." in preview.tree.css("main")[0].text()
    assert deleter.nims() == [record[0] for record in LIST]


ROWS = [("001",), ("20/4",), ("999",)]
FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "CSV without a header": ("x.csv", lambda: csv(*ROWS)),
    "CSV with titles above the header": ("x.csv", lambda: csv(("Daftar lulusan",), ("",), ("NIM",), *ROWS)),
    "xlsx with other columns": (
        "x.xlsx",
        lambda: by_openpyxl(("Nama", "NIM"), ("Ani", "001"), ("Dewi", "20/4"), ("Eko", "999")),
    ),
    "xlsx with NIMs that are numbers": (
        "x.xlsx",
        lambda: by_openpyxl(("NIM",), (1,), ("20/4",), (999,), formats={"A2": "000", "A4": "000"}),
    ),
}


@pytest.mark.parametrize(("name", "make"), FILES.values(), ids=FILES)
def test_nims_are_read_from_a_file_of_any_kind(deleter: Deleter, name: str, make: Callable[[], bytes]) -> None:
    """Only the column NIM is needed; other columns are ignored."""
    preview = deleter.preview(make(), name)
    assert (counts(preview), found(preview)) == ((2, 1), [LIST[0], LIST[3]])


ALMOST = {
    "zeros that a spreadsheet lost": ("1", "NIM ini mirip dengan 001 (Ani) yang sudah ada."),
    "dots and spaces": ("0 0.2", "NIM ini mirip dengan 002 (Budi) yang sudah ada."),
    "several NIMs in one line": ("003 999", "Jika ini beberapa NIM, tulis satu NIM per baris."),
    "a number that a spreadsheet has rounded": ("2,30007E+14", "NIM 2,30007E+14 sudah dibulatkan oleh Excel"),
}


@pytest.mark.parametrize(("nim", "reason"), ALMOST.values(), ids=ALMOST)
def test_a_nim_that_was_not_found_shows_the_likely_reason(deleter: Deleter, nim: str, reason: str) -> None:
    """A record with almost the same NIM is shown, and is not removed."""
    preview = deleter.preview(pasted=f"20/4\n{nim}")
    assert (counts(preview), found(preview)) == ((1, 1), [LIST[3]])
    (line,) = missing(preview)
    assert line.startswith(f"Baris 2: {nim} {reason}")


def test_a_preview_that_finds_nothing_has_no_button(deleter: Deleter) -> None:
    """There is nothing to confirm, and the page says so."""
    preview = deleter.preview(pasted="998\n999")
    assert counts(preview) == (0, 2)
    assert "Hapus" not in " ".join(button.text() for button in preview.tree.css("main button"))
    assert "Tidak ada NIM yang ditemukan di daftar" in preview.tree.css("main")[0].text()


def test_the_first_ten_records_are_visible_and_the_rest_opens(deleter: Deleter, other: Database) -> None:
    """600 graduates do not fill the screen, and every one of them can be looked at."""
    records = [(f"{number:03}", f"Nama {number}", "Solo") for number in range(600)]
    other.fill(records)
    preview = deleter.preview(pasted="\n".join(nim for nim, _, _ in records))
    assert (counts(preview), found(preview)) == ((600, 0), records)
    (details,) = preview.tree.css("details")
    assert len(details.css("tbody tr")) == 590
    (summary,) = details.css("summary")
    assert summary.text() == "590 lainnya"


# ---- the confirmation


def test_a_confirmation_removes_what_the_preview_named_and_is_still_there(deleter: Deleter) -> None:
    """A record that has changed since is removed, and can be restored. A second click removes nothing more."""
    preview = deleter.preview(pasted="001\n002\n20/4\n999")
    deleter.site.delete("001")
    deleter.site.edit("002", "Budi S.", "Sleman")
    deleter.site.add("000", "Eko", "Solo")
    for _ in range(2):
        answer = deleter.confirm(preview)
        assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
        assert deleter.nims() == ["000", "003"]


def test_ten_thousand_records_are_removed_at_once(deleter: Deleter, other: Database) -> None:
    """The maximum of a preview passes through the confirmation."""
    other.fill([*LIST, *((f"20/{number}/TK", "Nama", "Solo") for number in range(10_000))])
    preview = deleter.preview(pasted="\n".join(f"20/{number}/TK" for number in range(10_000)))
    assert counts(preview) == (10_000, 0)
    assert deleter.confirm(preview).status_code == 302
    assert deleter.nims() == [record[0] for record in LIST]


def test_a_bulk_delete_is_undone_as_one_batch(deleter: Deleter) -> None:
    """The history shows it as one item. Its button restores every record; a second bulk delete is a second item."""
    assert deleter.confirm(deleter.preview(pasted="001\n20/4\n999")).status_code == 302
    history = deleter.site.page("/mahasiswa/riwayat")
    undo = next(form for form in history.forms if "/kelompok/" in form.target)
    assert deleter.site.submit(undo).status_code == 302
    assert [row[1:] for row in deleter.site.list().rows] == LIST


UNUSUAL = [
    "",
    " ",
    "%",
    "%2F",
    "+",
    "a b",
    "~",
    "a\r\nb",
    "\r",
    "'1",
    "=1",
    "é",
    "👩🏽‍🎓",
    '<b>&amp;"',
    "\u202e",
    "NIM",
]


@pytest.mark.parametrize("name", ["mahasiswa.csv", "mahasiswa.xlsx"])
def test_an_export_names_the_records_to_remove_whatever_their_nims_are(
    deleter: Deleter, other: Database, name: str
) -> None:
    """Every record of the list is in its own export, so a bulk delete by that file empties the list."""
    # A workbook cannot tell an empty NIM from a blank cell, or an apostrophe from the mark of a text.
    nims = [nim for nim in UNUSUAL if name.endswith(".csv") or (nim.strip() and nim != "'1")]
    other.fill([(nim, "Ani", "Solo") for nim in nims])
    preview = deleter.preview(deleter.site.get(f"/mahasiswa/ekspor.{name[-4:].strip('.')}").content, name)
    assert (counts(preview), missing(preview)) == ((len(nims), 0), [])
    deleter.site.add("neighbour", "Ani", "Solo")
    assert deleter.confirm(preview).status_code == 302
    assert deleter.nims() == ["neighbour"]


@pytest.mark.parametrize(
    "body", ["", "data=", "data=DATA&data=DATA", "data=%FFDATA", "nim=001", "data=x", "data=DATAx"]
)
def test_a_confirmation_that_no_preview_sends_removes_nothing(deleter: Deleter, body: str) -> None:
    """`test_form_field.py` has many more damages."""
    data = deleter.preview(pasted="001").forms[0].values["data"]
    body = body.replace("DATA", data.replace("=", "%3D"))
    answer = deleter.site.send("POST", CONFIRM, body.encode(), content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 400
    assert "tidak lengkap atau berubah" in assert_page(answer, deleter.site).tree.css("[role=alert]")[0].text()
    assert deleter.nims() == [record[0] for record in LIST]


# ---- a preview that is repaired


def test_a_nim_that_was_not_found_is_corrected_in_the_preview(deleter: Deleter) -> None:
    """The others stay as they were. A correction that no preview has shown removes nothing."""
    preview = deleter.preview(pasted="001\n999\n998\n2")
    again = deleter.check_again(preview, baris=["2", "3", "4"], nim=["003", "998", "2"])
    assert (counts(again), found(again)) == ((2, 2), [LIST[0], LIST[2]])
    assert missing(again) == ["Baris 3: 998", "Baris 4: 2 NIM ini mirip dengan 002 (Budi) yang sudah ada."]
    (form,) = again.forms
    fields = {"data": form.values["data"], "baris[]": "4", "nim[]": "002"}
    unseen = assert_page(deleter.site.post(CONFIRM, fields), deleter.site)
    assert (
        unseen.tree.css("[role=status]")[0].text().startswith("Perbaikan Anda sudah diperiksa. Belum ada yang dihapus.")
    )
    assert deleter.nims() == ["001", "002", "003", "20/4"]
    assert deleter.confirm(unseen).status_code == 302
    assert deleter.nims() == ["20/4"]


def test_more_nims_that_were_not_found_than_fit_are_kept_for_the_next_preview(deleter: Deleter) -> None:
    preview = deleter.preview(pasted="\n".join(["001", *(f"x{number}" for number in range(130))]))
    assert (counts(preview), len(missing(preview))) == ((1, 130), 100)
    assert "30 baris lain dapat diperbaiki setelah ini." in preview.html
    again = deleter.check_again(preview, lewati=[str(number) for number in range(2, 102)])
    assert (counts(again), len(missing(again))) == ((1, 30), 30)


@pytest.mark.parametrize("make", [csv, by_openpyxl], ids=["csv", "xlsx"])
def test_another_name_in_the_file_is_pointed_out(deleter: Deleter, make: Callable[..., bytes]) -> None:
    """Case, spaces and punctuation do not count. A tick keeps the record."""
    rows = ("001", " ANI."), ("002", "Budiman"), ("003", ""), ("20/4", "Eko")
    preview = deleter.preview(make(("NIM", "Nama"), *rows), "lulusan")
    assert [node.text() for node in preview.tree.css(".summary dd")] == ["4", "0", "2"]
    told = [" ".join(node.text().split()) for node in preview.tree.css("#nama li")]
    assert told[0] == "Baris 3: 002 Di daftar: Budi · Di berkas: Budiman Jangan hapus"
    again = deleter.check_again(preview, lewati="5")
    assert deleter.confirm(again).status_code == 302
    assert deleter.nims() == ["20/4"]


def test_records_that_an_import_lacks_are_led_to_the_bulk_delete(deleter: Deleter, other: Database) -> None:
    """Every one of them is in its preview. Nothing is removed, and no row of the file is saved, before it is confirmed."""
    other.fill([*LIST, ("'x", "Eko", "Solo")])
    importer = Importer(deleter.site)
    preview = importer.upload(csv(("NIM", "Nama", "Alamat"), ("001", "Ani S.", "Solo"), ("7", "Fajar", "Solo")))
    (button,) = [node for node in preview.tree.css("#sisa button") if "Hapus" in node.text()]
    assert button.text() == "Hapus 4 mahasiswa ini…"
    assert (button.attributes["formaction"], button.attributes["value"]) == (CONFIRM, "sisa")
    page = assert_page(deleter.site.post(CONFIRM, {"data": preview.data, "periksa": "sisa"}), deleter.site)
    assert (counts(page), found(page)) == ((4, 0), [("'x", "Eko", "Solo"), *LIST[1:]])
    assert len(deleter.nims()) == 5
    assert deleter.confirm(page).status_code == 302
    assert deleter.nims() == ["001"]


# ---- refused


@pytest.mark.parametrize(
    ("pasted", "reason"),
    [
        ("", "Tempel NIM atau pilih berkas"),
        (" \n ", "Tempel NIM atau pilih berkas"),
        ("Nama\tAlamat\nAni\tSolo", "Kolom NIM tidak ditemukan"),
        ("001\tAni\n002\tBudi", "Kolom NIM tidak ditemukan"),
        ("NIM\n", "Tidak ada NIM yang terbaca"),
    ],
)
def test_cells_without_nims_are_refused(deleter: Deleter, pasted: str, reason: str) -> None:
    """The page has the form again with the reason and the pasted text."""
    answer = deleter.send(pasted=pasted)
    assert answer.status_code == 400
    page = assert_page(answer, deleter.site)
    assert reason in page.tree.css("[role=alert]")[0].text()
    assert page.tree.css("textarea")[0].text().strip() == pasted.strip()


def test_a_list_or_a_confirmation_over_the_limits_of_an_import_is_refused(deleter: Deleter) -> None:
    answer = deleter.send(pasted="\n".join(map(str, range(10_001))))
    assert (answer.status_code, "10.000 baris" in answer.text) == (413, True)
    assert deleter.site.post(CONFIRM, {"data": "1" * MAX_CONFIRMED_BYTES}).status_code == 413


# ---- the pages


def test_the_list_links_to_the_form(deleter: Deleter) -> None:
    """The page has one form with a text area and a file, and a way back to the list."""
    (link,) = [link for link in deleter.site.page("/").links if link.target == CHOOSE]
    page = deleter.site.page(link.target)
    (form,) = page.forms
    assert (form.method, form.target, form.submit) == ("post", CHOOSE, "Lihat pratinjau")
    assert page.tree.css("form")[0].attributes["enctype"] == "multipart/form-data"
    assert [node.attributes["name"] for node in page.tree.css("main textarea, main input")] == ["tempel", "berkas"]
    assert "/?halaman=1" in [link.target for link in page.links if link.text == "Batal"]


def test_without_a_history_the_preview_says_that_it_is_final(tmp_path: Path) -> None:
    """With HISTORY_DAYS=0 nothing can be restored."""
    with Service(tmp_path / "x.db", {"HISTORY_DAYS": "0"}) as service, service.site() as site:
        site.add(*LIST[0])
        text = Deleter(site).preview(pasted="001").tree.css("main")[0].text()
    assert "Data yang dihapus tidak dapat dikembalikan." in text
    assert "Riwayat" not in text

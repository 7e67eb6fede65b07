"""A selection: NIMs are pasted, ticked, searched for, or come from a file; their records are printed, downloaded, or removed at once."""

from urllib.parse import quote

import httpx
import pytest
from form_answers import assert_page
from harness import Page, Site, led_to
from spreadsheets import HEADER, Database, as_records, by_openpyxl, cells_of, csv, numbered
from visitor import texts_in

from mahasiswa import wording
from mahasiswa.sheets.read import UPLOAD_MAX_ROWS
from mahasiswa.web.stage_page import FIRST_LINES, PAGE_LINES

CHOOSE = "/mahasiswa/pilih"
LIST = as_records(
    "001|Ani Putri|Solo", "002|Budi|Bantul", "003|Citra|Klaten", "20/4|Dewi|Sleman",
    "2300018101|Siti Nur Aini|Solo", "2300018102|Budi Eko|Solo",
)  # fmt: skip
NIMS = [nim for nim, *_ in LIST]


@pytest.fixture
def people(site: Site, other: Database) -> Site:
    other.fill(LIST)
    return site


def send(site: Site, given: str | bytes) -> httpx.Response:
    """Paste a text or choose a file; send the form as a browser does, with both fields."""
    pasted, data = (given, b"") if isinstance(given, str) else ("", given)
    files = {"berkas": ("daftar" if data else "", data, "application/octet-stream")}
    return site.client.post(CHOOSE, files=files, data={"tempel": pasted})


def shown(site: Site, answer: httpx.Response) -> Page:
    """Follow the redirect to a selection; return its page, which no browser stores."""
    page = site.get(led_to(answer))
    assert page.headers["cache-control"] == "no-store"
    assert (page.status_code, assert_page(page, site).headings[0]) == (200, "Pilih Banyak")
    return assert_page(page, site)


def selected(site: Site, given: str | bytes) -> Page:
    return shown(site, send(site, given))


def press(site: Site, page: Page, action: str, **typed: str) -> httpx.Response:
    """Press a button of a selection after typing NIMs into the inputs `nim.0.3`, given as `n3`."""
    (form,) = [form for form in page.forms if form.method == "post"]
    fields = {f"nim.0.{name[1:]}": text for name, text in typed.items()}
    return site.post(form.target, {"versi": form.values["versi"], "aksi": action, **fields})


def found(page: Page) -> list[str]:
    return [texts_in(row, "td")[0] for row in page.tree.css("#ditemukan tbody tr")]


def missing(page: Page) -> list[str]:
    """Return the NIMs without a record, each with its row and the reason."""
    told = []
    for problem in page.tree.css("#perbaiki .problem"):
        for row in problem.css(".repair"):
            typed = row.css("input")[0].attributes
            reasons = row.css(".reason") or problem.css(".bad")
            place = str(typed["aria-label"]).removeprefix("NIM, ")
            told.append(f"{place}: {typed['value']} {reasons[0].text()}")
    return told


# The NIMs 001, 20/4 and 999, of which the last one is not in the list. A part of the stored name is no other name.
TWO_OF_THREE: dict[str, str | bytes] = {
    "one a line": "001\n20/4\n999",
    "spaces, apostrophes, and a NIM twice": "  '001 \n20/4\t\n\u00a0999\n001",
    "a header, and whole rows": "No\tNPM\tNama\n1\t001\tAni\n2\t20/4\tDewi\n3\t999\tEko",
    "xlsx with other columns": by_openpyxl(("Nama", "NIM"), ("Ani", "001"), ("Dewi", "20/4"), ("Eko", "999")),
    "numbers and marks": "1. 001\n• 20/4\n10) 999",
    "names before and behind them": "Ani 001\n20/4 - Dewi 7A\nEko (999)",
}  # fmt: skip
BESIDE = [
    *("{} {}", "{1} 7A ({0})", "{},{}", "{};{}", "{}-{}", "1.{} {}", "*{}* {}", "{} {} L", "NIM: {} {}"),
    *("Nama {1} NIM {0}", "{} {} 081234567890", "{}, {}, Jl. Mawar 123", "[21/11, 10.32] Bu Ani: {} {}"),
]  # fmt: skip


@pytest.mark.parametrize("given", TWO_OF_THREE.values(), ids=TWO_OF_THREE)
def test_the_records_with_the_given_nims_are_found_and_removed(
    people: Site, given: str | bytes
) -> None:
    """The page removes nothing. The redirect names the change, and one button restores all."""
    page = selected(people, given)
    assert found(page) == ["001", "20/4"]
    assert ["999" in text for text in missing(page)] == [True]
    assert people.nims == NIMS
    removed = press(people, page, "hapus")
    assert "&perubahan=" in removed.headers["location"]
    assert people.nims == [nim for nim in NIMS if nim not in ("001", "20/4")]
    people.accepts(people.page("/mahasiswa/riwayat").posts[0])
    assert people.records == LIST


@pytest.mark.parametrize("line", BESIDE)
def test_the_stored_nim_among_the_words_of_a_line_is_found(people: Site, line: str) -> None:
    students = ("2300018101", "Siti Nur Aini"), ("2300018102", "Budi Eko")
    page = selected(people, "\n".join(line.format(*student) for student in students))
    assert (found(page), missing(page)) == (["2300018101", "2300018102"], [])
    assert not page.tree.css("#periksa")


def test_a_line_with_several_nims_is_asked_about_and_a_whole_line_may_be_a_nim(
    people: Site, other: Database
) -> None:
    other.fill([*LIST, ("001 Ani", "Eko", "Solo")])
    page = selected(people, "001 Ani\n2300018101 2300018102")
    assert found(page) == ["001 Ani"]
    assert missing(page) == ["baris 2: 2300018101 2300018102 NIM ini tidak ada di daftar."]


def test_another_name_and_a_hidden_row_are_doubts(people: Site) -> None:
    """Such a row is neither removed nor downloaded until a person calls it right, or drops it."""
    rows = [HEADER[:2], ("001", " ANI."), ("002", "Citra"), ("003", "Citra"), ("20/4", "Eko")]
    page = selected(people, by_openpyxl(*rows, hidden_rows=[4]))
    assert found(page) == ["001"]
    assert [node.attributes["id"] for node in page.tree.css("#periksa .problem")] == [
        "other_nama",
        "hidden",
    ]
    assert page.texts("#other_nama .reason")[0] == "Di daftar: Budi · Tertulis: Citra"
    page = shown(people, press(people, page, "lewati:0.5"))
    page = shown(people, press(people, page, "benar:other_nama"))
    page = shown(people, press(people, page, "lewati:hidden"))
    assert (found(page), missing(page)) == (["001", "002"], [])


def test_a_typed_nim_is_looked_up_and_never_removed_by_the_same_press(people: Site) -> None:
    """A blank input drops its line. A nearly equal NIM is named."""
    page = selected(people, "001\n999\n998\n2")
    assert missing(page)[2] == "baris 4: 2 NIM ini mirip dengan 002 (Budi) yang sudah ada."
    answer = press(people, page, "hapus", n2="003", n3=" ", n4="2")
    page = shown(people, answer)
    assert page.texts("[role=status]")[0].startswith("Perbaikan Anda sudah diperiksa.")
    assert (found(page), [text[:7] for text in missing(page)]) == (["001", "003"], ["baris 4"])
    assert people.nims == NIMS


def test_two_windows_and_a_second_click_remove_nothing_more(people: Site) -> None:
    """A record that was changed since goes too, one that is gone is left out, and a new one stays."""
    page = selected(people, "001\n002\n003\n77")
    older = page
    page = shown(people, press(people, page, "lewati:0.3"))
    stale = press(people, older, "hapus")
    assert (stale.status_code, people.nims) == (409, NIMS)
    people.delete("001")
    people.edit("002", "Budi S.", "Sleman")
    people.add("77", "Eko", "Solo")
    for _ in range(2):
        led_to(press(people, page, "hapus"))
        assert people.nims == ["003", *NIMS[3:], "77"]
    assert led_to(people.get(press_target(page))).startswith("/?halaman=1")


def press_target(page: Page) -> str:
    return next(form.target for form in page.forms if form.method == "post")


def test_a_selection_is_printed_and_downloaded_in_its_order(people: Site, other: Database) -> None:
    """Ticks, also of a blank NIM. The page to print leads back to the selection."""
    other.fill([("", "Kosong", "Solo"), *LIST])
    ticked = [("nim[]", quote(nim, safe="")) for nim in ("003", "", "001")]
    page = shown(people, people.post(f"{CHOOSE}/centang", ticked))
    text = people.get(page.target("Unduh CSV")).text
    assert [row.partition(";")[2] for row in text.splitlines()[1:]] == [
        "Citra;Klaten",
        "Kosong;Solo",
        "Ani Putri;Solo",
    ]
    workbook = cells_of(people.get(page.target("Unduh Excel")).content)
    assert [row[1].value for row in workbook[1:]] == ["Citra", "Kosong", "Ani Putri"]
    paper = people.page(f"{page.target('Cetak')}?judul=Remedi&kolom=2&tanpa=alamat")
    assert paper.headings == ["Remedi"]
    assert [row.cells for row in paper.table[:3]] == [
        (str(number), nim, nama, "", "")
        for number, nim, nama in ((1, "003", "Citra"), (2, "", "Kosong"), (3, "001", "Ani Putri"))
    ]
    assert paper.form("judul").method == "get"
    assert found(people.page(paper.target("Kembali ke pilihan"))) == ["003", "", "001"]


def test_the_hits_of_a_search_are_selected(people: Site) -> None:
    page = people.page("/?cari=budi&urut=nama")
    (form,) = [form for form in page.forms if "hasil" in form.target]
    assert found(shown(people, people.post(form.target, {}))) == ["002", "2300018102"]


def test_ten_thousand_records_are_removed_at_once(people: Site, other: Database) -> None:
    """The first ten are visible, and further ones on further pages. One more hit or row is refused."""
    records = numbered(UPLOAD_MAX_ROWS, "Zainab", nim="9/{:05}/TK")
    other.fill([*LIST, *records])
    page = shown(people, people.post(f"{CHOOSE}/hasil?cari=zainab", {}))
    assert (len(found(page)), page.texts(".summary dd")[0]) == (10, "10.000")
    assert len(found(people.page(page.target("Berikutnya")))) == PAGE_LINES
    led_to(press(people, page, "hapus"))
    assert people.nims == NIMS

    other.fill([*LIST, *records, ("X", "Zainab", "Solo")])
    refused = people.post(f"{CHOOSE}/hasil?cari=zainab", {})
    assert refused.status_code == 400
    assert "menemukan lebih dari 10.000" in assert_page(refused, people).texts("[role=alert]")[0]
    pasted = "\n".join([*(nim for nim, *_ in records), "1"])
    assert send(people, pasted).status_code in (400, 413)


def test_nims_that_were_not_found_are_paged(people: Site) -> None:
    page = selected(people, "\n".join(["001", *(f"x{n}" for n in range(FIRST_LINES + 5))]))
    assert len(missing(page)) == FIRST_LINES
    assert len(missing(people.page(page.target("Berikutnya")))) == 5


def test_a_stored_nim_takes_the_place_of_one_that_is_nearly_equal(people: Site) -> None:
    page = selected(people, "1\n2\n20/4")
    page = shown(people, press(people, page, "perbaiki:near"))
    assert (found(page), missing(page)) == (["001", "002", "20/4"], [])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "Tempel NIM atau pilih berkas"),
        (csv(HEADER[:1]), "belum ada data"),
        (b"PK\x03\x04x", ""),
    ],
)
def test_an_upload_without_nims_is_refused(people: Site, given: str | bytes, reason: str) -> None:
    """The page has the form again with the reason."""
    answer = send(people, given)
    assert answer.status_code == 400
    assert reason in assert_page(answer, people).texts("[role=alert]")[0]
    nothing_ticked = assert_page(people.post(f"{CHOOSE}/centang", {}), people)
    assert nothing_ticked.texts("[role=alert]") == [wording.NO_ROWS_TICKED]


def test_a_selection_is_no_preview(people: Site) -> None:
    """The identifier of a selection opens no import, and an unknown one no selection."""
    page = selected(people, "001")
    identifier = press_target(page).rpartition("/")[2]
    for target in (f"/mahasiswa/impor/{identifier}", f"{CHOOSE}/{'0' * 32}", f"{CHOOSE}/..%2fa"):
        answer = people.get(target)
        assert answer.status_code == 404, target

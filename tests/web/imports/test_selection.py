"""A selection: NIMs are pasted, ticked, searched for, or come from a file; their records are printed, downloaded, or removed at once."""

import io
from urllib.parse import quote

import openpyxl  # type: ignore[import-untyped]
import pytest
from apsw import Connection
from harness import Page, Site, led_to, page_of
from spreadsheets import HEADER, as_records, by_openpyxl, cells_of, csv, numbered
from stores import refill
from web.importer import SELECT, counts, post_upload, press, pressed, uploaded

from mahasiswa import wording
from mahasiswa.sheets.read import UPLOAD_MAX_ROWS
from mahasiswa.web.stage_page import FIRST_LINES, PAGE_LINES

LIST = as_records(
    "001|Ani Putri|Solo", "002|Budi|Bantul", "003|Citra|Klaten", "20/4|Dewi|Sleman",
    "2300018101|Siti Nur Aini|Solo", "2300018102|Budi Eko|Solo",
)  # fmt: skip
NIMS = [nim for nim, *_ in LIST]


@pytest.fixture
def people(site: Site, other: Connection) -> Site:
    refill(other, LIST)
    return site


def found(page: Page) -> list[str]:
    return page.texts("#ditemukan tbody td:first-child")


def missing(page: Page) -> list[str]:
    """Return the NIMs without a record, each with its row."""
    inputs = "#perbaiki .repair input"
    places = [text.removeprefix("NIM, ") for text in page.values(inputs, "aria-label")]
    return [": ".join(line) for line in zip(places, page.values(inputs), strict=True)]


# The NIMs 001, 20/4 and 999, of which the last one is not in the list. A part of the stored name is no other name.
TWO_OF_THREE: dict[str, str | bytes] = {
    "spaces, apostrophes, and a NIM twice": "  '001 \n20/4\t\n\u00a0999\n001",
    "a header, and whole rows": "No\tNPM\tNama\n1\t001\tAni\n2\t20/4\tDewi\n3\t999\tEko",
    "xlsx with other columns": by_openpyxl(("Nama", "NIM"), ("Ani", "001"), ("Dewi", "20/4"), ("Eko", "999")),
}  # fmt: skip
BESIDE = [
    *("{} {}", "{1} 7A ({0})", "{},{}", "{};{}", "{}-{}", "1.{} {}", "*{}* {}", "{} {} L", "NIM: {} {}", "10) {}"),
    *("Nama {1} NIM {0}", "{} {} 081234567890", "{}, {}, Jl. Mawar 123", "[21/11, 10.32] Bu Ani: {} {}"),
]  # fmt: skip


@pytest.mark.parametrize("given", TWO_OF_THREE.values(), ids=TWO_OF_THREE)
def test_the_records_with_the_given_nims_are_found_and_removed(
    people: Site, given: str | bytes
) -> None:
    """The page removes nothing. The redirect names the change, and one button restores all."""
    page = uploaded(people, given, path=SELECT)
    assert found(page) == ["001", "20/4"]
    assert ["999" in text for text in missing(page)] == [True]
    assert people.nims == NIMS
    removed = press(people, page, "hapus")
    assert "&perubahan=" in removed.headers["location"]
    assert people.nims == [nim for nim in NIMS if nim not in ("001", "20/4")]
    led_to(people.submit(people.page("/mahasiswa/riwayat").posts[0]))
    assert people.records == LIST


def test_the_stored_nim_among_the_words_of_a_line_is_found(people: Site, other: Connection) -> None:
    """A line with several NIMs is asked about, and a whole line may be a NIM."""
    students = numbered(len(BESIDE), "Siti Nur Aini", nim="23000182{:02}")
    whole = ("001 Ani", "Eko", "Solo")
    refill(other, [*LIST, *students, whole])
    lines = [line.format(*student) for line, student in zip(BESIDE, students, strict=True)]
    page = uploaded(people, "\n".join([*lines, whole[0], "2300018101 2300018102"]), path=SELECT)
    page = people.page(f"{page.url}?bagian=ditemukan")
    assert found(page) == [nim for nim, *_ in (*students, whole)]
    assert missing(page) == ["baris 16: 2300018101 2300018102"]
    assert not page.css("#periksa")


def test_another_name_and_a_hidden_row_are_doubts(people: Site) -> None:
    """Such a row is neither removed nor downloaded until a person calls it right, or drops it."""
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    rows = [HEADER[:2], ("001", " ANI."), ("002", "Citra"), ("003", "Citra"), ("20/4", "Eko")]
    for row in rows:
        workbook.active.append(row)
    workbook.active.row_dimensions[4].hidden = True
    workbook.save(file)
    page = uploaded(people, file.getvalue(), path=SELECT)
    assert found(page) == ["001"]
    assert page.values("#periksa .problem", "id") == ["other_nama", "hidden"]
    assert page.texts("#other_nama .reason")[0] == "Di daftar: Budi · Tertulis: Citra"
    for action in ("lewati:0.5", "benar:other_nama", "lewati:hidden"):
        page = pressed(people, page, action)
    assert found(page) == ["001", "002"]
    assert missing(page) == []


def test_a_typed_nim_is_looked_up_and_never_removed_by_the_same_press(people: Site) -> None:
    """A blank input drops its line. A nearly equal NIM is named, and takes the place of the typed one."""
    page = uploaded(people, "001\n999\n998\n2", path=SELECT)
    assert page.texts("#near .bad") == ["NIM ini mirip dengan 002 (Budi) yang sudah ada."]
    typed = {"nim.0.2": "003", "nim.0.3": " "}
    page = page_of(press(people, page, "hapus", **typed), 409)
    assert page.texts("[role=status]")[0].strip().startswith("Perbaikan Anda sudah diperiksa.")
    assert found(page) == ["001", "003"]
    assert missing(page) == ["baris 4: 2"]
    assert people.nims == NIMS
    assert found(pressed(people, page, "perbaiki:near")) == ["001", "003", "002"]


def test_two_windows_and_a_second_click_remove_nothing_more(people: Site) -> None:
    """A record that was changed meanwhile is removed too. A new record stays."""
    older = uploaded(people, "001\n002\n003\n77", path=SELECT)
    page = pressed(people, older, "lewati:0.3")
    assert press(people, older, "hapus").status_code == 409
    assert people.nims == NIMS
    people.delete("001")
    people.edit("002", "Budi S.", "Sleman")
    people.add("77", "Eko", "Solo")
    for _ in range(2):
        led_to(press(people, page, "hapus"))
        assert people.nims == ["003", *NIMS[3:], "77"]


def test_a_selection_is_printed_and_downloaded_in_its_order(
    people: Site, other: Connection
) -> None:
    """Ticks, also of a blank NIM. The page to print leads back to the selection."""
    refill(other, [("", "Kosong", "Solo"), *LIST])
    nims = ["003", "", "001"]
    ticked = {"nim[]": [quote(nim, safe="") for nim in nims]}
    page = people.page(led_to(people.post(f"{SELECT}/centang", data=ticked)))
    text = people.get(page.target("Unduh CSV")).text
    names = ["Citra", "Kosong", "Ani Putri"]
    assert [row.split(";")[1] for row in text.splitlines()[1:]] == names
    workbook = cells_of(people.get(page.target("Unduh Excel")).content)
    assert [row[1].value for row in workbook[1:]] == names
    paper = people.page(f"{page.target('Cetak')}?judul=Remedi&kolom=2&tanpa=alamat")
    assert paper.texts("h1, h2, h3") == ["Remedi"]
    rows = [row.cells[1:] for row in paper.table[:3]]
    assert rows == [(nim, nama, "", "") for nim, nama in zip(nims, names, strict=True)]
    assert found(people.page(paper.target("Kembali ke pilihan"))) == nims


def test_ten_thousand_hits_of_a_search_are_removed_at_once(people: Site, other: Connection) -> None:
    """The first ten are visible, and further ones on further pages. One more hit is refused."""
    records = numbered(UPLOAD_MAX_ROWS, "Zainab", nim="9/{:05}/TK")
    refill(other, [*LIST, *records])
    (form,) = [form for form in people.page("/?cari=zainab").forms if "hasil" in form.target]
    page = people.page(led_to(people.submit(form)))
    assert len(found(page)) == FIRST_LINES
    assert counts(page) == {"Ditemukan": UPLOAD_MAX_ROWS}
    assert len(found(people.page(page.target("Berikutnya")))) == PAGE_LINES
    led_to(press(people, page, "hapus"))
    assert people.nims == NIMS

    refill(other, [*records, ("X", "Zainab", "Solo")])
    (alert,) = page_of(people.submit(form), 400).texts("[role=alert]")
    assert "menemukan lebih dari 10.000" in alert


def test_an_upload_without_nims_is_refused(people: Site) -> None:
    """The page has the form again with the reason."""
    for answer, reason in (
        (post_upload(people, "", path=SELECT), wording.NOTHING_CHOSEN["pilih"]),
        (post_upload(people, csv(HEADER[:1]), path=SELECT), wording.NO_ROWS),
        (people.post(f"{SELECT}/centang"), wording.NO_ROWS_TICKED),
    ):
        assert page_of(answer, 400).texts("[role=alert]") == [reason]

"""A selection: NIMs are pasted or come from a file; their records are printed, downloaded, or removed at once."""

from collections.abc import Sequence
from itertools import cycle
from urllib.parse import quote

import httpx
import pytest
from form_answers import assert_page
from harness import Page, Site, led_to
from spreadsheets import (
    Database,
    as_records,
    by_openpyxl,
    cells_of,
    csv,
    numbered,
)
from visitor import texts_in

from mahasiswa.sheets.public import MAX_CONFIRMED_BYTES, UPLOAD_MAX_ROWS

CHOOSE = "/mahasiswa/pilih"
CONFIRM = "/mahasiswa/pilih/simpan"
LIST = as_records("001|Ani Putri|Solo", "002|Budi|Bantul", "003|Citra|Klaten", "20/4|Dewi|")
NIMS = [nim for nim, *_ in LIST]


@pytest.fixture
def people(site: Site, other: Database) -> Site:
    other.fill(LIST)
    return site


def send(site: Site, given: str | bytes) -> httpx.Response:
    """Paste a text or choose a file; send the form as a browser does, with both fields."""
    pasted, data = (given, b"") if isinstance(given, str) else ("", given)
    files = {"berkas": ("berkas" if data else "", data, "application/octet-stream")}
    return site.client.post(CHOOSE, files=files, data={"tempel": pasted})


def preview_of(site: Site, given: str | bytes) -> Page:
    answer = send(site, given)
    page = assert_page(answer, site)
    assert (answer.status_code, page.headings[0]) == (200, "Pilih Banyak"), answer.text
    assert answer.headers["cache-control"] == "no-store"
    return page


def confirm(preview: Page, site: Site) -> None:
    (form,) = preview.forms
    assert (form.method, form.target) == ("post", CONFIRM)
    assert led_to(site.post(CONFIRM, {"data": form.values["data"]})) == "/?halaman=1"


def check_again(preview: Page, site: Site, *fields: tuple[str, str]) -> Page:
    """Press "Periksa lagi" after changing fields; the answer must be a page."""
    sent = [("data", preview.forms[0].values["data"]), ("periksa", "1"), *fields]
    return assert_page(site.post(CONFIRM, sent), site)


def counts(preview: Page) -> list[int]:
    """Return how many NIMs were found, and how many were not, and other numbers of the summary."""
    return [int(text.replace(".", "")) for text in preview.texts(".summary dd")]


def found(preview: Page) -> list[tuple[str, ...]]:
    return [tuple(texts_in(row, "td")) for row in preview.tree.css("table tbody tr")]


def missing(preview: Page) -> list[str]:
    """Return the NIMs without a record that a preview shows, each with its row and the reason."""
    rows = [
        (row.css("input[type=text]")[0].attributes, row.css(".reason")[0].text())
        for row in preview.tree.css(".repair")
    ]
    named = [
        (str(field["aria-label"]).removeprefix("NIM, ").capitalize(), field["value"], why)
        for field, why in rows
    ]
    return [" ".join(f"{row}: {nim} {why}".split()) for row, nim, why in named]


LONG_NIMS = as_records("2300018101|Siti Nur Aini|Solo", "2300018102|Budi Eko|Solo")

# The NIMs 001, 20/4 and 999, of which the last one is not in the list. A part of the stored name is no other name.
TWO_OF_THREE: dict[str, str | bytes] = {
    "one a line": "001\n20/4\n999",
    "spaces around them": "  001 \n20/4\t\n\u00a0999",
    "an apostrophe before them": "'001\n'20/4\n'999",
    "a header": "NIM\n001\n20/4\n999",
    "a NIM twice": "001\n20/4\n001\n999\n999",
    "one row of cells": "001\t20/4\t999",
    "one line with commas": "001, 20/4, 999",
    "whole rows with a header": "No\tNPM\tNama\n1\t001\tAni\n2\t20/4\tDewi\n3\t999\tEko",
    "NIM, Nama and Alamat without a header": "001\tAni\tSolo\n20/4\tDewi\t\n999\tEko\tSolo",
    "CSV without a header": csv(("001",), ("20/4",), ("999",)),
    "xlsx with other columns": by_openpyxl(
        ("Nama", "NIM"), ("Ani", "001"), ("Dewi", "20/4"), ("Eko", "999")
    ),
    "lines with numbers": "1. 001\n2) 20/4\n10. 999",
    "lines with marks": "- 001\n• 20/4\n* 999",
    "names": "001 Ani\n20/4 - Dewi\n999 Eko",
    "numbers and names": "1. 001 Ani\n2. 20/4 Dewi\n3. 999 Eko",
    "numbers without a dot, and names": "1 001 Ani\n2 20/4 Dewi\n3 999 Eko",
    "names before them": "Ani 001\nDewi (20/4)\nEko 999",
    "a class behind the name": "001 Ani 7A\n20/4, Dewi 7A\n999 Eko 7A",
    "a column of names": "001\tAni\n20/4\tDewi\n999\tEko",
    "the same student twice": "001\n001 Ani\n20/4 Dewi\n20/4\n999",
}
# Lines with the NIM and the name of a student, for each of LONG_NIMS. No line is taken for a title, and a telephone
# number, a date or a year is no second NIM.
BESIDE_LONG_NIMS = [
    *("{} {}", "{1} 7A ({0})", "{},{}", "{};{}", "{}-{}", "1.{} {}", "*{}* {}", "•{}", "{} {} L"),
    *("NIM: {} {}", "NIM {}", "NPM {} {}", "NIM:{}", "NIM: {}\n{}", "Nama {1} NIM {0}"),
    *("{} {} 081234567890", "{} {} +62 812-3456-7890", "{} {} 2023", "{} {} 21/11/2023"),
    *("{}, {}, Jl. Mawar 123, Bantul", "21/11/23 10.32 - Bu Ani: {}"),
    "[21/11, 10.32] Bu Ani: {} {}",
]
# A line with a NIM and another name. The cells of one row are NIMs only if all of them have a digit.
WITH_ANOTHER_NAME = ["{}, {}", "{}\t{}", "{};{}", "1\t{}\t{}", "{1}\t{0}", "{} {}"]


def both(pattern: str) -> str:
    """Return a line for each of LONG_NIMS, by the lines of the pattern in turn."""
    patterns = cycle(pattern.split("\n"))
    return "\n".join(
        line.format(*student) for line, student in zip(patterns, LONG_NIMS, strict=False)
    )


ASKED_ONCE = "1. {0} Siti\n2. {1} Budi\n3. {1} Budi"
# The input, the NIMs of the found records, and the counts of the preview.
GIVEN: dict[str, tuple[str | bytes, list[str], list[int]]] = {
    **{name: (given, ["001", "20/4"], [2, 1]) for name, given in TWO_OF_THREE.items()},
    **{line: (both(line), [nim for nim, *_ in LONG_NIMS], [2, 0]) for line in BESIDE_LONG_NIMS},
    **{
        f"another name, {line}": (line.format("2300018101", "Budi"), ["2300018101"], [1, 0, 1])
        for line in WITH_ANOTHER_NAME
    },
    "exchanged names": ("1. 002 Citra\n2. 003 Citra", ["002", "003"], [2, 0, 1]),
    "a NIM on two lines": (ASKED_ONCE.format("2300018101", "2300018199"), ["2300018101"], [1, 1]),
    "one with dots on two": (ASKED_ONCE.format("23.11.5401", "23.11.5499"), ["23.11.5401"], [1, 1]),
    "two NIMs on a line": ("2300018101 2300018199\n001", ["001"], [1, 1]),
}


@pytest.mark.parametrize(("given", "nims", "counted"), GIVEN.values(), ids=GIVEN)
def test_given_nims_are_shown_with_their_records_and_removed_by_one_press(
    people: Site, other: Database, given: str | bytes, nims: list[str], counted: list[int]
) -> None:
    """The preview removes nothing. Another name than the stored one needs a tick."""
    listed = [*LIST, ("23.11.5401", "Siti", "Solo"), *LONG_NIMS]
    other.fill(listed)
    preview = preview_of(people, given)
    assert [record for record in listed if record[0] in nims] == found(preview)
    assert counts(preview) == counted
    assert people.records == sorted(listed)
    if len(counted) == 2:
        confirm(preview, people)
        assert people.records == sorted(record for record in listed if record[0] not in nims)


def test_a_preview_names_the_nims_that_were_not_found_and_offers_uses_of_the_others(
    people: Site,
) -> None:
    preview = preview_of(people, "001\n'999\n20/4")
    assert missing(preview) == ["Baris 2: 999"]
    uses = ["Cetak", "Unduh Excel", "Unduh CSV", "Hapus 2 mahasiswa"]
    assert preview.texts("main button") == ["Periksa lagi", *uses, "Periksa lagi"]
    assert "Data yang dihapus dapat dikembalikan lewat Riwayat." in preview.texts("main")[0]


@pytest.mark.parametrize(
    ("nim", "reason"),
    [
        ("0 0.2", "NIM ini mirip dengan 002 (Budi) yang sudah ada."),
        ("003 999", "Jika ini beberapa NIM, tulis satu NIM per baris."),
        ("2,30007E+14", "NIM 2,30007E+14 sudah dibulatkan oleh Excel"),
    ],
)
def test_a_nim_that_was_not_found_shows_the_likely_reason(
    people: Site, nim: str, reason: str
) -> None:
    """A record with almost the same NIM is shown, and is not removed. A preview that finds nothing has no button."""
    preview = preview_of(people, f"20/4\n{nim}")
    assert (counts(preview), found(preview)) == ([1, 1], [LIST[3]])
    assert missing(preview)[0].startswith(f"Baris 2: {nim} {reason}")
    nothing = preview_of(people, f"998\n{nim}")
    assert counts(nothing) == [0, 2]
    assert "Hapus" not in " ".join(nothing.texts("main button"))
    assert "Tidak ada NIM yang ditemukan di daftar" in nothing.texts("main")[0]


def test_a_confirmation_removes_what_the_preview_named_and_is_still_there(people: Site) -> None:
    """A record that has changed since is removed, too. A second click removes nothing more. One button restores all."""
    preview = preview_of(people, "001\n002\n20/4\n999")
    people.delete("001")
    people.edit("002", "Budi S.", "Sleman")
    people.add("000", "Eko", "Solo")
    for _ in range(2):
        confirm(preview, people)
        assert people.nims == ["000", "003"]
    people.accepts(people.page("/mahasiswa/riwayat").posts[0])
    assert people.records == [
        ("000", "Eko", "Solo"),
        ("002", "Budi S.", "Sleman"),
        *LIST[2:],
    ]


def test_ten_thousand_records_are_removed_at_once(people: Site, other: Database) -> None:
    """The first ten of the maximum of a preview are visible, and the rest opens. One record more is refused."""
    records = numbered(10_000, "Nama", nim="20/{:05}/TK")
    other.fill([*LIST, *records])
    pasted = "\n".join(nim for nim, *_ in records)
    preview = preview_of(people, pasted)
    assert (counts(preview), found(preview)) == ([10_000, 0], records)
    (details,) = preview.tree.css("details")
    assert (details.css("summary")[0].text(), len(details.css("tbody tr"))) == (
        "9.990 lainnya",
        9_990,
    )
    confirm(preview, people)
    assert people.nims == NIMS
    answer = send(people, pasted + "\n1")
    assert (answer.status_code, "10.000 baris" in answer.text) == (413, True)
    assert people.post(CONFIRM, {"data": "1" * MAX_CONFIRMED_BYTES}).status_code == 413


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_an_export_names_the_records_to_remove_whatever_their_nims_are(
    site: Site, other: Database, kind: str
) -> None:
    """Every record of the list is in its own export, so a bulk delete by that file empties the list."""
    nims = [
        "%",
        "%2F",
        "+",
        "a b",
        "~",
        "a\r\nb",
        "=1",
        "é",
        "👩🏽‍🎓",
        '<b>&amp;"',
        "\u202e",
        "NIM",
        "001",
        " 001",
        "00\u200b1",
    ]
    other.fill([(nim, "Ani", "Solo") for nim in nims])
    preview = preview_of(site, site.get(f"/mahasiswa/ekspor.{kind}").content)
    assert (counts(preview), missing(preview)) == ([len(nims), 0], [])
    site.add("neighbour", "Ani", "Solo")
    confirm(preview, site)
    assert site.nims == ["neighbour"]


@pytest.mark.parametrize("door", ["search", "ticks"])
def test_records_with_blank_nims_are_removed_as_their_preview_shows(
    people: Site, other: Database, door: str
) -> None:
    """Those of a search, and those that were ticked.

    A repair that clears the input of another row drops that row only.
    """
    blank = as_records("|Eko|Jl. A", " |Eko|Jl. A", "\u3000|Eko|Jl. A")
    other.fill([*blank, *LIST])
    if door == "search":
        preview = people.page(f"{CHOOSE}?cari=eko")
    else:
        fields = [("nim[]", quote(nim, safe="")) for nim, *_ in blank]
        preview = assert_page(people.post(f"{CHOOSE}/centang", fields), people)
    assert (counts(preview), found(preview)) == ([3, 0], blank)
    other.run("DELETE FROM mahasiswa WHERE nim = ''")
    again = check_again(preview, people)
    assert (counts(again), missing(again)) == ([2, 1], ["Baris 1:"])
    repaired = check_again(again, people, ("baris[]", "1"), ("nim[]", "999"))
    assert missing(repaired) == ["Baris 1: 999"]
    dropped = check_again(repaired, people, ("baris[]", "1"), ("nim[]", " "))
    assert (counts(dropped), missing(dropped)) == ([2, 0], [])
    confirm(preview, people)
    assert people.records == LIST


def test_a_nim_that_was_not_found_is_corrected_in_the_preview(people: Site) -> None:
    """The others stay as they were. A correction that no preview has shown removes nothing."""
    preview = preview_of(people, "001\n999\n998\n2")
    corrected = [("2", "003"), ("3", "998"), ("4", "2")]
    fields = [field for row, nim in corrected for field in (("baris[]", row), ("nim[]", nim))]
    again = check_again(preview, people, *fields)
    assert (counts(again), found(again)) == ([2, 2], [LIST[0], LIST[2]])
    assert missing(again) == [
        "Baris 3: 998",
        "Baris 4: 2 NIM ini mirip dengan 002 (Budi) yang sudah ada.",
    ]
    unseen = {"data": again.forms[0].values["data"], "baris[]": "4", "nim[]": "002"}
    shown = assert_page(people.post(CONFIRM, unseen), people)
    assert shown.texts("[role=status]")[0].startswith(
        "Perbaikan Anda sudah diperiksa. Belum ada yang dihapus."
    )
    assert people.nims == NIMS
    confirm(shown, people)
    assert people.nims == ["20/4"]


def test_more_nims_that_were_not_found_than_fit_are_kept_for_the_next_preview(people: Site) -> None:
    preview = preview_of(people, "\n".join(["001", *(f"x{number}" for number in range(130))]))
    assert (counts(preview), len(missing(preview))) == ([1, 130], 100)
    assert "30 baris lain dapat diperbaiki setelah ini." in preview.html
    again = check_again(preview, people, *(("lewati[]", str(number)) for number in range(2, 102)))
    assert (counts(again), len(missing(again))) == ([1, 30], 30)


def test_another_name_in_the_file_needs_a_tick_before_a_deletion(people: Site) -> None:
    """Case, spaces, punctuation and a part of the name do not count. Nothing else needs the tick."""
    rows = ("001", " ANI."), ("002", "Budiman"), ("003", ""), ("20/4", "Eko")
    preview = preview_of(people, csv(("NIM", "Nama"), *rows))
    assert counts(preview) == [4, 0, 2]
    told = " ".join(preview.texts("#nama li")[0].split())
    assert told == "Baris 3: 002 Di daftar: Budi · Tertulis: Budiman Keluarkan"
    again = check_again(preview, people, ("lewati[]", "5"))
    fields = {"data": again.forms[0].values["data"]}
    assert people.post("/mahasiswa/pilih/ekspor.csv", fields).text.count("\n") == 4
    asked = assert_page(people.post(CONFIRM, fields), people)
    assert asked.texts("[role=alert]")[0].startswith("Belum ada yang dihapus.")
    assert people.nims == NIMS
    (fields["benar[]"],) = asked.values("#tanya-nama input")
    assert people.post(CONFIRM, fields).status_code == 302
    assert people.nims == ["20/4"]


@pytest.mark.parametrize(
    "rows",
    [
        [("NIM", "Nama"), *(record[:2] for record in LIST)],
        [("",), *(record[:2] for record in LIST)],
    ],
    ids=["a column of NIMs", "lines"],
)
def test_rows_that_excel_hides_need_a_tick_before_a_deletion_or_are_taken_out(
    people: Site, rows: Sequence[Sequence[str]]
) -> None:
    """An office filters its lists, so it sees other students than the file has.

    A student in a hidden and in a visible row is not hidden.
    """
    preview = preview_of(people, by_openpyxl(*rows, rows[1], hidden_rows=[2, 3, 5]))
    assert counts(preview) == [4, 0, 2]
    told = " ".join(preview.texts("#tersembunyi li")[0].split())
    assert told == "Baris 3: 002 Di daftar: Budi Keluarkan"
    fields = {"data": preview.forms[0].values["data"]}
    asked = assert_page(people.post(CONFIRM, fields), people)
    assert asked.texts("[role=alert]")[0].startswith("Belum ada yang dihapus.")
    assert people.nims == NIMS

    for pressed in ([("lewati[]", "3"), ("lewati[]", "5")], [("perbaiki[]", "tersembunyi")]):
        rest = check_again(asked, people, *pressed)
        assert (counts(rest), found(rest)) == ([2, 0], [LIST[2], LIST[0]])
    one = check_again(asked, people, ("lewati[]", "3"))
    (answer,) = one.values("#tanya-tersembunyi [name='benar[]']")
    ticked = {"data": one.forms[0].values["data"], "benar[]": answer}
    assert people.post(CONFIRM, fields | {"benar[]": answer}).status_code == 200
    assert people.nims == NIMS
    assert people.post(CONFIRM, ticked).status_code == 302
    assert people.nims == ["002"]


def test_a_selection_names_the_sheets_that_were_not_read(people: Site) -> None:
    """Also after a repair. Of sheets of lines, all are read. A blank sheet has nothing to read."""
    several = {
        "Sheet1": [],
        "Kelas A": [("NIM", "Nama"), ("001", "Ani"), ("999", "Eko")],
        "Kelas B": [("NIM", "Nama"), ("002", "Budi")],
        "Kelas C": [("NIM", "Nama"), ("003", "Citra")],
    }
    preview = preview_of(people, by_openpyxl(several=several))
    again = check_again(preview, people, ("baris[]", "3"), ("nim[]", "20/4"))
    for page, nims in ((preview, ["001"]), (again, ["001", "20/4"])):
        assert [nim for nim, *_ in found(page)] == nims
        (told,) = page.texts("main .note")
        assert told.startswith("Lembar (sheet) yang tidak dibaca: “Kelas B”, “Kelas C”.")

    lines = by_openpyxl(several={"A": [("001", "Ani")], "B": [("",), ("002", "Budi")]})
    of_lines = preview_of(people, lines)
    assert (counts(of_lines), of_lines.texts("main .note")) == ([2, 0], [])


def test_tables_beside_one_another_have_the_row_numbers_of_their_sheet(people: Site) -> None:
    pasted = "NIM\tNama\t\tNIM\tNama\n001\tZed\t\t002\tEko\n77\tAni\t\t78\tBudi"
    preview = preview_of(people, pasted)
    assert counts(preview) == [2, 2, 2]
    assert [text[:8] for text in preview.texts("#nama li")] == ["Baris 2:", "Baris 2:"]
    assert missing(preview) == ["Baris 3: 77", "Baris 3: 78"]
    assert preview.texts("#perbaiki .number") == ["3", "3"]


def test_a_stored_nim_is_more_than_the_parts_of_a_line(people: Site, other: Database) -> None:
    """A line that is a NIM is that NIM, also with spaces. A line with two of them is asked about."""
    other.fill(
        [*LIST, ("001 Ani", "Eko", "Solo"), ("1. 003", "Eko", "Solo"), ("77/7", "Fajar", "Solo")]
    )
    preview = preview_of(people, "001 Ani\n1. 003\n002 003\n002 77/7 Budi")
    assert [nim for nim, *_ in found(preview)] == ["001 Ani", "1. 003"]
    assert [line.endswith("satu NIM per baris.") for line in missing(preview)] == [True, True]


def test_a_selection_is_printed_and_downloaded_in_its_order(people: Site, other: Database) -> None:
    """Ticks, NIMs and blank NIMs alike; repairs are shown first. The page to print leads back to the selection."""
    other.fill([("", "Kosong", "Solo"), *LIST])
    ticked = [("nim[]", quote(nim, safe="")) for nim in ("003", "", "001")]
    preview = assert_page(people.post(f"{CHOOSE}/centang", ticked), people)
    fields = {"data": preview.forms[0].values["data"]}
    answer = people.post("/mahasiswa/pilih/ekspor.csv", fields)
    assert answer.headers["content-disposition"] == 'attachment; filename="mahasiswa.csv"'
    rows = answer.text.removeprefix("\ufeff").splitlines()
    assert [row.partition(";")[2] for row in rows[1:]] == [
        "Citra;Klaten",
        "Kosong;Solo",
        "Ani Putri;Solo",
    ]
    workbook = cells_of(people.post("/mahasiswa/pilih/ekspor.xlsx", fields).content)
    assert [row[1].value for row in workbook[1:]] == ["Citra", "Kosong", "Ani Putri"]

    layout = {"judul": "Remedi", "kolom": "2", "jabatan": "Wali Kelas", "tanpa": "alamat"}
    paper = assert_page(people.post("/mahasiswa/pilih/cetak", fields | layout), people)
    assert paper.headings == ["Remedi"]
    assert [row.cells for row in paper.table[:3]] == [
        (str(number), nim, nama, "", "")
        for number, nim, nama in ((1, "003", "Citra"), (2, "", "Kosong"), (3, "001", "Ani Putri"))
    ]
    form = paper.form("judul")
    assert (form.method, form.values["kolom"]) == ("post", "2")
    (data,) = paper.tree.css("input[name=data]")
    assert (data.attributes["form"], data.attributes["value"]) == ("siapkan", fields["data"])
    back = assert_page(people.post(CONFIRM, fields | {"periksa": "1"}), people)
    assert counts(back) == [3, 0]

    unseen = fields | {"baris[]": "1", "nim[]": "002"}
    for name in ("cetak", "ekspor.csv", "ekspor.xlsx"):
        shown = assert_page(people.post(f"{CHOOSE}/{name}", unseen), people)
        assert shown.texts("[role=status]")[0].startswith("Perbaikan Anda sudah diperiksa.")
        refused = people.post(f"{CHOOSE}/{name}", {"data": "x"})
        assert refused.status_code == 400


def test_the_hits_of_a_search_stay_an_address(people: Site) -> None:
    """They are printed and downloaded by links, which a person can bookmark."""
    page = people.page(f"{CHOOSE}?cari=solo&urut=nama")
    for text, name in (
        ("Cetak", "cetak"),
        ("Unduh Excel", "ekspor.xlsx"),
        ("Unduh CSV", "ekspor.csv"),
    ):
        assert page.target(text) == f"/mahasiswa/{name}?cari=solo&urut=nama"
    assert page.texts("main .btn-danger") == ["Hapus 1 mahasiswa"]


def test_more_hits_than_a_selection_holds_are_refused(site: Site, other: Database) -> None:
    """The page says how many it holds, and selects none of them."""
    records = numbered(UPLOAD_MAX_ROWS + 1)
    other.fill(records)
    link = site.page("/?cari=ani").target("Pilih hasil ini")
    refused = site.get(link)
    page = assert_page(refused, site)
    assert refused.status_code == 400
    assert page.texts("[role=alert]")[0].startswith(
        "Pencarian ini menemukan lebih dari 10.000 mahasiswa."
    )
    site.delete(records[0][0])
    assert counts(site.page(link)) == [UPLOAD_MAX_ROWS, 0]


@pytest.mark.parametrize(
    ("pasted", "reason"),
    [
        ("", "Tempel NIM atau pilih berkas"),
        ("7\tAni\n8\tBudi", "Kolom NIM tidak ditemukan"),
        ("NIM\n", "Tidak ada NIM yang terbaca"),
    ],
)
def test_cells_without_nims_are_refused(people: Site, pasted: str, reason: str) -> None:
    """The page has the form again with the reason and the pasted text."""
    answer = send(people, pasted)
    assert answer.status_code == 400
    page = assert_page(answer, people)
    assert reason in page.texts("[role=alert]")[0]
    assert page.texts("textarea")[0].strip() == pasted.strip()

"""The preview of an import: what it shows, its buttons, and that a button does what its page has shown, or nothing."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from apsw import Connection
from cli.operators import use_up
from harness import Page, Service, Site, led_to, page_of
from spreadsheets import HEADER, as_records, by_openpyxl, cells_of, csv, numbered
from stores import refill
from web.importer import IMPORT, accepted, counts, post_upload, press, pressed, save, uploaded

from mahasiswa import wording
from mahasiswa.settings import parse_database_url
from mahasiswa.sheets.stage import Stage, folder_of
from mahasiswa.web.stage_page import COLUMNS_MAX, FIRST_LINES, PAGE_LINES

KEPT = as_records("2301|Ani|Solo", "2302|Budi|Bantul", "2303|Citra|Klaten")
# A file with an unchanged, a changed and a new record of KEPT, and two invalid rows.
MIXED = csv(
    HEADER,
    *(KEPT[0], ("2302", "Budi S.", "Bantul"), ("2304", "Dewi", "Sleman")),
    *(("", "Eko", "Solo"), ("2305", "", "S")),
)
PROBLEM = ".problem > .bad"
STALE, CHANGED = (wording.PREVIEW_ALERTS[name] for name in ("stale", "changed"))


def table(*rows: str, titles: str = "NIM|Nama|Alamat") -> bytes:
    """Return a CSV file. The cells of each row are separated by `|`."""
    return csv(*(row.split("|") for row in (titles, *rows)))


def buttons(preview: Page) -> dict[str, str]:
    """Return the texts of the buttons of a preview by their values, without the hidden one."""
    shown = "main form button[name=aksi]:not([hidden])"
    return dict(zip(preview.values(shown), map(str.strip, preview.texts(shown)), strict=True))


def lines(preview: Page, part: str) -> list[tuple[str, ...]]:
    """Return the cells of the lines in a part: baru, berubah or sama."""
    return [line.cells for line in preview.parts(f"#{part} tbody tr")]


def read_from(preview: Page) -> str:
    """Return the sentences about the sheets and the columns that were read."""
    return " ".join(preview.texts("main .note")[0].split())


def folder(service: Service) -> Path:
    """Return the folder of the uploads of a service."""
    database = service.database
    url = f"sqlite:///{database}" if isinstance(database, Path) else database
    return folder_of(parse_database_url(url))


def test_a_preview_shows_what_an_import_would_write_and_writes_nothing(
    site: Site, other: Connection
) -> None:
    """It can be reloaded, and the page does not carry the file. New records can be saved without the changed ones."""
    refill(other, KEPT)
    preview = uploaded(site, MIXED)
    assert preview.texts("h1") == ["Pratinjau Impor"]
    numbers = {"Berubah": 1, "Baru": 1, "Tidak berubah": 1, "Perlu diperbaiki": 2}
    assert counts(preview) == numbers
    assert lines(preview, "berubah")[0][:2] == ("3", "2302")
    assert preview.texts(".compare del, .compare ins") == ["Budi", "Budi S."]
    assert lines(preview, "baru") == [("4", "2304", "Dewi", "Sleman")]
    assert lines(preview, "sama") == [("2", "2301", "Ani", "Solo")]
    assert [text.split(".")[0] for text in preview.texts(PROBLEM)] == ["NIM kosong", "Nama kosong"]
    saving = {action: text for action, text in buttons(preview).items() if ":" not in action}
    assert saving == {
        "periksa": "Periksa lagi",
        "simpan": "Simpan 1 mahasiswa baru, lewati 2",
        "perbarui": "Simpan 1 baru dan perbarui 1, lewati 2",
        "baca": "Baca kolom ini",
    }
    assert site.page(preview.url).html == preview.html
    assert not preview.css("main [name=data]")
    assert site.records == KEPT
    save(site, preview, "simpan")
    assert site.records == [*KEPT, ("2304", "Dewi", "Sleman")]


def test_a_blank_cell_of_an_import_never_erases_a_text(site: Site, other: Connection) -> None:
    """The record also keeps its text if the file has no such column. With changed records only, there is one button."""
    refill(other, KEPT)
    preview = uploaded(site, table("2301||Solo Baru", "2302|Budi S.|  ", "2303||"))
    assert counts(preview) == {"Berubah": 2, "Tidak berubah": 1}
    assert buttons(preview)["perbarui"] == "Perbarui 2 mahasiswa"
    assert "simpan" not in buttons(preview)
    save(site, preview, "perbarui")
    assert site.records == as_records(
        "2301|Ani|Solo Baru", "2302|Budi S.|Bantul", "2303|Citra|Klaten"
    )
    save(site, uploaded(site, table("2303|Jogja", titles="NIM|Alamat")), "perbarui")
    assert site.records[2] == ("2303", "Citra", "Jogja")


def test_markup_in_cells_is_shown_as_text_by_a_preview(site: Site, other: Connection) -> None:
    mark = "<b>'</b>"
    refill(other, [("2301", mark, mark)])
    preview = uploaded(site, table(f"2301|{mark}|x{mark}", f"2302|{mark}|{mark}", f"|{mark}|1"))
    assert preview.html.count("&lt;b&gt;") > 5
    assert not preview.css("main b")


def test_typed_cells_are_kept_by_a_button_and_not_saved_by_the_same_press(
    site: Site,
) -> None:
    """A button that saves shows the preview again, and says why."""
    preview = uploaded(site, table("2301|Ani|Solo", "|Budi|Bantul 1", "2303||Klaten"))
    preview = pressed(site, preview, "lewati:no_nama", **{"nim.0.3": "2304"})
    assert ("3", "2304", "Budi", "Bantul 1") in lines(preview, "baru")
    preview = pressed(site, preview, "kembalikan:person")
    answer = press(site, preview, "simpan", **{"nama.0.4": " Citra "})
    preview = page_of(answer, 409)
    assert preview.texts("[role=status]")[0].strip() == wording.PREVIEW_ALERTS["checked"]
    assert ("4", "2303", "Citra", "Klaten") in lines(preview, "baru")
    assert site.records == []
    save(site, preview)
    assert len(site.records) == 3


def test_a_typed_line_is_judged_again(site: Site) -> None:
    """The typed line may have another problem. It may also become equal to another line, and then counts once."""
    preview = uploaded(site, table("2301|Ani|Solo", "|Ani|Solo", "|Budi|Solo"))
    again = pressed(site, preview, "periksa", **{"nim.0.3": "2301", "nim.0.4": "1,2E+11"})
    assert counts(again) == {"Baru": 1, "Perlu diperbaiki": 1, "Dilewati": 1}
    assert again.texts(PROBLEM) == ["NIM dibulatkan Excel (1,2E+11). Ketik NIM-nya."]
    differs = pressed(site, again, "periksa", **{"nim.0.4": "2301"})
    assert counts(differs) == {"Perlu diperbaiki": 2, "Dilewati": 1}


def test_a_person_skips_one_line_or_all_with_a_problem_and_takes_it_back(
    site: Site,
) -> None:
    """The buttons that save say how many lines are left out."""
    preview = uploaded(site, table("2301|Ani|Solo", "|Budi|Bantul", "|Citra|Solo", "2304||Solo"))
    one = pressed(site, preview, "lewati:0.3")
    assert counts(one) == {"Baru": 1, "Perlu diperbaiki": 2, "Dilewati": 1}
    both = pressed(site, one, "lewati:no_nim")
    assert buttons(both)["simpan"] == "Simpan 1 mahasiswa baru, lewati 3"
    assert counts(pressed(site, both, "kembalikan:person")) == counts(preview)


def test_a_doubt_stops_its_lines_until_a_person_calls_them_right(
    site: Site, other: Connection
) -> None:
    """A fault cannot be called right."""
    refill(other, [("2303", "Dewi", "Solo")])
    preview = uploaded(site, table("TAMU|Ani|Solo", "|Budi|Solo", "2303|Citra|Solo"))
    assert {"benar:no_digit", "benar:other_nama"} <= buttons(preview).keys()
    assert "benar:no_nim" not in buttons(preview)
    assert counts(pressed(site, preview, "benar:no_nim")) == counts(preview)
    again = accepted(site, site.page(preview.url))
    assert counts(again) == {"Baru": 1, "Berubah": 1, "Perlu diperbaiki": 1}
    save(site, again, "perbarui")
    assert site.records == as_records("2303|Citra|Solo", "TAMU|Ani|Solo")


def test_three_repairs_mend_all_lines_of_their_problem(site: Site, other: Connection) -> None:
    """NIMs without their separators, the stored NIM in the place of one without zeros, and `-` for blank addresses."""
    refill(other, [("0230000703", "Ani", "Solo")])
    rows = ("230000703|Ani|Solo", "2.300.018.101|Budi|Jl. B 1", "2300018102|Citra|")
    preview = uploaded(site, table(*rows))
    for action, text in (
        ("perbaiki:near", "Pakai NIM yang sudah ada di 1 baris"),
        ("perbaiki:separators", "Bersihkan 1 NIM (2300018101)"),
        ("perbaiki:no_alamat", "Isi 1 alamat kosong dengan “-”"),
    ):
        assert buttons(preview)[action] == text
        preview = pressed(site, preview, action)
    assert counts(preview) == {"Baru": 2, "Tidak berubah": 1}
    save(site, preview)
    assert site.records[1:] == as_records("2300018101|Budi|Jl. B 1", "2300018102|Citra|-")


def test_columns_that_are_not_sure_must_be_chosen_first(site: Site) -> None:
    """Nothing can be saved before. A choice that makes no record is refused."""
    rows = ("Ani|Budi|2300018001|Solo", "Cici|Dodo|2300018002|Bantul")
    preview = uploaded(site, table(*rows, titles="Nama|Nama|NIM|Alamat"))
    assert buttons(preview) == {"baca": "Baca kolom ini"}
    assert "Kolom Nama belum pasti." in preview.texts("main .bad")
    assert preview.texts("tbody [scope=row]") == ["Nama", "Nama", "NIM", "Alamat"]
    assert "Ani · Cici" in preview.texts("tbody td")
    none = page_of(press(site, preview, "baca", **{"kolom.0.2": ""}), 400)
    assert none.texts("[role=alert]") == [wording.PREVIEW_ALERTS["columns"]]
    again = pressed(site, preview, "baca", **{"kolom.0.0": ""})
    assert "NIM dari kolom C, Nama dari kolom B, Alamat dari kolom D." in read_from(again)
    save(site, again)
    assert site.records == as_records("2300018001|Budi|Solo", "2300018002|Dodo|Bantul")


def test_sure_columns_are_chosen_again_from_the_stored_cells(site: Site) -> None:
    """The file is not needed again. Lines to repair have the texts of the new columns."""
    rows = (("1", "7100", "Ani", "Budi", "Solo"), ("2", "", "Citra", "Dodo", "Solo"))
    file = by_openpyxl(("No", "NIM", "Nama", "Ayah", "Alamat"), *rows)
    preview = uploaded(site, file, "a.xlsx")
    assert read_from(preview) == (
        "Berkas: a.xlsx, 2 baris. NIM dari kolom B, Nama dari kolom C, Alamat dari kolom E. Tidak dibaca: No, Ayah."
    )
    again = pressed(site, preview, "baca", **{"kolom.0.2": "", "kolom.0.3": "nama"})
    assert lines(again, "baru") == [("2", "7100", "Budi", "Solo")]
    assert again.form("versi").fields["nama.0.3"] == "Dodo"


def test_sheets_are_chosen_in_the_preview(site: Site) -> None:
    """Each line has the name of its sheet. After a choice without rows, another one is read."""
    file = by_openpyxl(
        A=[HEADER, ("2301", "Ani", "Solo")],
        B=[HEADER, ("2302", "Budi", "Solo")],
        Rekap=[("Jumlah", "2")],
    )
    preview = uploaded(site, file, "a.xlsx")
    assert "Lembar (sheet) yang dibaca: “A”, “B”." in read_from(preview)
    assert "Lembar yang tidak dibaca: “Rekap”." in read_from(preview)
    people = [("A, 2", "2301", "Ani", "Solo"), ("B, 2", "2302", "Budi", "Solo")]
    assert lines(preview, "baru") == people
    none = press(site, preview, "baca", **{"lembar.0": "0", "lembar.1": "0"})
    assert page_of(none, 400).texts("[role=alert]") == [wording.NO_ROWS]
    pressed(site, site.page(preview.url), "baca", **{"lembar.1": "1"})
    preview = site.page(preview.url)
    preview = pressed(site, preview, "baca", **{"lembar.0": "0"})
    assert lines(preview, "baru") == [("2", *people[1][1:])]


# ---- one version, one button
@pytest.mark.parametrize("action", ["simpan", "baca"])
def test_a_button_of_an_older_page_does_nothing(site: Site, action: str) -> None:
    """The answer is the preview as it is now, which says so. So two windows never save what one of them has not shown."""
    old = uploaded(site, table("2301|Ani|Solo", "|Budi|Bantul", "|Citra|Solo"))
    new = pressed(site, old, "lewati:0.3")
    answer = press(site, old, action, **{"nim.0.4": "2305"})
    shown = page_of(answer, 409)
    assert shown.texts("[role=alert]") == [STALE]
    assert counts(shown) == counts(new)
    assert site.page(old.url).form("versi").fields == new.form("versi").fields
    assert site.records == []


def test_records_that_have_changed_since_are_shown_before_anything_is_saved(
    site: Site, other: Connection
) -> None:
    """Also for another window that has the same version, because its page has not shown them."""
    refill(other, KEPT)
    preview = uploaded(site, MIXED)
    other.execute("UPDATE mahasiswa SET nama = 'Budi T.' WHERE nim = '2302'")
    answer = page_of(press(site, preview, "perbarui"), 409)
    assert answer.texts("[role=alert]") == [CHANGED]
    assert answer.texts(".compare del") == ["Budi T."]
    again = page_of(press(site, preview, "perbarui"), 409)
    assert again.texts("[role=alert]") == [STALE]
    assert site.records[1] == ("2302", "Budi T.", "Bantul")
    save(site, answer, "perbarui")
    assert site.records[1] == ("2302", "Budi S.", "Bantul")


def test_a_second_click_leads_to_the_same_page_and_stores_nothing_twice(
    site: Site, service: Service
) -> None:
    """So do the address of the preview, and the button of a page that Back shows. The stage keeps no text."""
    preview = uploaded(site, table("2301|Rahasiawati|Solo"))
    stage = folder(service) / preview.url.rpartition("/")[2]
    assert b"Rahasiawati" in stage.read_bytes()
    first = press(site, preview, "simpan").headers["location"]
    assert re.fullmatch(r"/\?halaman=1&perubahan=\d+-\d+", first)
    for answer in (press(site, preview, "simpan"), site.get(preview.url)):
        assert answer.status_code == 302
        assert answer.headers["location"] == first
    assert site.records == as_records("2301|Rahasiawati|Solo")
    assert b"Rahasiawati" not in stage.read_bytes()


def test_after_a_crash_between_the_commit_and_its_note_a_click_leads_to_the_list(
    site: Site, other: Connection
) -> None:
    """Everything that the button would write is stored already."""
    refill(other, KEPT)
    preview = uploaded(site, MIXED)
    other.execute("UPDATE mahasiswa SET nama = 'Budi S.' WHERE nim = '2302'")
    other.execute("INSERT INTO mahasiswa VALUES ('2304', 'Dewi', 'Sleman')")
    changes = site.page("/mahasiswa/riwayat").texts("main")
    save(site, preview, "perbarui")
    assert site.page("/mahasiswa/riwayat").texts("main") == changes


def test_all_lines_are_saved_or_none(site: Site, other: Connection) -> None:
    """The database refuses one of them."""
    other.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON mahasiswa WHEN new.nim = '2303' BEGIN SELECT raise(ABORT, 'no'); END"
    )
    preview = uploaded(site, table("2301|Ani|Solo", "2302|Budi|Solo", "2303|Citra|Solo"))
    assert press(site, preview, "simpan").status_code == 503
    assert site.records == []
    other.execute("DROP TRIGGER refuse")
    save(site, preview)
    assert len(site.records) == 3


# ---- which upload
def test_a_preview_that_is_not_there_asks_for_the_file_again(site: Site, service: Service) -> None:
    """The upload is unknown, a selection, damaged, or has ended, or its name looks like a path."""
    preview = uploaded(site, table("2301|Ani|Solo"))
    damaged = "0" * 32
    (folder(service) / damaged).write_bytes(b"x" * 5000)
    with Stage.create(folder(service), "pilih", "", "::1") as stage:
        selection = stage.path.name
    with Stage.find(folder(service), preview.url.rpartition("/")[2], "impor") as stage:
        stage.db.execute("UPDATE stage SET created = created - 7201")
    for name in (
        "1" * 32,
        "..%2Fmahasiswa.db",
        selection,
        damaged,
        preview.url.rpartition("/")[2],
    ):
        for answer in (
            site.get(f"{IMPORT}/{name}"),
            site.post(f"{IMPORT}/{name}", data={"versi": "2", "aksi": "simpan"}),
            site.get(f"{IMPORT}/sisa/{name}"),
        ):
            assert page_of(answer, 404).texts("[role=alert]") == [wording.PREVIEW_GONE]
    assert site.records == []


def test_the_log_shows_only_the_beginning_of_the_name_of_an_upload(
    site: Site, service: Service
) -> None:
    """A person who knows the whole name can see the upload."""
    name = "0123456789abcdef" * 2
    site.post(f"{IMPORT}/{name}")
    service.says(f"POST {IMPORT}/{name[:8]} 404")
    assert name not in service.stderr()


# ---- long files
def test_the_parts_of_a_preview_are_paged(site: Site) -> None:
    """The links lead through all lines, and back."""
    total = FIRST_LINES + PAGE_LINES + 5
    preview = uploaded(site, csv(HEADER, *numbered(total, nim="23{:05}")))
    assert len(lines(preview, "baru")) == FIRST_LINES
    page = site.page(preview.target("Berikutnya"))
    assert len(lines(page, "baru")) == PAGE_LINES
    last = site.page(page.target("Berikutnya"))
    assert len(lines(last, "baru")) == 5
    assert "Berikutnya" not in [link.text for link in last.links]
    assert lines(site.page(last.target("Sebelumnya")), "baru") == lines(page, "baru")


def test_many_lines_with_a_problem_can_be_typed_on_one_page(site: Site) -> None:
    """A button leads back to the page, or to the first one if the page is past the end. No form is too large."""
    rows = numbered(PAGE_LINES + FIRST_LINES, "Ani", "", nim="23{:05}")
    preview = uploaded(site, csv(HEADER, *rows, *numbered(30, "", "Solo", nim="24{:05}")))
    assert len(preview.css("#no_alamat .repair")) == FIRST_LINES
    place = f"{preview.url.removeprefix(site.origin)}?bagian=no_alamat&mulai=5"
    page = site.page(place)
    names = page.form("versi").fields
    typed = {name: "Jl. Mawar 5, Sleman" for name in names if name.startswith("alamat.0")}
    assert len(typed) > PAGE_LINES
    answer = press(site, page, "periksa", **typed)
    assert led_to(answer) == place
    assert counts(site.page(place))["Baru"] == PAGE_LINES
    past, first = (site.page(target) for target in (f"{place}00", place[:-1] + "0"))
    assert past.form("versi").fields.keys() == first.form("versi").fields.keys()


def test_a_page_shows_no_more_columns_than_a_form_can_send(site: Site) -> None:
    """The others stay as they are."""
    titles = (*HEADER, *map("Kolom {}".format, range(COLUMNS_MAX // 2)))
    rows = [titles, ("2301", "Ani", "Solo")]
    file = by_openpyxl(A=rows, B=[titles, ("2302", "Budi", "Solo")])
    preview = uploaded(site, file, "a.xlsx")
    assert len(preview.css("select")) == len(titles)
    assert counts(pressed(site, preview, "baca")) == {"Baru": 2}


def test_the_lines_that_are_left_are_downloaded_as_a_workbook(site: Site) -> None:
    """Each with its problem. Repetitions and titles are not among them."""
    preview = uploaded(site, table("2301|Ani|Solo", "|Budi|Bantul", "2301|Ani|Solo", "2304||Solo"))
    preview = pressed(site, preview, "lewati:0.5")
    answer = site.get(preview.target("Unduh 2 baris yang dilewati"))
    rows = [[cell.value or "" for cell in row] for row in cells_of(answer.content)]
    assert rows == [
        [*HEADER, wording.REMARK],
        ["", "Budi", "Bantul", "NIM kosong."],
        ["2304", "", "Solo", ""],
    ]


# ---- workers and engines
@pytest.fixture
def two_workers(database: str) -> Iterator[tuple[Service, Site]]:
    with Service(database, {"WORKERS": "2"}) as service, service.site() as site:
        yield service, site


def test_two_workers_never_act_on_one_version(two_workers: tuple[Service, Site]) -> None:
    """Of eight equal clicks one does something, and the others do nothing. All that save lead to the list."""
    service, site = two_workers
    rows = ("2301|Ani|Solo", "|Budi|Solo")
    preview = uploaded(site, table(*rows))

    def click(action: str, preview: Page) -> int:
        with service.site() as site:
            return press(site, preview, action).status_code

    with ThreadPoolExecutor(8) as threads:
        clicks = list(threads.map(lambda _: click("lewati:no_nim", preview), range(8)))
        assert sorted(clicks) == [302, *[409] * 7]
        preview = site.page(preview.url)
        assert set(threads.map(lambda _: click("simpan", preview), range(8))) == {302}
    assert site.records == as_records("2301|Ani|Solo")
    assert site.page("/mahasiswa/riwayat").texts("main").count("Diimpor") <= 1


def test_a_full_disk_is_a_page_and_the_preview_stays_as_it_was(small_disk: Path) -> None:
    """Nothing is half done. With room again, the same button works."""
    with Service(small_disk / "mahasiswa.db") as service, service.site() as site:
        preview = uploaded(site, csv(HEADER, ("2301", "Ani", "Solo"), ("", "Budi", "Solo")))
        filler = use_up(small_disk)
        long = "Budi " * 10_000
        for answer in (
            press(site, preview, "periksa", **{"nama.0.3": long}),
            post_upload(site, csv(HEADER, ("2301", "Ani", "Solo")), "a.csv"),
        ):
            assert answer.status_code == 503
        filler.unlink()
        assert site.page(preview.url).form("versi").fields == preview.form("versi").fields
        save(site, preview)

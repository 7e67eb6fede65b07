"""Shows each kind of page that the service has in a browser window: `PAGES`."""

import itertools
from collections.abc import Callable

from browser import Window
from harness import Site
from playwright.sync_api import FilePayload, expect

SITI = ("2207", "Siti Aminah", "Jalan Kaliurang 5, Sleman")
LONG = ("9" * 255, "Wolfeschlegelsteinhausenbergerdorff" * 20, "https://maps.example/" + "x" * 900)
UNKNOWN = "x" * 300
IMPORTS = itertools.count()

Show = Callable[[Window, Site], None]


def show_duplicate(window: Window, site: Site) -> None:
    """Show the add form again after a duplicate nim: 409."""
    site.add(*LONG)
    window.open("/mahasiswa/add")
    window.type(nim=LONG[0], nama=LONG[1], alamat=SITI[2])
    window.save()
    expect(window.page.locator("[aria-invalid]")).to_have_count(1)


def show_stored(window: Window, site: Site) -> None:
    """Show the answer to an addition that is stored already: 409."""
    site.add(*SITI)
    window.open("/mahasiswa/add")
    window.type(nim=SITI[0], nama=SITI[1], alamat=SITI[2])
    window.save()
    expect(window.page.get_by_role("link", name="Lihat datanya")).to_be_visible()


def show_next(window: Window, site: Site) -> None:
    """Show the empty form that follows an addition."""
    site.delete(LONG[0])
    window.open("/mahasiswa/add")
    window.type(nim=LONG[0], nama=LONG[1], alamat=SITI[2])
    with window.leaving():
        window.page.get_by_role("button", name="Simpan dan tambah lagi").click()
    expect(window.page.get_by_role("status")).to_be_visible()


def show_deleted(window: Window, site: Site) -> None:
    """Show the edit form of a record that someone has deleted meanwhile: 409."""
    site.add(*LONG)
    window.open(f"/mahasiswa/edit/{LONG[0]}")
    window.type(nama=LONG[1] + "s")
    site.delete(LONG[0])
    window.save()
    expect(window.page.get_by_role("button", name="Tambahkan sebagai data baru")).to_be_visible()


def show_twin(window: Window, site: Site) -> None:
    """Show the list after an addition whose NIM another record nearly has."""
    site.add(LONG[0], *LONG[1:])
    site.add("0" + "9" * 254, *SITI[1:])
    site.add("9" * 254, *SITI[1:])
    window.open("/?halaman=1")
    expect(window.page.get_by_role("button", name="Batalkan penambahan")).to_be_visible()


def show_incomplete(window: Window, _site: Site) -> None:
    """Show the add form again after a missing field: 400."""
    window.open("/mahasiswa/add")
    send_without(window, "alamat")


def show_found(window: Window, site: Site) -> None:
    """Show a page of search results, sorted by name, with pages before and after it."""
    site.add(*LONG)
    add_many(site, 25)
    assert window.open("/?cari=a&urut=nama&arah=turun&per=10&halaman=2") == 200
    expect(window.page.get_by_role("link", name="Berikutnya").first).to_be_visible()


def show_import_refused(window: Window, _site: Site) -> None:
    """Show the form for a spreadsheet again with an error about the file: 400."""
    choose(window, "Nama;Alamat\nSiti;Sleman\n")
    expect(window.page.get_by_role("alert")).to_be_visible()


def show_preview(window: Window, site: Site) -> None:
    """Show an import preview with rows of every kind and all sections open."""
    site.add(*SITI)
    site.add(*LONG)
    site.add("3", "Citra", "Klaten")
    site.add("77", "Zainab", "Klaten")
    site.add("088", "Gita", "Klaten")
    choose(
        window,
        table(
            SITI,
            (LONG[0], LONG[1], LONG[2] + "y"),
            ("3", "", "Bantul"),
            ("'004", "Dewi", LONG[2]),
            ("1E+5", *LONG[1:]),
            ("3", "Citra", "Klaten"),
            ("TAMU", "Eko", "Solo"),
            ("2.207", "Siti", "Solo"),
            ("88", "Gita", LONG[2]),
            ("Total", "", "9"),
        ),
    )
    with window.leaving():
        window.page.get_by_role("button", name="Lihat").click()
    expect(window.page.locator("#sisa td").first).to_be_visible()
    for summary in window.page.locator("summary").all():
        summary.click()


def show_preview_without_addresses(window: Window, _site: Site) -> None:
    """Show an import preview of a file that lacks a column, with the choice of columns."""
    choose(window, "NIM;Nama;Telepon\n1;Ani;0812\n2;Budi;0813\n")
    expect(window.page.get_by_role("button", name="Isi semua dengan")).to_be_visible()


def show_preview_of_nothing(window: Window, site: Site) -> None:
    """Show an import preview that has nothing to save."""
    site.add(*SITI)
    choose(window, table(SITI))
    expect(window.page.get_by_role("link", name="Kembali ke impor")).to_be_visible()


def show_preview_again(window: Window, site: Site) -> None:
    """Show an import preview again because a record has changed since the first one: 409."""
    site.add(*LONG)
    choose(window, table((LONG[0], "Budi", "Bantul"), ("3", "Citra", "Klaten")))
    site.edit(LONG[0], LONG[1], "Klaten")
    with window.leaving():
        window.page.get_by_role("button", name="Perbarui").click()
    expect(window.page.get_by_role("alert")).to_be_visible()


def show_bulk_delete_refused(window: Window, _site: Site) -> None:
    """Show the form for NIMs again with an error: 400."""
    preview_deletion(window, "Nama\tAlamat\nSiti\tSleman")
    expect(window.page.get_by_role("alert")).to_be_visible()


def show_bulk_delete_preview(window: Window, site: Site) -> None:
    """Show the preview of a bulk delete with found, missing and damaged NIMs."""
    site.add(*SITI)
    site.add(*LONG)
    add_many(site, 12)
    rows = [SITI[:2], LONG[:2], ("x" * 255, "Eko"), ("1E+15", ""), *((f"{number:04}", "") for number in range(12))]
    rows[1] = (LONG[0], LONG[1] + "y")
    preview_deletion(window, "NIM\tNama\n" + "\n".join("\t".join(row) for row in rows))
    window.page.locator("summary").click()


def show_checks(window: Window, site: Site) -> None:
    """Show the check of the list with records of every suspicion."""
    add_many(site, 40)
    for record in [
        ("00O1", "Nama 1", LONG[2]),
        LONG,
        (LONG[0][1:], *LONG[1:]),
        ("0099", " Siti\u00a0 ", "Solo\u200b"),
        ("0098", "SITI", "Solo"),
    ]:
        site.add(*record)
    assert window.open("/mahasiswa/periksa") == 200
    expect(window.page.get_by_role("heading", level=2)).to_have_count(5)


def show_printout(window: Window, site: Site) -> None:
    """Show a class list with all its empty columns."""
    site.add(*LONG)
    add_many(site, 3)
    assert window.open(f"/mahasiswa/cetak?cari=0&judul={LONG[1][:200]}&kolom=99") == 200
    expect(window.page.locator("th.blank")).to_have_count(31)


def preview_deletion(window: Window, pasted: str) -> None:
    """Paste NIMs into the form of a bulk delete and press the button that shows its preview."""
    window.open("/mahasiswa/hapus")
    window.page.get_by_label("NIM", exact=True).fill(pasted)
    with window.leaving():
        window.page.get_by_role("button", name="Lihat pratinjau").click()


def show_changed(window: Window, site: Site) -> None:
    """Show the conflict page of a field that has changed since the edit form was opened: 409."""
    site.add(*LONG)
    window.open(f"/mahasiswa/edit/{LONG[0]}")
    window.type(nama=LONG[1] + "s")
    site.edit(LONG[0], LONG[1] + "y", LONG[2])
    window.save()
    expect(window.page.get_by_role("link", name="Gunakan data terbaru")).to_be_visible()


def show_history(window: Window, site: Site) -> None:
    """Show a page of the history with changes of every kind, and pages after it."""
    add_many(site, 45)
    site.add(*LONG)
    site.edit(LONG[0], "Siti", LONG[2] + "y")
    site.add(*SITI)
    site.delete(SITI[0])
    import_many(window, 8)
    window.open("/mahasiswa/riwayat")
    with window.leaving():
        window.page.get_by_role("button", name="Batalkan perubahan").first.click()
    window.open(f"/mahasiswa/nim/{LONG[0]}")
    window.type(nim="8" * 255)
    with window.leaving():
        window.page.get_by_role("button", name="Ganti NIM").click()
    site.delete("8" * 255)
    assert window.open("/mahasiswa/riwayat") == 200
    expect(window.page.get_by_role("link", name="Berikutnya").first).to_be_visible()
    expect(window.page.get_by_role("cell", name="Dibatalkan").first).to_be_visible()


def show_batch(window: Window, _site: Site) -> None:
    """Show the changes of an import."""
    import_many(window, 8)
    open_the_import(window)
    expect(window.page.get_by_role("button", name="Batalkan impor (8 data)")).to_be_visible()


def show_undo_conflict(window: Window, site: Site) -> None:
    """Show the conflict of an undo of a record that has changed since: 409."""
    site.delete(LONG[0])
    site.add(*LONG)
    site.edit(LONG[0], "Siti", LONG[2])
    window.open("/mahasiswa/riwayat")
    site.edit(LONG[0], "Siti Aminah", LONG[2])
    with window.leaving():
        window.page.get_by_role("button", name="Batalkan perubahan").first.click()
    expect(window.page.get_by_role("button", name="Tetap kembalikan")).to_be_visible()


def show_batch_conflict(window: Window, site: Site) -> None:
    """Show the changed records because of which an import is not undone: 409."""
    nims = import_many(window, 10)
    open_the_import(window)
    site.delete(nims[0])
    for nim in nims[1:5]:
        site.edit(nim, *LONG[1:])
    with window.leaving():
        window.page.get_by_role("button", name="Batalkan impor").click()
    expect(window.page.get_by_role("button", name="Kembalikan 5 data yang belum berubah")).to_be_visible()


def import_many(window: Window, count: int) -> list[str]:
    """Import new records; return their nims."""
    nims = [f"{next(IMPORTS):06}" for _ in range(count)]
    choose(window, table(*[(nim, f"Nama {nim}", "Sleman") for nim in nims]))
    with window.leaving():
        window.page.get_by_role("button", name="Simpan").click()
    return nims


def open_the_import(window: Window) -> None:
    """Open the changes of the latest import."""
    window.open("/mahasiswa/riwayat")
    with window.leaving():
        window.page.get_by_role("link", name="Lihat rinciannya").first.click()


def choose(window: Window, text: str) -> None:
    """Choose a CSV file in the form for spreadsheets and press the button that shows its preview."""
    window.open("/mahasiswa/impor")
    file: FilePayload = {"name": "daftar.csv", "mimeType": "text/csv", "buffer": text.encode()}
    window.page.locator("input[type=file]").set_input_files([file])
    with window.leaving():
        window.page.get_by_role("button", name="Pratinjau").click()


def table(*records: tuple[str, str, str]) -> str:
    """Return records as CSV with a header."""
    return "".join(";".join(record) + "\n" for record in [("NIM", "Nama", "Alamat"), *records])


def send_without(window: Window, *fields: str) -> None:
    """Remove fields from the page's form and send it."""
    typed = dict(zip(("nim", "nama", "alamat"), SITI, strict=True))
    for field in fields:
        window.page.locator(f"input[name={field}]").evaluate("field => field.remove()")
        del typed[field]
    window.type(**typed)
    window.save()
    expect(window.page.locator("[aria-invalid]")).to_have_count(len(fields))


def add_many(site: Site, count: int) -> None:
    """Add `count` records."""
    for number in range(count):
        site.add(f"{number:04}", f"Nama {number}", "Jalan Kaliurang 5, Sleman")


def show(path: str, status: int, *records: tuple[str, str, str]) -> Show:
    """Return a function that adds records and opens a path, which must answer this status."""

    def open_it(window: Window, site: Site) -> None:
        for record in records:
            site.add(*record)
        assert window.open(path) == status

    return open_it


PAGES: dict[str, Show] = {
    "list": show("/", 200, SITI, LONG),
    "empty_list": show("/", 200),
    "add": show("/mahasiswa/add", 200),
    "edit": show(f"/mahasiswa/edit/{LONG[0]}", 200, LONG),
    "nim": show(f"/mahasiswa/nim/{LONG[0]}", 200, LONG),
    "unreadable": show("/mahasiswa/edit/%zz", 400),
    "no_record": show(f"/mahasiswa/edit/{UNKNOWN}", 404),
    "no_page": show(f"/{UNKNOWN}", 404),
    "wrong_method": show(f"/mahasiswa/delete/{UNKNOWN}", 405),
    "no_match": show(f"/?cari=tidak+{UNKNOWN}", 200, SITI),
    "import": show("/mahasiswa/impor", 200),
    "bulk_delete": show("/mahasiswa/hapus", 200),
    "export_refused": show("/mahasiswa/ekspor.xlsx", 422, ("40000", "x" * 40_000, "Klaten")),
    "empty_history": show(f"/mahasiswa/riwayat?cari=tidak+{UNKNOWN}", 200),
    "no_change": show("/mahasiswa/riwayat/kelompok/999999999", 404),
    "bulk_delete_of_nothing": lambda window, _: preview_deletion(window, UNKNOWN),
    "duplicate": show_duplicate,
    "stored": show_stored,
    "next": show_next,
    "twin": show_twin,
    "deleted": show_deleted,
    "incomplete": show_incomplete,
    "found": show_found,
    "import_refused": show_import_refused,
    "preview": show_preview,
    "preview_of_nothing": show_preview_of_nothing,
    "preview_without_addresses": show_preview_without_addresses,
    "preview_again": show_preview_again,
    "recap": show("/mahasiswa/rekap", 200, SITI, LONG, ("-", "Ani", "Solo")),
    "checks": show_checks,
    "no_suspects": show("/mahasiswa/periksa", 200, SITI),
    "printout": show_printout,
    "bulk_delete_of_a_search": show("/mahasiswa/hapus?cari=s", 200, SITI, LONG),
    "bulk_delete_refused": show_bulk_delete_refused,
    "bulk_delete_preview": show_bulk_delete_preview,
    "changed": show_changed,
    "history": show_history,
    "batch": show_batch,
    "undo_conflict": show_undo_conflict,
    "batch_conflict": show_batch_conflict,
}

"""Shows each kind of page that the service has in a browser window: `PAGES`."""

from collections.abc import Callable, Mapping

from harness import Site
from playwright.sync_api import FilePayload, expect
from spreadsheets import as_records
from web.browser import Window

from mahasiswa.sheets.xlsx_export import CELL_MAX_UTF16_UNITS

SITI = ("2207", "Siti Aminah", "Jalan Kaliurang 5, Sleman")
LONG = ("9" * 255, "Wolfeschlegelsteinhausenbergerdorff" * 20, "https://maps.example/" + "x" * 900)
UNKNOWN = "x" * 300

ADD, EDIT_LONG, HISTORY = "/mahasiswa/add", f"/mahasiswa/edit/{LONG[0]}", "/mahasiswa/riwayat"
STORED = {"nim": SITI[0], "nama": SITI[1], "alamat": SITI[2]}
TYPED = {"nim": LONG[0], "nama": LONG[1], "alamat": SITI[2]}

RENAMED = {"nama": LONG[1] + "s"}

Show = Callable[[Window, Site], None]


def deleted(site: Site) -> None:
    site.delete(LONG[0])


def changed(site: Site) -> None:
    site.edit(LONG[0], LONG[1] + "y", LONG[2])


def show(
    path: str,
    status: int,
    *records: tuple[str, str, str],
    count: int = 0,
    file: str = "",
    typed: Mapping[str, str] | None = None,
    meanwhile: Callable[[Site], object] = lambda _: None,
    button: str = "",
    sees: str = "main",
) -> Show:
    """Return a function that adds records, opens a path or a file's preview, types, and presses a button."""

    def open_it(window: Window, site: Site) -> None:
        for record in records:
            site.stores(*record)
        add_many(site, count)
        if file:
            choose(window, file)
        else:
            assert window.open(path) == status
        window.type(**typed or {})
        meanwhile(site)
        if button:
            press(window, button)
        expect(window.page.locator(sees).first).to_be_attached()

    return open_it


def press(window: Window, button: str) -> None:
    with window.leaving():
        window.page.get_by_role("button", name=button).first.click()


def add_many(site: Site, count: int) -> None:
    for number in range(count):
        site.add(f"{number:04}", f"Nama {number}", "Jalan Kaliurang 5, Sleman")


def choose(window: Window, text: str) -> None:
    """Choose a CSV file in the form for spreadsheets and press the button that shows its preview."""
    window.open("/mahasiswa/impor")
    attach(window, text)
    press(window, "Pratinjau")


def attach(window: Window, text: str, name: str = "daftar.csv") -> None:
    file: FilePayload = {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
    window.page.locator("input[type=file]").set_input_files([file])


def table(*records: tuple[str, str, str]) -> str:
    return "".join(";".join(record) + "\n" for record in [("NIM", "Nama", "Alamat"), *records])


def open_an_import(window: Window, count: int) -> list[str]:
    """Import new records, and open the changes of this import; return the nims."""
    nims = [f"23{number:06}" for number in range(count)]
    choose(window, table(*[(nim, SITI[1], "Sleman") for nim in nims]))
    press(window, "Simpan")
    window.open(HISTORY)
    with window.leaving():
        window.page.get_by_role("link", name="Lihat rinciannya").first.click()
    return nims


def show_preview(window: Window, site: Site) -> None:
    """Show rows of every kind, with all sections open."""
    stored = as_records("3|Citra|Klaten", "77|Zainab|Klaten", "088|Gita|Klaten")
    for record in (SITI, LONG, *stored):
        site.stores(*record)
    rows = as_records(
        "23||Solo", "3||Bantul", "3|Citra|Klaten", "TAMU|Eko|Solo", "2.207|Siti|Solo", "Total||9"
    )
    rows += [("'004", "Dewi", LONG[2]), ("1E+5", *LONG[1:]), ("88", "Gita", LONG[2])]
    choose(window, table(SITI, (*LONG[:2], LONG[2] + "y"), *rows))
    window.page.locator("summary").click()


def show_bulk_delete_preview(window: Window, site: Site) -> None:
    site.add(*SITI)
    site.add(*LONG)
    add_many(site, 12)
    rows = as_records(f"2207|{SITI[1]}", f"{LONG[0]}|{LONG[1]}y", f"{UNKNOWN[:255]}|Eko", "1E+15|")
    pasted = [("NIM", "Nama"), *rows, *((f"{n:04}", "") for n in range(12))]
    window.open("/mahasiswa/pilih")
    window.page.get_by_label("NIM", exact=True).fill("\n".join(map("\t".join, pasted)))
    press(window, "Tampilkan")


def show_history(window: Window, site: Site) -> None:
    add_many(site, 50)
    site.add(*LONG)
    site.edit(LONG[0], "Siti", LONG[2] + "y")
    open_an_import(window, 8)
    window.open(HISTORY)
    press(window, "Batalkan perubahan")
    site.delete(LONG[0])
    assert window.open(HISTORY) == 200
    expect(window.page.get_by_role("link", name="Berikutnya").first).to_be_visible()
    expect(window.page.get_by_role("cell", name="Dibatalkan").first).to_be_visible()


def show_partial_undo(window: Window, site: Site) -> None:
    nims = open_an_import(window, 10)
    for nim in nims[1:5]:
        site.edit(nim, *LONG[1:])
    press(window, "Batalkan impor")
    expect(window.page.get_by_text("4 data lain sudah berubah lagi")).to_be_visible()


SUSPECTS = [
    *(("00O1", "Nama 1", LONG[2]), LONG, (LONG[0][1:], *LONG[1:])),
    ("0099", " Siti\u00a0 ", "Solo\u200b"),
]
NEAR_NIMS = [(nim, *SITI[1:]) for nim in (LONG[0], "0" + "9" * 254, "9" * 254)]
PRINTOUT = f"/mahasiswa/cetak?cari=0&judul={LONG[1][:200]}&kolom=99&kota=Sleman&nama={LONG[1]}"
FOUND = "cari=a&urut=nama&arah=turun&per=10&halaman=2"
SKIPPED = "NIM;Nama;Alamat\n2207;Siti Aminah;Solo\n23001;Ani;Solo\n23002;;Solo\n"
NO_ADDRESSES = "NIM;Nama;Telepon\n23001;Ani;0812\n23002;Budi;0813\n"

PAGES: dict[str, Show] = {
    "list": show("/", 200, SITI, LONG),
    "empty_list": show("/", 200),
    "add": show(ADD, 200),
    "edit": show(EDIT_LONG, 200, LONG),
    "nim": show(f"/mahasiswa/nim/{LONG[0]}", 200, LONG),
    "no_record": show(f"/mahasiswa/edit/{UNKNOWN}", 404),
    "wrong_method": show(f"/mahasiswa/delete/{UNKNOWN}", 405),
    "no_match": show(f"/?cari=tidak+{UNKNOWN}", 200, SITI),
    "offered": show("/?cari=aminxh", 200, SITI, sees="text=Mungkin maksud Anda"),
    "import": show("/mahasiswa/impor", 200),
    "guide": show("/mahasiswa/panduan", 200),
    "bulk_delete": show("/mahasiswa/pilih", 200),
    "export_refused": show(
        "/mahasiswa/ekspor.xlsx", 422, ("40000", "x" * (CELL_MAX_UTF16_UNITS + 1), "Klaten")
    ),
    "duplicate": show(ADD, 200, LONG, typed=TYPED, button="Simpan", sees="[aria-invalid]"),
    "stored": show(ADD, 200, SITI, typed=STORED, button="Simpan", sees="text=Lihat datanya"),
    "next": show(
        ADD,
        200,
        typed=TYPED,
        meanwhile=deleted,
        button="Simpan dan tambah lagi",
        sees="[role=status]",
    ),
    "near_nim": show("/", 200, *NEAR_NIMS, sees="text=Batalkan penambahan"),
    "deleted": show(
        EDIT_LONG,
        200,
        LONG,
        typed=RENAMED,
        meanwhile=deleted,
        button="Simpan",
        sees="text=Tambahkan sebagai",
    ),
    "found": show(f"/?{FOUND}", 200, LONG, count=25, sees="role=link[name=Berikutnya]"),
    "import_refused": show("", 400, file=table(), sees="[role=alert]"),
    "columns": show("", 200, file="Nama;Alamat\nSiti;Sleman\n", sees="text=Baca kolom ini"),
    "preview": show_preview,
    "preview_skipped": show(
        "", 200, SITI, file=SKIPPED, button="Lewati", sees="text=Jangan lewati"
    ),
    "preview_without_addresses": show("", 200, file=NO_ADDRESSES, sees="text=alamat kosong dengan"),
    "checks": show("/mahasiswa/periksa", 200, *SUSPECTS, count=40, sees="h2 >> nth=2"),
    "printout": show(PRINTOUT, 200, LONG, count=3, sees="th.blank >> nth=30"),
    "bulk_delete_preview": show_bulk_delete_preview,
    "changed": show(
        EDIT_LONG,
        200,
        LONG,
        typed=RENAMED,
        meanwhile=changed,
        button="Simpan",
        sees="text=Gunakan data terbaru",
    ),
    "history": show_history,
    "partial_undo": show_partial_undo,
}

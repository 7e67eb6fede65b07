"""Shows each kind of page that the service has in a browser window, for one list of records: `PAGES`."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from harness import Site, led_to
from playwright.sync_api import expect
from spreadsheets import HEADER, Record, as_records, csv, numbered
from web.browser import Window
from web.importer import IMPORT, SELECT, Importer

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.xlsx_export import CELL_MAX_UTF16_UNITS

SITI = ("2207", "Siti Aminah", "Jalan Kaliurang 5, Sleman")
LONG = ("9" * 255, "Wolfeschlegelsteinhausenbergerdorff" * 20, "https://maps.example/" + "x" * 900)
NEAR = (LONG[0][1:], *LONG[1:])
UNKNOWN = "x" * 300
PEOPLE = [
    *(SITI, ("00O1", "Nama 1", LONG[2]), ("0099", " Siti\u00a0 ", "Solo\u200b")),
    *as_records("3|Citra|Klaten", "77|Zainab|Klaten", "088|Gita|Klaten", "99|Gita|Klaten"),
    *numbered(40, "Nama {}", SITI[2], nim="{:04}"),
    LONG,
]

ADD, EDIT_LONG, HISTORY = "/mahasiswa/add", f"/mahasiswa/edit/{LONG[0]}", "/mahasiswa/riwayat"
PRINTOUT = f"/mahasiswa/cetak?cari=0&judul={LONG[1][:200]}&kolom=99&kota=Sleman&nama={LONG[1]}"
FOUND = "/?cari=a&urut=nama&arah=turun&per=10&halaman=2"

Show = Callable[[Window, Site], object]


def add_many(site: Site, count: int) -> None:
    for record in numbered(count, "Nama {}", SITI[2], nim="{:04}"):
        site.add(*record)


def show(
    path: str | Callable[[Site], str],
    sees: str = "main",
    button: str = "",
    *,
    meanwhile: Callable[[Site], object] = lambda _: None,
    people: Iterable[Record] = PEOPLE,
    typed: Mapping[str, str] = MappingProxyType({}),
) -> Show:
    """Return a function that opens a path, or that to which steps lead, and perhaps types and presses a button."""

    def open_it(window: Window, site: Site) -> None:
        for record in people:
            site.stores(*record)
        window.open(path if isinstance(path, str) else path(site))
        window.type(**typed)
        meanwhile(site)
        if button:
            window.press(button)
        expect(window.page.locator(sees).first).to_be_attached()
        window.page.evaluate(
            "document.querySelectorAll('details').forEach(part => part.open = true)"
        )

    return open_it


def uploaded(data: bytes) -> Callable[[Site], str]:
    return lambda site: Importer(site).upload(data).path


def skip_a_line(site: Site) -> str:
    importer = Importer(site)
    rows = as_records("2207|Siti Aminah|Solo", "23001|Ani|Solo", "23002||Solo")
    return importer.pressed(importer.upload(csv(HEADER, *rows)), "lewati:no_nama").path


def import_many(site: Site) -> str:
    """Import new records; return the address of its changes."""
    importer = Importer(site)
    rows = [HEADER, *numbered(10, SITI[1], "Sleman", nim="23{:06}")]
    importer.save(importer.accepted(importer.upload(csv(*rows))))
    return site.page(HISTORY).targets("Lihat rinciannya")[0]


def select_many(site: Site) -> str:
    rows = as_records(f"2207|{SITI[1]}", f"{LONG[0]}|{LONG[1]}y", f"{UNKNOWN[:255]}|Eko", "1E+15|")
    pasted = [("NIM", "Nama"), *rows, *((f"{n:04}", "") for n in range(12))]
    return Importer(site, SELECT).paste("\n".join(map("\t".join, pasted))).path


def fill_history(site: Site) -> str:
    import_many(site)
    site.edit(LONG[0], "Siti", LONG[2] + "y")
    site.accepts(site.page(HISTORY).posts[0])
    site.delete(LONG[0])
    return HISTORY


def undo_a_part(site: Site) -> str:
    changes = import_many(site)
    for nim, *_ in numbered(4, nim="23{:06}"):
        site.edit(nim, *LONG[1:])
    return led_to(site.submit(site.page(changes).posts[0]))


def add_near(site: Site) -> str:
    return led_to(site.add(*NEAR))


def store_more_than_excel_can(site: Site) -> str:
    site.stores("40000", "x" * (CELL_MAX_UTF16_UNITS + 1), "Klaten")
    return "/mahasiswa/ekspor.xlsx"


PREVIEW = [
    *(HEADER, SITI, (*LONG[:2], LONG[2] + "y")),
    *as_records(
        "23||Solo", "3||Bantul", "3|Citra|Klaten", "TAMU|Eko|Solo", "2.207|Siti|Solo", "Total||9"
    ),
    *(("'004", "Dewi", LONG[2]), ("1E+5", *LONG[1:]), ("88", "Gita", LONG[2])),
]
RENAMED = {"nama": LONG[1] + "s"}

PAGES: dict[str, Show] = {
    "list": show("/"),
    "empty_list": lambda window, _: window.open("/"),
    "add": show(ADD),
    "edit": show(EDIT_LONG),
    "nim": show(f"/mahasiswa/nim/{LONG[0]}"),
    "no_record": show(f"/mahasiswa/edit/{UNKNOWN}"),
    "no_match": show(f"/?cari=tidak+{UNKNOWN}"),
    "offered": show("/?cari=aminxh", "text=Mungkin maksud Anda"),
    "import": show(IMPORT),
    "guide": show("/mahasiswa/panduan"),
    "bulk_delete": show(SELECT),
    "export_refused": show(store_more_than_excel_can),
    "duplicate": show(
        ADD, "[aria-invalid]", "Simpan", typed=Mahasiswa(*LONG[:2], "Solo")._asdict()
    ),
    "stored": show(ADD, "text=Lihat datanya", "Simpan", typed=Mahasiswa(*SITI)._asdict()),
    "next": show(
        ADD, "[role=status]", "Simpan dan tambah lagi", typed=Mahasiswa(*NEAR[:2], "Solo")._asdict()
    ),
    "near_nim": show(add_near, "text=Batalkan penambahan"),
    "deleted": show(
        EDIT_LONG,
        "text=Tambahkan sebagai",
        "Simpan",
        meanwhile=lambda site: site.delete(LONG[0]),
        typed=RENAMED,
    ),
    "changed": show(
        EDIT_LONG,
        "text=Gunakan data terbaru",
        "Simpan",
        meanwhile=lambda site: site.edit(LONG[0], LONG[1] + "y", LONG[2]),
        typed=RENAMED,
    ),
    "found": show(FOUND, "role=link[name=Berikutnya]"),
    "import_refused": show(IMPORT, "[role=alert]", "Lihat pratinjau"),
    "columns": show(uploaded(csv(HEADER[1:], SITI[1:])), "text=Baca kolom ini"),
    "preview": show(uploaded(csv(*PREVIEW)), ".problem"),
    "preview_skipped": show(skip_a_line, "text=Jangan lewati"),
    "preview_without_addresses": show(
        uploaded(b"NIM;Nama;Telepon\n23001;Ani;0812\n23002;Budi;0813\n"),
        "text=alamat kosong dengan",
    ),
    "checks": show("/mahasiswa/periksa", "h2 >> nth=2"),
    "printout": show(PRINTOUT, "th.blank >> nth=30"),
    "bulk_delete_preview": show(select_many),
    "history": show(fill_history, "text=Dibatalkan"),
    "partial_undo": show(undo_a_part, "text=4 data lain sudah berubah lagi"),
}

"""Walks through docs/panduan.md, the guide for staff, in a browser; with --screenshots it makes the guide's pictures."""

import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Service, Site
from playwright.sync_api import FloatRect, expect
from web.browser import OpenWindow, Window
from web.pages.every_page import PAGES, attach

from mahasiswa.wording import PREVIEW_ALERTS, PREVIEW_GONE, PROBLEMS, ProblemName

GUIDE = Path(__file__).parents[3] / "docs" / "panduan.md"
PICTURES = GUIDE.with_suffix("")
PICTURE_MAX_BYTES = 60_000
WINDOW = (960, 640)
COLOURS = 32

STUDENTS = (
    ("2300018001", "Siti Aminah", "Jl. Kaliurang No. 5, Sleman"),
    ("2300018002", "Budi Santoso", "Jl. Parangtritis No. 41, Bantul"),
    ("2300018003", "Nur’aini Rahayu", "Jl. Godean No. 17, Sleman"),
    ("2300018004", "Agus Wibowo", "Jl. Wates No. 8, Kulon Progo"),
    ("2300018005", "Dewi Permata", "Jl. Magelang No. 22, Sleman"),
    ("2300018006", "Siti Rahmawati", "Jl. Imogiri No. 3, Bantul"),
    ("2300018007", "Eko Nugroho", "Jl. Solo No. 60, Klaten"),
    ("2300018008", "Fitri Handayani", "Jl. Palagan No. 14, Sleman"),
)
FILE = """\
NIM;Nama;Alamat
2300018009;Galih Saputra;Jl. Affandi No. 9, Sleman
2300018010;Indah Pratiwi;Jl. Bantul No. 30, Bantul
2300018011;Joko Prasetyo;Jl. Kusumanegara No. 2, Yogyakarta
2300018012;;Jl. Cendana No. 11, Yogyakarta
2300018004;Agus Wibowo;Jl. Melati No. 6, Sleman
2300018007;Eko Nugroho;Jl. Solo No. 60, Klaten
"""

# The elements of a page that a person clicks, or reads as one piece.
LABELS = """
() => [...document.querySelectorAll("a, button, h1, h2, label, legend, option, th, dt, summary, [placeholder]")]
  .filter(element => element.checkVisibility() || element.parentElement.checkVisibility())
  .map(element => element.placeholder || element.textContent)
"""
# The pictures would change every day, and with every version, if they showed the real ones.
FIX_THE_DATE = """
() => {
  for (const moment of document.querySelectorAll("time")) moment.textContent = "21 Nov 10.32 WIB"
  for (const line of document.querySelectorAll(".paper"))
    line.lastChild.textContent = line.lastChild.textContent.replace(/\\d+ \\S+ \\d{4}/, "21 November 2026")
}
"""


class Reader:
    """A person who follows the guide. `labels` and `texts` are everything that the visited pages showed."""

    def __init__(self, window: Window, site: Site, folder: Path, *, makes_pictures: bool) -> None:
        self.window, self.page, self.site = window, window.page, site
        self.labels: set[str] = set()
        self.texts: list[str] = []
        self._folder = folder
        self._makes_pictures = makes_pictures

    def fill_the_list(self) -> None:
        for student in STUDENTS:
            self.site.add(*student)
        self.open("/")

    def open(self, path: str) -> None:
        self.window.open(path)
        self.read()

    def click(self, *targets: str | tuple[str, str]) -> None:
        """Click links or buttons that lead to another page: the first one of a name, or of a name in the row of a text."""
        for target in targets:
            name, row = target if isinstance(target, tuple) else (target, "")
            place = self.page.get_by_role("row", name=re.compile(row)) if row else self.page
            link, button = (
                place.get_by_role(role, name=name, exact=True) for role in ("link", "button")
            )
            with self.window.leaving():
                link.or_(button).first.click()
            self.read()

    def send(self, button: str, **fields: str) -> None:
        self.window.type(**fields)
        self.click(button)

    def download(self, name: str) -> bytes:
        with self.page.expect_download() as download:
            self.page.get_by_role("link", name=name, exact=True).click()
        return Path(download.value.path()).read_bytes()

    def preview(self, text: str) -> None:
        attach(self.window, text, "mahasiswa.csv")
        self.click("Lihat pratinjau")

    def sees(self, *nims: str) -> None:
        assert [nim for nim, _, _ in self.window.cells()] == [*nims]

    def take_picture(self, name: str, height: int = 0) -> None:
        """Store a picture of the upper part of a page, or of its first sheet of paper, without the footer."""
        if not self._makes_pictures:
            return
        self.page.wait_for_load_state("load")
        self.page.evaluate(FIX_THE_DATE)
        if height:
            clip: FloatRect = {"x": 0, "y": 0, "width": WINDOW[0], "height": height}
            picture = self.page.screenshot(clip=clip, full_page=True)
        else:
            paper = self._folder / "paper"
            self.page.pdf(path=paper, format="A5", landscape=True)
            subprocess.run(
                ["pdftoppm", "-png", "-singlefile", "-r", "110", paper, paper], check=True
            )
            picture = paper.with_suffix(".png").read_bytes()
        # Debian: pngquant.
        command = ["pngquant", "--nofs", "--strip", "--speed", "1", str(COLOURS), "-"]
        small = subprocess.run(command, input=picture, capture_output=True, check=True).stdout
        (PICTURES / name).write_bytes(small)

    def has_seen(self, quote: str) -> bool:
        """Whether a page had this sentence in its text, or a label of exactly this text."""
        if quote.endswith((".", ":", "?")):
            return any(quote in text for text in self.texts)
        return quote in self.labels

    def read(self) -> None:
        self.labels |= {_in_one_line(label) for label in self.page.evaluate(LABELS)}
        self.texts.append(_in_one_line(self.page.locator("body").inner_text()))


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


# ---- the sections of the guide. Except in the first one, the list has STUDENTS.
def start(reader: Reader) -> None:
    reader.open("/")
    reader.click("Tambah satu per satu", "Data Mahasiswa", "impor dari Excel")
    reader.fill_the_list()
    reader.take_picture("daftar.png", 690)


def add_and_edit(reader: Reader) -> None:
    reader.click("Data Mahasiswa", "Tambah Data")
    reader.window.type(nim="2300018009", nama="Galih Saputra", alamat="Jl. Affandi No. 9, Sleman")
    reader.take_picture("formulir.png", 400)
    reader.click("Simpan", ("Edit", "Galih"))
    reader.send("Simpan", alamat="Jl. Gejayan No. 1, Sleman")
    expect(reader.page.get_by_role("row", name="Galih")).to_contain_text("Gejayan")
    reader.click("Tambah Data")
    reader.send(
        "Simpan dan tambah lagi",
        nim="23000180l0",
        nama="Indah Pratiwi",
        alamat="Jl. Bantul No. 30, Bantul",
    )
    reader.send(
        "Simpan", nim="23O0018001", nama="Siti Aminah", alamat="Jl. Kaliurang No. 5, Sleman"
    )
    reader.click("Batalkan penambahan", ("Edit", "Indah"), "Ganti NIM")
    reader.send("Ganti NIM", nim="2300018010")
    expect(reader.page.get_by_role("row", name="Indah")).to_contain_text("2300018010")
    reader.click(("Delete", "Galih"))
    reader.texts += reader.window.dialogs
    expect(reader.page.get_by_role("row", name="Galih")).to_have_count(0)


def import_a_file(reader: Reader) -> None:
    reader.click("Impor")
    assert reader.download("Unduh templat Excel").startswith(b"PK")
    reader.preview(FILE)
    reader.take_picture("pratinjau.png", 790)
    reader.click("Lewati 1 baris ini", "Jangan lewati")
    reader.page.get_by_text("Ubah kolom").click()
    reader.read()
    reader.page.get_by_label("Nama, baris 5").fill("Kartika Susanti")
    reader.click("Periksa lagi", "Simpan 4 baru dan perbarui 1")
    expect(reader.window.rows).to_have_count(12)
    reader.click("Impor")
    reader.preview("NIM;Nama;Alamat\n2300018013;Lina Marlina;-\n")
    reader.click("Benar (1 baris)", "Simpan 1 mahasiswa baru")
    expect(reader.window.rows).to_have_count(13)


def export(reader: Reader) -> None:
    assert reader.download("Unduh Excel").startswith(b"PK")
    assert b"2300018008" in reader.download("Unduh CSV")


def find(reader: Reader) -> None:
    reader.site.add("2300017001", "Rizky Hidayat", "Jalan Solo")
    for text, *found in (
        ("siti bantul", "2300018006"),
        ("nuraini", "2300018003"),
        ("rizki", "2300017001"),
        ("wibbowo",),
    ):
        reader.page.get_by_role("searchbox").fill(text)
        reader.click("Cari")
        reader.sees(*found)
    assert reader.has_seen("Mungkin maksud Anda:")
    reader.page.get_by_label("Cari di").select_option("NIM berawalan")
    reader.click("Cari")
    reader.sees()
    reader.site.delete("2300017001")
    reader.click("Hapus pencarian")
    reader.open("/")
    reader.click("Urutkan dan tampilkan per halaman")
    for first in ("2300018004", "2300018006"):
        reader.click("Nama")
        assert reader.window.cells()[0][0] == first
    for number in range(10):
        reader.site.add(f"23000190{number:02}", "Hesti Puspita", "Jl. Mawar No. 1, Klaten")
    reader.open("/?halaman=1&per=10")
    reader.click("Berikutnya", "Sebelumnya")


def undo(reader: Reader) -> None:
    reader.click("Impor")
    reader.preview(FILE)
    reader.click("Simpan 3 mahasiswa baru, lewati 1")
    nim, nama, _ = STUDENTS[1]
    reader.site.edit(nim, nama, "Jl. Bantul No. 12, Bantul")
    reader.click(("Delete", "Siti Aminah"), "Riwayat")
    reader.take_picture("riwayat.png", 739)
    reader.click("Lihat rinciannya")
    reader.site.edit("2300018010", "Indah", "Bantul")
    reader.click("Batalkan impor (3 data)")
    reader.site.delete("2300018010")
    reader.click("Riwayat", ("Kembalikan data yang dihapus", "Siti Aminah"))
    reader.open("/")
    reader.sees(*(nim for nim, _, _ in STUDENTS))
    reader.site.edit(nim, nama, "Jl. Wates No. 12, Bantul")
    reader.click("Riwayat", ("Batalkan perubahan", "Diubah.*Parangtritis"), "Riwayat data ini")
    reader.click(("Batalkan perubahan", "Diubah.*Wates"))
    reader.click(("Batalkan perubahan", "Diubah.*Parangtritis"))
    reader.open("/")
    assert list(STUDENTS[1]) in reader.window.cells()
    reader.click(("Edit", nama), "Riwayat data ini")


def delete_many(reader: Reader) -> None:
    """Delete two records by their NIMs; a third NIM is not in the list. Then delete those whose NIM begins with 23."""
    reader.click("Pilih banyak")
    reader.page.get_by_label("NIM", exact=True).fill(
        "NIM\tNama\n2300018001\tX\n2300018002\t\n2300017999\t"
    )
    reader.click("Tampilkan")
    reader.click("Benar (1 baris)", "Hapus 2 mahasiswa")
    expect(reader.window.rows).to_have_count(len(STUDENTS) - 2)
    reader.open("/?halaman=1")
    reader.page.get_by_role("checkbox").first.check()
    reader.click("Pilih yang dicentang")
    reader.site.add("2400018001", "Gita Permata", "Jl. Kaliurang Km 7, Sleman")
    reader.open("/?halaman=1")
    reader.page.get_by_role("searchbox").fill("23")
    reader.page.get_by_label("Cari di").select_option("NIM berawalan")
    reader.click("Cari", "Pilih hasil ini", "Hapus 6 mahasiswa")
    expect(reader.window.rows).to_have_count(1)


def print_the_list(reader: Reader) -> None:
    names = [nama.split() for _, nama, _ in STUDENTS]
    for number, ((first, _), (_, last)) in enumerate(itertools.product(names, names[:3])):
        address = f"Jl. Kaliurang No. {3 * number + 1}, Sleman"
        reader.site.add(f"24000180{number:02}", f"{first} {last}", address)
    reader.open("/?cari=sleman&per=10")
    reader.click("Siapkan cetakan")
    assert len(reader.window.cells()) > 10
    reader.take_picture("cetak.png")
    reader.page.get_by_label("Kop (").fill("SMA Negeri 1 Sleman")
    reader.page.get_by_label("Judul").fill("Daftar Hadir Kelas A")
    reader.page.get_by_label("Kolom kosong").fill("8")
    reader.page.get_by_label("Tanpa alamat").check()
    reader.click("Tampilkan")
    reader.take_picture("hadir.png")


def check(reader: Reader) -> None:
    reader.site.add("23O0018001", "Siti Aminah", STUDENTS[0][2])
    reader.site.add("2300018011", "Joko  Prasetyo ", "Jl. Kusumanegara No. 2, Yogyakarta")
    reader.open("/?halaman=1")
    reader.click("Periksa daftar")
    reader.take_picture("periksa.png", 640)
    reader.click("Rapikan semua")
    reader.open("/")
    expect(reader.page.get_by_role("row", name="Joko Prasetyo Jl.")).to_have_count(1)


def read_messages(reader: Reader) -> None:
    """Make every mistake of the table of messages. The messages about an outage are those of the program."""
    reader.click("Tambah Data")
    reader.send("Simpan", nim=STUDENTS[0][0], nama="Sri Lestari", alamat="Solo")
    for name in ("stored", "changed", "deleted", "no_record"):
        PAGES[name](reader.window, reader.site)
        reader.read()
    outages: tuple[ProblemName, ...] = ("busy", "not saved", "uncertain", "not read", "failed")
    reader.texts += [PROBLEMS[name].text for name in outages]
    reader.texts += [PREVIEW_GONE, *PREVIEW_ALERTS.values()]


WALKS = [
    start,
    add_and_edit,
    import_a_file,
    export,
    find,
    undo,
    delete_many,
    print_the_list,
    check,
    read_messages,
]
"""A walk for each section of the guide, in their order."""
_, *PARTS = re.split("^## ", GUIDE.read_text("utf-8"), flags=re.MULTILINE)
SECTIONS = {heading: body for heading, _, body in (part.partition("\n") for part in PARTS)}


@pytest.mark.parametrize(
    ("body", "walk"), [*zip(SECTIONS.values(), WALKS, strict=True)], ids=SECTIONS
)
def test_the_guide_quotes_texts_that_the_pages_show(
    request: pytest.FixtureRequest,
    open_window: OpenWindow,
    tmp_path: Path,
    body: str,
    walk: Callable[[Reader], None],
) -> None:
    """Each section can be followed, and its bold words are links, buttons, labels or sentences of the pages."""
    makes_pictures = bool(request.config.getoption("screenshots"))
    window = open_window("answers" if makes_pictures else "unreachable", WINDOW)
    with Site(window.url) as site:
        reader = Reader(window, site, tmp_path, makes_pictures=makes_pictures)
        if walk is not start:
            reader.fill_the_list()
        walk(reader)
    quotes = [_in_one_line(quote) for quote in re.findall(r"\*\*(.+?)\*\*", body, re.DOTALL)]
    assert quotes
    assert [quote for quote in quotes if not reader.has_seen(quote)] == []


def test_the_guide_shows_each_picture_and_every_picture_is_small() -> None:
    """The pictures of the guide are those in its folder; each is a PNG with a palette, below 60 KB."""
    shown = re.findall(r"!\[.+\]\(panduan/(.+)\)", GUIDE.read_text("utf-8"))
    assert sorted(shown) == sorted(picture.name for picture in PICTURES.iterdir())
    for name in shown:
        picture = (PICTURES / name).read_bytes()
        assert len(picture) < PICTURE_MAX_BYTES, name
        assert picture[25] == 3, f"the colour type of {name} is not that of a palette"


def test_the_guide_is_a_page_whose_links_and_pictures_lead_somewhere(service: Service) -> None:
    """The footer and the form of an import lead to it. Its text is that of docs/panduan.md."""
    with service.site() as site:
        page = site.page(site.list().target("Panduan"))
        links = [node.attributes["href"] or "" for node in page.css("main a")]
        links += [link.href for link in site.page("/mahasiswa/impor").links if "#" in link.href]

        for image in page.css("main img"):
            source = str(image.attributes["src"])
            answer = site.get(f"/mahasiswa/{source}")
            assert answer.headers["content-type"] == "image/png"
            assert answer.content == (PICTURES / source.removeprefix("panduan/")).read_bytes()
        for name in ("lain.png", "..%2Fguide.py"):
            assert site.get(f"/mahasiswa/panduan/{name}").status_code == 404

    assert page.headings == re.findall("^#+ (.+)", GUIDE.read_text("utf-8"), flags=re.MULTILINE)
    assert len(page.css("main img")) == len(list(PICTURES.iterdir()))
    assert len(links) > len(SECTIONS)
    ids = {str(node.attributes["id"]) for node in page.css("[id]")}
    assert {link.partition("#")[2] for link in links} <= ids

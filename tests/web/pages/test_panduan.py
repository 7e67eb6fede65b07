"""The guide for staff, docs/panduan.md: its page, and its pictures, which `SCREENSHOTS=1` makes again."""

import itertools
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Service, Site
from web.browser import OpenWindow, Window
from web.importer import save, uploaded

GUIDE = Path(__file__).parents[3] / "docs" / "panduan.md"
FOLDER = GUIDE.with_suffix("")
PICTURE_MAX_BYTES = 60_000
COLOURS = "32"

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
FILE = b"""\
NIM;Nama;Alamat
2300018009;Galih Saputra;Jl. Affandi No. 9, Sleman
2300018010;Indah Pratiwi;Jl. Bantul No. 30, Bantul
2300018011;Joko Prasetyo;Jl. Kusumanegara No. 2, Yogyakarta
2300018012;;Jl. Cendana No. 11, Yogyakarta
2300018004;Agus Wibowo;Jl. Melati No. 6, Sleman
2300018007;Eko Nugroho;Jl. Solo No. 60, Klaten
"""
GALIH = {"nim": "2300018009", "nama": "Galih Saputra", "alamat": "Jl. Affandi No. 9, Sleman"}
SUSPECTS = (
    ("23O0018001", *STUDENTS[0][1:]),
    ("2300018011", "Joko  Prasetyo ", "Jl. Kusumanegara No. 2, Yogyakarta"),
)


def print_many(site: Site) -> str:
    names = [nama.split() for _, nama, _ in STUDENTS]
    for number, ((first, _), (_, last)) in enumerate(itertools.product(names, names[:3])):
        address = f"Jl. Kaliurang No. {3 * number + 1}, Sleman"
        site.add(f"24000180{number:02}", f"{first} {last}", address)
    return "/mahasiswa/cetak?cari=sleman"


def change_some(site: Site) -> str:
    """Import, edit and delete."""
    save(site, uploaded(site, FILE))
    nim, nama, _ = STUDENTS[1]
    site.edit(nim, nama, "Jl. Bantul No. 12, Bantul")
    site.delete(STUDENTS[0][0])
    return "/mahasiswa/riwayat"


def take_attendance(site: Site) -> str:
    titles = "&kop=SMA+Negeri+1+Sleman&judul=Daftar+Hadir+Kelas+A&kolom=8&tanpa=alamat"
    return print_many(site) + titles


def check(site: Site) -> str:
    for suspect in SUSPECTS:
        site.add(*suspect)
    return "/mahasiswa/periksa"


PICTURES: dict[str, tuple[int, Callable[[Site], str]]] = {
    "daftar.png": (690, lambda _: "/"),
    "formulir.png": (400, lambda _: "/mahasiswa/add"),
    "pratinjau.png": (790, lambda site: uploaded(site, FILE).url),
    "riwayat.png": (739, change_some),
    "cetak.png": (0, print_many),
    "hadir.png": (0, take_attendance),
    "periksa.png": (640, check),
}
"""The height of each picture, or 0 for a sheet of paper, and the steps to its page. The list has STUDENTS before."""

# The pictures would change every day, and with every version, if they showed the real ones.
FIX_THE_DATE = """
() => {
  for (const moment of document.querySelectorAll("time")) moment.textContent = "21 Nov 10.32 WIB"
  for (const line of document.querySelectorAll(".paper"))
    line.lastChild.textContent = line.lastChild.textContent.replace(/\\d+ \\S+ \\d{4}/, "21 November 2026")
}
"""


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_of_the_guide_is_small(
    request: pytest.FixtureRequest, name: str, tmp_path: Path
) -> None:
    """Each is a PNG with a palette, below 60 KB."""
    if os.environ.get("SCREENSHOTS"):
        open_window: OpenWindow = request.getfixturevalue("open_window")
        site: Site = request.getfixturevalue("site")
        for student in STUDENTS:
            site.add(*student)
        window = open_window(cdn=True, viewport={"width": 960, "height": 640})
        height, path = PICTURES[name]
        window.goto(path(site))
        if name == "formulir.png":
            for field, text in GALIH.items():
                window.fill(f"input[name={field}]", text)
        take_picture(window, name, height, tmp_path / "paper")
    picture = (FOLDER / name).read_bytes()
    assert len(picture) < PICTURE_MAX_BYTES
    assert picture[25] == 3, "the colour type is not that of a palette"


def take_picture(window: Window, name: str, height: int, paper: Path) -> None:
    """Store a picture of the upper part of a page, or of its first sheet of paper, without the footer."""
    window.wait_for_load_state("load")
    window.evaluate(FIX_THE_DATE)
    if height:
        picture = window.screenshot(
            clip={"x": 0, "y": 0, "width": 960, "height": height}, full_page=True
        )
    else:
        window.pdf(path=paper, format="A5", landscape=True)
        subprocess.run(["pdftoppm", "-png", "-singlefile", "-r", "110", paper, paper], check=True)
        picture = paper.with_suffix(".png").read_bytes()
    # Debian: pngquant.
    command = ["pngquant", "--nofs", "--strip", "--speed", "1", COLOURS, "-"]
    small = subprocess.run(command, input=picture, capture_output=True, check=True).stdout
    (FOLDER / name).write_bytes(small)


def test_the_guide_is_a_page_whose_links_and_pictures_lead_somewhere(service: Service) -> None:
    """The footer and the form of an import lead to it. Its text is that of docs/panduan.md."""
    with service.site() as site:
        page = site.page(site.list().target("Panduan"))
        links = page.values("main a", "href")
        links += site.page("/mahasiswa/impor").values("main a[href*='#']", "href")

        images = page.values("main img", "src")
        for image in images:
            answer = site.get(f"/mahasiswa/{image}")
            assert answer.headers["content-type"] == "image/png"
            file = FOLDER / Path(image).name
            assert answer.content == file.read_bytes()
        for name in ("lain.png", "..%2Fguide.py"):
            assert site.get(f"/mahasiswa/panduan/{name}").status_code == 404

    named = {Path(image).name for image in images}
    assert named == {*PICTURES}
    stored = {file.name for file in FOLDER.iterdir()}
    assert stored == {*PICTURES}
    assert page.texts("h1, h2, h3, h4") == re.findall(
        "^#+ (.+)", GUIDE.read_text("utf-8"), flags=re.MULTILINE
    )
    assert len(links) > 9
    ids = {*page.values("[id]", "id")}
    assert {link.partition("#")[2] for link in links} <= ids

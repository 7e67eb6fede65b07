"""Every route and every form of the application, on both engines, from one list: `PAGES` and `FORMS`."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from engines import ENGINES, empty_database
from harness import Form, Service, Site, led_to
from spreadsheets import HEADER, by_openpyxl, csv, numbered
from web.importer import counts, import_file, pressed, save, uploaded

from mahasiswa.web.app import ROUTES

NIMS = (f"baru{number}" for number in itertools.count())

PAGES: Mapping[str, str] = {
    "/": "Siti Aminah", "/?cari=kaliurang+SITI": "Siti Aminah", "/?cari=%C3%89cole&urut=nama&arah=turun": "École",
    "/?cari=tidak+ada": "Tidak ada", "/?urut=alamat&halaman=2&per=10": "Nama 15", "/?per=500": "Nama 15",
    "/mahasiswa/add": "Simpan", "/mahasiswa/edit/20%2F1": "Siti Aminah", "/mahasiswa/nim/20%2F1": "Siti Aminah",
    "/mahasiswa/impor": "berkas", "/mahasiswa/impor/templat.xlsx": "PK", "/mahasiswa/ekspor.xlsx": "PK",
    "/mahasiswa/ekspor.xlsx?cari=siti": "PK", "/mahasiswa/ekspor.csv": "20/1;Siti Aminah;Jalan Kaliurang 5",
    "/mahasiswa/ekspor.csv?cari=siti": "20/1;Siti Aminah;Jalan Kaliurang 5", "/mahasiswa/pilih": "Tampilkan",
    "/mahasiswa/pilih/SELECTION": "Hapus 11 mahasiswa", "/mahasiswa/pilih/cetak/SELECTION": "Nama 15",
    "/mahasiswa/pilih/ekspor.xlsx/SELECTION": "PK", "/mahasiswa/pilih/ekspor.csv/SELECTION": "15;Nama 15;École",
    "/mahasiswa/periksa": "Periksa Daftar",
    "/mahasiswa/cetak": "Siti Aminah",
    "/mahasiswa/cetak?judul=Kelas+7A&kolom=2&tanpa=alamat&cari=20&di=nim": "<h1>Kelas 7A</h1>", "/sehat": "",
    "/mahasiswa/panduan": "Panduan untuk staf", "/mahasiswa/panduan/daftar.png": "PNG",
    "/metrics": "mahasiswa_", "/mahasiswa/riwayat": "Siti Aminah", "/mahasiswa/riwayat?cari=siti": "Siti Aminah",
    "/mahasiswa/riwayat/kelompok/BATCH": "Nama 15", "/mahasiswa/impor/UPLOAD": "Pratinjau",
    "/mahasiswa/impor/sisa/UPLOAD": "PK",
}  # fmt: skip
"""The targets of GET, and a text that the answer holds. BATCH is the number of the latest batch, UPLOAD the name of an upload.

SELECTION is the name of the selection of a search.
"""


def preview_import(site: Site) -> None:
    """Show the previews of a workbook, a CSV file and pasted cells."""
    old = added(site)
    new = (next(NIMS), "Ani", "Solo")
    assert counts(uploaded(site, by_openpyxl(HEADER, new), "a.xlsx")) == {"Baru": 1}
    changed = csv(HEADER, (old, "Ani Baru", "Solo"), new)
    assert counts(uploaded(site, changed)) == {"Baru": 1, "Berubah": 1}
    assert counts(uploaded(site, "\n".join(map("\t".join, (HEADER, new))))) == {"Baru": 1}


def confirm_import(site: Site) -> None:
    """Repair a line, and import a new and a changed record."""
    old, new = added(site), next(NIMS)
    preview = uploaded(site, csv(HEADER, (old, "Ani Baru", "Solo"), ("", "Eko", "Klaten")))
    save(site, pressed(site, preview, "periksa", **{"nim.0.3": new}), "perbarui")
    assert {(old, "Ani Baru", "Solo"), (new, "Eko", "Klaten")} <= set(site.records)


def select(site: Site) -> Form:
    """Select one record and an unknown NIM; return the form of the selection."""
    pasted = f"{added(site)}\n{next(NIMS)}"
    answer = site.post("/mahasiswa/pilih", files={"tempel": (None, pasted)})
    return site.page(led_to(answer)).form("versi")


def confirm_deletion(site: Site) -> None:
    """Delete the record of a selection."""
    form = select(site)
    before = site.nims
    led_to(site.submit(form, aksi="hapus"))
    assert len(site.nims) == len(before) - 1


def select_found(site: Site) -> str:
    """Select the hits of a search; return the name of the selection."""
    return led_to(site.post("/mahasiswa/pilih/hasil?cari=nama+1&di=nama")).rpartition("/")[2]


FORMS: Mapping[str, Callable[[Site], object] | str] = {
    "/mahasiswa/add": "spec/test_4_routes.py", "/mahasiswa/edit/:nim": "spec/test_4_routes.py",
    "/mahasiswa/delete/:nim": "spec/test_4_routes.py", "/mahasiswa/nim/:nim": "web/records/test_one_record.py",
    "/mahasiswa/impor": preview_import, "/mahasiswa/impor/:id": confirm_import, "/mahasiswa/pilih": select,
    "/mahasiswa/periksa": "web/lists/test_whole_list.py", "/mahasiswa/pilih/centang": "web/history/test_undo.py",
    "/mahasiswa/pilih/hasil": select_found, "/mahasiswa/pilih/:id": confirm_deletion,
    "/mahasiswa/riwayat/perubahan/:id": "web/history/test_undo.py",
}  # fmt: skip
"""For each route of POST: a function that sends its form as a browser does, or the tests that do so on both engines."""


def added(site: Site) -> str:
    nim = next(NIMS)
    led_to(site.add(nim, "Ani", "Solo"))
    return nim


@pytest.fixture(scope="module", params=ENGINES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    database = empty_database(request.param, tmp_path_factory.mktemp("routes"), request)
    with Service(database, {"METRICS": "1"}) as service, service.site() as site:
        records = numbered(20, "Nama {}", "École", nim="{:02}")
        import_file(site, csv(HEADER, *records))
        site.add("20/1", "Siti Aminah", "Jalan Kaliurang 5")
        yield site
        assert "Traceback" not in service.stderr()


def routes(targets: Iterable[str]) -> set[str]:
    patterns = {
        route: re.sub(":[a-z]+", "[^/]+", route) for route in {route.path for route in ROUTES}
    }
    paths = [target.partition("?")[0] for target in targets]
    return {
        path if path in patterns else route
        for path in paths
        for route, pattern in patterns.items()
        if re.fullmatch(pattern, path)
    }


def test_no_route_is_missing_in_the_lists() -> None:
    """A new route fails this test until it has an entry."""
    assert {route.path for route in ROUTES if route.method == "GET"} == routes(PAGES)
    assert {route.path for route in ROUTES if route.method == "POST"} == FORMS.keys()
    modules = {module for module in FORMS.values() if isinstance(module, str)}
    assert all((Path(__file__).parents[2] / module).exists() for module in modules)


@pytest.mark.parametrize(("target", "text"), PAGES.items())
def test_every_get_is_answered(site: Site, target: str, text: str) -> None:
    """GET answers 200 with its text, and HEAD the same without a body."""
    links = site.page("/mahasiswa/riwayat").links
    batch, *_ = [link.target for link in links if link.text == "Lihat rinciannya"]
    target = target.replace("BATCH", batch.rpartition("/")[2])
    if "SELECTION" in target:
        target = target.replace("SELECTION", select_found(site))
    if "UPLOAD" in target:
        preview = uploaded(site, csv(HEADER, ("", "Eko", "Klaten")))
        target = target.replace("UPLOAD", preview.url.rpartition("/")[2])
    got = site.get(target)
    head = site.request("HEAD", target)
    assert got.status_code == 200
    assert head.status_code == 200
    assert head.content == b""
    assert text.encode() in got.content
    assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize("send", [form for form in FORMS.values() if callable(form)])
def test_every_form_is_accepted(site: Site, send: Callable[[Site], object]) -> None:
    """The form of the page is sent, and what it changed is seen in the list."""
    send(site)

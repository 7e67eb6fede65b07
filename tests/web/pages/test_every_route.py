"""Every route and every form of the application, on both engines, from one list: `PAGES` and `FORMS`."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
from engines import ENGINES, empty_database
from harness import Form, Service, Site
from sockets import CLOSE, get, half_closed
from spreadsheets import HEADER, Importer, by_openpyxl, csv, numbered
from visitor import page_of

from mahasiswa.web.app import ROUTES

NIMS = (f"baru{number}" for number in itertools.count())

PAGES: Mapping[str, str] = {
    "/": "Siti Aminah", "/?cari=kaliurang+SITI": "Siti Aminah", "/?cari=%C3%89cole&urut=nama&arah=turun": "École",
    "/?cari=tidak+ada": "Tidak ada", "/?urut=alamat&halaman=2&per=10": "Nama 15", "/?per=500": "Nama 15",
    "/mahasiswa/add": "Simpan", "/mahasiswa/edit/20%2F1": "Siti Aminah", "/mahasiswa/nim/20%2F1": "Siti Aminah",
    "/mahasiswa/impor": "berkas", "/mahasiswa/impor/templat.xlsx": "PK", "/mahasiswa/ekspor.xlsx": "PK",
    "/mahasiswa/ekspor.xlsx?cari=siti": "PK", "/mahasiswa/ekspor.csv": "20/1;Siti Aminah;Jalan Kaliurang 5",
    "/mahasiswa/ekspor.csv?cari=siti": "20/1;Siti Aminah;Jalan Kaliurang 5", "/mahasiswa/pilih": "Tampilkan",
    "/mahasiswa/pilih?cari=nama+1&di=nama": "Hapus 11 mahasiswa", "/mahasiswa/pilih?cari=%00": "Tampilkan",
    "/mahasiswa/rekap": "/mahasiswa/pilih?cari=20&amp;di=nim", "/mahasiswa/periksa": "Panjang NIM berbeda",
    "/mahasiswa/cetak": "Siti Aminah",
    "/mahasiswa/cetak?judul=Kelas+7A&kolom=2&tanpa=alamat&cari=20&di=nim": "<h1>Kelas 7A</h1>", "/sehat": "",
    "/mahasiswa/panduan": "Panduan untuk staf", "/mahasiswa/panduan/daftar.png": "PNG",
    "/metrics": "mahasiswa_", "/mahasiswa/riwayat": "Siti Aminah", "/mahasiswa/riwayat?cari=siti": "Siti Aminah",
    "/mahasiswa/riwayat/kelompok/BATCH": "Nama 15",
}  # fmt: skip
"""The targets of GET, and a text that the answer holds. BATCH is the number of the latest batch."""


def add(site: Site) -> None:
    nim = next(NIMS)
    site.accepts(site.page("/mahasiswa/add").record_form, nim=nim, nama="Ani", alamat="Solo")
    assert (nim, "Ani", "Solo") in site.list().records


def edit(site: Site) -> None:
    nim = added(site)
    page = site.page(site.path("/mahasiswa/edit/", nim))
    (versi,) = page.values("button[name=versi]")
    site.accepts(page.record_form, nama="Ani Baru", versi=versi)
    assert (nim, "Ani Baru", "Solo") in site.list().records


def delete(site: Site) -> None:
    nim = added(site)
    site.accepts(site.list().row(nim).forms[0])
    assert nim not in site.list().nims


def change_nim(site: Site) -> None:
    nim, new = added(site), next(NIMS)
    site.accepts(site.page(site.path("/mahasiswa/nim/", nim)).record_form, nim=new)
    assert {nim, new} & {*site.list().nims} == {new}


def preview_import(site: Site) -> None:
    """Show the previews of a workbook, a CSV file and pasted cells, and take a NIM of the list for one without zeros."""
    importer, old = Importer(site), added(site)
    new = (next(NIMS), "Ani", "Solo")
    assert importer.upload(by_openpyxl(HEADER, new), "a.xlsx").counts == {"Baru": 1}
    changed = csv(HEADER, (old, "Ani Baru", "Solo"), new)
    assert importer.upload(changed).counts == {"Baru": 1, "Berubah": 1}
    assert importer.paste("\t".join(new)).counts == {"Baru": 1}
    preview = importer.upload(csv(HEADER, ("5", "Nama 5", "École")))
    assert importer.check_again(preview, pakai="nol").counts == {"Tidak berubah": 1}


def confirm_import(site: Site) -> None:
    """Look at the other records, repair a row, and import a new and a changed record."""
    importer, old, new = Importer(site), added(site), next(NIMS)
    preview = importer.upload(csv(HEADER, (old, "Ani Baru", "Solo"), ("", "Eko", "Klaten")))
    assert importer.check_again(preview, periksa="sisa").counts == preview.counts
    importer.save(importer.check_again(preview, nim=new), "perbarui")
    assert {(old, "Ani Baru", "Solo"), (new, "Eko", "Klaten")} <= set(importer.records())


def preview_deletion(site: Site) -> Form:
    """Show the preview of a bulk delete of one record and an unknown NIM; return its form."""
    pasted = f"{added(site)}\n{next(NIMS)}"
    answer = site.client.post("/mahasiswa/pilih", files={"tempel": (None, pasted)})
    return page_of(answer).form("data")


def preview_ticked(site: Site) -> None:
    ticked = [("nim[]", added(site)) for _ in range(2)]
    preview = page_of(site.post("/mahasiswa/pilih/centang", ticked))
    assert "Hapus 2 mahasiswa" in preview.texts("button")


def tidy(site: Site) -> None:
    nim = next(NIMS)
    site.add(nim, " Ani  Sari", "Jl. Mawar\u00a0\u200bNo. 5 ")
    site.accepts(site.page("/mahasiswa/periksa").form("Rapikan semua"))
    assert (nim, "Ani Sari", "Jl. Mawar No. 5") in site.list().records


def use_selection(site: Site) -> None:
    """Print and download the record of a selection."""
    data = preview_deletion(site).values["data"]
    for name in ("cetak", "ekspor.xlsx", "ekspor.csv"):
        answer = site.post(f"/mahasiswa/pilih/{name}", {"data": data})
        assert (answer.status_code, len(answer.content) > 20) == (200, True)


def confirm_deletion(site: Site) -> None:
    """Show the removal of the records that a file lacks, and delete a record of a preview."""
    missing = Importer(site).upload(csv(HEADER, ("20/1", "Siti Aminah", "Solo")))
    shown = site.post("/mahasiswa/pilih/simpan", {"data": missing.data, "periksa": "sisa"})
    assert f"Hapus {len(site.list().nims) - 1} mahasiswa" in shown.text
    form = preview_deletion(site)
    before = site.list().nims
    site.accepts(form)
    assert len(site.list().nims) == len(before) - 1


def undo(site: Site) -> None:
    nim = added(site)
    site.accepts(site.page("/mahasiswa/riwayat").posts[0])
    assert nim not in site.list().nims


def undo_batch(site: Site) -> None:
    importer, nim = Importer(site), next(NIMS)
    importer.save(importer.upload(csv(HEADER, (nim, "Ani", "Solo"), (next(NIMS), "Budi", "Solo"))))
    site.accepts(site.page(batch_of(site)).form("Batalkan impor (2 data)"))
    assert nim not in site.list().nims


FORMS: Mapping[str, Callable[[Site], object]] = {
    "/mahasiswa/add": add, "/mahasiswa/edit/:nim": edit, "/mahasiswa/delete/:nim": delete,
    "/mahasiswa/nim/:nim": change_nim, "/mahasiswa/impor": preview_import, "/mahasiswa/impor/simpan": confirm_import,
    "/mahasiswa/pilih": preview_deletion, "/mahasiswa/periksa": tidy, "/mahasiswa/pilih/centang": preview_ticked,
    "/mahasiswa/pilih/cetak": use_selection, "/mahasiswa/pilih/ekspor.xlsx": use_selection, "/mahasiswa/pilih/ekspor.csv": use_selection,
    "/mahasiswa/pilih/simpan": confirm_deletion, "/mahasiswa/riwayat/perubahan/:id": undo,
    "/mahasiswa/riwayat/kelompok/:id": undo_batch,
}  # fmt: skip
"""For each route of POST: a function that sends its form as a browser does."""


def added(site: Site) -> str:
    nim = next(NIMS)
    site.stores(nim, "Ani", "Solo")
    return nim


def batch_of(site: Site) -> str:
    return site.page("/mahasiswa/riwayat").targets("Lihat rinciannya")[0]


@pytest.fixture(scope="module", params=ENGINES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder, environment = tmp_path_factory.mktemp("routes"), {"METRICS": "1"}
    with (
        empty_database(request.param, folder, request) as url,
        Service(url, environment) as service,
        service.site() as site,
    ):
        importer = Importer(site)
        importer.save(importer.upload(csv(HEADER, *numbered(20, "Nama {}", "École", nim="{:02}"))))
        site.add("20/1", "Siti Aminah", "Jalan Kaliurang 5")
        yield site
        assert "Traceback" not in service.stderr()


def routes(targets: Iterable[str]) -> set[str]:
    patterns = {
        route: re.sub(":[a-z]+", "[^/]+", route) for route in {route.path for route in ROUTES}
    }
    paths = [target.partition("?")[0] for target in targets]
    return {
        route
        for path in paths
        for route, pattern in patterns.items()
        if re.fullmatch(pattern, path)
    }


def test_no_route_is_missing_in_the_lists() -> None:
    """A new route fails this test until it has an entry."""
    assert {route.path for route in ROUTES if route.method == "GET"} == routes(PAGES)
    assert {route.path for route in ROUTES if route.method == "POST"} == FORMS.keys()


@pytest.mark.parametrize(("target", "text"), PAGES.items())
def test_every_get_is_answered(site: Site, target: str, text: str) -> None:
    """GET answers 200 with its text, and HEAD the same without a body, also to a client that sends no more."""
    target = target.replace("BATCH", batch_of(site).rpartition("/")[2])
    got, head = site.get(target), site.send("HEAD", target)
    assert (got.status_code, head.status_code, head.content) == (200, 200, b"")
    assert text.encode() in got.content
    assert head.headers["content-type"] == got.headers["content-type"]
    (route,) = (
        route for route in ROUTES if route.method == "GET" and route.path in routes([target])
    )
    if route.abandons == "nothing" or target == "/":
        port = int(site.origin.rpartition(":")[2])
        assert text.encode() in half_closed(port, get(target).replace(CLOSE, b""))


@pytest.mark.parametrize("route", FORMS)
def test_every_form_is_accepted(site: Site, route: str) -> None:
    """The form of the page is sent, and what it changed is seen in the list."""
    FORMS[route](site)

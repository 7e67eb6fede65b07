"""Every route and every form of the application, on both engines, from one list: `PAGES` and `FORMS`."""

import itertools
from collections.abc import Callable, Iterator, Mapping

import pytest
from engines import ENGINES, empty_database
from harness import Page, Service, Site
from spreadsheets import HEADER, Importer, by_xlsxwriter, csv

from mahasiswa.web.app import HISTORY_ROUTES, ROUTES

ROUTE_TABLE = {**ROUTES, **HISTORY_ROUTES, "/metrics": {"GET": None}}
NIMS = (f"baru{number}" for number in itertools.count())

PAGES: Mapping[str, Mapping[str, bytes]] = {
    "/": {
        "/": b"Siti Aminah",
        "/?cari=kaliurang+SITI": b"Siti Aminah",
        "/?cari=%C3%89cole&urut=nama&arah=turun": "École".encode(),
        "/?cari=tidak+ada": b"Tidak ada",
        "/?urut=alamat&halaman=2&per=10": b"Nama 15",
        "/?per=500": b"Nama 15",
    },
    "/mahasiswa/add": {"/mahasiswa/add": b"Simpan", "/mahasiswa/add?lagi=1&nim=20%2F1": b"Simpan"},
    "/mahasiswa/edit/:nim": {"/mahasiswa/edit/20%2F1": b"Siti Aminah"},
    "/mahasiswa/nim/:nim": {"/mahasiswa/nim/20%2F1": b"Siti Aminah"},
    "/mahasiswa/impor": {"/mahasiswa/impor": b"berkas"},
    "/mahasiswa/impor/templat.xlsx": {"/mahasiswa/impor/templat.xlsx": b"PK"},
    "/mahasiswa/ekspor.xlsx": {"/mahasiswa/ekspor.xlsx": b"PK", "/mahasiswa/ekspor.xlsx?cari=siti": b"PK"},
    "/mahasiswa/ekspor.csv": {
        "/mahasiswa/ekspor.csv": b"20/1;Siti Aminah;Jalan Kaliurang 5",
        "/mahasiswa/ekspor.csv?cari=siti": b"20/1;Siti Aminah;Jalan Kaliurang 5",
    },
    "/mahasiswa/hapus": {
        "/mahasiswa/hapus": b"Lihat pratinjau",
        "/mahasiswa/hapus?cari=nama+1&di=nama": b"Hapus 11 mahasiswa",
        "/mahasiswa/hapus?cari=%00": b"Lihat pratinjau",
    },
    "/mahasiswa/rekap": {"/mahasiswa/rekap": b"/mahasiswa/hapus?cari=20&amp;di=nim"},
    "/mahasiswa/periksa": {"/mahasiswa/periksa": b"Panjang NIM berbeda"},
    "/mahasiswa/cetak": {
        "/mahasiswa/cetak": b"Siti Aminah",
        "/mahasiswa/cetak?judul=Kelas+7A&kolom=2&tanpa=alamat&cari=20&di=nim": b"<h1>Kelas 7A</h1>",
    },
    "/sehat": {"/sehat": b""},
    "/metrics": {"/metrics": b"mahasiswa_"},
    "/mahasiswa/riwayat": {
        "/mahasiswa/riwayat": b"Siti Aminah",
        "/mahasiswa/riwayat?cari=siti": b"Siti Aminah",
        "/mahasiswa/riwayat?cari=tidak+ada": b"Riwayat",
        "/mahasiswa/riwayat?jenis=add&tanggal=2001-01-01&cari=siti": b"Riwayat",
    },
    "/mahasiswa/riwayat/kelompok/:id": {
        "/mahasiswa/riwayat/kelompok/{batch}": b"Nama 15",
        "/mahasiswa/riwayat/kelompok/{batch}?cari=nama+3": b"Nama 3",
    },
}
"""For each route of GET: the targets to request, and a text that the answer holds."""


def add(site: Site) -> None:
    """Add a record by the form of its page, a second time in vain."""
    nim = next(NIMS)
    form = site.page("/mahasiswa/add").record_form
    assert site.submit(form, nim=nim, nama="Ani", alamat="Solo").status_code == 302
    assert site.submit(form, nim=nim, nama="Budi", alamat="Solo").status_code == 409
    assert site.list().row(nim).cells[1:4] == (nim, "Ani", "Solo")


def edit(site: Site) -> None:
    """Edit a record by the form of its page, and meet a conflict with the same page once more."""
    nim = added(site)
    page = site.page(site.list().row(nim).links[0].target)
    assert site.submit(page.record_form, nama="Ani Baru", versi=versi(page)).status_code == 302
    assert site.submit(page.record_form, nama="Ani Lama", versi=versi(page)).status_code == 409
    assert site.list().row(nim).cells[1:4] == (nim, "Ani Baru", "Solo")


def delete(site: Site) -> None:
    """Delete a record by the form of its row. The line with the latest change names it."""
    nim = added(site)
    assert site.submit(site.list().row(nim).forms[0]).status_code == 302
    page = site.list()
    assert nim not in page.nims
    assert page.tree.css("p.latest")[0].text().startswith(f"Terakhir: Ani ({nim}) dihapus ")


def change_nim(site: Site) -> None:
    """Give a record another NIM."""
    nim, new = added(site), next(NIMS)
    form = site.page(site.path("/mahasiswa/nim/", nim)).record_form
    assert site.submit(form, nim="20/1").status_code == 409
    assert site.submit(form, nim=new).status_code == 302
    assert site.list().row(new).cells[1:4] == (new, "Ani", "Solo")
    assert nim not in site.list().nims


def preview_import(site: Site) -> None:
    """Show the previews of a workbook, a CSV file and pasted cells, and refuse a file without a NIM."""
    importer, new = Importer(site), next(NIMS)
    assert importer.upload(by_xlsxwriter(HEADER, (new, "Ani", "Solo")), "a.xlsx").counts == {"Baru": 1}
    assert importer.upload(csv(HEADER, (added(site), "Ani Baru", "Solo"), (new, "Ani", "Solo"))).counts == {
        "Baru": 1,
        "Berubah": 1,
    }
    assert importer.paste(f"{new}\tAni\tSolo").counts == {"Baru": 1}
    assert importer.refused(importer.send(b"Nama;Alamat\nAni;Solo\n", "a.csv"))


def confirm_import(site: Site) -> None:
    """Look at the other records, repair a row, and import a new and a changed record."""
    importer, old, new = Importer(site), added(site), next(NIMS)
    preview = importer.upload(csv(HEADER, (old, "Ani Baru", "Solo"), ("", "Eko", "Klaten")))
    assert "Siti Aminah" in importer.check_again(preview, periksa="sisa").html
    importer.save(importer.check_again(preview, nim=new), "perbarui")
    assert {(old, "Ani Baru", "Solo"), (new, "Eko", "Klaten")} <= set(importer.records())


def preview_deletion(site: Site) -> Page:
    """Show the preview of a bulk delete of one record and an unknown NIM, and refuse an empty one."""
    assert site.client.post("/mahasiswa/hapus", files={"berkas": ("", b"")}, data={"tempel": ""}).status_code == 400
    pasted = f"{added(site)}\n{next(NIMS)}"
    answer = site.client.post("/mahasiswa/hapus", files={"berkas": ("", b"")}, data={"tempel": pasted})
    assert answer.status_code == 200
    return Page(answer.text, site.origin + "/mahasiswa/hapus")


def preview_ticked(site: Site) -> None:
    """Tick the first rows of a page and show their preview, and refuse to show one of nothing."""
    page = site.page("/?halaman=1&per=10")
    (form,) = [form for form in page.forms if form.submit == "Hapus yang dipilih"]
    ticks = [str(node.attributes["value"]) for node in page.tree.css("td [type=checkbox][form=pilih]")]
    assert len(ticks) == len(page.rows)
    answer = site.post(form.target, [("nim[]", tick) for tick in ticks[:3]])
    assert (answer.status_code, "Hapus 3 mahasiswa" in answer.text) == (200, True)
    assert site.post(form.target).status_code == 400


def tidy(site: Site) -> None:
    """Tidy the spaces of a record by the button of the check, and take this back."""
    nim = next(NIMS)
    site.add(nim, " Ani  Sari", "Jl. Mawar\u00a0\u200bNo. 5 ")
    (form,) = [form for form in site.page("/mahasiswa/periksa").forms if form.submit == "Rapikan semua"]
    answer = site.submit(form)
    assert (answer.status_code, answer.headers["location"]) == (302, "/mahasiswa/periksa")
    assert site.list().row(nim).cells[1:4] == (nim, "Ani Sari", "Jl. Mawar No. 5")
    assert not [form for form in site.page("/mahasiswa/periksa").forms if form.submit == "Rapikan semua"]


def confirm_deletion(site: Site) -> None:
    """Remove the record of a preview."""
    (form,) = [form for form in preview_deletion(site).forms if form.target == "/mahasiswa/hapus/simpan"]
    before = site.list().nims
    assert site.submit(form).status_code == 302
    assert len(site.list().nims) == len(before) - 1


def undo(site: Site) -> None:
    """Undo an addition, and overwrite a later change after the question."""
    nim = added(site)
    site.edit(nim, "Budi", "Bantul")
    form = next(form for form in site.page("/mahasiswa/riwayat").forms if "/perubahan/" in form.target)
    site.edit(nim, "Citra", "Bantul")
    refused = site.submit(form)
    assert refused.status_code == 409
    assert site.submit(form, versi=versi(Page(refused.text, site.origin))).status_code == 302
    assert site.list().row(nim).cells[1:4] == (nim, "Ani", "Solo")


def undo_batch(site: Site) -> None:
    """Undo an import by the form of its page."""
    importer, nim = Importer(site), next(NIMS)
    importer.save(importer.upload(csv(HEADER, (nim, "Ani", "Solo"), (next(NIMS), "Budi", "Solo"))))
    form = next(form for form in site.page(batch_of(site)).forms if form.submit.startswith("Batalkan impor"))
    assert site.submit(form).status_code == 302
    assert nim not in site.list().nims


FORMS: Mapping[str, Callable[[Site], object]] = {
    "/mahasiswa/add": add,
    "/mahasiswa/edit/:nim": edit,
    "/mahasiswa/delete/:nim": delete,
    "/mahasiswa/nim/:nim": change_nim,
    "/mahasiswa/impor": preview_import,
    "/mahasiswa/impor/simpan": confirm_import,
    "/mahasiswa/hapus": preview_deletion,
    "/mahasiswa/periksa": tidy,
    "/mahasiswa/hapus/pilihan": preview_ticked,
    "/mahasiswa/hapus/simpan": confirm_deletion,
    "/mahasiswa/riwayat/perubahan/:id": undo,
    "/mahasiswa/riwayat/kelompok/:id": undo_batch,
}
"""For each route of POST: a function that sends its form as a browser does."""


def added(site: Site) -> str:
    """Add a record and return its nim."""
    nim = next(NIMS)
    assert site.add(nim, "Ani", "Solo").status_code == 302
    return nim


def versi(page: Page) -> str:
    """Return the digest of the record that the page shows, which its button sends."""
    (button,) = page.tree.css("button[name=versi]")
    return str(button.attributes["value"])


def batch_of(site: Site) -> str:
    """Return the address of the latest batch of the history."""
    return next(link.target for link in site.page("/mahasiswa/riwayat").links if "/kelompok/" in link.target)


@pytest.fixture(scope="module", params=ENGINES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Visit a service with a record and an import of twenty."""
    with (
        empty_database(request.param, tmp_path_factory.mktemp("routes"), request) as database,
        Service(database, {"METRICS": "1"}) as service,
        service.site() as site,
    ):
        importer = Importer(site)
        importer.save(importer.upload(csv(HEADER, *((f"{n:02}", f"Nama {n}", "École") for n in range(20)))))
        site.add("20/1", "Siti Aminah", "Jalan Kaliurang 5")
        yield site
        assert "Traceback" not in service.stderr()


def test_no_route_is_missing_in_the_lists() -> None:
    """A new route fails this test until it has an entry."""
    assert {path for path, methods in ROUTE_TABLE.items() if "GET" in methods} == PAGES.keys()
    assert {path for path, methods in ROUTE_TABLE.items() if "POST" in methods} == FORMS.keys()


@pytest.mark.parametrize("route", PAGES)
def test_every_get_is_answered(site: Site, route: str) -> None:
    """GET answers 200 with its text, and HEAD the same without a body."""
    for pattern, text in PAGES[route].items():
        target = pattern.format(batch=batch_of(site).rpartition("/")[2])
        got, head = site.get(target), site.send("HEAD", target)
        assert (got.status_code, head.status_code, head.content) == (200, 200, b"")
        assert text in got.content
        assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize("route", FORMS)
def test_every_form_is_accepted(site: Site, route: str) -> None:
    """The form of the page is sent, and what it changed is seen in the list."""
    FORMS[route](site)

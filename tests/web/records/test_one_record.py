"""The pages of one record on both engines: the next addition, another NIM, a deleted record, and a NIM that is taken."""

from engines import EACH_ENGINE
from harness import Page, Site, led_to, page_of

from mahasiswa.record import Mahasiswa

pytestmark = EACH_ENGINE

SITI = Mahasiswa("2300018001", "Siti Aminah", "Sleman")
ODD = "20 3/é#&"
SEGMENT = "20%203%2F%C3%A9%23%26"
TAKEN = (
    "NIM ini sudah terdaftar atas nama Rizki <i>. Periksa kembali, atau buka data dengan NIM ini."
)


def buttons(page: Page) -> list[tuple[str, str]]:
    """Return the text and the address of each button that sends the form of a record."""
    action = page.form("alamat").target
    found = page.css("main form button")
    return [(button.text(), button.attributes.get("formaction") or action) for button in found]


def test_one_addition_leads_to_the_next(site: Site) -> None:
    """The second button leads to an empty form that confirms it, where Enter does it again. The order stays."""
    save = ("Simpan", "/mahasiswa/add")
    save_and_go_on = ("Simpan dan tambah lagi", "/mahasiswa/add?lagi=1")
    assert buttons(site.page("/mahasiswa/add")) == [save, save_and_go_on]
    target = "/mahasiswa/add?lagi=1&nim=2300018001"
    assert led_to(site.post("/mahasiswa/add?lagi=1", data=SITI._asdict())) == target
    page = site.page(target)
    assert page.texts("main [role=status]") == ["Siti Aminah (2300018001) tersimpan."]
    assert set(page.form("alamat").fields.values()) == {""}
    assert buttons(page) == [save_and_go_on, save, save_and_go_on]
    hidden = ["hidden" in button.attributes for button in page.css("main form button")]
    assert hidden == [True, False, False]
    site.delete(SITI[0])
    for query in ("?lagi=1&nim=2300018001", "?lagi=1&nim=%00", "?lagi=2&nim=x"):
        assert not site.page(f"/mahasiswa/add{query}").texts("main [role=status]")


def test_the_next_addition_keeps_any_nim_the_place_and_a_refused_form(site: Site) -> None:
    """The query of the list goes along. A second Enter has the same answer. A duplicate names the owner."""
    site.add(SITI[0], "Rizki <i>", "Solo")
    here = "/mahasiswa/add?cari=siti&lagi=1"
    assert buttons(site.page("/mahasiswa/add?cari=siti"))[1][1] == here
    typed = {"nim": ODD, "nama": "Ani", "alamat": "Solo"}
    for _ in range(2):
        answer = site.post(here, data=typed)
        assert led_to(answer) == f"{here}&nim={SEGMENT}"
        page = site.page(answer.headers["location"])
        assert page.texts("main [role=status]") == [f"Ani ({ODD}) tersimpan."]
        assert page.target("Kembali ke daftar") == "/?cari=siti"
    taken = page_of(site.post(here, data=typed | {"nim": SITI[0]}), 409)
    assert taken.texts("#nim-wrong")[0].strip() == TAKEN
    assert buttons(taken) == buttons(page)
    assert taken.form("alamat").fields == typed | {"nim": SITI[0]}


def test_a_wrong_nim_is_changed_on_one_page(site: Site) -> None:
    """The edit page leads to the form, and the redirect to the row under its new NIM, in its search."""
    site.add(*SITI)
    page = site.page(site.page("/mahasiswa/edit/2300018001").target("Ganti NIM"))
    assert page.texts("h1, h2, h3") == ["Ganti NIM"]
    form = page.form("alamat")
    assert (form.target, form.submit) == ("/mahasiswa/nim/2300018001", "Ganti NIM")
    assert form.values("[readonly]", "name") == ["nama", "alamat"]
    site.edit(SITI[0], "Siti A.", "Klaten")  # someone else, meanwhile
    for _ in range(2):
        assert led_to(site.submit(form, nim=ODD)) == "/"
        assert site.records == [(ODD, "Siti A.", "Klaten")]
    site.add("9", "Budi", "Solo")
    # The NIM 9 is that of somebody else.
    for gone in (site.get(form.target), site.submit(form, nim="9")):
        assert "Data mahasiswa tidak ditemukan." in page_of(gone, 404).html
    form = site.page(f"/mahasiswa/nim/{SEGMENT}?cari=siti").form("alamat")
    assert led_to(site.submit(form)) == f"/?cari=siti#m-{SEGMENT}"  # the same NIM
    assert site.records[0] == (ODD, "Siti A.", "Klaten")


def test_a_refused_nim_keeps_the_record_and_says_why(site: Site) -> None:
    site.add(*SITI)
    site.add("2", "Rizki <i>", "Solo")
    page = page_of(site.post(f"/mahasiswa/nim/{SITI[0]}", data={"nim": "2"}), 409)
    assert TAKEN in page.texts("#nim-wrong")[0]
    assert page.form("alamat").fields["nama"] == "Siti Aminah"
    assert site.nims == ["2", SITI[0]]


def test_an_edit_of_a_record_whose_nim_was_changed_is_saved_under_the_new_nim(site: Site) -> None:
    """The page names the new NIM and offers to save there. A field that the form did not change keeps its new text."""
    site.add(*SITI)
    page = site.page("/mahasiswa/edit/2300018001?cari=siti")
    versi = page.values("button[name=versi]")[0]
    site.post(f"/mahasiswa/nim/{SITI[0]}", data={"nim": ODD})
    site.edit(ODD, SITI[1], "Klaten")
    answer = page_of(site.submit(page.form("alamat"), nama="Siti A.", versi=versi), 409)
    alert = f"NIM data ini sudah diganti menjadi {ODD}, jadi perubahan Anda belum disimpan."
    assert answer.texts("[role=alert]") == [alert]
    form = answer.form("alamat")
    assert form.submit == f"Simpan di {ODD}"
    saved = site.submit(form, versi=versi)
    assert led_to(saved) == f"/?cari=siti#m-{SEGMENT}"
    assert site.records == [(ODD, "Siti A.", "Klaten")]


def test_an_edit_of_a_deleted_record_is_not_lost(site: Site) -> None:
    """Our form gets 409 with the typed texts, and its button adds them as a new record."""
    site.add(*SITI)
    page = site.page("/mahasiswa/edit/2300018001?cari=siti")
    versi = page.values("button[name=versi]")[0]
    site.delete(SITI[0])
    answer = page_of(site.submit(page.form("alamat"), nama="Siti A.", versi=versi), 409)
    alert = "Data ini sudah dihapus orang lain, jadi perubahan Anda belum disimpan."
    assert answer.texts("[role=alert]") == [alert]
    form = answer.form("alamat")
    assert form.submit == "Tambahkan sebagai data baru"
    assert site.records == []
    assert led_to(site.submit(form)) == "/?cari=siti#m-2300018001"
    assert site.records == [(SITI[0], "Siti A.", "Sleman")]

"""Every kind of page the service has, and how a person comes to see it in a browser window."""

from collections.abc import Callable

from browser import Window
from harness import Site
from playwright.sync_api import FilePayload, expect

SITI = ("2207", "Siti Aminah", "Jalan Kaliurang 5, Sleman")
LONG = ("9" * 255, "Wolfeschlegelsteinhausenbergerdorff" * 20, "https://maps.example/" + "x" * 900)
UNKNOWN = "x" * 300


def show_list(window: Window, site: Site) -> None:
    """A list with a usual and a long record."""
    site.add(*SITI)
    site.add(*LONG)
    assert window.open("/") == 200


def show_empty_list(window: Window, site: Site) -> None:
    """A list without a record."""
    for nim in site.list().nims:
        site.delete(nim)
    assert window.open("/") == 200


def show_add(window: Window, _site: Site) -> None:
    """The form for a new record."""
    assert window.open("/mahasiswa/add") == 200


def show_edit(window: Window, site: Site) -> None:
    """The form for a record that is there."""
    site.add(*LONG)
    assert window.open(f"/mahasiswa/edit/{LONG[0]}") == 200


def show_duplicate(window: Window, site: Site) -> None:
    """A form that is refused because its nim exists: 409."""
    site.add(*LONG)
    window.open("/mahasiswa/add")
    window.type(nim=LONG[0], nama=LONG[1], alamat=LONG[2])
    window.save()
    expect(window.page.locator("[aria-invalid]")).to_have_count(1)


def show_incomplete(window: Window, _site: Site) -> None:
    """A form that is refused for the field it lacks: 400."""
    window.open("/mahasiswa/add")
    send_without(window, "alamat")


def show_unreadable(window: Window, _site: Site) -> None:
    """A request that cannot be read: 400."""
    assert window.open("/mahasiswa/edit/%zz") == 400


def show_no_record(window: Window, _site: Site) -> None:
    """The edit page of a record that is not there: 404."""
    assert window.open(f"/mahasiswa/edit/{UNKNOWN}") == 404


def show_no_page(window: Window, _site: Site) -> None:
    """An address that is not there: 404."""
    assert window.open(f"/{UNKNOWN}") == 404


def show_wrong_method(window: Window, _site: Site) -> None:
    """An address that is only for forms to send to: 405."""
    assert window.open(f"/mahasiswa/delete/{UNKNOWN}") == 405


def show_found(window: Window, site: Site) -> None:
    """A page of what was found, with pages before it and after it, sorted by name."""
    site.add(*LONG)
    for number in range(25):
        site.add(f"{number:04}", f"Nama {number}", "Jalan Kaliurang 5, Sleman")
    assert window.open("/?cari=a&urut=nama&arah=turun&per=10&halaman=2") == 200
    expect(window.page.get_by_role("link", name="Berikutnya")).to_be_visible()


def show_no_match(window: Window, site: Site) -> None:
    """A search without a match, for a long text."""
    site.add(*SITI)
    assert window.open(f"/?cari=tidak+{UNKNOWN}") == 200
    expect(window.rows).to_have_count(0)


def show_import(window: Window, _site: Site) -> None:
    """The form for a spreadsheet."""
    assert window.open("/mahasiswa/impor") == 200


def show_import_refused(window: Window, _site: Site) -> None:
    """The same form, with what is wrong with the file: 400."""
    choose(window, "Nama;Alamat\nSiti;Sleman\n")
    expect(window.page.get_by_role("alert")).to_be_visible()


def show_preview(window: Window, site: Site) -> None:
    """A preview with rows of every kind, all of it unfolded."""
    site.add(*SITI)
    site.add(*LONG)
    site.add("3", "Citra", "Klaten")
    choose(
        window,
        table(
            SITI,
            (LONG[0], LONG[1], LONG[2] + "y"),
            ("3", "", "Bantul"),
            ("'004", "Dewi", LONG[2]),
            ("1E+5", *LONG[1:]),
            ("3", "Citra", "Klaten"),
        ),
    )
    for summary in window.page.locator("summary").all():
        summary.click()


def show_preview_of_nothing(window: Window, site: Site) -> None:
    """A preview that has nothing to save."""
    site.add(*SITI)
    choose(window, table(SITI))
    expect(window.page.get_by_text("Pilih berkas lain")).to_be_visible()


def show_preview_again(window: Window, site: Site) -> None:
    """A preview that comes again, for someone has changed a record since: 409."""
    site.add(*LONG)
    choose(window, table((LONG[0], "Budi", "Bantul"), ("3", "Citra", "Klaten")))
    site.edit(LONG[0], LONG[1], "Klaten")
    with window.leaving():
        window.page.get_by_role("button", name="Perbarui").click()
    expect(window.page.get_by_role("alert")).to_be_visible()


def show_changed(window: Window, site: Site) -> None:
    """The edit form of a record that someone has changed since it was opened: 409."""
    site.add(*LONG)
    window.open(f"/mahasiswa/edit/{LONG[0]}")
    window.type(nama=LONG[1] + "s")
    site.edit(LONG[0], LONG[1], LONG[2] + "y")
    window.save()
    expect(window.page.get_by_role("link", name="Gunakan data terbaru")).to_be_visible()


def show_export_refused(window: Window, site: Site) -> None:
    """A workbook that cannot be made, for Excel holds no such text: 422."""
    site.add("40000", "x" * 40_000, "Klaten")
    assert window.open("/mahasiswa/ekspor.xlsx") == 422


def choose(window: Window, text: str) -> None:
    """Choose a CSV file on the form for spreadsheets, and go on to its preview."""
    window.open("/mahasiswa/impor")
    file: FilePayload = {"name": "daftar.csv", "mimeType": "text/csv", "buffer": text.encode()}
    window.page.locator("input[type=file]").set_input_files([file])
    with window.leaving():
        window.page.get_by_role("button", name="Pratinjau").click()


def table(*records: tuple[str, str, str]) -> str:
    """Return records as CSV."""
    return "".join(";".join(record) + "\n" for record in [("NIM", "Nama", "Alamat"), *records])


def send_without(window: Window, *fields: str) -> None:
    """Send the form of the page without some of its fields, as a page does that was damaged on its way."""
    typed = dict(zip(("nim", "nama", "alamat"), SITI, strict=True))
    for field in fields:
        window.page.locator(f"input[name={field}]").evaluate("field => field.remove()")
        del typed[field]
    window.type(**typed)
    window.save()
    expect(window.page.locator("[aria-invalid]")).to_have_count(len(fields))


PAGES: dict[str, Callable[[Window, Site], None]] = {
    show.__name__.removeprefix("show_"): show
    for show in (
        show_list,
        show_empty_list,
        show_add,
        show_edit,
        show_duplicate,
        show_incomplete,
        show_unreadable,
        show_no_record,
        show_no_page,
        show_wrong_method,
        show_found,
        show_no_match,
        show_import,
        show_import_refused,
        show_preview,
        show_preview_of_nothing,
        show_preview_again,
        show_changed,
        show_export_refused,
    )
}

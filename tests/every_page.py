"""Every kind of page the service has, and how a person comes to see it in a browser window."""

from collections.abc import Callable

from browser import Window
from harness import Site
from playwright.sync_api import expect

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
    )
}

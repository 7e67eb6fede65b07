"""Imports in a real browser, by keyboard, on a phone and on a slow network. test_panduan.py imports and downloads, too."""

import re
import time

import pytest
from browser import PHONE, OpenWindow, Window
from harness import Site
from playwright.sync_api import FilePayload, expect
from spreadsheets import HEADER, KEPT, Database, csv, students


def choose(window: Window, data: bytes) -> None:
    window.open("/mahasiswa/impor")
    file: FilePayload = {"name": "daftar", "mimeType": "", "buffer": data}
    window.page.get_by_label("Berkas").set_input_files([file])
    press(window, "Pratinjau")


def press(window: Window, name: str) -> None:
    with window.leaving():
        window.page.get_by_role("button", name=name).first.click()


def enter(window: Window) -> None:
    with window.leaving():
        window.page.keyboard.press("Enter")


def counts(window: Window) -> list[str]:
    return window.page.locator(".summary dd").all_inner_texts()


def test_a_confirmation_carries_every_text_unchanged(window: Window) -> None:
    """Only a line break becomes a comma, because a form cannot hold one."""
    texts = ("007", "A\r\nB\rC\nD\tE", " \"'<>&amp;+%20 漢字 👩🏽‍🎓 ")
    cells = "\t".join('"' + text.replace('"', '""') + '"' for text in texts).encode()
    choose(window, b"NIM\tNama\tAlamat\r\n" + cells + b"\r\n")
    press(window, "Simpan 1 mahasiswa baru")
    assert window.cells() == [[texts[0], "A, B, C, D\tE", texts[2]]]


def test_an_import_form_without_a_file_is_announced_to_assistive_technology(window: Window) -> None:
    """The message is an alert, has the focus, and describes the file field."""
    window.open("/mahasiswa/impor")
    press(window, "Pratinjau")
    words = "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau."
    expect(window.page.get_by_role("alert")).to_have_text(words)
    expect(window.page.get_by_role("alert")).to_be_focused()
    expect(window.page.get_by_label("Berkas")).to_have_accessible_description(re.compile(re.escape(words)))


def test_a_browser_shows_the_page_for_a_file_that_is_too_large(window: Window) -> None:
    """It does not show a lost connection instead."""
    choose(window, csv(HEADER) + b"x" * (20 << 20))
    expect(window.page.get_by_text("Ukuran berkas melebihi 16 MB")).to_be_visible()


def test_search_sorting_paging_and_import_work_by_keyboard(open_window: OpenWindow, site: Site) -> None:
    """They work while the CDN hangs. Enter in a field of a preview checks again, and saves nothing."""
    for number in range(12):
        site.add(f"{number:02}", f"Nama {number}", "Solo")
    window = open_window("hangs")
    page = window.page
    window.open("/?per=10")
    page.get_by_role("searchbox").focus()
    page.keyboard.type("nama")
    enter(window)
    assert window.requests[-1] == "GET /?cari=nama&di=&per=10"
    for name in ("Berikutnya", "Alamat", "Impor"):
        page.get_by_role("link", name=name, exact=True).first.focus()
        enter(window)
    page.get_by_label("Berkas").focus()
    page.keyboard.press("Tab")  # past the template
    page.keyboard.press("Tab")
    page.keyboard.insert_text("230077\tAni\tSolo\n\tEko\tSleman")
    page.keyboard.press("Tab")
    enter(window)
    page.get_by_label("NIM, baris 2").fill("230078")
    enter(window)
    assert counts(window) == ["2", "0", "0", "0", "0", "0"]
    assert len(site.list().rows) == 12
    page.get_by_role("button", name="Simpan 2 mahasiswa baru").focus()
    enter(window)
    expect(window.rows).to_have_count(14)


def test_a_phone_shows_the_links_that_sort_the_list(open_window: OpenWindow, other: Database) -> None:
    """There the list has no header row. The links are at least 24 pixels high."""
    other.fill(KEPT)
    window = open_window(size=PHONE, is_mobile=True, has_touch=True)
    window.open("/?cari=a&arah=turun")
    for name in ("NIM", "Alamat", "Nama"):
        link = window.page.get_by_role("link", name=name, exact=True)
        expect(link).to_be_in_viewport(ratio=1)
        box = link.bounding_box()
        assert box is not None
        assert box["height"] >= 24
    with window.leaving():
        link.tap()
    assert [cells[1] for cells in window.cells()] == sorted(nama for _, nama, _ in KEPT)


def throttle(window: Window, kilobits_per_second: int) -> None:
    """Limit the speed of the network in both directions. A round trip takes 0.4 s, as on a busy cell."""
    session = window.page.context.new_cdp_session(window.page)
    session.send("Network.enable")
    bytes_per_second = kilobits_per_second * 1000 / 8
    speeds = {"downloadThroughput": bytes_per_second, "uploadThroughput": bytes_per_second}
    session.send("Network.emulateNetworkConditions", {"offline": False, "latency": 400, **speeds})


@pytest.mark.torture
def test_3000_rows_are_previewed_and_confirmed_on_a_slow_network(open_window: OpenWindow, site: Site) -> None:
    """At 400 kbit/s, a phone shows ten rows two seconds after the answer began. At 64 kbit/s, it can still confirm."""
    window = open_window(size=PHONE, is_mobile=True, has_touch=True)
    file: FilePayload = {"name": "a.csv", "mimeType": "", "buffer": csv(HEADER, *students(3000))}
    seconds = []
    for _ in range(3):  # other programs may disturb some of them
        window.open("/mahasiswa/impor")
        throttle(window, 400)
        window.page.get_by_label("Berkas").set_input_files([file])
        with window.page.expect_response("**/mahasiswa/impor") as answer:
            window.page.get_by_role("button", name="Lihat pratinjau").click(no_wait_after=True)
        began = time.monotonic()
        expect(window.page.locator("#baru tbody tr")).to_have_count(10)
        seconds.append(time.monotonic() - began)
        if seconds[-1] < 2:
            break
    assert min(seconds) < 2
    answer.value.finished()
    assert answer.value.request.sizes()["responseBodySize"] <= 60_000
    throttle(window, 64)
    with window.page.expect_response("**/mahasiswa/impor/simpan", timeout=60_000) as confirmed:
        window.page.get_by_role("button", name="Simpan 3.000 mahasiswa baru").click(no_wait_after=True)
    assert confirmed.value.status == 302
    assert confirmed.value.request.sizes()["requestBodySize"] < 40_000
    assert len(site.list().rows) == 3000

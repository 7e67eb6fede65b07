"""Two people edit the same record, on both engines. Changes of different fields are both kept; otherwise there is a conflict.

A client that sends no version gets exactly the specification.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Barrier

import httpx
import pytest
from browser import OpenWindow, Window
from engines import empty_list, run_elsewhere, service_on_each_engine
from harness import Page, Service, Site
from hypothesis import example, given, settings
from hypothesis import strategies as st
from playwright.sync_api import expect

# The fixtures, which pytest finds by these names.
__all__ = ["empty_list", "service_on_each_engine"]

CHANGED = "Data ini sudah diubah orang lain sejak Anda membukanya. Pilih data mana yang dipakai."
NIM = "20/1"
PATH = "/mahasiswa/edit/20%2F1"
TEXTS = ["Ani\nBudi", "\r\nAni\r\n", "\tAni\t", "  Ani  ", "<b>&amp;\"'</b>", "👩🏽‍🎓 e\u0301 \u00e9", ""]


@pytest.fixture
def siti(site: Site) -> Site:
    """Visit a list with the one record Siti."""
    site.add(NIM, "Siti", "Sleman")
    return site


def version(page: Page) -> str:
    """Return the version in the button of the edit form."""
    (button,) = page.tree.css("form button[type=submit]")
    assert button.attributes["name"] == "versi"
    return str(button.attributes["value"])


def save(site: Site, versi: str, nama: str, alamat: str) -> httpx.Response:
    """Send the edit form with a version."""
    return site.post(PATH, {"nim": NIM, "nama": nama, "alamat": alamat, "versi": versi})


def compared(page: Page) -> dict[str, dict[str, str]]:
    """Return the table of the conflict page: for each label the texts by the heading of their column."""
    _, *columns = [cell.text() for cell in page.tree.css("table.compare thead th")]
    return {
        row.css("th")[0].text(): dict(zip(columns, [cell.text() for cell in row.css("td")], strict=True))
        for row in page.tree.css("table.compare tbody tr")
    }


def newest_and_typed(answer: httpx.Response) -> dict[str, tuple[str, str]]:
    """Return for each label on the page of a conflict the stored text and the typed text."""
    assert answer.status_code == 409
    table = compared(Page(answer.text, PATH))
    return {label: (texts["Data terbaru"], texts["Isian Anda"]) for label, texts in table.items()}


def as_sent(text: str) -> str:
    """Return a text as a browser sends it from a single-line input."""
    return re.sub("[\r\n]", "", text)


def stored(site: Site) -> tuple[str, ...]:
    """Return the only record."""
    (row,) = site.list().rows
    return row[1:]


# ---- the form


def test_the_edit_form_has_three_inputs_and_a_version_in_its_button(siti: Site) -> None:
    """The edit form has no hidden input (specification 4.3.2); only its button holds the version of the record."""
    page = siti.page(PATH)
    (form,) = page.forms
    assert [(field.name, field.type) for field in form.inputs] == [(name, "text") for name in ("nim", "nama", "alamat")]
    assert re.fullmatch("[A-Za-z0-9_-]{22}", version(page))
    assert not siti.page("/mahasiswa/add").tree.css("button[name]")


def test_the_version_depends_only_on_the_texts_of_the_record(siti: Site) -> None:
    """Equal texts have equal versions. Different texts have different versions."""
    first = version(siti.page(PATH))
    siti.edit(NIM, "Siti A.", "Sleman")
    second = version(siti.page(PATH))
    siti.edit(NIM, "Siti", "Sleman")
    assert version(siti.page(PATH)) == first != second
    # The same characters, divided differently between the two fields, have different versions.
    seen = set()
    for nama, alamat in [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("a:1", "c"), ("a", "1:c")]:
        siti.edit(NIM, nama, alamat)
        seen.add(version(siti.page(PATH)))
    assert len(seen) == 6


def test_a_text_that_the_form_changes_is_stored_as_it_was_sent(siti: Site) -> None:
    """So is every text of a client that sends no version, with line breaks or without (specification 4.5.1)."""
    for versi in (True, False):
        siti.edit(NIM, "Siti", "Jl. Merdeka 1\nRT 03")
        new = "Jl. Merdeka 1, RT 03" if versi else "Jl. Merdeka 1RT 03"
        assert save(siti, version(siti.page(PATH)) if versi else "", "Siti", new).status_code == 302
        assert stored(siti) == (NIM, "Siti", new)


@given(st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=30, deadline=None)
@example("", "Ani\nBudi")
@example("\r", "\r\nAni\r\n")
@example("\n", "\tAni\t")
def test_a_text_that_a_browser_cannot_send_unchanged_stays_stored(service: Service, nama: str, alamat: str) -> None:
    """A browser removes line breaks from a field; a form that changes only the other field leaves them stored."""
    nama, alamat = nama.replace("\0", ""), alamat.replace("\0", "")
    with service.site() as site:
        site.add(NIM, "", "")  # refused but for the first time
        site.edit(NIM, nama, alamat)
        assert save(site, version(site.page(PATH)), "Siti A.", as_sent(alamat)).status_code == 302
        assert stored(site) == (NIM, "Siti A.", alamat)


# ---- changes of others since the form was opened


@pytest.mark.parametrize(
    ("theirs", "sent", "merged"),
    [
        ([], ("Siti A.", "Klaten"), ("Siti A.", "Klaten")),
        ([("Siti", "Klaten")], ("Siti Aminah", "Sleman"), ("Siti Aminah", "Klaten")),
        ([("Siti Aminah", "Klaten")], ("Siti", "Sleman"), ("Siti Aminah", "Klaten")),
        ([("Siti", "Klaten")], ("Siti Aminah", "Klaten"), ("Siti Aminah", "Klaten")),
        ([("Siti A.", "Klaten")], ("Siti A.", "Klaten"), ("Siti A.", "Klaten")),
        ([("Lain", "Lain"), ("Siti", "Sleman")], ("Saya", "Bantul"), ("Saya", "Bantul")),
        ([("Siti A.\n", "Sleman")], ("Siti A.", "Solo"), ("Siti A.\n", "Solo")),
        ([("Siti\n", "Sleman")], ("Siti", "Sleman"), ("Siti\n", "Sleman")),
        ([], ("Siti\nAminah", "Sleman"), ("Siti\nAminah", "Sleman")),
    ],
    ids=[
        "none",
        "of the other field",
        "but the form has none",
        "partly the same",
        "the same, as a double click",
        "undone",
        "the same without its line break",
        "only a line break",
        "none, and the form sends a line break",
    ],
)
def test_changes_that_do_not_contradict_each_other_are_all_kept(
    siti: Site, theirs: list[tuple[str, str]], sent: tuple[str, str], merged: tuple[str, str]
) -> None:
    """A field that only one person changed gets that text, and the answer is the redirect."""
    versi = version(siti.page(PATH))
    for texts in theirs:
        siti.edit(NIM, *texts)
    answer = save(siti, versi, *sent)
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
    assert stored(siti) == (NIM, *merged)


@pytest.mark.parametrize("alamat", ["Jl. Merdeka 1\nRT 03", "\r\nJl. Merdeka 1"])
def test_a_form_that_changes_the_name_keeps_a_newer_address(siti: Site, service: Service, alamat: str) -> None:
    """A newer text stays, although the form sends the older one without the line breaks that a browser removes."""
    siti.edit(NIM, "Siti", alamat)
    versi = version(siti.page(PATH))
    run_elsewhere(service.database, "UPDATE mahasiswa SET alamat = 'Klaten'")
    assert save(siti, versi, "Siti Aminah", as_sent(alamat)).status_code == 302
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


@pytest.mark.parametrize(
    ("theirs", "sent", "shown"),
    [
        (("Siti Aminah", "Sleman"), ("Siti Saya", "Sleman"), "Nama"),
        # Saving offers the newest text of a field that the form did not change.
        (("Siti Aminah", "Klaten"), ("Siti Saya", "Sleman"), "Nama"),
        (("Siti Aminah", "Klaten"), ("Siti Saya", "Bantul"), "Nama Alamat"),
        # A change of the form that is no conflict is shown too, because taking the newest texts would drop it.
        (("Siti Aminah", "Sleman"), ("Siti Saya", "Bantul & <Sleman>"), "Nama Alamat"),
        (("S.\nAminah", "<b>Klaten</b>\r\n"), ("Siti Saya", "Bantul"), "Nama Alamat"),
    ],
)
def test_a_conflict_shows_every_text_that_saving_would_change_and_saves_nothing(
    siti: Site, theirs: tuple[str, str], sent: tuple[str, str], shown: str
) -> None:
    """It is 409 with the old, the newest and the typed texts, the typed ones in the form, and both ways to continue."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Siti A.", "Sleman")
    siti.edit(NIM, *theirs)
    answer = save(siti, versi, *sent)
    assert answer.status_code == 409
    page = Page(answer.text, siti.origin + PATH)
    assert page.headings == ["Edit Data Mahasiswa"]
    assert [alert.text() for alert in page.tree.css("[role=alert]")] == [CHANGED]
    rows = zip(("Nama", "Alamat"), ("Siti", "Sleman"), theirs, sent, strict=True)
    columns = ("Semula", "Data terbaru", "Isian Anda")
    assert compared(page) == {label: dict(zip(columns, texts, strict=True)) for label, *texts in rows if label in shown}
    (form,) = page.forms
    typed = (sent[0], sent[1] if "Alamat" in shown else theirs[1])
    assert form.values == {"nim": NIM, "nama": typed[0], "alamat": typed[1]}
    assert (form.target, form.submit) == (PATH, "Simpan isian saya")
    (link,) = [link for link in page.links if link.text == "Gunakan data terbaru"]
    assert link.target == PATH
    assert stored(siti) == (NIM, *theirs)
    # The button of this page has the version that the page shows, so sending it again overwrites that version.
    assert version(page) == version(siti.page(PATH))
    assert save(siti, version(page), *typed).status_code == 302
    assert stored(siti) == (NIM, *typed)


def test_a_conflict_without_a_history_shows_two_texts(database: str) -> None:
    """With HISTORY_DAYS=0 the column Semula is absent."""
    with Service(database, {"HISTORY_DAYS": "0"}) as service, service.site() as site:
        site.add(NIM, "Siti", "Sleman")
        versi = version(site.page(PATH))
        site.edit(NIM, "Siti Aminah", "Sleman")
        page = Page(save(site, versi, "Siti Saya", "Sleman").text, site.origin + PATH)
    assert compared(page) == {"Nama": {"Data terbaru": "Siti Aminah", "Isian Anda": "Siti Saya"}}


def test_a_second_change_by_another_program_is_a_second_conflict(siti: Site, service: Service) -> None:
    """If the record changes again before the conflict is answered, another conflict shows the newest texts."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Orang kedua", "Sleman")
    second = Page(save(siti, versi, "Saya", "Bantul").text, siti.origin + PATH)
    run_elsewhere(service.database, "UPDATE mahasiswa SET nama = 'Orang ketiga', alamat = 'Klaten'")
    answer = save(siti, version(second), "Saya", "Bantul")
    assert newest_and_typed(answer) == {"Nama": ("Orang ketiga", "Saya"), "Alamat": ("Klaten", "Bantul")}
    assert stored(siti) == (NIM, "Orang ketiga", "Klaten")


def test_one_of_the_concurrent_edits_of_each_field_is_saved(siti: Site, service: Service) -> None:
    """The version is compared inside the write's transaction, and no edit takes back one of the other field."""
    versi = version(siti.page(PATH))
    names = [{"nama": f"Orang {n}", "alamat": "Sleman"} for n in range(6)]
    addresses = [{"nama": "Siti", "alamat": f"Kota {n}"} for n in range(6)]
    forms = [{**form, "versi": versi} for form in chain(*zip(names, addresses, strict=True))]
    answers = send_together(service, forms)
    assert sorted(answers.values()) == [302] * 2 + [409] * 10
    (nama,) = [nama for (nama, alamat), status in answers.items() if status == 302 and alamat == "Sleman"]
    (alamat,) = [alamat for (nama, alamat), status in answers.items() if status == 302 and nama == "Siti"]
    assert stored(siti) == (NIM, nama, alamat)


def send_together(service: Service, forms: list[dict[str, str]]) -> dict[tuple[str, str], int]:
    """Send forms at the same time; return the status for each pair of nama and alamat."""
    barrier = Barrier(len(forms))
    answers: dict[tuple[str, str], int] = {}

    def send(form: dict[str, str]) -> None:
        with service.site() as site:
            site.get("/mahasiswa/add")  # opens the connection before the barrier
            barrier.wait(10)
            answers[form["nama"], form["alamat"]] = site.post(PATH, form).status_code

    with ThreadPoolExecutor(len(forms)) as threads:
        list(threads.map(send, forms))
    return answers


# ---- no conflict


def test_an_edit_without_a_version_is_always_saved(siti: Site) -> None:
    """An edit without a version, or with an empty one, is saved and redirected (specification 4.5)."""
    siti.page(PATH)
    siti.edit(NIM, "Orang lain", "Klaten")
    answer = siti.post(PATH, {"nim": NIM, "nama": "Saya", "alamat": "Bantul"})
    assert (answer.status_code, answer.headers["location"], answer.content) == (302, "/", b"")
    assert stored(siti) == (NIM, "Saya", "Bantul")
    assert siti.post(PATH, {"nama": "Saya", "alamat": "Solo", "versi": ""}).status_code == 302
    assert stored(siti) == (NIM, "Saya", "Solo")


def test_an_edit_without_a_version_of_a_deleted_record_redirects(siti: Site) -> None:
    """An edit of a deleted record is answered with 302 (specification 4.5.2) and does not create it again."""
    siti.delete(NIM)
    for versi in ({}, {"versi": ""}):
        answer = siti.post(PATH, {"nama": "Saya", "alamat": "Bantul", **versi})
        assert (answer.status_code, answer.headers["location"]) == (302, "/")
    assert siti.list().rows == []


@pytest.mark.parametrize("versi", ["x", "0" * 22, "' OR 1=1 --", "é" * 22, "x" * 10_000])
def test_an_edit_with_an_invalid_version_is_a_conflict(siti: Site, versi: str) -> None:
    """A text that is no version matches no text of the record, so each field that differs is a conflict. So is half a version."""
    assert newest_and_typed(save(siti, versi, "Saya", "Sleman")) == {"Nama": ("Siti", "Saya")}
    for half in re.findall("." * 11, version(siti.page(PATH))):
        assert save(siti, half, "Saya", "Bantul").status_code == 409
    assert stored(siti) == (NIM, "Siti", "Sleman")


def test_an_edit_with_a_missing_field_and_an_old_version_is_refused(siti: Site) -> None:
    """A form that lacks a field and has an old version is refused, and the page never shows the word None."""
    versi = version(siti.page(PATH))
    siti.edit(NIM, "Orang lain", "Klaten")
    answer = siti.post(PATH, {"nama": "Saya", "versi": versi})
    assert answer.status_code in {400, 409}
    assert ">None<" not in answer.text
    assert stored(siti) == (NIM, "Orang lain", "Klaten")


def test_a_refused_edit_keeps_its_version(siti: Site) -> None:
    """A form that is refused for another reason keeps its version, so a later conflict is still noticed."""
    versi = version(siti.page(PATH))
    answer = siti.post(PATH, {"nama": "Saya", "alamat": "a\0b", "versi": versi})
    assert answer.status_code == 400
    assert version(Page(answer.text, PATH)) == versi
    siti.edit(NIM, "Orang lain", "Klaten")
    assert save(siti, version(Page(answer.text, PATH)), "Saya", "Bantul").status_code == 409


# ---- in a browser


def cause_a_conflict(open_window: OpenWindow, site: Site) -> Window:
    """Open the form and type into it, change the record by another client, then press Simpan."""
    window = open_window()
    assert window.open(PATH) == 200
    window.type(nama="Siti Saya", alamat="Bantul")
    site.edit(NIM, "Siti Aminah", "Klaten")
    window.save()
    expect(window.page.get_by_role("alert")).to_have_text(CHANGED)
    return window


def test_a_person_decides_a_conflict(open_window: OpenWindow, siti: Site) -> None:
    """“Gunakan data terbaru” opens the form with the stored texts, and “Simpan isian saya” saves those in the form."""
    window = cause_a_conflict(open_window, siti)
    cells = window.page.get_by_role("cell").all_inner_texts()
    assert cells == ["Siti", "Siti Aminah", "Siti Saya", "Sleman", "Klaten", "Bantul"]
    expect(window.page.get_by_label("Nama")).to_have_value("Siti Saya")
    with window.leaving():
        window.page.get_by_role("link", name="Gunakan data terbaru").click()
    expect(window.page.get_by_label("Nama")).to_have_value("Siti Aminah")
    expect(window.page.get_by_role("alert")).to_have_count(0)
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")
    window.type(alamat="Klaten Utara")
    window.save()
    assert window.cells() == [[NIM, "Siti Aminah", "Klaten Utara"]]

    siti.edit(NIM, "Siti", "Sleman")
    window = cause_a_conflict(open_window, siti)
    window.type(alamat="Bantul Kota")
    with window.leaving():
        window.page.get_by_role("button", name="Simpan isian saya").click()
    assert window.cells() == [[NIM, "Siti Saya", "Bantul Kota"]]
    assert window.posts == [PATH, PATH]


def test_an_edit_form_sent_by_enter_has_its_version(open_window: OpenWindow, siti: Site) -> None:
    """A form that is sent with the Enter key includes the version, so a conflict is noticed."""
    window = open_window()
    window.open(PATH)
    window.type(nama="Siti Saya")
    siti.edit(NIM, "Siti Aminah", "Klaten")
    with window.leaving():
        window.page.get_by_label("Nama").press("Enter")
    expect(window.page.get_by_role("alert")).to_have_text(CHANGED)
    assert stored(siti) == (NIM, "Siti Aminah", "Klaten")


def test_a_double_click_on_save_stores_an_addition_once_and_says_so(open_window: OpenWindow, siti: Site) -> None:
    """The browser shows the answer to the second request: either that the record is stored, or the list."""
    window = open_window()
    window.open("/mahasiswa/add")
    window.type(nim="2", nama="Ani", alamat="Klaten")
    window.page.get_by_role("button", name="Simpan", exact=True).dblclick()
    said = window.page.get_by_text("Data ini sudah tersimpan.")
    expect(said.or_(window.page.get_by_role("heading", name="List Data Mahasiswa"))).to_be_visible()
    assert [row[1:] for row in siti.list().rows] == [("2", "Ani", "Klaten"), (NIM, "Siti", "Sleman")]


def test_a_browser_saves_another_field_and_leaves_unusual_texts_as_they_are(
    open_window: OpenWindow, siti: Site
) -> None:
    """A browser removes line breaks from a field; a change of another field leaves them in the stored text."""
    window = open_window()
    for alamat in TEXTS:
        siti.edit(NIM, "Siti", alamat)
        window.open(PATH)
        if not alamat:
            window.type(alamat="Sleman")
        window.type(nama="Siti A.")
        window.save()
        assert stored(siti) == (NIM, "Siti A.", alamat or "Sleman")

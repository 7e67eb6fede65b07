"""Unusual but real texts: each can be added, listed, edited by its link and deleted by its button."""

from collections.abc import Iterator

import pytest
from harness import Site
from spec.records import Records

pytestmark = pytest.mark.beyond

NIMS = {
    "slashes": "20/456839/TK/50663",
    "letter and digits": "J0409241025",
    "leading zeros": "0000001234",
    "spaces inside": "12 34  56",
    "space before": " 1234",
    "space after": "1234 ",
    "only spaces": "  ",
    "no-break spaces": "\u00a012\u00a034\u3000",
    "+": "+",
    "%": "%",
    "&": "&",
    ";": ";",
    "?": "?",
    "#": "#",
    '"': '"',
    "'": "'",
    "<": "<",
    ">": ">",
    "backslash": "\\",
    "=": "=",
    ":": ":",
    "@": "@",
    "all marks": "+ % & ; ? # \" ' < > \\ = : @",
    "other marks": "!$()*,-._`{|}~[]^",
    "plus between": "1+1=2",
    "percent-encoded slash": "a%2Fb",
    "percent-encoded dots": "%2e%2E",
    "broken percent": "100%zz%",
    "dots between": "a/../b",
    "dots and a slash": "../b",
    "three dots": "...",
    "two slashes first": "//a",
    "slash last": "a/",
    "a slash": "/",
    "slashes only": "///",
    "word of a route": "add",
    "route": "/mahasiswa/delete/add",
    "entity": "&amp;&#65;&lt",
    "markup": "</td><script>alert(1)</script>",
    "emoji": "👩🏽‍🎓🇮🇩",
    "Arabic digits": "٠١٢٣٤٥",
    "right-to-left marks": "\u200f12\u202e34\u202c\u200e",
    "Javanese": "ꦗꦮ",
    "composed": "Zo\u00eb",
    "decomposed": "Zoe\u0308",
    "template": "{{7*7}}",
    "other templates": "${7*7}<%= 7*7 %>{% raw %}",
    "format": "%s",
    "other formats": "%(nim)s{0}{nim}\\u0041\\0",
    "SQL": "' OR '1'='1",
    "wildcards": "%_*",
    "byte order mark": "\ufeff1234",
    "255 characters": "9" * 255,
    "255 slashes": "/" * 255,
    "255 emoji": "🎓" * 255,
    "empty": "",
}

# A browser's text input removes line ends, so these texts come from a textarea, a program or an import.
LINES = {
    "tabs": "\tJalan\tKaliurang\t",
    "line feeds": "\nJalan\n\nKaliurang\n",
    "carriage returns": "\rJalan\r\rKaliurang\r",
    "both": "\r\nJalan\r\n\r\nKaliurang\n\r",
    "line separators": "Jalan\u0085Kaliurang\u2028Solo\u2029",
    "control characters": "\x01\x0b\x0c\x1f\x7f",
}


def cases(*groups: dict[str, str]) -> pytest.MarkDecorator:
    """Run a test once for each text."""
    texts = {name: text for group in groups for name, text in group.items()}
    return pytest.mark.parametrize("text", texts.values(), ids=texts)


@pytest.fixture(autouse=True)
def other_records(site: Site, records: Records) -> Iterator[None]:
    """Store two other records during each test, which it must not change."""
    others = {records.add("Siti", "Solo"), records.add("Budi", "Bantul")}
    yield
    assert others <= {row[1:] for row in site.list().rows}


@cases(NIMS)
def test_a_record_with_any_nim_is_added_edited_and_deleted(site: Site, records: Records, text: str) -> None:
    """A record with this nim is added, listed, opened by its link, edited and deleted, and its nim never changes."""
    if text in site.list().nims:
        pytest.skip("the list has a record with this nim that this test may not change")
    records.forget(text)
    assert site.add(text, "Ani", "Magelang").status_code == 302
    row = site.list().row(text)
    assert row.cells[1:4] == (text, "Ani", "Magelang")

    form = site.page(row.links[0].target).record_form
    assert [field.value for field in form.text_inputs] == [text, "Ani", "Magelang"]
    assert site.submit(form, nama="Ani Baru", alamat="Klaten").status_code == 302
    row = site.list().row(text)
    assert row.cells[1:4] == (text, "Ani Baru", "Klaten")

    assert site.submit(row.forms[0]).status_code == 302
    assert text not in site.list().nims


@cases(NIMS, LINES)
def test_nama_and_alamat_are_kept_to_the_byte(site: Site, records: Records, text: str) -> None:
    """This text as nama and alamat is listed, shown in the edit form and stored again by it without a change."""
    nim = records.new_nim()
    site.add(nim, text, text)
    row = site.list().row(nim)
    assert row.cells[1:4] == (nim, text, text)

    form = site.page(row.links[0].target).record_form
    assert [field.value for field in form.text_inputs] == [nim, text, text]
    assert site.submit(form).status_code == 302
    assert site.list().row(nim).cells[1:4] == (nim, text, text)


def test_all_nims_together_keep_their_own_links(site: Site, records: Records) -> None:
    """In a list of all these nims, the link and the button of each row belong to its own record."""
    if set(NIMS.values()) & set(site.list().nims):
        pytest.skip("the list has a record with one of these nims that this test may not change")
    for nim in NIMS.values():
        assert site.add(records.forget(nim), nim, "Solo").status_code == 302
    page = site.list()
    for nim in NIMS.values():
        row = page.row(nim)
        assert site.page(row.links[0].target).record_form.text_inputs[0].value == nim
        assert site.submit(row.forms[0]).status_code == 302
        assert site.get(row.links[0].target).status_code == 404
    assert not set(NIMS.values()) & set(site.list().nims)

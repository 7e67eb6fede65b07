"""Texts on pages: a browser shows each text exactly. No text changes the structure of a page, or a line of the log."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from harness import Page, Service, Site, assert_log_is_sound, led_to
from hostile import HOSTILE
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mahasiswa.record import Mahasiswa

# Every character that can be stored and shown: all but NUL and the surrogates.
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9), max_size=4).map("".join),
)  # fmt: skip
# Rows of plain texts are rendered by a faster path.
NIMS = (
    (st.text("09AZaz-_.~%/ 2F", max_size=8) | TEXTS)
    .map(lambda text: text[:255])
    .filter({".", ".."}.isdisjoint)
)

attacks = settings(max_examples=40)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service. After all tests of the module its log must be sound."""
    with Service(tmp_path_factory.mktemp("pages") / "a.db") as service:
        yield service
        text = service.stderr()
        assert_log_is_sound(text)
        assert len(service.stdout().splitlines()) == 3


def structure(html: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return every element of a page in order, with its attributes' names. The address of a link must be a path."""
    assert "<!--" not in html
    elements = []
    for node in Page(html, "").css("*"):
        for name in ("action", "formaction", *(["href"] if node.tag == "a" else [])):
            # A path or an id leads to the same site. Two slashes at the start would lead to another one.
            assert re.match("/(?!/)|#[a-z]+$", node.attributes.get(name) or "/"), (node.tag, name)
        elements.append((node.tag or "", tuple(node.attributes)))
    return elements


def assert_same_structure(answer: httpx.Response, usual: httpx.Response, status: int) -> None:
    assert answer.status_code == usual.status_code == status
    assert answer.headers.keys() == usual.headers.keys()
    assert answer.headers["content-security-policy"] == usual.headers["content-security-policy"]
    assert structure(answer.text) == structure(usual.text)


@attacks
@given(
    nim=NIMS.filter(str.strip).map(lambda nim: f"1{nim[:254]}"),
    nama=TEXTS.filter(str.strip),
    alamat=TEXTS.filter(str.strip),
)  # no warning
@example(nim="1a/../b", nama="\r\n\t\v\fx ", alamat="\n\n-")
def test_any_texts_come_back_unchanged_and_do_not_change_a_page(
    site: Site, nim: str, nama: str, alamat: str
) -> None:
    """The list and the edit page show each text exactly. No page has another structure for hostile records."""
    pages = []
    for texts in (("1", "Siti", "Solo"), (nim, nama, alamat)):
        target = site.path("/mahasiswa/edit/", texts[0])
        try:
            led_to(site.submit(site.page("/mahasiswa/add").form("alamat"), **Mahasiswa._make(texts)._asdict()))  # fmt: skip
            edit = site.page(site.list().table[0].links[0].target).form("alamat")
            assert tuple(edit.fields.values()) == texts
            led_to(site.submit(edit))
            assert site.list().rows == [("1", *texts)]
            pages.append([
                (200, site.get("/")),
                (200, site.get("/?urut=nama&per=10")),
                (200, site.get(target)),
                (409, site.add(*texts)),
                (400, site.post("/mahasiswa/add", data={"nim": texts[0], "nama": texts[1]})),
                (400, site.post(target, data={"alamat": texts[2]})),
                (409, site.post(target, data={"nama": texts[1] + "!", "alamat": texts[2], "versi": "x"})),
                (200, site.get("/mahasiswa/impor")),
            ])  # fmt: skip
        finally:
            led_to(site.submit(site.list().table[0].forms[0]))
    for (status, usual), (_, answer) in zip(*pages, strict=True):
        assert_same_structure(answer, usual, status)


@attacks
@given(name=TEXTS, value=TEXTS)
@example(name="CARI", value="siti")
@example(name="cari[]", value="siti")
def test_hostile_queries_do_not_change_the_structure_of_a_page(
    site: Site, name: str, value: str
) -> None:
    """A search with hostile values has the structure of a usual search, and unknown parameters change nothing."""
    name = name[:300]
    value = value[:300]
    assume(value.replace("\0", "").strip()[:255].strip())
    known = ("urut", "arah", "halaman", "per")
    for parameter in known:
        assert site.get(f"/?cari=x&{parameter}={quote(value, safe='')}").status_code == 200
    usual, answer = (site.get(f"/?cari={quote(text, safe='')}") for text in ("x", value))
    assert_same_structure(answer, usual, 200)
    assume(name not in ("cari", *known))
    assert (
        site.get(f"/?{quote(name, safe='')}={quote(value, safe='')}").content
        == site.get("/").content
    )


FORGED = "2026-01-01 00:00:00,000 INFO POST /mahasiswa/delete/1 302 0.1 ms"


@pytest.mark.parametrize("between", ["\n", "\r", "\x1b[1A", "\x85", "\u2028", '"\n'])
def test_no_line_of_the_log_can_be_forged(service: Service, site: Site, between: str) -> None:
    """Line breaks and control characters in a nim or a path are escaped in the log, so they start no new line."""
    nim = f"palsu{between}{FORGED}"
    assert [site.add(nim, "Siti", "Solo").status_code for _ in range(2)] == [302, 409]
    assert site.delete(nim).status_code == 302
    site.get(f"/palsu{quote(between, safe='')}{quote(FORGED)}")
    assert not re.search(f"(?m)^{FORGED}", service.stderr())

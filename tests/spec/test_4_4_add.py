"""Specification 4.4: POST /mahasiswa/add."""

import pytest
from harness import Site
from spec.records import Records


@pytest.mark.parametrize(
    "text",
    [
        "  spasi  di mana-mana  ",
        'O\'Brien "Bob" \\',
        "<b>tebal</b> <script>alert(1)</script>",
        "a & b &amp; &lt; &#65;",
        "'; DROP TABLE mahasiswa; --",
        "100% + 5% = %41",
        "Ünïcödé ꦗꦮ 学生 🎓",
    ],
)
def test_4_4_1_add_stores_the_values_without_changes(site: Site, records: Records, text: str) -> None:
    """The three values are stored exactly as they were sent, and shown as text."""
    nim = records.new_nim()
    site.add(nim, text, text)
    assert records.stored(nim) == (nim, text, text)
    assert records.listed(nim) == (nim, text.strip(), text.strip())


def test_4_4_2_add_redirects_with_302(site: Site, records: Records) -> None:
    """A successful addition answers 302 with Location: /."""
    answer = site.add(records.new_nim(), "Siti", "Solo")
    assert (answer.status_code, answer.headers["location"]) == (302, site.path("/"))

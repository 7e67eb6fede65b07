"""Unusual but real texts: each can be added, listed, edited by its link and deleted by its button."""

import pytest
from harness import Site
from spec.records import TEXT_INPUT, Records

pytestmark = pytest.mark.beyond

_WORDS = """
20/456839/TK/50663 J0409241025 0000001234 & ; ? # \\ = : @ add /mahasiswa/delete/add a%2Fb %2e%2E 100%zz% a/../b ../b //a a/ ///
1+1=2 !$()*,-._`{|}~[]^ +%&;/?#"'<>\\=:@ &amp;&#65;&lt </td><script>alert(1)</script> ' OR '1'='1' %_* ٠١٢٣٤٥ {{nim}} ${nim}<%=nim%>
%(nim)s{0} 👩🏽‍🎓🇮🇩 \u200f12\u202e34\u202c\u200e ꦗꦮ Zo\u00eb Zoe\u0308 \ufeff1234
a A NULL 1e3 1 01 0012 1.0 １ \u200b \ufeff\ufffe\uffff
"""
NIMS = [
    *dict.fromkeys(_WORDS.split()),
    *("", "  ", " 12", "12 ", "a ", " a", "12 34  56", "\u00a012\u3000", "\t1\t"),
    *(
        "\n1\n\n2\n",
        "\r1\r\r2\r",
        "\r\n1\r\n\r\n2\n\r",
        "1\u0085\u20282\u2029",
        "\x01\x0b\x0c\x1f\x7f",
    ),
    *("9" * 255, "/" * 255, "🎓" * 255),
]


def test_records_of_any_text_are_kept_to_the_byte(site: Site, records: Records) -> None:
    """A record of each text is listed, opened by its link, saved again unchanged, edited, and deleted by its button."""
    if set(NIMS) & set(site.list().nims):
        pytest.skip("the list has a record with one of these nims that this test may not change")
    for nim in NIMS:
        site.stores(records.forget(nim), nim, nim)
    rows = {row.cells[1]: row for row in site.list().table}
    for nim in NIMS:
        row = rows[nim]
        assert row.cells[1:4] == (nim, nim, nim)
        form = site.page(row.links[0].target).record_form
        assert form.values(TEXT_INPUT) == [nim, nim, nim]
        site.accepts(form, alamat="Klaten")
    rows = {row.cells[1]: row for row in site.list().table}
    for nim in NIMS:
        assert rows[nim].cells[1:4] == (nim, nim, "Klaten")
        site.accepts(rows[nim].forms[0])
        assert site.get(rows[nim].links[0].target).status_code == 404
    assert not set(NIMS) & set(site.list().nims)

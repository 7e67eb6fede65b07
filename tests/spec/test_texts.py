"""Unusual but real texts: each can be added, listed, edited by its link and deleted by its button."""

import pytest
from harness import Site, led_to
from hostile import HOSTILE
from spec.records import TEXT_INPUT

from mahasiswa.record import NIM_MAX_CHARACTERS

pytestmark = pytest.mark.beyond

NIMS = [text for text in HOSTILE if len(text) <= NIM_MAX_CHARACTERS]


def test_records_of_any_text_are_kept_to_the_byte(site: Site) -> None:
    """A record of each text is listed, opened by its link, saved again unchanged, edited, and deleted by its button."""
    for nim in NIMS:
        led_to(site.add(nim, nim, nim))
    rows = {row.cells[1]: row for row in site.list().table}
    for nim in NIMS:
        row = rows[nim]
        assert row.cells[1:4] == (nim, nim, nim)
        (edit,) = row.links
        form = site.page(edit.target).form("alamat")
        assert form.values(TEXT_INPUT) == [nim, nim, nim]
        led_to(site.submit(form, alamat="Klaten"))
    rows = {row.cells[1]: row for row in site.list().table}
    for nim in NIMS:
        assert rows[nim].cells[1:4] == (nim, nim, "Klaten")
        led_to(site.submit(rows[nim].forms[0]))
        assert site.get(rows[nim].links[0].target).status_code == 404
    assert not set(NIMS) & set(site.nims)

"""Specification, section 5: no authentication. Its rules have no numbers; they are counted from the top."""

from harness import Site
from spec.records import Records


def test_5_2_there_are_no_cookies_and_no_tokens(site: Site, records: Records) -> None:
    """Every route is open to a client without credentials, and no answer sets a cookie or requests credentials."""
    nim = records.new_nim()
    answers = [
        site.get(site.path("/")),
        site.get(site.path("/mahasiswa/add")),
        site.add(nim, "Siti", "Solo"),
        site.get(site.path("/mahasiswa/edit/", nim)),
        site.edit(nim, "Budi", "Bantul"),
        site.delete(nim),
    ]
    for answer in answers:
        assert answer.status_code in (200, 302)
        assert "set-cookie" not in answer.headers
        assert "www-authenticate" not in answer.headers


def test_5_2_a_form_of_another_site_is_accepted(site: Site, records: Records) -> None:
    """A form that comes from another site is accepted."""
    nim = records.new_nim()
    answer = site.send(
        "POST",
        site.path("/mahasiswa/add"),
        f"nim={nim}&nama=Siti&alamat=Solo".encode(),
        content_type="application/x-www-form-urlencoded",
        origin="https://elsewhere.example",
        referer="https://elsewhere.example/form",
        sec_fetch_site="cross-site",
    )
    assert answer.status_code == 302
    assert records.listed(nim) == (nim, "Siti", "Solo")

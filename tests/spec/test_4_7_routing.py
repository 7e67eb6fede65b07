"""Specification 4.7: general routing rules."""

import pytest
from harness import Site
from spec.records import Records


@pytest.mark.parametrize("path", ["/mahasiswa/delete/", "/mahasiswa/edit/"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_4_7_1_a_route_matches_only_its_own_method(site: Site, records: Records, method: str, path: str) -> None:
    """A request with another method changes nothing; its answer is not specified."""
    added = records.add()
    body = b"nama=Lain&alamat=Lain"
    site.send(method, site.path(path, added.nim), body, content_type="application/x-www-form-urlencoded")
    assert records.listed(added.nim) == added


def test_4_7_1_a_get_of_the_add_route_adds_nothing(site: Site, records: Records) -> None:
    """GET /mahasiswa/add with the fields in its query shows the form and adds no record."""
    nim = records.new_nim()
    answer = site.get(site.path("/mahasiswa/add") + f"?nim={nim}&nama=Siti&alamat=Solo")
    assert answer.status_code == 200
    assert records.listed(nim) is None


def test_4_7_2_routes_do_not_overlap(site: Site, records: Records) -> None:
    """In the routes edit and delete the word "add" is a nim."""
    if records.listed("add"):
        pytest.skip("the list has a record with the nim 'add' that this test may not change")
    nim = records.new_nim()
    for path in ("/mahasiswa/edit/add", "/mahasiswa/delete/add"):
        answer = site.post(site.path(path), {"nim": nim, "nama": "Siti", "alamat": "Solo"})
        assert answer.status_code == 302
    assert records.listed(nim) is None
    assert records.listed("add") is None


@pytest.mark.parametrize("form", ["0{}", "{}e1", "a b {}", "{}é学🎓"])
def test_4_7_3_path_parameter_is_text(site: Site, records: Records, form: str) -> None:
    """The path parameter is the nim as text: leading zeros are kept, and percent-encoded UTF-8 is decoded."""
    nim = records.new_nim(form)
    site.add(nim, "Siti", "Solo")
    assert records.stored(nim) == (nim, "Siti", "Solo")
    site.edit(nim, "Budi", "Bantul")
    assert records.listed(nim) == (nim, "Budi", "Bantul")
    site.delete(nim)
    assert records.listed(nim) is None


def test_4_7_3_nims_that_look_equal_as_numbers_are_two(site: Site, records: Records) -> None:
    """Two nims that differ only in leading zeros are different records in every route."""
    digits = str(int(records.new_nim(), 16))
    nim, zeros = records.forget(digits), records.forget("00" + digits)
    site.add(nim, "Siti", "Solo")
    site.add(zeros, "Budi", "Bantul")
    assert records.stored(nim).nama == "Siti"
    site.edit(zeros, "Ani", "Bantul")
    site.delete(nim)
    assert records.listed(nim) is None
    assert records.listed(zeros) == (zeros, "Ani", "Bantul")


def test_4_7_4_a_refresh_does_not_repeat_the_change(site: Site, records: Records) -> None:
    """Each successful POST redirects to a page that can be reloaded without a second change."""
    nim = records.new_nim()
    for answer in (site.add(nim, "Siti", "Solo"), site.edit(nim, "Budi", "Bantul"), site.delete(nim)):
        assert answer.is_redirect
        first, second = (site.page(answer.headers["location"]).rows for _ in range(2))
        assert first == second

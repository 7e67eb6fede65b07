"""The digest of a record tells whether it has changed, and the near key tells which NIMs may mean the same student."""

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mahasiswa.record import Mahasiswa, digest, near_key

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.builds(Mahasiswa, texts, texts, texts), st.builds(Mahasiswa, texts, texts, texts))
@example(Mahasiswa("1", "ab", "c"), Mahasiswa("1", "a", "bc"))
@example(Mahasiswa("1", "a1:b", ""), Mahasiswa("1", "a", "b"))
def test_two_records_have_the_same_digest_only_if_they_look_the_same_in_a_form(
    first: Mahasiswa, second: Mahasiswa
) -> None:
    """The digest is of nama and alamat without their line breaks, which a single-line input cannot hold."""
    shown = [[re.sub("[\r\n]", "", text) for text in record[1:]] for record in (first, second)]
    assert (digest(first) == digest(second)) == (shown[0] == shown[1])
    assert set(digest(first)) <= set(string.ascii_letters + string.digits + "-_")


NEAR_KEYS = {
    "0230.0-1 A": "23001a",
    "00": "",
    "É0": "É0",
    "20/456839/TK/50663": "20/456839/tk/50663",
    "O2I3O-Ll ": "213011",
}


@pytest.mark.parametrize(("nim", "key"), NEAR_KEYS.items())
def test_nims_that_differ_only_by_what_people_overlook_have_one_key(nim: str, key: str) -> None:
    assert near_key(nim) == key

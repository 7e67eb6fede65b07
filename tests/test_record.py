"""NIMs that one slip makes of another one."""

import pytest

from mahasiswa.store.spelling import SLIPS_MAX_CHARACTERS, slips


@pytest.mark.parametrize(
    "slip",
    [
        "2134",
        "1324",
        "1243",
        "234",
        "134",
        "123",
        "12345",
        "01234",
        "12034",
        "1034",
        "9234",
        "1239",
    ],
)
def test_a_slip_is_found_at_each_place_of_a_nim(slip: str) -> None:
    """Two neighbours exchanged, a digit less, a digit more, and a wrong digit."""
    assert slip in slips("1234")


def test_a_nim_that_is_too_long_has_no_slips() -> None:
    assert slips("1" * SLIPS_MAX_CHARACTERS)
    assert not slips("1" * (SLIPS_MAX_CHARACTERS + 1))

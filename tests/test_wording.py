"""Texts that wording.py puts together: moments in a time zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mahasiswa.wording import moment, size

NEW_YEAR = datetime(2026, 12, 31, 17, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Asia/Jakarta", "1 Jan 00.05 WIB"),
        ("Asia/Makassar", "1 Jan 01.05 WITA"),
        ("Asia/Jayapura", "1 Jan 02.05 WIT"),
        ("Asia/Singapore", "1 Jan 01.05 UTC+08"),
        ("Asia/Kathmandu", "31 Des 22.50 UTC+0545"),
    ],
)
def test_a_moment_is_shown_in_its_time_zone_with_the_name_of_the_zone(
    zone: str, shown: str
) -> None:
    """Indonesian zones are WIB, WITA and WIT; a zone without a name of its own shows its distance from UTC."""
    assert moment(NEW_YEAR.astimezone(ZoneInfo(zone)), with_year=False) == shown


def test_a_limit_is_shown_in_the_unit_that_fits() -> None:
    assert [size(count) for count in ((1 << 20) - 1, 1 << 20, 64 << 10)] == [
        "1023 KB",
        "1 MB",
        "64 KB",
    ]


def test_months_years_and_summer_time() -> None:
    """The abbreviations of the months are Indonesian. Year and name of the zone are those of the moment in the zone."""
    days = (datetime(2026, month, 9, tzinfo=UTC) for month in range(1, 13))
    months = " ".join(moment(day, with_year=False).split()[1] for day in days)
    assert months == "Jan Feb Mar Apr Mei Jun Jul Agu Sep Okt Nov Des"
    assert (
        moment(NEW_YEAR.astimezone(ZoneInfo("Asia/Jakarta")), with_year=True)
        == "1 Jan 2027 00.05 WIB"
    )
    summer = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert (
        moment(summer.astimezone(ZoneInfo("Europe/Berlin")), with_year=False) == "1 Jul 14.00 CEST"
    )

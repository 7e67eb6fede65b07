"""Records are copied between SQLite and PostgreSQL."""

import asyncio
from pathlib import Path

import pytest
from stores import opened, read_all

from mahasiswa.bulk import copy_records
from mahasiswa.record import Mahasiswa
from mahasiswa.settings import PostgresURL, parse_database_url
from mahasiswa.store import migrate
from mahasiswa.store.engines import merge
from mahasiswa.store.errors import Unusable


@pytest.mark.parametrize("direction", ["to postgres", "from postgres"])
def test_all_records_are_copied_to_another_engine(url: PostgresURL, tmp_path: Path, direction: str) -> None:
    """Every text stays the same to the byte; a target that holds a record is refused and stays as it is."""
    file = parse_database_url(f"sqlite:///{tmp_path}/a.db")
    migrate(file)
    source_url, target_url = (file, url) if direction == "to postgres" else (url, file)
    records = [
        Mahasiswa(f"{number:05}/é🎓\t\\N", "Siti\r\n\\.", "" if number % 2 else "\x01") for number in range(12_000)
    ]
    rows = [(number, *record) for number, record in enumerate(records)]
    merge(source_url, rows, update=False, dry_run=False)
    assert copy_records(source_url, target_url) == len(records)
    with pytest.raises(Unusable, match="holds records already"):
        copy_records(source_url, target_url)

    async def copied() -> list[Mahasiswa]:
        async with opened(target_url) as target:
            return await read_all(target, len(records))

    assert asyncio.run(copied()) == records

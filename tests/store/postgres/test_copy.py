"""Records are copied between SQLite and PostgreSQL."""

from pathlib import Path

import pytest
from stores import opened

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import PostgresURL, parse_database_url
from mahasiswa.store import Query, migrate
from mahasiswa.store.errors import Unusable
from mahasiswa.store.threads import copy


@pytest.mark.parametrize("direction", ["to postgres", "from postgres"])
async def test_all_records_are_copied_to_another_engine(url: PostgresURL, tmp_path: Path, direction: str) -> None:
    """Every text stays the same to the byte; a target that holds a record is refused and stays as it is."""
    file = parse_database_url(f"sqlite:///{tmp_path}/a.db")
    migrate(file)
    source_url, target_url = (file, url) if direction == "to postgres" else (url, file)
    records = [
        Mahasiswa(f"{number:05}/é🎓\t\\N", "Siti\r\n\\.", "" if number % 2 else "\x01") for number in range(12_000)
    ]
    async with opened(source_url) as source, opened(target_url) as target:
        rows = [(number, *record) for number, record in enumerate(records)]
        await source.merge(rows, update=False, dry_run=False)
        assert await copy(source, target) == len(records)
        assert [record async for chunk in target.chunks(Query()) for record in chunk] == records
        await source.delete(records[0].nim)
        with pytest.raises(Unusable, match="holds records already"):
            await copy(source, target)
        assert (await target.search(Query(), 0, 0)).total == len(records)

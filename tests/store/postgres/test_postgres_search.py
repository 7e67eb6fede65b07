"""PostgreSQL: the SQL that folds texts for the search."""

import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from postgres import execute

from mahasiswa.settings import PostgresURL
from mahasiswa.store import Query, Store
from mahasiswa.store.folding import SEARCHED_CHARACTERS, fold
from mahasiswa.store.postgres import sql
from mahasiswa.work import SEARCH


def test_every_character_is_folded_as_in_python(url: PostgresURL) -> None:
    """All characters of Unicode but surrogates and NUL, in texts of the length that the search looks at."""
    step = SEARCHED_CHARACTERS
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(letters[at : at + step]) for at in range(0, len(letters), step)]
    with psycopg.connect(url.address) as db:
        with db.cursor().copy("COPY mahasiswa FROM STDIN") as copy:
            for number, text in enumerate(texts):
                copy.write_row((f"{number}", text, "Solo"))
        folded: dict[str, str] = dict(db.execute(f"SELECT nim, teks FROM {sql.SHARED.folded['']}".encode()).fetchall())
    assert folded == {f"{number}": fold(f"{number}\n{text}\nSolo") for number, text in enumerate(texts)}


async def test_a_search_of_one_day_ends_in_time_before_there_are_statistics(url: PostgresURL, store: Store) -> None:
    """PostgreSQL expects a single change of that day then, and must not fold all texts again for each of 12,000."""
    for _ in range(2):
        execute(url.address, "INSERT INTO mahasiswa SELECT i, 'Siti', 'Solo' FROM generate_series(1, 3000) AS i")
        execute(url.address, "DELETE FROM mahasiswa")
    today = datetime.now(UTC)
    days = (today - timedelta(days=1), today + timedelta(days=1))
    assert (await store.reader(SEARCH).history("siti", None, 0, 10, days=days)).total == 12_000


SEARCHES = {"long": "b" + "a" * 253, "accented": "b" + "é" * 253, "reversed": "é" * 253 + "b", "short": "b" + "a" * 31}


@pytest.mark.parametrize("cari", SEARCHES.values(), ids=SEARCHES)
async def test_the_searched_text_does_not_decide_the_time_of_a_search(
    url: PostgresURL, store: Store, cari: str
) -> None:
    """The worst text to look for takes at most a few times as long as a single letter; with ILIKE 60 times."""
    texts = "repeat('a', 1000), repeat('é', 1000) FROM generate_series(1, 1000) AS i"
    execute(url.address, f"INSERT INTO mahasiswa SELECT i, {texts}")

    async def seconds(cari: str) -> float:
        began = time.monotonic()
        assert (await store.reader(SEARCH).search(Query(cari), 0, 10)).total == 0
        return time.monotonic() - began

    worst, letter = await seconds(cari), await seconds("z")
    for _ in range(20):  # other programs may disturb some of the searches
        if worst < 10 * letter + 0.05:
            return
        worst, letter = min(worst, await seconds(cari)), min(letter, await seconds("z"))
    pytest.fail(f"{worst:.3f} s, for a single letter {letter:.3f} s")

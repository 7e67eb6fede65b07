"""The SQLite file of a running service is replaced, removed or moved, or its write-ahead log grows."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from cli.operators import Operator
from faults.attack import assert_says_nothing_was_saved
from harness import Service, assert_log_is_sound, led_to
from processes import repeating, until
from stores import connect, nims_of

from mahasiswa.store.sqlite.connection import WAL_MAX_BYTES

pytestmark = pytest.mark.torture

TEXTS = ("Siti", "Solo")
WORKERS = CLIENTS = 2
GONE = "was replaced, moved or removed: stop the service, put the file right, start it"


@pytest.mark.parametrize("is_moved", [False, True], ids=["replaced", "moved"])
def test_a_file_that_is_gone_under_load_is_unavailable_until_the_next_start(
    tmp_path: Path, *, is_moved: bool
) -> None:
    """Each request gets 503, and the log says once what to do. The new file stays as it is, and the next start serves it.

    Changes that were only in the write-ahead log go with a file that is moved. DATABASE_URL names a symbolic link.
    """
    named = tmp_path / "mahasiswa.db"
    away = tmp_path / "away.db"
    new = tmp_path / "new.db"
    database = tmp_path / "daftar.db"
    named.symlink_to(database)
    with Service(named, {"WORKERS": f"{WORKERS}"}) as service:
        with service.site() as site:
            led_to(site.add("0", *TEXTS))
        Operator(tmp_path).done("backup", "new.db")
        before = new.read_bytes()
        answers: dict[str, int] = {}

        def add() -> None:
            nim = f"{time.monotonic_ns()}"
            with service.site() as site:
                answers[nim] = site.add(nim, *TEXTS).status_code

        with repeating(*[add] * CLIENTS):
            until(lambda: len(answers) > 40)
            if is_moved:
                database.rename(away)
            else:
                new.replace(database)
            until(lambda: service.stderr().count(GONE) == WORKERS)
            known = len(answers) + CLIENTS  # each may wait for an answer
            until(lambda: len(answers) > known + 40)
        late = list(answers.values())[known:]
        assert {*answers.values()} == {302, 503}
        assert {*late} == {503}, "a change was acknowledged that is in no file"
        added = {nim for nim in answers if answers[nim] == 302}
        for path in (
            ("/", "/sehat", "/mahasiswa/edit/0", "/?cari=siti", "/mahasiswa/ekspor.csv")
            * 2
            * WORKERS
        ):
            with service.site() as site:
                assert site.get(path).status_code == 503
        with service.site() as site:
            assert_says_nothing_was_saved(site.add("1", *TEXTS))
            assert site.get("/mahasiswa/add").status_code == 200
        if is_moved:
            assert added | {"0"} <= nims_of(away) <= answers.keys() | {"0"}
            away.rename(database)
            with service.site() as site:
                assert site.get("/").status_code == 503
        else:
            assert database.read_bytes() == before
        service.restart()
        until(lambda: service.stderr().count(GONE) == WORKERS)
        assert_log_is_sound(service.stderr(), allowed=["was replaced"])
        with service.site() as site:
            led_to(site.add("sesudah", *TEXTS))
        kept = added if is_moved else set()
        assert kept | {"0", "sesudah"} <= nims_of(database)


def test_a_log_that_grew_during_a_long_read_is_cut_to_64_mb(tmp_path: Path) -> None:
    """Changes go on while another program reads. When it ends, the log is truncated and used again."""
    database = tmp_path / "a.db"
    log = tmp_path / "a.db-wal"
    text = "x" * 60_000

    with Service(database, {"LOG_LEVEL": "warning"}) as service:

        def work(name: int) -> None:
            with service.site() as site:
                for n in range(300):
                    led_to(site.add(f"{name}/{n}", "Siti", text))

        with service.site() as site:
            led_to(site.add("0", *TEXTS))
        with (
            closing(connect(database)) as other,
            ThreadPoolExecutor(4) as threads,
        ):
            other.execute("BEGIN; SELECT * FROM mahasiswa").fetchall()
            list(threads.map(work, range(4)))
        grown = log.stat().st_size
        assert grown > WAL_MAX_BYTES
        with service.site() as site:

            def bounded() -> bool:
                assert site.edit("0", f"{time.monotonic()}", "Solo").status_code == 302
                return log.stat().st_size <= WAL_MAX_BYTES

            until(bounded)
            for n in range(40):
                led_to(site.add(f"sesudah/{n}", "Siti", text))
            assert log.stat().st_size <= WAL_MAX_BYTES
        assert service.stderr() == ""
        assert len(nims_of(database)) == 1 + 1200 + 40

"""`mahasiswa restore` under load: it is killed at random moments, and people read and change the list meanwhile."""

import random
import subprocess
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from cli.operators import Operator, records_of
from harness import Service, assert_log_is_sound, led_to
from processes import COMMAND, repeating, started
from spreadsheets import numbered
from stores import nims_of

# Each list has records that the other one lacks, and some nims with other texts.
LISTS = {
    "A": numbered(3000, "Nama A", "Jalan {}"),
    "B": numbered(4000, "Nama B", "Jalan {}")[1500:],
}
SIZES = {(3000, 0): "A", (0, 2500): "B"}
"""The numbers of records of A and of B that one page may show, and the list that it is."""

KILLS = 40


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """Run commands in a folder with back-ups of both lists. The database holds list A."""
    operator = Operator(tmp_path)
    for name in ("B", "A"):
        operator.fill(LISTS[name])
        operator.done("backup", f"{name}.db")
    return operator


def shown(service: Service) -> str | None:
    with service.site() as site:
        body = site.get("/").content
    return SIZES.get((body.count(b"<td>Nama A<"), body.count(b"<td>Nama B<")))


@pytest.mark.torture
def test_a_restore_that_is_killed_at_any_moment_leaves_one_of_the_two_lists(
    operator: Operator,
) -> None:
    """While the service reads and writes: every page and the file are the old list or the new one, never a mixture.

    Every acknowledged change is in the list or in a back-up of a replaced one, which is written under the restore's lock.
    """
    dice = random.Random(13)
    seconds = 0.3
    killed = done = 0
    stored = [LISTS["A"]]
    kept: set[str] = set()
    added: set[str] = set()
    lists: list[str | None] = []

    def write() -> None:
        nim = f"tamu/{len(added)}"
        with service.site() as site:
            led_to(site.add(nim, "Siti", "x" * 200))
        added.add(nim)

    def read() -> None:
        lists.append(shown(service))

    with Service(operator.database) as service, repeating(write, read):
        for turn in range(KILLS):
            name = "AB"[(turn + 1) % 2]
            began = time.monotonic()
            command = (*COMMAND, "restore", f"{name}.db")
            with started(*command, cwd=operator.folder, env=operator.environment) as process:
                if turn % 5:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(dice.uniform(0.3, 1) * seconds)
                    process.kill()
                process.communicate(timeout=60)
            if process.returncode == 0:
                done += 1
                seconds = time.monotonic() - began
                assert shown(service) == name
            else:
                killed += 1
            nims_of(operator.database)
            found = records_of(operator.database)
            stored.append([record for record in found if "/" not in record[0]])
            assert stored[-1] in LISTS.values()
            for path in operator.folder.glob("mahasiswa.db.before-*"):
                kept |= {nim for nim, _, _ in records_of(path)}
                path.unlink()
        assert_log_is_sound(service.stderr())
    assert min(killed, done) > 1
    assert added <= kept | nims_of(operator.database)
    assert len(added) > 10
    assert {*lists} == {"A", "B"}
    switches = sum(a != b for a, b in pairwise(stored))
    assert sum(a != b for a, b in pairwise(lists)) <= switches, (
        "a reader saw a list again that was replaced"
    )
    # A killed command leaves unfinished copies, which are private.
    assert all(path.stat().st_mode & 0o077 == 0 for path in operator.folder.glob(".mahasiswa.db*"))

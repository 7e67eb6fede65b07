"""Clients change records at full speed, the service is killed or ended, and no acknowledged change is lost."""

import os
import random
import signal
from pathlib import Path

import pytest
from faults.clients import changing
from harness import Service
from spreadsheets import numbered
from stores import merge, migrate, nims_of

KILLS = 20


@pytest.mark.torture
@pytest.mark.parametrize(("workers", "others"), [("1", 0), ("2", 600)])
def test_no_acknowledged_change_is_lost_when_the_service_is_killed(
    tmp_path: Path, workers: str, others: int
) -> None:
    """Every acknowledged change is shown then, no refused one is, none is incomplete, and the file is sound.

    A short list is made at once, and one with 600 long ones by a task.
    """
    dice = random.Random(int(workers))
    migrate(tmp_path / "a.db")
    merge(tmp_path / "a.db", *numbered(others, "Nama {}", "x" * 900))
    with Service(tmp_path / "a.db", {"WORKERS": workers, "LOG_LEVEL": "error"}) as service:
        with changing(service.url) as wait_for:
            for turn in range(KILLS):
                wait_for(dice.randrange(1, 100))
                if turn % 3 == 0:
                    assert service.stop() == 0
                elif turn % 3 == 1:
                    service.kill()
                else:  # the main process alone; its workers end with it
                    os.kill(service.pid, signal.SIGKILL)
                nims_of(tmp_path / "a.db")
                service.restart()
            wait_for(10)
        assert len(nims_of(tmp_path / "a.db")) >= others
        assert service.stderr() == ""

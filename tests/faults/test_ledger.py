"""Clients change records at full speed, the service is killed or ended, and no acknowledged change is lost."""

import os
import random
import re
import signal
import threading
from collections.abc import Mapping
from functools import partial
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest
from attack import Line, holds, until
from harness import Service
from processes import working

CLIENTS = 4
NIMS_PER_CLIENT = 12
"""Few, so that a client often changes the same record again."""

PADDING = "x" * 300


class Texts(NamedTuple):
    """The texts of a record. `alamat` repeats `nama`, so a record mixed from two changes would be noticed."""

    nama: str
    alamat: str


class Client:
    """A client that alone changes its nims, one change at a time, and knows which texts may be stored."""

    def __init__(self, name: str, dice: random.Random) -> None:
        self.name = name
        self.acknowledged = 0
        self.refused = 0
        self._dice = dice
        self._changes = 0
        # The texts of each nim, or None if it must not exist. `_instead` holds the result of an unanswered change.
        self._certain: dict[str, Texts | None] = {f"{name}/{n}": None for n in range(NIMS_PER_CLIENT)}
        self._instead: dict[str, Texts | None] = {}

    def work(self, port: int, stop: threading.Event) -> None:
        """Change records until told to stop, or until the service ends."""
        try:
            with Line(port) as line:
                while not stop.is_set():
                    self._change(line)
        except OSError:
            return

    def _change(self, line: Line) -> None:
        self._changes += 1
        nim = self._dice.choice(list(self._certain))
        before = self._certain[nim]
        name = f"{self.name} {self._changes}"
        texts = Texts(name, f"{name} {PADDING} {name}")
        kind = self._dice.choice(("add", "add", "edit", "delete"))
        after: Texts | None = {"add": before or texts, "edit": before and texts, "delete": None}[kind]
        self._instead = {nim: after}
        if kind == "add":
            answer = line.add(nim, *texts)
        elif kind == "edit":
            answer = line.edit(nim, *texts)
        else:
            answer = line.delete(nim)
        assert answer.status == (409 if kind == "add" and before else 302)
        self._certain[nim] = after
        self._instead = {}
        self.acknowledged += answer.status == 302
        self.refused += answer.status == 409

    def settle(self, stored: Mapping[str, Texts]) -> None:
        """Compare with the stored records. An unanswered change may be stored or not; from now on that is known."""
        for nim, texts in self._certain.items():
            found = stored.get(nim)
            assert found in (texts, self._instead.get(nim, texts)), f"{nim}: {found} instead of {texts}"
            self._certain[nim] = found
        self._instead = {}

    @property
    def nims(self) -> set[str]:
        """The nims that must be stored."""
        return {nim for nim, texts in self._certain.items() if texts}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kills", [3, pytest.param(150, marks=pytest.mark.torture)])
def test_no_acknowledged_change_is_lost_when_the_service_is_killed(tmp_path: Path, workers: str, kills: int) -> None:
    """Every acknowledged change is stored then, no refused one is, none is incomplete, and the file is sound.

    SIGTERM ends the service in the midst of changes too.
    """
    dice = random.Random(int(workers))
    clients = [Client(f"{number}", dice) for number in range(CLIENTS)]
    with Service(tmp_path / "a.db", {"WORKERS": workers, "LOG_LEVEL": "error"}) as service:
        for turn in range(kills):
            enough = dice.randrange(1, 400)
            before = sum(client.acknowledged for client in clients)
            stop = threading.Event()
            with working([partial(client.work, service.port, stop) for client in clients], stop) as failed:
                until(lambda: failed() or sum(client.acknowledged for client in clients) - before >= enough, 120)  # noqa: B023
                if turn % 3 == 0:
                    assert service.stop() == 0
                elif turn % 3 == 1:
                    service.kill()
                else:  # the main process alone; its workers end with it
                    os.kill(service.pid, signal.SIGKILL)
            service.restart()
            shown = page(service)
            stored = {nim: Texts(*texts) for nim, texts in holds(tmp_path / "a.db").items()}
            assert shown == stored
            for client in clients:
                client.settle(stored)
            assert set().union(*(client.nims for client in clients)) == stored.keys()
        assert service.stderr() == ""
    assert all(client.acknowledged and client.refused for client in clients)


def page(service: Service) -> dict[str, Texts]:
    """Return the records of the list page."""
    with Line(service.port) as line:
        answer = line.get("/")
    assert answer.status == 200
    html = answer.body.decode().replace("<wbr>", "")
    rows = re.findall(r"<tr><td>\d+</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>", html)
    return {unescape(nim): Texts(unescape(nama), unescape(alamat)) for nim, nama, alamat in rows}

"""A folder that hangs holds one thread, however many ask for it."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Lock

import pytest

from mahasiswa.system.lookout import looked


@pytest.fixture
def _fast_switches() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_a_look_that_fails_is_an_error_at_once_and_the_next_one_looks_again(tmp_path: Path) -> None:
    """Whatever the error is. Otherwise every caller would wait 5 s for that place, until the process ends."""
    with pytest.raises(ValueError, match="invalid literal"):
        looked(tmp_path, lambda _: int("x"))
    assert looked(tmp_path, lambda _: 7) == 7


@pytest.mark.usefixtures("_fast_switches")
def test_two_threads_that_ask_at_once_share_one_look(tmp_path: Path) -> None:
    """As two requests for /metrics do. In 1,000 rounds no look begins while another one at the same folder runs."""
    begin = Barrier(4)
    running = Lock()

    def look(folder: Path) -> bool:
        is_alone = running.acquire(blocking=False)
        for _ in range(10):
            list(folder.iterdir())
        if is_alone:
            running.release()
        return is_alone

    def ask(_: int) -> bool:
        begin.wait()
        return looked(tmp_path, look)

    with ThreadPoolExecutor(4) as threads:
        for _ in range(1000):
            assert all(threads.map(ask, range(4)))

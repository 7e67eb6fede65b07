"""The clock of the tests sees what stops a worker, and nothing else."""

import sys

import pytest
from clocks import STOPPED_MAX_MS, Reports, clocked
from processes import run

# A process that serves as a worker does: forked, its objects frozen, with uvloop in its main thread.
WORKER = """
import asyncio, gc, os, sys, uvloop, watch_interpreter
sys.setswitchinterval(0.0005)

def calls_c():
    for _ in range(10):  # the clock may be interrupted between its two measurements, and miss some
        sum(range(10_000_000))

def computes():
    for _ in range(10_000_000):
        pass

def computes_in_pieces(left=2_000):
    for _ in range(5_000):
        pass
    if left:
        asyncio.get_running_loop().call_soon(computes_in_pieces, left - 1)

async def main():
    while not watch_interpreter.is_watching.is_set():
        await asyncio.sleep(0.01)
    if PLACE == "thread":
        await asyncio.to_thread(WORK)
    else:
        asyncio.get_running_loop().call_soon(WORK)
        await asyncio.sleep(1)

if os.fork() == 0:
    gc.freeze()
    uvloop.run(main())
    os._exit(0)
os.wait()
"""


def worker(work: str, place: str) -> str:
    return WORKER.replace("WORK", work).replace("PLACE", repr(place))


@pytest.mark.parametrize(
    ("work", "place", "kinds"),
    [
        ("calls_c", "thread", {"lock"}),
        ("calls_c", "loop", {"loop"}),
        ("computes", "thread", set()),
        ("computes", "loop", {"loop"}),
        ("computes_in_pieces", "loop", set()),
    ],
)
def test_the_clock_names_what_stops_a_worker(
    clock_reports: Reports, work: str, place: str, kinds: set[str]
) -> None:
    """A call of C holds the lock in any thread. Python's own code does not, but it stops the event loop until it ends."""
    clock_reports.new()
    run(sys.executable, "-c", worker(work, place), env=clocked())
    long = [report for report in clock_reports.new() if report.ms > STOPPED_MAX_MS]
    assert kinds <= {report.kind for report in long}
    assert kinds or not long
    # At the end of a call of C, the event loop may go on before the clock has seen where it was.
    assert work == "calls_c" or all(report.stack[-1].endswith(work) for report in long)

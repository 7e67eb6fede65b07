"""Power failures: a 302 is sent after its change is on disk, and a restart finds every change that was."""

import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attack import Line, workers
from harness import Service

ADDS = 25


def test_a_change_is_on_the_disk_before_its_answer_leaves(tmp_path: Path) -> None:
    """The system calls show a sync of the log after its last write, and only then the 302."""
    with Service(tmp_path / "a.db", {"WORKERS": "1"}) as service, Line(service.port) as line:
        assert line.add("pertama", "Siti", "Solo").status == 302
        (worker,) = workers(service) if sys.platform == "linux" else (0,)
        with traced(worker, tmp_path / "calls"):
            for n in range(ADDS):
                assert line.add(f"{n}", "Siti", "Solo").status == 302
            assert line.edit("0", "Budi", "Bantul").status == 302
            assert line.delete("1").status == 302
    written = synced = False
    answers = 0
    for call, about in calls((tmp_path / "calls").read_text()):
        if call == "pwrite64" and "a.db-wal>" in about:
            written, synced = True, False
        elif call in ("fsync", "fdatasync") and "a.db-wal>" in about:
            synced = written
        elif "HTTP/1.1 302" in about:
            assert written, "an answer without a change"
            assert synced, "an answer before its change was on the disk"
            written = synced = False
            answers += 1
    assert answers == ADDS + 2


class traced:  # noqa: N801 - used as `with` uses a function
    """Record the system calls of a process and its threads in a file while the block runs; skip without strace."""

    def __init__(self, pid: int, to: Path) -> None:
        strace = shutil.which("strace")
        if strace is None:
            pytest.skip("strace is not installed")
        calls = "trace=pwrite64,write,writev,sendto,sendmsg,fsync,fdatasync"
        command = [strace, "-f", "-y", "-s", "16", "-e", calls, "-e", "signal=none", "-o", str(to), "-p", str(pid)]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> None:
        assert self._process.stderr
        said = self._process.stderr.readline()
        if "attached" not in said:
            self._process.wait()
            pytest.skip(f"strace may not look at the service here: {said.strip()}")

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()


def calls(trace: str) -> Iterator[tuple[str, str]]:
    """Each system call in order: a write when it begins, a sync when it has succeeded."""
    begun: dict[str, tuple[str, str]] = {}
    for line in trace.splitlines():
        if found := re.fullmatch(r"(\d+) +(\w+)\((.*)", line):
            pid, call, about = found.groups()
            if "sync" not in call or about.endswith("= 0"):
                yield call, about
            elif about.endswith("<unfinished ...>"):
                begun[pid] = call, about
        elif (found := re.fullmatch(r"(\d+) +<\.\.\. (\w+) resumed>.* = 0", line)) and "sync" in found[2]:
            yield begun.pop(found[1])


# Reads offsets from standard input. For each it opens a copy of the database with the log cut there, and prints the records.
OPEN_CUT = """
import sys, pathlib, apsw
folder, tail = pathlib.Path(sys.argv[1]), sys.argv[2]
db, log = (folder / "a.db").read_bytes(), (folder / "a.db-wal").read_bytes()
cut = pathlib.Path(sys.argv[3])
for line in sys.stdin:
    offset = int(line)
    rest = len(log) - offset
    after = {"nothing": b"", "zeros": bytes(rest), "noise": (log[::-1] * 2)[7:][:rest]}[tail]
    for name, content in (("a.db", db), ("a.db-wal", log[:offset] + after)):
        (cut / name).write_bytes(content)
    (cut / "a.db-shm").unlink(missing_ok=True)
    connection = apsw.Connection(str(cut / "a.db"))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    print(offset, connection.execute("SELECT group_concat(nim || '=' || nama || '=' || length(alamat), ' ' ORDER BY nim) FROM mahasiswa").get or "", sep="\\t")
    connection.close()
"""


@pytest.mark.parametrize("tail", ["nothing", "zeros", "noise"])
def test_a_log_that_is_cut_at_any_byte_keeps_every_change_before_it(
    tmp_path: Path, rounds: Callable[[int, int], int], tail: str
) -> None:
    """Changes that were answered before the log reached that byte are found. Later ones are complete and in order, or gone."""
    acknowledged: list[int] = []
    (tmp_path / "left").mkdir()
    (tmp_path / "cut").mkdir()
    with Service(tmp_path / "left" / "a.db") as service, Line(service.port) as line:
        log = tmp_path / "left" / "a.db-wal"
        for n in range(ADDS):
            assert line.add(f"{n:03}", "Siti", "x" * n * 100).status == 302
            acknowledged.append(log.stat().st_size)
        service.kill()
    (tmp_path / "left" / "a.db-shm").unlink()
    size = log.stat().st_size
    assert size == acknowledged[-1]

    dice = random.Random(tail)
    edges = {at + near for at in [0, 32, *acknowledged] for near in (-1, 0, 1, 23, 24, 25)}
    inside = {dice.randrange(size) for _ in range(rounds(150, 30_000))}
    offsets = sorted(offset for offset in edges | inside if 0 <= offset <= size)
    shown = subprocess.run(
        [sys.executable, "-c", OPEN_CUT, str(tmp_path / "left"), tail, str(tmp_path / "cut")],
        input="".join(f"{offset}\n" for offset in offsets),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert shown.stderr == ""
    lines = [line.split("\t") for line in shown.stdout.splitlines()]
    assert [int(offset) for offset, _ in lines] == offsets
    for offset, records in lines:
        held = records.split()
        assert held == [f"{n:03}=Siti={n * 100}" for n in range(len(held))]
        assert len(held) >= sum(end <= int(offset) for end in acknowledged)
    # Proof that the cut has an effect.
    assert lines[0][1] == ""
    assert len(lines[-1][1].split()) == ADDS

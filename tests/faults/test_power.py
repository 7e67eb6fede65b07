"""Power failures: a 302 is sent after its change is on disk."""

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import Service, led_to
from processes import cannot, started

pytestmark = pytest.mark.torture

ADDS = 25


def test_a_change_is_on_the_disk_before_its_answer_leaves(tmp_path: Path) -> None:
    """The system calls show a sync of the log after its last write, and only then the 302."""
    with Service(tmp_path / "a.db", {"WORKERS": "1"}) as service, service.site() as site:
        led_to(site.add("pertama", "Siti", "Solo"))
        with traced(service.pid, tmp_path / "calls"):
            for n in range(ADDS):
                led_to(site.add(f"{n}", "Siti", "Solo"))
            assert site.edit("0", "Budi", "Bantul").status_code == 302
            assert site.delete("1").status_code == 302
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


@contextmanager
def traced(pid: int, to: Path) -> Iterator[None]:
    """Record the system calls of a process and its threads in a file while the block runs; skip without strace."""
    strace = shutil.which("strace") or pytest.skip("strace is not installed")
    calls = "trace=pwrite64,write,writev,sendto,sendmsg,fsync,fdatasync"
    command = [
        strace,
        "-f",
        "-y",
        "-s",
        "16",
        "-e",
        calls,
        "-e",
        "signal=none",
        "-o",
        str(to),
        "-p",
        str(pid),
    ]
    with started(*command, text=True) as process:
        assert process.stderr
        said = process.stderr.readline()
        if "attached" not in said:
            cannot("let strace look at the service", said.strip())
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


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
        elif (
            found := re.fullmatch(r"(\d+) +<\.\.\. (\w+) resumed>.* = 0", line)
        ) and "sync" in found[2]:
            yield begun.pop(found[1])

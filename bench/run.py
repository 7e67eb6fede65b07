"""Command line of the benchmark: builds the peers, measures, prints each line, and saves a complete run in README.md."""

import argparse
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import prepare, processors
from bench.report import Line, as_markdown
from bench.servers import Failed
from bench.works import WORKS

README = prepare.BENCH / "README.md"
MARKS = ("<!-- results: written by bench/run.py -->\n", "<!-- end of results -->")


def main() -> None:
    """Read the command line, measure, and print. A complete run also replaces the results in README.md."""
    parser = argparse.ArgumentParser(description="Measure the service and its peers side by side.")
    parser.add_argument(
        "works", nargs="*", metavar="WORK", help=f"one of: {', '.join(WORKS)}; all if left out"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each figure is measured")
    options = parser.parse_args()
    if unknown := set(options.works) - set(WORKS):
        parser.error(
            f"unknown work: {', '.join(sorted(unknown))}; the works are {', '.join(WORKS)}"
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        prepare.build()
    except prepare.Missing as missing:
        sys.exit(str(missing))

    description = machine()
    print(*description, sep="\n", flush=True)
    os.sched_setaffinity(0, {processors.LOAD})
    began = time.monotonic()
    lines: list[Line] = []
    failures = 0
    for name in options.works or WORKS:
        print(f"\n{time.monotonic() - began:4.0f} s  {name}", flush=True)
        try:
            measured = WORKS[name](options.rounds)
        except Failed as failure:
            failures += 1
            print(f"FAILED: {failure}", flush=True)
        else:
            lines += measured
            print(*measured, sep="\n", flush=True)
    description.append(f"{options.rounds} rounds took {time.monotonic() - began:.0f} s")
    if failures:
        sys.exit(f"{failures} works failed")
    if not options.works:
        before, _, rest = README.read_text().partition(MARKS[0])
        results = "".join(f"- {line}\n" for line in description) + "\n" + as_markdown(lines)
        README.write_text(f"{before}{MARKS[0]}\n{results}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


def machine() -> list[str]:
    """Describe the machine, because the figures depend on its processors, memory, disk and versions."""
    names = [
        line.partition(":")[2].strip()
        for line in _read("/proc/cpuinfo")
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    model = f"{len(names)} x {names[0] if names else platform.machine()}"
    tools = [f"Python {platform.python_version()}", f"Node {_version('node', '--version')}"]
    tools += [
        _version("nginx", "-v"),
        _version("wrk", "-v"),
        f"sqlite3 shell {_version('sqlite3', '-version')[:6]}",
    ]
    return [
        f"{time.strftime('%Y-%m-%d')}: {model}, {memory:.0f} GB, Linux {platform.release()}",
        f"server on processor {processors.SERVER}, load generator on processor {processors.LOAD}",
        f"one write of 4 KB reaches the disk in {_disk() * 1e6:.0f} us (median); load before: {os.getloadavg()[0]:.2f}",
        ", ".join(tools),
    ]


def _read(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _version(tool: str, option: str) -> str:
    program = shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") or tool
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return (
        (done.stdout + done.stderr)
        .splitlines()[0]
        .removeprefix("nginx version: ")
        .partition(" Copyright")[0]
    )


def _disk() -> float:
    """Return the seconds that one write of 4 KB takes to reach the disk of the databases."""
    probe = prepare.BUILD / "probe"
    taken = []
    file = os.open(probe, os.O_RDWR | os.O_CREAT)
    try:
        for position in range(200):
            os.pwrite(file, bytes(4096), position * 4096)
            started = time.perf_counter()
            os.fdatasync(file)
            taken.append(time.perf_counter() - started)
    finally:
        os.close(file)
        probe.unlink()
    return statistics.median(taken)


if __name__ == "__main__":
    main()

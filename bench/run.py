"""Command line of the benchmark: builds the peers, measures all of them, prints and saves the tables."""

import argparse
import contextlib
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import database, plot, prepare, processors, report
from bench.measuring import Plan
from bench.report import Work
from bench.servers import DJANGO, EXPRESS, FLASK, NGINX, OURS
from bench.works import MILLION, postgres_works, sqlite_works

FULL = Plan(rounds=3, seconds=1, samples=30)
QUICK = Plan(rounds=1, seconds=1, samples=20, left_out=frozenset({FLASK.key, DJANGO.key}))
LONG = frozenset({"find-1000000", "files", "pg-million", "pg-find-1000000"})
"""Works that `--quick` skips unless `--only` names them."""
ENGINES = {"sqlite": sqlite_works, "postgres": postgres_works}
MARKS = ("<!-- results: written by bench/run.py -->\n", "<!-- end of results -->")


def main() -> None:
    """Read the command line, measure, and print. A complete run also updates the results beside this file."""
    parser = argparse.ArgumentParser(description="Measure the service and its peers side by side.")
    parser.add_argument("--quick", action="store_true", help="one short round, without the slow peers and works")
    parser.add_argument("--only", metavar="WORK,...", help="measure only these works")
    parser.add_argument("--engine", choices=("sqlite", "postgres", "both"), default="both", help="which database")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    names = [name for engine in ENGINES if options.engine in (engine, "both") for name in ENGINES[engine](plan)]
    if options.only:
        if unknown := set(options.only.split(",")) - set(names):
            parser.error(f"unknown work: {', '.join(sorted(unknown))}; the works are {', '.join(names)}")
        names = [name for name in names if name in options.only.split(",")]
    elif options.quick:
        names = [name for name in names if name not in LONG]
    signal.signal(signal.SIGTERM, _exit)
    try:
        prepare.build()
    except prepare.Missing as missing:
        sys.exit(str(missing))

    lines = machine()
    print(*lines, sep="\n", end="\n\n", flush=True)
    os.sched_setaffinity(0, {processors.LOAD})
    began = time.monotonic()
    done: list[Work] = []
    with contextlib.ExitStack() as stack:
        for name in names:
            if name.startswith("pg-") and not plan.database:
                postgres = stack.enter_context(database.running())
                plan = replace(plan, database=postgres)
                lines.append(postgres.description())
            print(f"{time.monotonic() - began:4.0f} s  {name}", file=sys.stderr, flush=True)
            engine = "postgres" if plan.database else "sqlite"
            done += ENGINES[engine](plan)[name]()
    lines.append(f"The run took {time.monotonic() - began:.0f} s.")
    print(report.as_text(done))
    whole = not options.quick and not options.only and options.engine == "both"
    write(prepare.BENCH if whole else prepare.BUILD, done, lines)


def _exit(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(143)


def write(folder: Path, done: Sequence[Work], lines: Sequence[str]) -> None:
    """Write the table, every round as JSON, and the plot. The table goes into README.md if the folder has one."""
    table = report.as_markdown(done, lines)
    (folder / "results.json").write_text(report.as_json(done, lines))
    if any(work.key.startswith("get-") for work in done):
        (folder / "plot.svg").write_text(picture(done))
    readme = folder / "README.md"
    if not readme.exists():
        (folder / "results.md").write_text(f"# Results\n\n{table}")
    else:
        before, _, rest = readme.read_text().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        readme.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}")


def picture(done: Sequence[Work]) -> str:
    """Plot the requests a second of each peer against the number of rows."""
    series: dict[str, list[tuple[float, float]]] = {}
    for peer in (OURS, NGINX, EXPRESS, FLASK):
        line = series.setdefault(peer.name, [])
        for work in done:
            cell = work.cells.get(peer.key)
            if cell and cell.measured and work.key.startswith("get-"):
                line.append((float(work.key.removeprefix("get-")), cell.median))
            if cell and cell.measured and work.key == "million-speed":
                line.append((MILLION, cell.median / MILLION))
    return plot.draw(
        "GET /, requests a second", "rows in the list", "requests a second, one process and processor", series
    )


def machine() -> list[str]:
    """Describe the machine, because the figures depend on its processors, memory, disk and versions."""
    names = [line.partition(":")[2].strip() for line in _read("/proc/cpuinfo") if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    prepare.BUILD.mkdir(exist_ok=True)
    model = f"{len(names)} x {names[0] if names else platform.machine()}"
    tools = [f"Python {platform.python_version()}", f"Node {_version('node', '--version')}"]
    tools += [_version("nginx", "-v"), _version("wrk", "-v"), f"sqlite3 shell {_version('sqlite3', '-version')[:6]}"]
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
    return (done.stdout + done.stderr).splitlines()[0].removeprefix("nginx version: ").partition(" Copyright")[0]


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

"""Measures `mahasiswa import` and `export`, and the same in the sqlite3 shell, while a service uses the file.

The shell does it twice: with the service's file, whose triggers keep the history and the folded texts of the search, and
with a file that has nothing but the table.
"""

import csv
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, NamedTuple

from bench import load, processors
from bench.measuring import Plan, fail
from bench.prepare import BUILD
from bench.report import Goal, Work
from bench.servers import (
    OUR_PROGRAM,
    OURS,
    SQLITE3,
    SQLITE3_PLAIN,
    Column,
    Failed,
    Server,
    fresh_folder,
    serving,
)
from bench.stores import rows
from bench.watched import Watched

EXPORT = "SELECT nim, nama, alamat FROM mahasiswa ORDER BY nim"
PLAIN_TABLE = """
CREATE TABLE mahasiswa (nim TEXT NOT NULL PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL) STRICT, WITHOUT ROWID
"""
MAX_TIMES = {"import": 2.0, "export": 1.5}
"""Maximum times as long as the shell takes with a plain table."""

MAX_MEMORY_MB = {"import": 180, "export": 40}

POLL_SECONDS = 0.01
"""Time between an answer of the service and the next request."""


class Ran(NamedTuple):
    """The measurements of a command."""

    seconds: float
    memory: float
    worst: float
    """The slowest answer of the service during the command, in milliseconds."""
    others_busy: float


def files(plan: Plan, number: int) -> list[Work]:
    """Measure the import of a list into an empty file, and its export."""
    works = {
        name: [
            plan.work(f"{name}-{what}", title, unit, goals, less_is_better=True)
            for what, title, unit, goals in (
                (
                    "time",
                    f"{name} of {number:,} rows, CSV",
                    "s",
                    [Goal(MAX_TIMES[name], SQLITE3_PLAIN.key, at_most=True), Goal(None, SQLITE3.key, at_most=True)],
                ),
                ("memory", f"{name}: peak memory of the command", "MB", [Goal(MAX_MEMORY_MB[name])]),
                ("sehat", f"{name}: slowest GET /sehat of a service on the same file", "ms", []),
            )
        ]
        for name in ("import", "export")
    }
    folder = fresh_folder("files")
    source = folder / "mahasiswa.csv"
    with source.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("NIM", "Nama", "Alamat"))
        writer.writerows(rows(number))

    def note(name: str, who: Column, ran: Ran) -> None:
        for work, value in zip(works[name], ran[:3], strict=True):
            work.add(who.key, value, others_busy=ran.others_busy)

    left = [OURS, SQLITE3, SQLITE3_PLAIN]
    for turn in range(plan.rounds):
        for who in list(left):
            if who is SQLITE3 and turn > 0:
                continue  # with the triggers its import takes 25 s
            try:
                target = folder / "exported.csv"
                with serving(OURS) as (server, store):
                    note("import", who, _run(server, _import(who, source, store.address)))
                    note("export", who, _run(server, _export(who, target, store.address), target))
                if turn == 0:
                    _compare(source, target, ";" if who is OURS else ",")
            except Failed as failure:
                left.remove(who)
                fail([*works["import"], *works["export"]], who, failure)
    shutil.rmtree(folder)
    return [work for each in works.values() for work in each]


class Command(NamedTuple):
    """A command, its environment besides PATH, and whether it prints the exported file."""

    words: list[str]
    environment: dict[str, str]
    prints: bool = False


def _import(who: Column, source: Path, store: str) -> Command:
    if who is OURS:
        return Command([str(OUR_PROGRAM), "import", str(source)], {"DATABASE_URL": f"sqlite:///{store}"})
    # The service has created its table and set WAL. With synchronous=FULL both commands wait for the disk alike.
    if who is SQLITE3_PLAIN:
        create = ["sqlite3", _plain(store), "PRAGMA journal_mode = WAL", PLAIN_TABLE]
        subprocess.run(create, check=True, stdout=subprocess.DEVNULL)  # the shell prints the journal mode
        store = _plain(store)
    how = ["PRAGMA synchronous = FULL", f'.import --csv --skip 1 "{source}" mahasiswa']
    return Command(["sqlite3", "-bail", store, ".timeout 10000", *how], {})


def _export(who: Column, target: Path, store: str) -> Command:
    if who is OURS:
        return Command([str(OUR_PROGRAM), "export", str(target)], {"DATABASE_URL": f"sqlite:///{store}"})
    store = _plain(store) if who is SQLITE3_PLAIN else store
    return Command(["sqlite3", "-bail", "-header", "-csv", store, EXPORT], {}, prints=True)


def _plain(store: str) -> str:
    """The file with nothing but the table, beside the file of the service."""
    return f"{store}-plain"


def _run(server: Server, command: Command, target: Path | None = None) -> Ran:
    """Run a command on the service's processor while requests are sent; raise Failed if command or service fails."""
    processors.wait_for_calm()
    ended = load.shares(server)
    log = BUILD / "logs" / "files.log"
    with log.open("w") as output, target.open("wb") if target and command.prints else output as printed:
        seen = _watch(server, command, printed, output)
    if isinstance(seen, str):
        raise Failed(f"{seen}: {log.read_text()[-500:]}")
    return seen._replace(others_busy=ended().others_busy)


def _watch(server: Server, command: Command, printed: IO[str] | IO[bytes], output: IO[str]) -> Ran | str:
    client = load.Client(server)
    over = threading.Event()
    worst, trouble = 0.0, ""

    def ask() -> None:
        nonlocal worst, trouble
        while not over.wait(POLL_SECONDS):
            try:
                answer = client.get("/sehat")
            except (OSError, Failed) as error:
                trouble = f"GET /sehat: {error}"
                return
            if answer.status != 200:
                trouble = f"GET /sehat answered {answer.status}"
            worst = max(worst, answer.last)

    asking = threading.Thread(target=ask)
    asking.start()
    started = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "--cpu-list", str(processors.SERVER), *command.words],
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=output,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **command.environment},
    )
    watched, memory = Watched(process.pid), 0.0
    while True:
        memory = max(memory, watched.peak_memory())
        try:
            process.wait(0.02)
            break
        except subprocess.TimeoutExpired:
            continue
    seconds = time.perf_counter() - started
    over.set()
    asking.join()
    client.close()
    if process.returncode:
        trouble = f"{Path(command.words[0]).name} ended with {process.returncode}"
    return trouble or Ran(seconds, memory, worst * 1000, 0)


def _compare(source: Path, target: Path, separator: str) -> None:
    """Compare the exported file with the imported one; raise Failed if they differ."""
    with source.open(newline="") as one, target.open(newline="", encoding="utf-8-sig") as other:
        expected = csv.reader(one)
        found = csv.reader(other, delimiter=separator)
        next(expected)
        next(found)
        if any(a != b for a, b in zip(expected, found, strict=True)):
            raise Failed("the exported records differ from the imported ones")

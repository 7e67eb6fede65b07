"""Measures searched and sorted pages over HTTP, and the same queries in the database's shell."""

import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from bench import load, processors
from bench.database import program
from bench.measuring import Plan, fail
from bench.report import Goal, Work
from bench.servers import OURS, PSQL, SQLITE3, Failed, Server, serving
from bench.stores import Row, Store

PER = 50
"""Records per page."""

ANDRE = "[Aa][Nn][Dd][Rr][Éé]"
"""A pattern for "andré" in any case, because SQLite ignores the case of ASCII letters only."""

_TIME = re.compile(r"^(?:Run Time: real ([0-9.]+) user|Time: ([0-9.]+) ms)")


class View(NamedTuple):
    """A page of the list, as a URL and as SQL."""

    key: str
    title: str
    path: str
    where: str
    order: str
    offset: int


def views(number: int, *, sqlite: bool) -> list[View]:
    """Return the pages that are measured."""
    like, andre = ("LIKE", f"GLOB '*{ANDRE}*'") if sqlite else ("ILIKE", f"~ '{ANDRE}'")
    collation = "" if sqlite else ' COLLATE "C"'
    nama = "nama COLLATE NOCASE, nim" if sqlite else 'lower(nama COLLATE "C"), nim'
    last = -(-number // PER)

    def search(key: str, title: str, text: str, condition: str) -> View:
        where = " WHERE " + " OR ".join(f"{field}{collation} {condition}" for field in ("nim", "nama", "alamat"))
        return View(key, title, f"/?cari={quote(text)}", where, "nim", 0)

    def page(key: str, title: str, halaman: int) -> View:
        return View(key, title, f"/?urut=nama&halaman={halaman}", "", nama, (halaman - 1) * PER)

    return [
        search("search", "?cari=rahmawati", "rahmawati", f"{like} '%rahmawati%'"),
        search("accented", "?cari=andré", "andré", andre),
        search("none", "?cari=zzzz, no match", "zzzz", f"{like} '%zzzz%'"),
        page("first", "?urut=nama, first page", 1),
        page("middle", "?urut=nama, middle page", last // 2),
        page("last", "?urut=nama, last page", last),
    ]


def found_pages(plan: Plan, number: int, goal: Goal) -> list[Work]:
    """Measure GET / with a query. Each page must show the records that the shell finds."""
    sqlite = plan.database is None
    shell = SQLITE3 if sqlite else PSQL
    chosen = [
        (
            plan.work(
                f"find-{number}-{view.key}", f"GET /{view.title}, {number:,} rows", "ms", [goal], less_is_better=True
            ),
            view,
        )
        for view in views(number, sqlite=sqlite)
    ]
    samples = 1 if number > 100_000 else 5

    def measure(server: Server, store: Store, client: load.Client, work: Work, view: View) -> None:
        processors.wait_for_calm()
        ended = load.shares(server)
        answers = [client.get(view.path) for _ in range(samples)]
        others = ended().others_busy
        expected = _ask_shell(store, view, samples, sqlite=sqlite)
        if any(answer.status != 200 or load.rows_of(answer.body)[1] != expected.rows for answer in answers):
            raise Failed(f"{view.path} does not show the records that {shell.name} finds")
        work.add(OURS.key, statistics.median(answer.last for answer in answers) * 1000, others_busy=others)
        work.add(shell.key, expected.milliseconds)

    try:
        with serving(OURS, number, plan.database) as (server, store):
            client = load.Client(server)
            for _ in range(plan.rounds):
                for work, view in chosen:
                    try:
                        measure(server, store, client, work, view)
                    except Failed as failure:
                        fail([work], OURS, failure)
            client.close()
    except Failed as failure:
        fail([work for work, _ in chosen], OURS, failure)
    return [work for work, _ in chosen]


class ShellResult(NamedTuple):
    """The records that a shell found, and its own measurement of the time of both queries."""

    rows: list[Row]
    milliseconds: float


def _ask_shell(store: Store, view: View, samples: int, *, sqlite: bool) -> ShellResult:
    """Count all records and read one page in the shell, as the service does; raise Failed."""
    command = ["sqlite3", "-bail", "-separator", "\t", store.address]
    timer = ".timer on"
    if not sqlite:
        command = [program("psql"), "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-qAt", "-F", "\t", store.address]
        timer = "\\timing on"
    page = (
        f"SELECT nim, nama, alamat FROM mahasiswa{view.where} ORDER BY {view.order} LIMIT {PER} OFFSET {view.offset};"
    )
    queries = [f"SELECT count(*) FROM mahasiswa{view.where};", page]
    done = subprocess.run(
        ["taskset", "--cpu-list", str(processors.SERVER), *command],
        input="\n".join([timer, *queries * samples]) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or done.stderr:
        raise Failed(f"{shutil.which(command[0])}: {done.stderr}")
    lines = done.stdout.splitlines()
    found = [Row(*line.split("\t")) for line in lines if line.count("\t") == 2]
    times = [float(seen[1]) * 1000 if seen[1] else float(seen[2]) for line in lines if (seen := _TIME.match(line))]
    return ShellResult(found[: len(found) // samples], _median_of_pairs(times))


def _median_of_pairs(times: Sequence[float]) -> float:
    return statistics.median(count + page for count, page in zip(times[::2], times[1::2], strict=True))

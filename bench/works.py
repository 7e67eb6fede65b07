"""The works of the benchmark: each measures its peers in turns, and returns its lines of the report."""

import contextlib
import csv
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import xlsxwriter  # type: ignore[import-untyped]

from bench import load, processors
from bench.report import Goal, Line
from bench.servers import (
    DJANGO,
    EXPRESS,
    EXPRESS_WAL,
    NGINX,
    OUR_PROGRAM,
    OURS,
    OURS_POSTGRES,
    Failed,
    Peer,
    Server,
    fresh_folder,
    nginx,
    serving,
)
from bench.stores import TABLE, Row, Store, rows

SQLITE3 = "sqlite3 shell, plain table"
Running = list[tuple[str, Server, Store]]


@contextlib.contextmanager
def running(number: int, *peers: Peer) -> Iterator[Running]:
    """Run peers at once, each on its own store with this number of records."""
    with contextlib.ExitStack() as stack:
        yield [(peer.name, *stack.enter_context(serving(peer, rows(number)))) for peer in peers]


def list_page(rounds: int, number: int, connections: int, *goals: Goal) -> list[Line]:
    """Measure GET / while nothing is written."""
    line = Line(
        f"GET /, {number:,} rows, {connections} connections",
        "requests/s",
        goals,
        less_is_better=False,
    )
    expected = list(rows(number))
    with running(number, OURS, OURS_POSTGRES, EXPRESS) as started, contextlib.ExitStack() as stack:
        page = load.check_page(started[0][1], expected)
        started.append((NGINX, *stack.enter_context(serving(nginx(page)))))
        for turn in range(1 + rounds):
            for peer, server, _ in started:
                load.check_page(server, expected)
                seen = load.wrk(server, connections, 1 if turn == 0 else 2, "read")
                if turn:  # the first turn warms up
                    line.add_load(peer, seen)
    return [line]


def after_write(rounds: int, number: int, times: float) -> list[Line]:
    """Measure the first GET / after another program has committed a change."""
    goal = Goal(times, EXPRESS.name)
    line = Line(
        f"GET / as Chrome asks, right after another program's write, {number:,} rows", "ms", [goal]
    )
    with running(number, OURS, EXPRESS) as started:
        for turn in range(1 + rounds):
            for peer, server, store in started:
                client, taken = load.Client(server), []
                for sample in range(30 if turn else 10):
                    alamat = f"Jl. Perubahan No. {turn * 100 + sample}, Bandung"
                    store.rewrite(sample * 7 % number, alamat)
                    answer = client.get(encoding=load.CHROME)
                    if answer.status != 200 or alamat.encode() not in answer.body:
                        raise Failed(
                            f"{peer} answered {answer.status} without the change that was just written"
                        )
                    taken.append(answer.last * 1000)
                client.close()
                if turn:  # the first turn warms up
                    line.add(peer, statistics.median(taken))
    return [line]


def additions(rounds: int) -> list[Line]:
    """Measure POST /mahasiswa/add. Each answer must be a redirect, and each acknowledged record must be stored."""
    goals = [Goal(9, EXPRESS.name), Goal(3, EXPRESS_WAL.name)]
    line = Line(
        "POST /mahasiswa/add, 64 connections, each durable",
        "requests/s",
        goals,
        less_is_better=False,
    )
    with running(0, OURS, OURS_POSTGRES, EXPRESS, EXPRESS_WAL) as started:
        for turn in range(1 + rounds):
            for peer, server, store in started:
                before = store.count()
                seen = load.wrk(server, 64, 1 if turn == 0 else 2, "add", f"{turn:03d}")
                added = store.count() - before
                # When wrk stops, each connection may have one request in flight.
                if (
                    seen.redirects != seen.requests
                    or not seen.requests <= added <= seen.requests + 64
                ):
                    raise Failed(
                        f"{peer}: {seen.requests} answers, {seen.redirects} redirects, {added} records"
                    )
                if turn:  # the first turn warms up
                    line.add_load(peer, seen)
    return [line]


def spreadsheet(rounds: int, number: int = 10_000) -> list[Line]:
    """Measure the import of a workbook by the browser's forms: preview and confirmation."""
    goals = [Goal(2), Goal(12, DJANGO.name)]
    line = Line(
        f"import of {number:,} rows of xlsx by a browser: preview and confirmation", "s", goals
    )
    forms = {
        OURS: ("/mahasiswa/impor", "form:has(button[value=simpan])"),
        DJANGO: ("/admin/app/mahasiswa/import/", "form[action$='/process_import/']"),
    }
    with fresh_folder("spreadsheet") as folder:
        first, file = (_workbook(folder, count) for count in (1, number))
        for turn in range(rounds):
            for peer, (page, confirm) in forms.items():
                if peer is DJANGO and turn:
                    continue  # its figures hardly differ, and each takes long
                with serving(peer) as (server, store):
                    load.import_by_forms(server, page, first, confirm)  # warms up
                    taken = load.import_by_forms(server, page, file, confirm)
                    if store.count() != number:
                        raise Failed(f"{peer.name} stored {store.count()} records")
                    line.add(peer.name, taken)
    return [line]


def _workbook(folder: Path, count: int) -> Path:
    """A workbook with the first records."""
    file = folder / f"{count}.xlsx"
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet()
        for position, row in enumerate([Row._fields, *rows(count)]):
            sheet.write_row(position, 0, row)
    return file


def search(
    rounds: int, beyond_ascii: float, limit_ms: float, limit_postgres_ms: float
) -> list[Line]:
    """Measure searched and sorted pages of 100,000 records. The figure of a round is that of the slowest page."""
    goals = [Goal(limit_ms), Goal(limit_postgres_ms, ours=OURS_POSTGRES.name)]
    line = Line(
        f"search of 100,000 records, {beyond_ascii:.0%} beyond ASCII: slowest of five pages",
        "ms",
        goals,
    )
    records = list(rows(100_000, beyond_ascii))
    words = ("rahmawati", "siti melati 22", "a i u e o an ra ma ti 2", "zzzz")
    pages = {f"/?cari={each.replace(' ', '+')}": _found(records, each) for each in words}
    pages["/?urut=nama&halaman=1000"] = sorted(
        records, key=lambda row: (row.nama.lower(), row.nim)
    )[49_950:50_000]
    for peer in (OURS, OURS_POSTGRES):
        with serving(peer, iter(records)) as (server, _):
            for turn in range(1 + rounds):
                client, slowest = load.Client(server), 0.0
                for path, expected in pages.items():
                    answer = client.get(path)
                    if answer.status != 200 or load.rows_of(answer.body)[1] != expected:
                        raise Failed(
                            f"{peer.name}: {path} answered {answer.status} without the expected records"
                        )
                    slowest = max(slowest, answer.last)
                client.close()
                if turn:  # the first turn warms up
                    line.add(peer.name, slowest * 1000)
    return [line]


def _found(records: list[Row], words: str) -> list[Row]:
    """Return the first 50 records that hold each of the words. é is the only letter of the records beyond ASCII."""
    folded = ((row, " ".join(row).lower().replace("é", "e")) for row in records)
    return [row for row, text in folded if all(word in text for word in words.split())][:50]


def long_list(rounds: int, number: int) -> list[Line]:
    """Measure the first byte of a long list after each change of another program, and the memory of the service."""
    first = Line(f"GET / after a change, {number:,} rows: first byte", "ms", [Goal(100)])
    memory = Line(f"GET / after a change, {number:,} rows: peak memory", "MB", [Goal(150)])
    with serving(OURS, rows(number)) as (server, store):
        for turn in range(1 + rounds):
            store.rewrite(turn, "Jl. Perubahan")
            seconds, shown = load.download(server)
            if shown != number:
                raise Failed(f"the list shows {shown} rows")
            if turn:  # the first turn warms up
                first.add(OURS.name, seconds * 1000)
        memory.add(OURS.name, processors.peak_memory_mb(server.pid))
    return [first, memory]


def import_csv(rounds: int, number: int = 1_000_000) -> list[Line]:
    """Measure `mahasiswa import` of a CSV file, and the sqlite3 shell with a table of its own."""
    line = Line(
        f"import of {number:,} rows of CSV by command", "s", [Goal(6, SQLITE3, is_maximum=True)]
    )
    memory = Line("the same: peak memory", "MB", [Goal(450)])
    with fresh_folder("import") as folder:
        source = folder / "mahasiswa.csv"
        with source.open("w", newline="") as file:
            csv.writer(file).writerows([Row._fields, *rows(number)])
        # With WAL and synchronous=FULL both wait for the disk alike.
        prepare = [
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            f"{TABLE} STRICT, WITHOUT ROWID",
        ]
        shell = [*prepare, f'.import --csv --skip 1 "{source}" mahasiswa']
        for turn in range(rounds):
            ours, plain = folder / f"{turn}.db", folder / f"{turn}-plain.db"
            seconds, peak = _run([str(OUR_PROGRAM), "import", str(source)], ours)
            line.add(OURS.name, seconds)
            memory.add(OURS.name, peak)
            line.add(SQLITE3, _run(["sqlite3", "-bail", str(plain), *shell], plain)[0])
            for made in (ours, plain):
                command = ["sqlite3", str(made), "SELECT count(*) FROM mahasiswa"]
                found = int(subprocess.run(command, capture_output=True, check=True).stdout)
                made.unlink()
                if found != number:
                    raise Failed(f"{made.name} holds {found} records")
    return [line, memory]


def _run(words: list[str], database: Path) -> tuple[float, float]:
    """Run a command on the server's processor; return its seconds and its peak memory in MB."""
    command = ["taskset", "--cpu-list", str(processors.SERVER), *words]
    environment = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "DATABASE_URL": f"sqlite:///{database}",
    }
    log, peak = database.with_suffix(".log"), 0.0
    with log.open("w") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
        while process.poll() is None:
            peak = max(peak, processors.peak_memory_mb(process.pid))
            time.sleep(0.02)
        seconds = time.perf_counter() - started
    if process.returncode:
        raise Failed(f"{words[0]} ended with {process.returncode}: {log.read_text()[-500:]}")
    return seconds, peak


WORKS: dict[str, Callable[[int], list[Line]]] = {
    "get-12": lambda rounds: list_page(
        rounds, 12, 64, Goal(0.35, NGINX, by_processor=True), Goal(7, EXPRESS.name)
    ),
    "get-1000": lambda rounds: list_page(
        rounds, 1000, 32, Goal(0.55, NGINX), Goal(40, EXPRESS.name)
    ),
    "get-10000": lambda rounds: list_page(
        rounds, 10_000, 8, Goal(1.1, NGINX), Goal(40, EXPRESS.name)
    ),
    "after-write-12": lambda rounds: after_write(rounds, 12, 1),
    "after-write-1000": lambda rounds: after_write(rounds, 1000, 3.5),
    "after-write-10000": lambda rounds: after_write(rounds, 10_000, 4),
    "add": additions,
    "xlsx": spreadsheet,
    "search": lambda rounds: search(rounds, 0.01, 300, 300),
    "search-beyond-ascii": lambda rounds: search(rounds, 0.1, 500, 1000),
    "list-50000": lambda rounds: long_list(rounds, 50_000),
    "list-100000": lambda rounds: long_list(rounds, 100_000),
    "list-1000000": lambda rounds: long_list(rounds, 1_000_000),
    "csv-1000000": import_csv,
}

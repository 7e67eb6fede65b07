"""Defines the works: each measures all of its peers and returns its rows of the table."""

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence

from bench import load, processors
from bench.files import files
from bench.finding import found_pages
from bench.measuring import Plan, fail, in_turns, note_load, running
from bench.report import Goal, Work
from bench.servers import (
    DJANGO,
    EXPRESS,
    EXPRESS_PG,
    EXPRESS_WAL,
    FLASK,
    NGINX,
    OURS,
    OURS_2,
    OURS_WITHOUT_HISTORY,
    Failed,
    Peer,
    Server,
    serving,
    serving_file,
)
from bench.stores import Store, nim, rows
from bench.watched import socket_buffers

MILLION = 1_000_000

CHROME = "Accept-Encoding: gzip, deflate, br, zstd"

STALLED_CLIENTS = 200
STALLED_ROWS = 10_600
"""Enough for a list page of 3.5 MB."""


def list_page(plan: Plan, peers: Sequence[Peer], number: int, connections: int, goals: Sequence[Goal]) -> list[Work]:
    """Measure GET / while nothing is written."""
    work = plan.work(f"get-{number}", f"GET /, {number:,} rows, {connections} connections", "requests/s", goals)
    expected = list(rows(number))
    seconds = plan.seconds + (number >= 10_000)  # gives the slowest peer time for many answers
    with contextlib.ExitStack() as stack:
        started = stack.enter_context(running(plan, peers, number, [work]))
        servers = {key: server for key, (server, _) in started.items()}
        if servers and not plan.database:
            page = load.check_page(next(iter(servers.values())), expected)
            servers[NGINX.key] = stack.enter_context(serving_file(page))

        def warm(key: str) -> None:
            load.check_page(servers[key], expected)
            load.wrk(servers[key], "read", connections, 1 + (number >= 10_000))

        def measure(key: str) -> None:
            load.check_page(servers[key], expected)
            note_load(work, servers[key], lambda: load.wrk(servers[key], "read", connections, seconds))

        in_turns(1, list(servers), [work], warm)
        in_turns(plan.rounds, [key for key in servers if not work.failed(key)], [work], measure)
    return [work]


def after_write(plan: Plan, number: int, goal: float, *headers: str) -> list[Work]:
    """Measure the first GET / after another program has committed a change."""
    key, how = ("chrome-", "asked for as Chrome does") if headers else ("", "no compression")
    title = f"GET / right after another program's write, {number:,} rows, {how}"
    goals = [Goal(goal, EXPRESS.key)]
    work = plan.work(f"after-write-{key}{number}", title, "ms", goals, less_is_better=True)
    with contextlib.ExitStack() as stack:
        started = stack.enter_context(running(plan, (OURS, EXPRESS, FLASK), number, [work]))
        clients: dict[str, load.Client] = {}
        for key, (server, _) in started.items():
            clients[key] = load.Client(server)
            stack.callback(clients[key].close)
        turn = 0
        taken: dict[str, list[float]] = {}

        def measure(key: str) -> None:
            nonlocal turn
            turn += 1
            alamat = f"Jl. Perubahan No. {turn}, Bandung"
            started[key][1].rewrite(turn * 7 % number, alamat)
            answer = clients[key].get("/", *headers)
            if answer.status != 200 or alamat.encode() not in answer.body:
                raise Failed(f"answered {answer.status} without the change that was just written")
            taken.setdefault(key, []).append(answer.last * 1000)

        in_turns(10, list(started), [work], measure)  # warms up
        for _ in range(plan.rounds):
            taken.clear()
            processors.wait_for_calm()
            ended = load.shares(*(server for server, _ in started.values()))
            in_turns(plan.samples, [key for key in started if not work.failed(key)], [work], measure)
            others = ended().others_busy
            for key, times in taken.items():
                seen = {"fastest": min(times), "slowest": max(times), "others_busy": others}
                work.add(key, statistics.median(times), **seen)
    return [work]


def additions(plan: Plan, peers: Sequence[Peer], connections: int, goals: Sequence[Goal]) -> list[Work]:
    """Measure POST /mahasiswa/add. Each answer must be a redirect, and each acknowledged record must be stored."""
    named = f"{connections} connections" if connections > 1 else "1 connection"
    work = plan.work(f"add-{connections}", f"POST add, {named}, each durable", "requests/s", goals)
    with running(plan, peers, 0, [work]) as started:
        turn = 0

        def add(server: Server, store: Store, seconds: int) -> load.Load:
            nonlocal turn
            turn += 1
            load.check_redirect(server, "/mahasiswa/add", f"nim=c{turn}&nama=Siti+Rahmawati&alamat=Jl.+Merdeka")
            before = store.count()
            seen = load.wrk(server, "add", connections, seconds, f"{turn:03d}")
            if seen.redirects != seen.requests:
                raise Failed(f"{seen.requests - seen.redirects} of {seen.requests} answers were no redirect")
            added = store.count() - before
            # When wrk stops, each connection may have one request in flight.
            if not seen.requests <= added <= seen.requests + connections:
                raise Failed(f"{seen.requests} additions were acknowledged, but {added} records were stored")
            return seen

        def warm(key: str) -> None:
            add(*started[key], 1)

        def measure(key: str) -> None:
            server, store = started[key]
            note_load(work, server, lambda: add(server, store, plan.seconds))

        in_turns(1, list(started), [work], warm)
        in_turns(plan.rounds, [key for key in started if not work.failed(key)], [work], measure)
    return [work]


def mixed(plan: Plan, number: int, connections: int, goals: Sequence[Goal]) -> list[Work]:
    """Measure a mixture: nine reads of the list, then one change of a record, repeated."""
    title = f"90% reads, 10% writes, {number:,} rows, {connections} connections"
    work = plan.work("mixed", title, "requests/s", goals)
    with running(plan, (OURS, EXPRESS, EXPRESS_WAL, FLASK), number, [work]) as started:
        turn = 0

        def change(server: Server, store: Store, seconds: int) -> load.Load:
            nonlocal turn
            turn += 1
            load.check_redirect(server, f"/mahasiswa/edit/{nim(0)}", f"nama=Siti&alamat=Jl.+Cek+{turn}")
            load.check_page(server, store.read())
            seen = load.wrk(server, "mixed", connections, seconds, f"Putaran{turn}", str(number))
            if not any(f"Putaran{turn} " in row.alamat for row in store.read()):
                raise Failed("nothing was changed")
            return seen

        def warm(key: str) -> None:
            change(*started[key], 1)

        def measure(key: str) -> None:
            server, store = started[key]
            note_load(work, server, lambda: change(server, store, plan.seconds))

        in_turns(1, list(started), [work], warm)
        in_turns(plan.rounds, [key for key in started if not work.failed(key)], [work], measure)
    return [work]


def million(plan: Plan, peers: Sequence[Peer], goals: Sequence[Goal]) -> list[Work]:
    """Measure GET / with a million records, one peer after the other. Another program writes before each request."""
    title = "GET /, 1,000,000 rows"
    first = plan.work("million-first", f"{title}: first byte", "ms", [Goal(100)], less_is_better=True)
    memory = plan.work("million-memory", f"{title}: peak memory", "MB", [Goal(150)], less_is_better=True)
    speed = plan.work("million-speed", f"{title}: speed", "rows/s", goals)
    works = [first, memory, speed]

    def measure(peer: Peer) -> None:
        with serving(peer, MILLION, plan.database) as (server, store):
            with server.watched_memory() as samples:
                started = time.monotonic()
                if (number := load.count_rows(server)) != MILLION:
                    raise Failed(f"the list shows {number} rows")
                slow = time.monotonic() - started > 10
            for turn in range(1 if slow else plan.rounds):
                store.rewrite(turn, "Jl. Perubahan")
                processors.wait_for_calm()
                ended = load.shares(server)
                seen = load.download(server)
                busy = ended()._asdict()
                first.add(peer.key, seen.first * 1000, **busy)
                speed.add(peer.key, MILLION / seen.last, bytes=seen.size, seconds=seen.last, **busy)
            pss, resident = max(samples), server.peak_memory()
            memory.add(peer.key, max(pss, resident), pss_all_mb=pss, resident_largest_mb=resident)

    for peer in plan.peers(*peers):
        try:
            measure(peer)
        except Failed as failure:
            fail(works, peer, failure)
    return works


def stalled(plan: Plan) -> list[Work]:
    """Measure the growth of memory while clients have asked for a long page and do not read it."""
    title = f"{STALLED_CLIENTS} clients that do not read a page of 3.5 MB"
    work = plan.work("stalled", f"{title}: growth of the server's memory", "MB", [Goal(20)], less_is_better=True)
    kernel = plan.work("stalled-kernel", f"{title}: growth of the kernel's socket buffers", "MB", less_is_better=True)
    expected = list(rows(STALLED_ROWS))

    def measure(key: str) -> None:
        with serving(peers[key], STALLED_ROWS) as (server, _):
            for _ in range(3):
                page = load.check_page(server, expected)
            before, buffers = server.memory(), socket_buffers()
            with server.watched_memory() as samples, load.stalled(server, STALLED_CLIENTS):
                load.check_page(server, expected)  # other clients are still answered
                time.sleep(1)  # in case the server goes on with the answers, which have begun
                kernel.add(key, socket_buffers() - buffers)
            work.add(key, max(samples) - before, before_mb=before, page_mb=len(page) / 1e6)

    peers = {peer.key: peer for peer in plan.peers(OURS, EXPRESS)}
    in_turns(plan.rounds, list(peers), [work, kernel], measure)
    return [work, kernel]


def start(plan: Plan) -> list[Work]:
    """Measure the time from the start of the program to its first answer, on an empty store that it creates."""
    work = plan.work("start", "start to first answer, empty store", "s", [Goal(0.5)], less_is_better=True)

    peers = {peer.key: peer for peer in plan.peers(OURS, EXPRESS, FLASK)}

    def measure(key: str) -> None:
        started = time.perf_counter()
        with serving(peers[key]) as (server, _):
            taken = time.perf_counter() - started
            load.check_page(server, [])
            work.add(key, taken)

    in_turns(2 + plan.rounds, list(peers), [work], measure)
    for cell in work.cells.values():
        del cell.values[:1]  # the first start compiles to bytecode
    return [work]


Works = dict[str, Callable[[], list[Work]]]


def sqlite_works(plan: Plan) -> Works:
    """Return every work on SQLite by its name, in the order of the table."""
    nginx, express, wal = NGINX.key, EXPRESS.key, EXPRESS_WAL.key
    readers = (OURS, EXPRESS, FLASK)
    writers = (OURS, OURS_WITHOUT_HISTORY, EXPRESS, EXPRESS_WAL, FLASK)
    history = Goal(None, OURS_WITHOUT_HISTORY.key)
    return {
        "get-12": lambda: list_page(plan, readers, 12, 64, [Goal(0.60, nginx), Goal(10, express)]),
        "get-1000": lambda: list_page(plan, readers, 1000, 32, [Goal(0.95, nginx), Goal(60, express)]),
        "get-10000": lambda: list_page(plan, readers, 10_000, 8, [Goal(1.3, nginx), Goal(40, express)]),
        "after-write-12": lambda: after_write(plan, 12, 1.1),
        "after-write-1000": lambda: after_write(plan, 1000, 5),
        "after-write-10000": lambda: after_write(plan, 10_000, 6),
        "after-write-chrome-12": lambda: after_write(plan, 12, 1, CHROME),
        "after-write-chrome-1000": lambda: after_write(plan, 1000, 5, CHROME),
        "after-write-chrome-10000": lambda: after_write(plan, 10_000, 6, CHROME),
        "add-64": lambda: additions(plan, writers, 64, [Goal(10, express), Goal(5, wal), history]),
        "add-1": lambda: additions(plan, writers, 1, [Goal(1.5, express), history]),
        "mixed": lambda: mixed(plan, 1000, 32, [Goal(10, express)]),
        "million": lambda: million(plan, readers, [Goal(3, express)]),
        "stalled": lambda: stalled(plan),
        "find-100000": lambda: found_pages(plan, 100_000, Goal(50)),
        "find-1000000": lambda: found_pages(plan, MILLION, Goal(1000)),
        "files": lambda: files(plan, MILLION),
        "start": lambda: start(plan),
    }


def postgres_works(plan: Plan) -> Works:
    """Return every work on PostgreSQL by its name, in the order of the table."""
    peers = (OURS, OURS_2, EXPRESS_PG, DJANGO)

    writers = (OURS, OURS_WITHOUT_HISTORY, OURS_2, EXPRESS_PG, DJANGO)

    def both(times: float) -> list[Goal]:
        return [Goal(times, EXPRESS_PG.key, ours=ours.key) for ours in (OURS, OURS_2)]

    return {
        "pg-get-12": lambda: list_page(plan, peers, 12, 64, both(5)),
        "pg-get-1000": lambda: list_page(plan, peers, 1000, 32, both(5)),
        "pg-add-64": lambda: additions(plan, writers, 64, [*both(1.5), Goal(None, OURS_WITHOUT_HISTORY.key)]),
        "pg-million": lambda: million(plan, (OURS, EXPRESS_PG, DJANGO), ()),
        "pg-find-1000000": lambda: found_pages(plan, MILLION, Goal(1000)),
    }

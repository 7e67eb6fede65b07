"""The works that are measured: each makes its row or rows of the table, with all peers side by side."""

import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import load, processors
from bench.report import DISTURBED, Goal, Work
from bench.servers import (
    EXPRESS,
    EXPRESS_WAL,
    FLASK,
    NGINX,
    OURS,
    PEERS,
    UVICORN,
    Failed,
    Peer,
    Server,
    serving,
    serving_file,
)
from bench.stores import SQLiteStore, nim, rows

MILLION = 1_000_000
TRIES = 3
"""How often a disturbed measurement is made again, at most."""


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    rounds: int
    seconds: int
    samples: int
    """Single requests a peer, where the time of one is taken."""
    left_out: frozenset[str] = frozenset()
    """Peers that are not measured."""

    def peers(self, *peers: Peer) -> list[Peer]:
        """Those of them that are measured."""
        return [peer for peer in peers if peer.key not in self.left_out]


Running = dict[str, tuple[Server, SQLiteStore]]


@contextlib.contextmanager
def _running(peers: Sequence[Peer], number: int, works: Sequence[Work]) -> Iterator[Running]:
    """Run all peers at once, each on a store of its own; one that does not start fails in these works."""
    with contextlib.ExitStack() as stack:
        servers: Running = {}
        for peer in peers:
            try:
                servers[peer.key] = stack.enter_context(serving(peer, number))
            except Failed as failure:
                _fail(works, peer.key, failure)
        yield servers


def _fail(works: Sequence[Work], peer: str, failure: Failed) -> None:
    print(f"  {peer} failed: {failure}", file=sys.stderr, flush=True)
    for work in works:
        work.fail(peer, str(failure))


def _in_turns(rounds: int, keys: Sequence[str], works: Sequence[Work], measure: Callable[[str], None]) -> None:
    """Measure every peer once, then every peer again: what disturbs the machine for a while disturbs them all."""
    left = list(keys)
    for _ in range(rounds):
        for key in list(left):
            try:
                measure(key)
            except Failed as failure:
                left.remove(key)
                _fail(works, key, failure)


def _load(work: Work, server: Server, measure: Callable[[], load.Load]) -> None:
    """Measure, again where other programs took the processors meanwhile, and note what was disturbed least."""
    tries = [measure()]
    while tries[-1].shares.others_busy > DISTURBED and len(tries) < TRIES:
        tries.append(measure())
    seen = min(tries, key=lambda seen: seen.shares.others_busy)
    told = {**seen._asdict(), **seen.shares._asdict(), "rate": seen.rate, "tries": len(tries)}
    del told["shares"]
    work.add(server.peer.key, seen.rate, **told)


def list_page(plan: Plan, number: int, connections: int, goals: Sequence[Goal]) -> list[Work]:
    """GET / while nothing is written."""
    work = Work(f"get-{number}", f"GET /, {number:,} rows, {connections} connections", "requests/s", goals)
    expected = list(rows(number))
    seconds = plan.seconds + (number >= 10_000)  # so that the slowest answer many times
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(_running(plan.peers(OURS, UVICORN, EXPRESS, FLASK), number, [work]))
        servers = {key: server for key, (server, _) in running.items()}
        if servers:
            page = load.check_page(next(iter(servers.values())), expected)
            servers[NGINX.key] = stack.enter_context(serving_file(page))

        def warm(key: str) -> None:
            load.check_page(servers[key], expected)
            load.wrk(servers[key], "read", connections, 1 + (number >= 10_000))

        def measure(key: str) -> None:
            load.check_page(servers[key], expected)
            _load(work, servers[key], lambda: load.wrk(servers[key], "read", connections, seconds))

        _in_turns(1, list(servers), [work], warm)
        _in_turns(plan.rounds, [key for key in servers if not work.failed(key)], [work], measure)
    return [work]


def after_write(plan: Plan, number: int, goals: Sequence[Goal]) -> list[Work]:
    """The first GET / after another program has committed a change."""
    title = f"GET / right after another program's write, {number:,} rows"
    work = Work(f"after-write-{number}", title, "ms", goals, less_is_better=True)
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(_running(plan.peers(OURS, UVICORN, EXPRESS, FLASK), number, [work]))
        clients: dict[str, load.Client] = {}
        for key, (server, _) in running.items():
            clients[key] = load.Client(server)
            stack.callback(clients[key].close)
        turn = 0
        taken: dict[str, list[float]] = {}

        def measure(key: str) -> None:
            nonlocal turn
            turn += 1
            alamat = f"Jl. Perubahan No. {turn}, Bandung"
            running[key][1].rewrite(turn * 7 % number, alamat)
            answer = clients[key].get()
            if answer.status != 200 or alamat.encode() not in answer.body:
                raise Failed(f"answered {answer.status}, and not with what had just been written")
            taken.setdefault(key, []).append(answer.last * 1000)

        _in_turns(10, list(running), [work], measure)  # warms up
        for _ in range(plan.rounds):
            taken.clear()
            processors.wait_for_calm()
            ended = load.shares(*(server for server, _ in running.values()))
            _in_turns(plan.samples, [key for key in running if not work.failed(key)], [work], measure)
            others = ended().others_busy
            for key, times in taken.items():
                seen = {"fastest": min(times), "slowest": max(times), "others_busy": others}
                work.add(key, statistics.median(times), **seen)
    return [work]


def additions(plan: Plan, connections: int, goals: Sequence[Goal]) -> list[Work]:
    """POST /mahasiswa/add: each answer a redirect, and each a record that is there afterwards."""
    named = f"{connections} connections" if connections > 1 else "1 connection"
    work = Work(f"add-{connections}", f"POST add, {named}, each durable", "requests/s", goals)
    with _running(plan.peers(OURS, UVICORN, EXPRESS, EXPRESS_WAL, FLASK), 0, [work]) as running:
        turn = 0

        def add(server: Server, store: SQLiteStore, seconds: int) -> load.Load:
            nonlocal turn
            turn += 1
            load.check_redirect(server, "/mahasiswa/add", f"nim=c{turn}&nama=Siti+Rahmawati&alamat=Jl.+Merdeka")
            before = store.count()
            seen = load.wrk(server, "add", connections, seconds, f"{turn:03d}")
            if seen.redirects != seen.requests:
                raise Failed(f"{seen.requests - seen.redirects} answers of {seen.requests} were no redirect")
            added = store.count() - before
            # Where wrk stops, a request may be on its way on each connection.
            if not seen.requests <= added <= seen.requests + connections:
                raise Failed(f"{seen.requests} additions were acknowledged, {added} are there")
            return seen

        def warm(key: str) -> None:
            add(*running[key], 1)

        def measure(key: str) -> None:
            server, store = running[key]
            _load(work, server, lambda: add(server, store, plan.seconds))

        _in_turns(1, list(running), [work], warm)
        _in_turns(plan.rounds, [key for key in running if not work.failed(key)], [work], measure)
    return [work]


def mixed(plan: Plan, number: int, connections: int, goals: Sequence[Goal]) -> list[Work]:
    """Nine reads of the list, then one change of a record, and so on."""
    title = f"90% reads, 10% writes, {number:,} rows, {connections} connections"
    work = Work("mixed", title, "requests/s", goals)
    with _running(plan.peers(OURS, UVICORN, EXPRESS, EXPRESS_WAL, FLASK), number, [work]) as running:
        turn = 0

        def change(server: Server, store: SQLiteStore, seconds: int) -> load.Load:
            nonlocal turn
            turn += 1
            load.check_redirect(server, f"/mahasiswa/edit/{nim(0)}", f"nama=Siti&alamat=Jl.+Cek+{turn}")
            load.check_page(server, store.read())
            seen = load.wrk(server, "mixed", connections, seconds, f"Putaran{turn}", str(number))
            if not any(f"Putaran{turn} " in row.alamat for row in store.read()):
                raise Failed("nothing was changed")
            return seen

        def warm(key: str) -> None:
            change(*running[key], 1)

        def measure(key: str) -> None:
            server, store = running[key]
            _load(work, server, lambda: change(server, store, plan.seconds))

        _in_turns(1, list(running), [work], warm)
        _in_turns(plan.rounds, [key for key in running if not work.failed(key)], [work], measure)
    return [work]


def million(plan: Plan) -> list[Work]:
    """GET / of a million records, one peer after the other; another program writes before each."""
    title = "GET /, 1,000,000 rows"
    first = Work("million-first", f"{title}: first byte", "ms", [Goal(100)], less_is_better=True)
    memory = Work("million-memory", f"{title}: peak memory", "MB", [Goal(150)], less_is_better=True)
    speed = Work("million-speed", f"{title}: speed", "rows/s", [Goal(3, EXPRESS.key)])
    works = [first, memory, speed]

    def measure(peer: Peer) -> None:
        with serving(peer, MILLION) as (server, store):
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

    for peer in plan.peers(OURS, UVICORN, EXPRESS, FLASK):
        try:
            measure(peer)
        except Failed as failure:
            _fail(works, peer.key, failure)
    return works


def start(plan: Plan) -> list[Work]:
    """From the start of the program to its first answer, on an empty store that it makes."""
    work = Work("start", "start to first answer, empty store", "s", [Goal(0.5)], less_is_better=True)

    def measure(key: str) -> None:
        peer = next(peer for peer in PEERS if peer.key == key)
        started = time.perf_counter()
        with serving(peer) as (server, _):
            taken = time.perf_counter() - started
            load.check_page(server, [])
            work.add(key, taken)

    _in_turns(2 + plan.rounds, [peer.key for peer in plan.peers(OURS, UVICORN, EXPRESS, FLASK)], [work], measure)
    for cell in work.cells.values():
        del cell.values[:1]  # the first one compiles
    return [work]


def works(plan: Plan) -> dict[str, Callable[[], list[Work]]]:
    """Every work by its name, in the order of the table."""
    nginx, express, wal = NGINX.key, EXPRESS.key, EXPRESS_WAL.key
    return {
        "get-12": lambda: list_page(plan, 12, 64, [Goal(0.40, nginx), Goal(6, express)]),
        "get-1000": lambda: list_page(plan, 1000, 32, [Goal(0.45, nginx), Goal(30, express)]),
        "get-10000": lambda: list_page(plan, 10_000, 8, [Goal(1, nginx), Goal(40, express)]),
        "after-write-1000": lambda: after_write(plan, 1000, [Goal(3, express)]),
        "after-write-10000": lambda: after_write(plan, 10_000, [Goal(3, express)]),
        "add-64": lambda: additions(plan, 64, [Goal(10, express), Goal(3, wal)]),
        "add-1": lambda: additions(plan, 1, [Goal(1.5, express)]),
        "mixed": lambda: mixed(plan, 1000, 32, [Goal(10, express)]),
        "million": lambda: million(plan),
        "start": lambda: start(plan),
    }

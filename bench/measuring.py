"""Runs the peers of a work, measures them in turns, and repeats measurements that other programs disturbed."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import load
from bench.database import Postgres
from bench.report import DISTURBED, Goal, Work
from bench.servers import Column, Failed, Peer, Server, serving
from bench.stores import Store

MAX_TRIES = 3
"""Maximum attempts at a measurement that other programs disturb."""


@dataclass(frozen=True)
class Plan:
    """How long to measure, which peers, and on which database."""

    rounds: int
    seconds: int
    samples: int
    """Requests per peer in works that measure single requests."""
    left_out: frozenset[str] = frozenset()
    """Peers that are not measured."""
    database: Postgres | None = None
    """The PostgreSQL server, or None for SQLite."""

    def peers(self, *peers: Peer) -> list[Peer]:
        """Return those of these peers that are measured."""
        return [peer for peer in peers if peer.key not in self.left_out]

    def work(
        self, key: str, title: str, unit: str, goals: Sequence[Goal] = (), *, less_is_better: bool = False
    ) -> Work:
        """Return a new row of the table in the section of the database."""
        section = "PostgreSQL" if self.database else "SQLite"
        return Work(f"pg-{key}" if self.database else key, section, title, unit, goals, less_is_better)


Running = dict[str, tuple[Server, Store]]


@contextlib.contextmanager
def running(plan: Plan, peers: Sequence[Peer], number: int, works: Sequence[Work]) -> Iterator[Running]:
    """Run all peers at once, each on its own store. A peer that does not start is noted as failed in these works."""
    with contextlib.ExitStack() as stack:
        servers: Running = {}
        for peer in plan.peers(*peers):
            try:
                servers[peer.key] = stack.enter_context(serving(peer, number, plan.database))
            except Failed as failure:
                fail(works, peer, failure)
        yield servers


def fail(works: Sequence[Work], who: Column | str, failure: Failed) -> None:
    """Note that a peer failed in these works, and print why."""
    key = who if isinstance(who, str) else who.key
    print(f"  {key} failed: {failure}", file=sys.stderr, flush=True)
    for work in works:
        work.fail(key, str(failure))


def in_turns(rounds: int, keys: Sequence[str], works: Sequence[Work], measure: Callable[[str], None]) -> None:
    """Measure every peer once, then every peer again, so that a temporary disturbance affects all of them."""
    left = list(keys)
    for _ in range(rounds):
        for key in list(left):
            try:
                measure(key)
            except Failed as failure:
                left.remove(key)
                fail(works, key, failure)


def note_load(work: Work, server: Server, measure: Callable[[], load.Load]) -> None:
    """Measure, repeat if other programs used the processors, and note the least disturbed attempt."""
    tries = [measure()]
    while tries[-1].shares.others_busy > DISTURBED and len(tries) < MAX_TRIES:
        tries.append(measure())
    seen = min(tries, key=lambda seen: seen.shares.others_busy)
    details = {**seen._asdict(), **seen.shares._asdict(), "processor_us": seen.processor_us, "tries": len(tries)}
    del details["shares"]
    work.add(server.peer.key, seen.rate, **details)

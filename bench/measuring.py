"""How a work is measured: its peers side by side, in turns, and again where other programs disturbed them."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import load
from bench.database import Postgres
from bench.report import DISTURBED, Goal, Work
from bench.servers import Column, Failed, Peer, Server, serving
from bench.stores import Store

TRIES = 3
"""How often a disturbed measurement is made again, at most."""


@dataclass(frozen=True)
class Plan:
    """How long to measure, and on what."""

    rounds: int
    seconds: int
    samples: int
    """Single requests a peer, where the time of one is taken."""
    left_out: frozenset[str] = frozenset()
    """Peers that are not measured."""
    database: Postgres | None = None
    """Where the records are, if not in SQLite."""

    def peers(self, *peers: Peer) -> list[Peer]:
        """Those of them that are measured."""
        return [peer for peer in peers if peer.key not in self.left_out]

    def work(
        self, key: str, title: str, unit: str, goals: Sequence[Goal] = (), *, less_is_better: bool = False
    ) -> Work:
        """A row of the table, in its section."""
        section = "PostgreSQL" if self.database else "SQLite"
        return Work(f"pg-{key}" if self.database else key, section, title, unit, goals, less_is_better)


Running = dict[str, tuple[Server, Store]]


@contextlib.contextmanager
def running(plan: Plan, peers: Sequence[Peer], number: int, works: Sequence[Work]) -> Iterator[Running]:
    """Run all peers at once, each on a store of its own; one that does not start fails in these works."""
    with contextlib.ExitStack() as stack:
        servers: Running = {}
        for peer in plan.peers(*peers):
            try:
                servers[peer.key] = stack.enter_context(serving(peer, number, plan.database))
            except Failed as failure:
                fail(works, peer, failure)
        yield servers


def fail(works: Sequence[Work], who: Column | str, failure: Failed) -> None:
    """Note that someone could not do these works."""
    key = who if isinstance(who, str) else who.key
    print(f"  {key} failed: {failure}", file=sys.stderr, flush=True)
    for work in works:
        work.fail(key, str(failure))


def in_turns(rounds: int, keys: Sequence[str], works: Sequence[Work], measure: Callable[[str], None]) -> None:
    """Measure every peer once, then every peer again: what disturbs the machine for a while disturbs them all."""
    left = list(keys)
    for _ in range(rounds):
        for key in list(left):
            try:
                measure(key)
            except Failed as failure:
                left.remove(key)
                fail(works, key, failure)


def note_load(work: Work, server: Server, measure: Callable[[], load.Load]) -> None:
    """Measure, again where other programs took the processors meanwhile, and note what was disturbed least."""
    tries = [measure()]
    while tries[-1].shares.others_busy > DISTURBED and len(tries) < TRIES:
        tries.append(measure())
    seen = min(tries, key=lambda seen: seen.shares.others_busy)
    told = {**seen._asdict(), **seen.shares._asdict(), "rate": seen.rate, "tries": len(tries)}
    del told["shares"]
    work.add(server.peer.key, seen.rate, **told)

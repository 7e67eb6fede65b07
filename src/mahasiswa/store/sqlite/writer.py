"""Commits a group of changes with one disk sync, in the thread of the connection that writes."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from mahasiswa.store.reader import Begin
from mahasiswa.store.sqlite import sqlite_sql as sql
from mahasiswa.store.sqlite.connection import savepoint, transaction
from mahasiswa.store.sqlite.sqlite_errors import translate
from mahasiswa.store.sqlite.sqlite_reader import take
from mahasiswa.store.store_errors import StoreError


class QueuedChange(NamedTuple):
    """The steps of a change, the person who makes it, and the future that its caller waits for.

    `deadline` is in seconds of time.monotonic().
    """

    steps: Begin[Any]
    oleh: str | None
    answer: asyncio.Future[Any]
    deadline: float


def commit(db: apsw.Connection, group: Sequence[QueuedChange]) -> Sequence[object]:
    """Make the changes in one transaction; return the result of each that is stored, otherwise its StoreError.

    The group waits for the lock of another program until its last deadline. If this raises, nothing was stored.
    """
    left = group[-1].deadline - time.monotonic()
    db.set_busy_timeout(max(0, int(left * 1000)))
    with transaction(db):
        outcomes = [_attempt(db, queued) for queued in group]
        db.execute(sql.SET_OLEH, {"oleh": None})
    return outcomes


def _attempt(db: apsw.Connection, queued: QueuedChange) -> object:
    """Make one change; return its result. If it is refused, it is rolled back alone; return the error."""
    db.execute(sql.SET_OLEH, {"oleh": queued.oleh})
    try:
        with savepoint(db):
            return take(db, queued.steps())
    except (apsw.ConstraintError, StoreError) as error:
        return translate(error)

"""Detects a deposed primary: a server that still answers although another host of the address was promoted.

A deposed primary has lost its synchronous standby, so it can acknowledge no write. But it answers reads, without the
records that the new primary has acknowledged, and libpq takes it for the primary because it is read-write.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, UndefinedFunction, UndefinedObject

from mahasiswa.store.postgres import sql
from mahasiswa.store.postgres.coalesced import Coalesced

HOST_TIMEOUT_SECONDS = 1.0
"""Maximum time for a host to tell its state."""

SILENT_HOST_SECONDS = 5.0
"""Time for which a host is not asked after it did not answer, so that it does not delay every request."""

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
Host = tuple[tuple[str, str], ...]
"""The parameters that name one host, such as (("host", "first"), ("port", "5432"))."""

log = logging.getLogger(__name__)


class State(NamedTuple):
    """The state of a server, as sql.PRIMARY_STATE tells it. Timelines are hexadecimal and of equal length."""

    timeline: str | None
    lacks_standby: bool
    hides_standbys: bool


class Primary:
    """Chooses among the hosts of an address. It puts a host that was promoted first in `parameters`."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self._parameters = parameters
        self._hosts = _hosts(parameters)
        self._promoted = Coalesced(self._find_promoted, HOST_TIMEOUT_SECONDS)
        self._silent_until: dict[Host, float] = {}
        self._has_warned = False

    async def is_deposed(self, db: Connection) -> bool:
        """Return whether a host of the address was promoted in place of the server of this connection.

        This costs a round trip if the address has several hosts. The others are asked only if this server lacks its
        synchronous standby.
        """
        if len(self._hosts) == 1:
            return False
        try:
            state = await _state(db)
        except (UndefinedFunction, UndefinedObject, FeatureNotSupported, InsufficientPrivilege):
            return False  # this server cannot tell, as some that only speak PostgreSQL's protocol
        if state.hides_standbys and not self._has_warned:
            self._has_warned = True
            log.warning("PostgreSQL hides the state of its standbys: run GRANT pg_monitor TO %s", db.info.user)
        if state.timeline is None or not state.lacks_standby:
            return False
        timeline, host = await self._promoted.get()
        if timeline <= state.timeline:
            return False
        if self._hosts[0] != host:
            self._prefer(host)
            log.warning("%s was promoted; %s:%d is not used any more", dict(host), db.info.host, db.info.port)
        return True

    async def close(self) -> None:
        """Wait for running queries."""
        await self._promoted.close()

    def _prefer(self, host: Host) -> None:
        self._hosts = [host, *(other for other in self._hosts if other != host)]
        for name, _ in host:
            self._parameters[name] = ",".join(dict(each)[name] for each in self._hosts)

    async def _find_promoted(self, _deadline: float) -> tuple[str, Host]:
        """Return the latest timeline of a host that takes writes, and that host."""
        timelines = await asyncio.gather(*map(self._timeline, self._hosts))
        return max(zip(timelines, self._hosts, strict=True))

    async def _timeline(self, host: Host) -> str:
        """Return the timeline of a host, or an empty text if it takes no writes or cannot be reached."""
        if self._silent_until.get(host, 0.0) > time.monotonic():
            return ""
        parameters = {**self._parameters, **dict(host), "target_session_attrs": "any"}
        try:
            async with asyncio.timeout(HOST_TIMEOUT_SECONDS), await psycopg.AsyncConnection.connect(**parameters) as db:
                return (await _state(db)).timeline or ""
        except TimeoutError:
            self._silent_until[host] = time.monotonic() + SILENT_HOST_SECONDS
            return ""
        except psycopg.Error:
            return ""


async def _state(db: Connection) -> State:
    return State._make((await (await db.execute(sql.PRIMARY_STATE)).fetchall())[0])


def _hosts(parameters: Mapping[str, Any]) -> list[Host]:
    """Return the hosts of an address; libpq takes comma-separated lists, and one port for all hosts."""
    lists = {name: str(parameters[name]).split(",") for name in ("host", "hostaddr", "port") if parameters.get(name)}
    count = max(map(len, lists.values()), default=1)
    return [
        tuple((name, texts[number if len(texts) > 1 else 0]) for name, texts in lists.items())
        for number in range(count)
    ]

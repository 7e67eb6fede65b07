"""Helpers for tests that use a store through its protocol, without HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import Store, open_store
from mahasiswa.store.errors import Refused, Unavailable

SITI = Mahasiswa("0001", "Siti Aminah", "Jalan Kaliurang 5")
BUDI = Mahasiswa("0002", "Budi", "Bantul")


@asynccontextmanager
async def opened(url: DatabaseURL) -> AsyncIterator[Store]:
    """Open a store, and close it at the end."""
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


async def refusal(write: Awaitable[None]) -> tuple[str, str]:
    """Make a write that must be refused; return the field and the reason."""
    with pytest.raises(Refused) as refused:
        await write
    return refused.value.field, refused.value.reason


async def attempt(write: Awaitable[None]) -> tuple[str, str] | None:
    """Make a write; return None if it is stored, or the field and the reason if it is refused."""
    try:
        await write
    except Refused as refused:
        return refused.field, refused.reason
    return None


async def attempt_all(*writes: Awaitable[None]) -> list[tuple[str, str] | None]:
    """Make several writes at the same time; return the result of each as `attempt` does."""
    return await asyncio.gather(*map(attempt, writes))


async def outcomes(*writes: Awaitable[None]) -> list[tuple[str, str] | str | None]:
    """Make several writes at the same time, of which some may raise Unavailable: they give "unavailable"."""

    async def outcome(write: Awaitable[None]) -> tuple[str, str] | str | None:
        try:
            return await attempt(write)
        except Unavailable:
            return "unavailable"

    return await asyncio.gather(*map(outcome, writes))


async def read_all(store: Store) -> list[Mahasiswa]:
    """Return every record, in order of nim."""
    records = (await store.snapshot(10_000)).records
    assert records is not None
    return list(map(Mahasiswa._make, records))

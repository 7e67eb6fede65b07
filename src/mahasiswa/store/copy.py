"""All records of one store into another, which may be of another engine."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

from mahasiswa.record import Incoming, Mahasiswa
from mahasiswa.store import Merged, Query, Store
from mahasiswa.store.errors import Unusable
from mahasiswa.store.threads import with_records

BATCH = 5000


async def copy(source: Store, target: Store) -> int:
    """Copy every record, as they stand at one moment, all or none; return how many. Raise Unusable, or as `merge` does.

    The target must be empty: records that it has already would be mixed with the copied ones, and nobody could tell.
    """
    if await target.after(None, 1):
        raise Unusable("the database to copy to holds records already")
    loop = asyncio.get_running_loop()

    def bring(records: Iterator[Mahasiswa]) -> Merged:
        merging = target.merge(_batches(records), update=False, dry_run=False)
        return asyncio.run_coroutine_threadsafe(merging, loop).result()

    return (await with_records(source, Query(), bring)).new


def _batches(records: Iterator[Mahasiswa]) -> Iterator[Sequence[Incoming]]:
    rows = ((number, *record) for number, record in enumerate(records, 1))
    while batch := list(islice(rows, BATCH)):
        yield batch

"""How work is shared and bounded: the error of a shared task, and slots that outlive their callers."""

import asyncio
import gc
from threading import Event

import pytest

from mahasiswa.shared_task import SharedTask
from mahasiswa.work import LIST, Slots


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_callers_share_a_call_that_began_after_they_asked() -> None:
    """Callers that come while a call runs share the next call. A cancelled caller does not cancel it for the others."""
    gate = asyncio.Event()
    begun = 0

    async def work() -> int:
        nonlocal begun
        begun += 1
        number = begun
        await gate.wait()
        return number

    shared = SharedTask(work)
    first = asyncio.create_task(shared.result())
    await turns()
    later = [asyncio.create_task(shared.result()) for _ in range(3)]
    await turns()
    assert begun == 1
    later[0].cancel()
    gate.set()
    assert [await first, *await asyncio.gather(*later[1:])] == [1, 2, 2]
    assert begun == 2


async def test_an_error_of_shared_work_reaches_its_callers_and_no_log() -> None:
    """Every caller gets it. If all of them were cancelled, asyncio does not report it as never retrieved."""
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError

    alone = asyncio.create_task((shared := SharedTask(work)).result())
    await asyncio.sleep(0)
    alone.cancel()
    await turns()
    del alone, shared
    # Asyncio reports the exception of a task that is collected before anybody has awaited it.
    gc.collect()
    assert reported == []
    with pytest.raises(ValueError):  # noqa: PT011 - the one above
        await SharedTask(work).result()


async def test_a_slot_is_kept_until_its_thread_has_ended() -> None:
    """A caller that is cancelled twice, as at shutdown, waits for its thread, and so does the next one for the slot."""
    slots, gate = Slots(), Event()
    working = asyncio.create_task(slots.run(LIST, lambda: gate.wait(30)))
    await turns()
    for _ in range(2):
        await turns()
        working.cancel()
    following = asyncio.create_task(slots.run(LIST, lambda: 1))
    await turns()
    assert not working.done()
    assert not following.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await following == 1

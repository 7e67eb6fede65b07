"""Runs a child process for a worker: it reads files of strangers or packs workbooks, and has no password and no database."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

# A child gets only what Python needs, so it gets no password and no address of a database.
VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PATH", "LD_LIBRARY_PATH", "TMPDIR")  # fmt: skip


class Late(Exception):
    """A child did not end in time, and was killed."""


async def run_child(
    module: str,
    *arguments: str,
    given: BinaryIO | None = None,
    pieces: AsyncIterator[bytes] | None = None,
    output: BinaryIO | None = None,
    timeout_seconds: float,
) -> int:
    """Run a module of ours; return its exit code, which is negative if a signal has ended it. Raise Late and OSError.

    Its standard input is the file `given`, or a pipe with `pieces`. Its standard output is `output`. If the
    caller is cancelled, the child is killed, and has ended on return.
    """
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # take no module from the directory in which the service was started
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE if pieces else given or nothing,
        stdout=output or nothing,
        stderr=nothing,
        env={name: os.environ[name] for name in VARIABLES if name in os.environ},
    )
    try:
        async with asyncio.timeout(timeout_seconds):
            if pieces:
                await _feed(process, pieces)
            return await process.wait()
    except TimeoutError:
        raise Late from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _feed(process: asyncio.subprocess.Process, pieces: AsyncIterator[bytes]) -> None:
    """Send all pieces; stop if the child has ended."""
    assert process.stdin  # noqa: S101 - it is a pipe
    try:
        async for piece in pieces:
            process.stdin.write(piece)
            await process.stdin.drain()
        process.stdin.close()
    except ConnectionError:
        pass  # its exit code tells why

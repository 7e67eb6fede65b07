"""A proxy between a store and PostgreSQL that records queries, delays answers and cuts connections at a commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal


class Proxy:
    """Forwards connections to a port of 127.0.0.1.

    `sent` holds every byte that clients have sent. `cut` makes the next COMMIT break every connection: "question" before
    the server receives it, "answer" after the server has committed. Answers wait while `flowing` is not set.
    """

    def __init__(self, target: int) -> None:
        self.sent = b""
        self.cut: Literal["question", "answer"] | None = None
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._running: set[asyncio.Task[None]] = set()
        self.flowing = asyncio.Event()
        self.flowing.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen on a free port and return it."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            self.flowing.set()
            server.close()
            self._end()
            await asyncio.gather(*self._running)
            await server.wait_closed()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        with suppress(OSError):
            answers, questions = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers |= {writer, questions}
            await asyncio.gather(
                self._forward(reader, questions, asking=True),
                self._forward(answers, writer, asking=False),
            )

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, asking: bool
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                if asking:
                    self.sent += piece
                else:
                    await self.flowing.wait()
                if self.cut == ("question" if asking else "answer") and b"COMMIT\0" in piece:
                    self._end()
                writer.write(piece)
                await writer.drain()
        writer.close()

    def _end(self) -> None:
        self.cut = None
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

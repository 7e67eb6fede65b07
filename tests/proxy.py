"""A line to a database that can be listened to, held up and cut at the moment of a commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal


class Proxy:
    """Forwards connections to a port of 127.0.0.1.

    `sent` is all that clients have sent; answers wait while `hold` is on. `cut` has every line cut at the next COMMIT,
    in place of the question, which then never reaches the server, or in place of the answer, when the server has done it.
    """

    def __init__(self, target: int) -> None:
        self.sent = b""
        self.cut: Literal["question", "answer"] | None = None
        self._target = target
        self._lines: set[asyncio.StreamWriter] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen on a free port and return it."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            self.hold(on=False)
            server.close()
            self._end()
            await asyncio.gather(*self._running)
            await server.wait_closed()

    def hold(self, *, on: bool) -> None:
        """Keep answers back, or let them through."""
        if on:
            self._flowing.clear()
        else:
            self._flowing.set()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        with suppress(OSError):
            answers, questions = await asyncio.open_connection("127.0.0.1", self._target)
            self._lines |= {writer, questions}
            await asyncio.gather(
                self._forward(reader, questions, asking=True), self._forward(answers, writer, asking=False)
            )

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, asking: bool) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                if asking:
                    self.sent += piece
                    if self.cut == "question" and b"COMMIT\0" in piece:
                        self._end()
                else:
                    await self._flowing.wait()
                    if self.cut == "answer" and b"COMMIT\0" in piece:  # as the server says when it has done it
                        self._end()
                writer.write(piece)
                await writer.drain()
        writer.close()

    def _end(self) -> None:
        self.cut = None
        for line in self._lines:
            line.transport.abort()
        self._lines.clear()

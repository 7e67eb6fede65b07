"""Helper processes: they read the files and the forms of strangers for a worker, which only talks with them.

Each worker starts a parent of helpers (`python -m mahasiswa.server.helper`) some seconds after its
own start, or for its first task. The parent forks one helper for each task. If a fork fails, the
parent sends the errno to the worker as one byte, and then closes the connection.

To end a conversation, the worker orders the parent to kill the helper and to wait for its end. When
the worker closes its socket to the parent, the parent ends with all its helpers. If the worker is
killed, the kernel kills the parent. If the parent is killed, the kernel kills its helpers, and the
next task starts another parent.

A conversation is a task with its input, then questions of the helper and answers of the worker,
then the outcome. Before each message stands its length. An empty message ends an input, an answer
and an outcome. A question is a list in JSON, and the head of an outcome is an object.
"""

import asyncio
import json
import logging
import os
import socket
import struct
import subprocess
import sys
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from itertools import chain, count
from typing import Any, NamedTuple

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.sheets.sheet_errors import TooBig
from mahasiswa.store import characters
from mahasiswa.web.request import BareRequest, ProblemPage
from mahasiswa.web.responses import takes_gzip
from mahasiswa.work import groups

PIECE_BYTES = 64 * 1024  # maximum bytes of a body or of a page in one message
PIECE_CHARACTERS = 16 * 1024  # a message with several records ends after so many characters
MESSAGE_MAX_BYTES = 1 << 20  # maximum length of a message from a helper
END_SECONDS = 5.0  # maximum time until a killed helper has ended

LENGTH = struct.Struct("!I")
END = b""

# An order to the parent of helpers: to start or to kill, and the number of the helper.
ORDER = struct.Struct("!cQ")
PREVIEW = b"p"
KILL = b"-"
# Maximum time without a message of the helper.
PREVIEW_SILENT_SECONDS = 20.0

# A helper reads files of strangers, so it gets only what Python and the pages need: no password, and no database.
VARIABLES = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PATH", "LD_LIBRARY_PATH", "TMPDIR",
    "BASE_URL", "PORT", "CDN_URL", "HISTORY_DAYS", "TIMEZONE",
)  # fmt: skip

Answer = Callable[[str, Sequence[Any]], Awaitable[Iterable[bytes]]]
"""Answers a question of a helper, which is a name and its arguments, with the messages of the answer."""

log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """The result of a task: a complete answer, rows of texts for the handler, or a file.

    Only an answer has a `status`. The rows are those of `in_messages`. The helper has written the file.
    """

    status: int = 0
    headers: Mapping[str, str] = {}
    parts: Sequence[bytes] = ()

    def page(self) -> Response:
        """The answer. It has no media type, so it is not compressed again."""
        return Response(b"".join(self.parts), self.status, self.headers)


class Helpers:
    """The helper processes of one worker.

    The main thread must start them, because the kernel ends them with the thread that started them.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._parent: subprocess.Popen[bytes] | None = None
        self._control: socket.socket

    def start(self) -> None:
        """Start the parent of helpers, if there is none.

        Otherwise the first task would wait for its start.
        """
        parent = self._parent
        if parent and parent.poll() is None:
            return
        if parent:
            log.error(
                "the parent of helpers ended with code %s; another one is started",
                parent.returncode,
            )
            self._control.close()
        self._parent = self._start_parent()

    async def converse(
        self,
        task: Mapping[str, object],
        given: Iterable[bytes],
        answer: Answer,
    ) -> Outcome:
        """Let a helper do a task; raise ProblemPage, or TooBig if the helper dies, is too late or too big."""
        number = next(self._numbers)
        ours = self._start(number)
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:  # the request was abandoned
            ours.close()
            self._kill(number)
            raise
        try:
            talk = _Conversation(reader, writer, PREVIEW_SILENT_SECONDS)
            return await talk.outcome(task, given, answer)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
            self._raise_failed_fork()
            log.warning("a helper process did not finish its task: %s", type(error).__name__)
            raise TooBig(wording.TOO_HEAVY) from None
        finally:
            self._kill(number)
            # Its memory and its files are free when it has ended.
            try:
                async with asyncio.timeout(END_SECONDS):
                    while await reader.read(PIECE_BYTES):
                        pass
            except (OSError, TimeoutError) as error:
                # The reader refers to this error. Its traceback and its context refer to the reader.
                error.__context__ = None
                error.with_traceback(None)
            writer.transport.abort()

    def _kill(self, number: int) -> None:
        with suppress(OSError):  # the parent of helpers was killed, and the helper with it
            self._control.send(ORDER.pack(KILL, number))

    def _raise_failed_fork(self) -> None:
        """Raise the error of a fork, if the parent of helpers has reported one."""
        reported = b""
        with suppress(OSError):  # it has reported none, or it was killed
            reported = self._control.recv(1)
        if reported:
            raise OSError(reported[0], os.strerror(reported[0])) from None

    def close(self) -> None:
        """End all helpers and their parent."""
        if self._parent:
            self._control.close()
            self._parent.wait()

    def _start(self, number: int) -> socket.socket:
        """Start a helper; return the socket on which it talks."""
        self.start()
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [ORDER.pack(PREVIEW, number)], [theirs.fileno()])
        ours.setblocking(False)  # noqa: FBT003 - its only parameter
        return ours

    def _start_parent(self) -> subprocess.Popen[bytes]:
        self._control, theirs = socket.socketpair()
        # -P: take no module from the directory in which the service was started.
        command = (sys.executable, "-P", "-m", "mahasiswa.server.helper")
        descriptor = theirs.fileno()
        environment = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        with theirs:
            parent = subprocess.Popen(  # noqa: S603 - our own module
                (*command, str(descriptor), str(os.getpid())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=[descriptor],
            )
        self._control.setblocking(False)  # noqa: FBT003 - as above
        return parent


class _Conversation(NamedTuple):
    """The conversation with one helper."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    silent_seconds: float

    async def outcome(
        self, task: Mapping[str, object], given: Iterable[bytes], answer: Answer
    ) -> Outcome:
        """Send a task and its input, answer the questions, and return the outcome."""
        await self._send(chain([json.dumps(task).encode()], given))
        while isinstance(head := json.loads(await self._receive()), list):
            name, *arguments = head
            await self._send(await answer(name, arguments))
        _raise_failure(head)
        parts: list[bytes] = []
        while part := await self._receive():
            parts.append(part)
        return Outcome(**head, parts=parts)

    async def _send(self, messages: Iterable[bytes]) -> None:
        for message in messages:
            self.writer.write(with_length(message))
            async with asyncio.timeout(self.silent_seconds):
                await self.writer.drain()
            # A helper that reads fast never lets `drain` wait, and others must be answered meanwhile.
            await asyncio.sleep(0)
        self.writer.write(with_length(END))

    async def _receive(self) -> bytes:
        async with asyncio.timeout(self.silent_seconds):
            (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
            if length > MESSAGE_MAX_BYTES:
                raise ConnectionError
            return await self.reader.readexactly(length)


def _raise_failure(head: Mapping[str, Any]) -> None:
    """Raise the error of a failed task, which the head of its outcome describes."""
    if "errno" in head:
        raise OSError(head["errno"], os.strerror(head["errno"]))
    if "problem" in head:
        raise ProblemPage(**head)
    if "error" in head:
        raise RuntimeError(head["error"])


def helper_task(request: BareRequest, name: str, **head: object) -> Mapping[str, object]:
    """A task, with the facts about the request that its page needs.

    `boundary` is that of an upload.
    """
    assert request.route  # noqa: S101 - a handler calls this
    return {
        "task": name,
        "purpose": request.route.purpose,
        "writes": request.route.writes,
        "number": request.number,
        "takes_gzip": takes_gzip(request.scope),
        "has_changed": False,
        **head,
    }


def with_length(message: bytes) -> bytes:
    """A message after its length.

    They are joined, because `writelines` of asyncio (Python 3.12 and later) sends an empty part
    once more, later. If the helper has ended meanwhile, its outcome would be lost.
    """
    return LENGTH.pack(len(message)) + message


def in_messages(rows: Iterable[Sequence[str | None]]) -> Iterator[bytes]:
    """Rows of texts as JSON, in messages that are short unless a single row is long."""
    for group in groups(rows, characters, PIECE_CHARACTERS):
        yield json.dumps(group, ensure_ascii=False).encode()

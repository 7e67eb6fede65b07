"""The log of the service: one line per entry on standard error, with level, and time in the time zone of the pages.

Standard error may have no reader, so neither the event loop of a worker nor the main process waits for one.
"""

import logging
import os
import select
import socket
import stat
import time
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import cache, lru_cache
from queue import SimpleQueue
from threading import Thread

STANDARD_OUTPUT = 1
STANDARD_ERROR = 2
# A pipe takes at most PIPE_BUF bytes as a whole or not at all. A character has up to four bytes.
WRITE_MAX_CHARACTERS = select.PIPE_BUF // 4 - 3
QUEUE_MAX_LINES = 1000  # maximum lines that wait for the thread of a worker
# Time in which the thread gathers lines before it writes them together. If it woke for each line,
# an addition would take 15% longer (2026-11-23).
GATHER_SECONDS = 0.05
END_SECONDS = 0.5  # maximum time to write the waiting lines when the worker ends

_timezone: tzinfo = UTC
PRIORITIES = {
    logging.ERROR: "<3>",
    logging.WARNING: "<4>",
    logging.INFO: "<6>",
    logging.DEBUG: "<7>",
}


@cache
def priority(level: int) -> str:
    """The prefix of a line from which journald reads its level. Without journald it is empty."""
    return (
        PRIORITIES.get(level, "")
        if os.environ.get("JOURNAL_STREAM") and not os.isatty(STANDARD_ERROR)
        else ""
    )


def line(level: int, moment: float, text: str) -> str:
    """`2026-11-20 17:21:46,742+0700 INFO text`, after a priority for journald. `moment` is in seconds since the epoch."""
    second, zone = _second(int(moment))
    entry = f"{second},{int(moment * 1000) % 1000:03d}{zone} {logging.getLevelName(level)} {text}"
    prefix = priority(level)
    # Put the prefix before each line of a traceback.
    return prefix + (entry.replace("\n", f"\n{prefix}") if prefix else entry)


@lru_cache(1)
def _second(moment: int) -> tuple[str, str]:
    at = datetime.fromtimestamp(moment, _timezone)
    return f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%z}"


def write_line(level: int, text: str) -> None:
    """Write a line to the log. A LogRecord would take a tenth of the time of an addition."""
    lines.write(line(level, time.time(), text))


class Lines:
    """Writes lines to standard error.

    A line that could not be written is counted. The next written line says how many are missing.
    """

    def __init__(self) -> None:
        # Lines without room: since the last report, or, in a worker, since its start.
        self._missing = 0
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._thread: Thread | None = None

    def start_thread(self) -> None:
        """Let a thread write from now on. Only a process that does not fork has one."""
        self._missing = 0  # inherited from the main process, which reports it itself
        self._thread = Thread(target=self._write_waiting, name="log", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the thread, but not for long."""
        if self._thread:
            self._waiting.put(None)
            self._thread.join(END_SECONDS)

    def write(self, text: str) -> None:
        if self._thread and self._waiting.qsize() < QUEUE_MAX_LINES:
            self._waiting.put(f"{text}\n")
        elif self._thread or not write_now(STANDARD_ERROR, _gap(self._missing) + text):
            self._missing += 1
        else:
            self._missing = 0

    def _write_waiting(self) -> None:
        """Write the lines that wait, all at once, until the end."""
        texts: list[str | None] = []
        lost = 0  # lines that the disk had no room for, minus all lines reported as missing
        while None not in texts:
            texts = [self._waiting.get()]
            time.sleep(GATHER_SECONDS)
            while not self._waiting.empty():
                texts.append(self._waiting.get())
            missing = self._missing + lost
            if not _unwritten(_gap(missing)):
                lost -= missing
            lost += _unwritten("".join(filter(None, texts)))


lines = Lines()


def _gap(missing: int) -> str:
    """The line that says how many are missing; no line if none is."""
    text = f"{missing} lines of the log are missing"
    return f"{line(logging.WARNING, time.time(), text)}\n" if missing else ""


def _unwritten(text: str) -> int:
    """Write lines to standard error; return how many it did not take, as on a full disk."""
    data = _encoded(text)
    with suppress(OSError):
        while data:
            data = data[os.write(STANDARD_ERROR, data) :]
    return data.count(b"\n")


def write_now(file: int, text: str) -> bool:
    """Write a text; return False if the file has no room for it, or is not open.

    A long text loses its middle. Its first line stays, because it says what has happened. Its last
    line stays, because it names the error in a traceback.
    """
    if len(text) > WRITE_MAX_CHARACTERS:
        text = f"{text[: WRITE_MAX_CHARACTERS // 2]}…{text[-WRITE_MAX_CHARACTERS // 2 :]}"
    data = _encoded(f"{text}\n")
    with suppress(OSError):
        if stat.S_ISSOCK(os.fstat(file).st_mode):
            with socket.socket(fileno=os.dup(file)) as receiver:
                return receiver.send(data, socket.MSG_DONTWAIT) > 0
        if select.select([], [file], [], 0)[1]:
            return os.write(_unblocked(file), data) > 0
    return False


@cache
def _unblocked(file: int) -> int:
    """The same pipe, opened again, so that writing never waits. `file` itself is shared with other programs."""
    if stat.S_ISFIFO(os.fstat(file).st_mode):
        with suppress(OSError):
            return os.open(f"/dev/fd/{file}", os.O_WRONLY | os.O_NONBLOCK)
    return file


def _encoded(text: str) -> bytes:
    return text.encode(errors="backslashreplace")


class LineHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        lines.write(line(record.levelno, record.created, self.format(record)))


def configure_logging(level: str, timezone: tzinfo) -> None:
    """Log to standard error. `level` is one of LOG_LEVEL's values."""
    global _timezone  # noqa: PLW0603 - a process has one log
    _timezone = timezone
    logging.basicConfig(
        format="%(message)s", level=logging.WARNING, handlers=[LineHandler()], force=True
    )
    logging.getLogger("mahasiswa").setLevel(level.upper())
    # uvicorn reports a request that was cut off at shutdown as an error. The middleware logs all other errors.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    # This logger warns of every malformed body. The request log already has a line for the refusal.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)

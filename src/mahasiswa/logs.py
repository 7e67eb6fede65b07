"""The log of the service: one line per entry on standard error, with level, and time in the time zone of the pages."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from queue import SimpleQueue
from threading import Thread

STANDARD_ERROR = 2
QUEUE_MAX_LINES = 1000  # maximum lines that wait for the reader of standard error
PAUSE_SECONDS = 0.01  # pause of the thread, in which further lines gather
END_SECONDS = 0.5  # maximum time to write the waiting lines when the process ends


def write_error(text: str) -> None:
    """Write lines to standard error, unless it is closed or has no room."""
    if sys.stderr:  # otherwise the descriptor may be that of another file
        with suppress(OSError):
            os.write(STANDARD_ERROR, f"{text}\n".encode(errors="backslashreplace"))


class LineHandler(logging.Handler):
    """Writes lines such as `2026-11-20 17:21:46.742+07:00 INFO text` to standard error."""

    timezone: tzinfo = UTC
    write: Callable[[str], object] = staticmethod(write_error)

    def handle(self, record: logging.LogRecord) -> bool:
        """Write without a lock: the thread may wait in here for ever, and the end of the process needs the lock."""
        moment = datetime.fromtimestamp(record.created, self.timezone)
        shown = moment.isoformat(" ", "milliseconds")
        text = self.format(record) if record.exc_info else record.getMessage()
        self.write(f"{shown} {record.levelname} {text}")
        return True


lines = LineHandler()


def configure_logging(level: str, timezone: tzinfo) -> None:
    """Log to standard error. `level` is one of LOG_LEVEL's values."""
    lines.timezone = timezone
    # No line shows these, and logging would look them up for each line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as Python's Logging HOWTO says, Optimization
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[lines], force=True)
    logging.getLogger("mahasiswa").setLevel(level.upper())
    # uvicorn reports a request that was cut off at shutdown as an error. The middleware logs all other errors.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    # This logger warns of every malformed body. The request log already has a line for the refusal.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)


@contextmanager
def log_thread() -> Iterator[None]:
    """Let a thread write the lines of the block, so that nothing else waits for the reader of standard error.

    A line for which there is no room is dropped.
    """
    waiting: SimpleQueue[str] = SimpleQueue()

    def keep(line: str) -> None:
        if waiting.qsize() < QUEUE_MAX_LINES:
            waiting.put(line)

    def write() -> None:
        while line := waiting.get():
            write_error(line)
            if waiting.empty():
                time.sleep(PAUSE_SECONDS)  # it costs much to wake this thread for each line

    thread = Thread(target=write, daemon=True)
    thread.start()
    lines.write = keep
    try:
        yield
    finally:
        lines.write = write_error
        waiting.put("")
        thread.join(END_SECONDS)

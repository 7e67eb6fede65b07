"""The log of the service: one line per entry on standard error, with level, and time in the time zone of the pages."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, tzinfo
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue

STANDARD_ERROR = 2
QUEUE_MAX_LINES = 1000  # maximum lines that wait for the reader of standard error
END_SECONDS = 0.5  # maximum time to write the waiting lines when the process ends


class LineFormatter(logging.Formatter):
    """`2026-11-20 17:21:46,742+0700 INFO text`."""

    def __init__(self, timezone: tzinfo) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._timezone = timezone

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002 - logging's names
        moment = datetime.fromtimestamp(record.created, self._timezone)
        return f"{moment:%Y-%m-%d %H:%M:%S},{int(record.msecs):03}{moment:%z}"


def write_error(text: str) -> None:
    """Write lines to standard error, unless it is closed or has no room."""
    if sys.stderr:  # otherwise the descriptor may be that of another file
        with suppress(OSError):
            os.write(STANDARD_ERROR, f"{text}\n".encode(errors="backslashreplace"))


class LineHandler(logging.Handler):
    """Writes lines to standard error."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Write without a lock: the thread may wait in here for ever, and the end of the process needs the lock."""
        write_error(self.format(record))
        return True


class DroppingHandler(QueueHandler):
    """Hands lines to the thread of the queue, and drops those without room."""

    queue: "Queue[logging.LogRecord]"

    def enqueue(self, record: logging.LogRecord) -> None:
        with suppress(Full):
            self.queue.put_nowait(record)


lines = LineHandler()


def configure_logging(level: str, timezone: tzinfo) -> None:
    """Log to standard error. `level` is one of LOG_LEVEL's values."""
    lines.setFormatter(LineFormatter(timezone))
    logging.basicConfig(level=logging.WARNING, handlers=[lines], force=True)
    logging.getLogger("mahasiswa").setLevel(level.upper())
    # uvicorn reports a request that was cut off at shutdown as an error. The middleware logs all other errors.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    # This logger warns of every malformed body. The request log already has a line for the refusal.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)


@contextmanager
def log_thread() -> Iterator[None]:
    """Let a thread write the lines of the block, so that nothing else waits for the reader of standard error."""
    queue: Queue[logging.LogRecord] = Queue(QUEUE_MAX_LINES)
    QueueListener(queue, lines).start()
    logging.getLogger().handlers = [DroppingHandler(queue)]
    try:
        yield
    finally:
        with queue.all_tasks_done:
            queue.all_tasks_done.wait_for(lambda: not queue.unfinished_tasks, END_SECONDS)

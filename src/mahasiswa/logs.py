"""The log of the service: one line per entry on standard error, with level, and time in the time zone of the pages."""

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from logging.handlers import QueueHandler, QueueListener
from queue import Empty, Queue

STANDARD_ERROR = 2
QUEUE_MAX_LINES = 1000  # maximum lines that wait for the reader of standard error
TOGETHER_SECONDS = 0.01  # time in which lines gather
END_SECONDS = 0.5  # maximum time to write the waiting lines when the process ends


def write_error(text: str) -> None:
    """Write lines to standard error, unless it is closed or has no room."""
    if sys.stderr:  # otherwise the descriptor may be that of another file
        with suppress(OSError):
            os.write(STANDARD_ERROR, f"{text}\n".encode(errors="backslashreplace"))


class Listener(QueueListener):
    """Takes lines together, because it costs much to wake this thread for each line of a busy service."""

    def dequeue(self, block: bool) -> logging.LogRecord:  # noqa: FBT001 - the library's
        try:
            return super().dequeue(block=False)
        except Empty:
            time.sleep(TOGETHER_SECONDS)
            return super().dequeue(block)


class LineHandler(logging.Handler):
    """Writes lines such as `2026-11-20 17:21:46.742+07:00 INFO text` to standard error."""

    timezone: tzinfo = UTC

    def handle(self, record: logging.LogRecord) -> bool:
        """Write without a lock: the thread may wait in here for ever, and the end of the process needs the lock."""
        moment = datetime.fromtimestamp(record.created, self.timezone)
        shown = moment.isoformat(" ", "milliseconds")
        write_error(f"{shown} {record.levelname} {self.format(record)}")
        return True


lines = LineHandler()


def configure_logging(level: str, timezone: tzinfo) -> None:
    """Log to standard error. `level` is one of LOG_LEVEL's values."""
    lines.timezone = timezone
    # What no line shows, and each line would look up.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[lines], force=True)
    logging.getLogger("mahasiswa").setLevel(level.upper())
    # uvicorn reports a request that was cut off at shutdown as an error. The middleware logs all other errors.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    # This logger warns of every malformed body. The request log already has a line for the refusal.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)


@contextmanager
def log_thread() -> Iterator[None]:
    """Let a thread write the lines of the block, so that nothing else waits for the reader of standard error."""
    queue: Queue[logging.LogRecord] = Queue(QUEUE_MAX_LINES)
    Listener(queue, lines).start()
    logging.getLogger().handlers = [QueueHandler(queue)]
    logging.raiseExceptions = False  # drops a line for which the queue has no room
    try:
        yield
    finally:
        with queue.all_tasks_done:
            queue.all_tasks_done.wait_for(lambda: not queue.unfinished_tasks, END_SECONDS)

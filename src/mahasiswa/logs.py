"""The log of the service: one line per entry on standard error, with time and level."""

import logging
import logging.config
import os
import sys
import time

PRIORITIES = {logging.ERROR: "<3>", logging.WARNING: "<4>", logging.INFO: "<6>", logging.DEBUG: "<7>"}


def priority(level: int) -> str:
    """The prefix of a line from which journald reads its level. Without journald it is empty."""
    return PRIORITIES[level] if os.environ.get("JOURNAL_STREAM") and not sys.stderr.isatty() else ""


class LineFormatter(logging.Formatter):
    """`2026-11-20 17:21:46,742+0700 INFO message`, after a priority for journald."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._priorities = {level: priority(level) for level in PRIORITIES}

    def format(self, record: logging.LogRecord) -> str:
        prefix, text = self._priorities.get(record.levelno, ""), super().format(record)
        return prefix + (text.replace("\n", f"\n{prefix}") if prefix else text)  # each line of a traceback has it

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's
        return time.strftime(f"%Y-%m-%d %H:%M:%S,{int(record.msecs):03d}%z", time.localtime(record.created))


def configure_logging(level: str) -> None:
    """Log to standard error. `level` is one of LOG_LEVEL's values."""
    handler = {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line shows them
    logging.config.dictConfig({
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": LineFormatter}},
        "handlers": {"stderr": handler},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "mahasiswa": {"level": level.upper()},
            # uvicorn reports a request that was cut off at shutdown as an error. The middleware logs all other errors.
            "uvicorn.error": {"level": "CRITICAL"},
            # It warns of every malformed body. The request log has a line for the refusal already.
            "python_multipart": {"level": "ERROR"},
        },
    })  # fmt: skip

"""The log of the service: one line per entry on standard error, with time and level."""

import logging
import logging.config
import time


class LineFormatter(logging.Formatter):
    """`2026-11-20 17:21:46,742+0700 INFO message`. The time is formatted once a second."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._second, self._text, self._offset = 0, "", ""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's
        second = int(record.created)
        if second != self._second:
            local = time.localtime(second)
            self._second, self._text = second, time.strftime("%Y-%m-%d %H:%M:%S", local)
            self._offset = time.strftime("%z", local)
        return f"{self._text},{int(record.msecs):03d}{self._offset}"


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

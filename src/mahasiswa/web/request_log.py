"""The request log: one line for each change and for each refused request, none for a page that was read."""

import json
import logging

from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.store.history import OLEH
from mahasiswa.web.request import Request

log = logging.getLogger(__name__)

METHOD_MAX_CHARACTERS, PATH_MAX_CHARACTERS = 20, 3200
"""Maximum length of each in a line. A nim of 255 characters takes up to 3,060 characters in a path."""


def log_request(request: Request, status: int, seconds: float) -> None:
    """Log a request that changed something or was refused.

    The path is logged as it was sent, percent-encoded and without its query; a nim is quoted as JSON in ASCII. So a
    client can put neither a line break nor an escape sequence into the log, and a long text is cut.
    """
    method: str = request.method
    if status < 400 and method != "POST":
        return
    level = logging.INFO if status < 400 else logging.WARNING if status < 500 else logging.ERROR
    path = _quoted(request.scope["raw_path"].decode("latin-1"), PATH_MAX_CHARACTERS)[1:-1]
    nim = "" if request.added_nim is None else f" {_quoted(request.added_nim, NIM_MAX_CHARACTERS)}"
    if log.isEnabledFor(level):
        oleh = OLEH.get()
        who = "" if oleh is None else f" by {_quoted(oleh, len(oleh))}"
        values = (method[:METHOD_MAX_CHARACTERS], path, nim, who, status, seconds * 1000)
        # Not log.log(): it spends a fifth of the time on the caller's line number, which no log line shows.
        log.handle(log.makeRecord(log.name, level, "", 0, "%s %s%s%s %d %.1f ms", values, None))


def _quoted(text: str, maximum: int) -> str:
    shown = json.dumps(text if len(text) <= maximum else text[:maximum] + "...")
    return shown.replace("\x7f", "\\u007f")

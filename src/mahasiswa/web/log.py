"""One line for each change and each refused request; none for what is read."""

import json
import logging

from starlette.types import Scope

log = logging.getLogger(__name__)

LONGEST_METHOD, LONGEST_PATH, LONGEST_NIM = 20, 3200, 255
"""Characters of each in a line. A nim of 255 characters takes 3,060 in a path."""


def note(scope: Scope, status: int, seconds: float) -> None:
    """Log a request where it changed something or was refused.

    A path is as it was sent, percent-encoded and without its query; a nim is quoted. Neither can hold a line break or
    an escape sequence, so that nobody can forge a line, nor fill the disk with a long one.
    """
    if status < 400 and scope["method"] != "POST":
        return
    level = logging.INFO if status < 400 else logging.WARNING if status < 500 else logging.ERROR
    path = _quoted(scope["raw_path"].decode("latin-1"), LONGEST_PATH)[1:-1]
    nim = scope.get("nim")
    about = f" {_quoted(nim, LONGEST_NIM)}" if nim is not None else ""
    log.log(level, "%s %s%s %d %.1f ms", scope["method"][:LONGEST_METHOD], path, about, status, seconds * 1000)


def _quoted(text: str, most: int) -> str:
    """As JSON in ASCII, cut where it is too long for a record's."""
    shown = json.dumps(text if len(text) <= most else text[:most] + "...")
    return shown.replace("\x7f", "\\u007f")

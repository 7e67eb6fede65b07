"""Tells which page reports an error, and logs its reason."""

import errno
import logging

from mahasiswa.store.errors import TookTooLong, Unavailable, Uncertain
from mahasiswa.web.request import Request
from mahasiswa.wording import ProblemName
from mahasiswa.work import PAGE_MAX_BYTES, Busy

# Errors of the operating system that are no fault of the program.
DISK_FULL, NO_FILE_DESCRIPTOR = (errno.ENOSPC, errno.EDQUOT), (errno.EMFILE, errno.ENFILE)
WITHOUT_WRITE = ("/mahasiswa/impor", "/mahasiswa/hapus", "/mahasiswa/hapus/pilihan")  # POST to these only previews

log = logging.getLogger(__name__)


class PageTooLong(Exception):
    """A page would be longer than PAGE_MAX_BYTES."""


def problem_of(request: Request, error: Exception) -> ProblemName:
    """The problem to report for an error. Its reason is logged, with a traceback if it is a bug."""
    if isinstance(error, Busy):
        log.warning("busy: %s", error)
        return "busy write" if request.method == "POST" else "busy"
    if isinstance(error, Unavailable | Uncertain) and request.method == "POST" and request.path not in WITHOUT_WRITE:
        log.error("a change was not saved: %s", error)
        return "uncertain" if isinstance(error, Uncertain) else "not saved"
    if isinstance(error, PageTooLong):
        log.warning("a page is longer than %d MB, so it was not sent", PAGE_MAX_BYTES >> 20)
        return "page too long"
    if isinstance(error, Unavailable):
        is_late = isinstance(error, TookTooLong)
        reason = "interrupted" if is_late else "the database could not be read"
        log.log(logging.WARNING if is_late else logging.ERROR, "%s: %s", reason, error)
        is_search = is_late and request.query_params.get("cari") and not request.list_query
        return "search too long" if is_search else "not read"
    number = error.errno if isinstance(error, OSError) else None
    if number in DISK_FULL + NO_FILE_DESCRIPTOR:
        log.error("the operating system refused: %s", error)
        return "disk full" if number in DISK_FULL else "busy"
    log.error("an unexpected error", exc_info=error)
    return "failed"

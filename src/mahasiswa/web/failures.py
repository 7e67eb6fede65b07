"""Tells which page reports an error, and logs its reason."""

import errno
import logging
from collections.abc import Mapping

from mahasiswa.store.errors import TookTooLong, Unavailable, Uncertain
from mahasiswa.web.request import Request
from mahasiswa.wording import ProblemName
from mahasiswa.work import PAGE_MAX_BYTES, Busy

RESOURCE_PROBLEMS: Mapping[int | None, ProblemName] = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk full",
    errno.EMFILE: "busy",
    errno.ENFILE: "busy",
}
"""The pages for errors of the operating system that are no fault of the program."""

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
    if isinstance(error, TookTooLong):
        log.warning("interrupted: %s", error)
        return "search too long" if request.query_params.get("cari") and not request.list_query else "not read"
    if isinstance(error, Unavailable):
        log.error("the database could not be read: %s", error)
        return "not read"
    problem = RESOURCE_PROBLEMS.get(error.errno) if isinstance(error, OSError) else None
    reason = "the operating system refused" if problem else "an unexpected error"
    log.error("%s: %s", reason, error, exc_info=None if problem else error)
    return problem or "failed"

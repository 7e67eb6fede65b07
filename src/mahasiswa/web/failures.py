"""Tells which page reports an error, and logs its reason."""

import errno
import logging
from collections.abc import Mapping

from mahasiswa.store.errors import StoreError, TookTooLong, Unavailable, Uncertain
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

log = logging.getLogger(__name__)


class PageTooLong(Exception):
    """A page would be longer than PAGE_MAX_BYTES."""


WRITE_FAILURES = (Unavailable, Uncertain, Busy)
"""The errors for which a handler reports `problem_of_failed_write`."""


def problem_of_failed_write(error: StoreError | Busy) -> ProblemName:
    """The problem to report for a change that failed. Its reason is logged."""
    if isinstance(error, Busy):
        log.warning("busy: %s", error)
        return "busy write"
    log.error("a change was not saved: %s", error)
    return "uncertain" if isinstance(error, Uncertain) else "not saved"


def problem_of_failed_request(request: Request, error: Exception) -> ProblemName:
    """The problem to report for any other error. Its reason is logged, with a traceback if it is a bug."""
    if isinstance(error, Busy):
        log.warning("busy: %s", error)
        return "busy write" if request.method == "POST" else "busy"
    if isinstance(error, PageTooLong):
        log.warning("a page is longer than %d MB, so it was not sent", PAGE_MAX_BYTES >> 20)
        return "page too long"
    if isinstance(error, TookTooLong):
        log.warning("interrupted: %s", error)
        return "search too long" if request.query_params.get("cari") and not request.list_query else "not read"
    if isinstance(error, Unavailable):  # by a read: the handler of a write answers this error itself
        log.error("the database could not be read: %s", error)
        return "not read"
    if isinstance(error, OSError) and (problem := RESOURCE_PROBLEMS.get(error.errno)):
        log.error("the operating system refused: %s", error)
        return problem
    log.error("an unexpected error", exc_info=error)
    return "failed"

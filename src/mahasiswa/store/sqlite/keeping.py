"""Makes a back-up of the service if it is due, tests one each month, and notes the outcome."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mahasiswa.store.backup_folder import (
    CLOCK_TOLERANCE_SECONDS,
    PROBLEM_MAX_CHARACTERS,
    Outcome,
    lack_of_room,
    read_outcome,
    write_outcome,
)
from mahasiswa.store.sqlite.backup import (
    backup_files,
    backup_into,
    count_records,
    id_in,
    lacking,
)
from mahasiswa.store.sqlite.connection import real_file
from mahasiswa.store.sqlite.restore import restore
from mahasiswa.store.store_errors import Unusable
from mahasiswa.system.unfinished import unfinished

TEST_SECONDS = 30 * 24 * 3600  # time between two tests
RETRY_SECONDS = 24 * 3600  # time after which a test that failed is repeated

log = logging.getLogger(__name__)


def keep_backups(path: Path, folder: Path, max_age_seconds: float) -> None:
    """Make a back-up and test one, if they are due; raise OSError.

    Each failure is logged, and noted for `mahasiswa doctor` and the metrics.
    """
    last = _noted(path)
    now = time.time()
    problem = _problem_of(lambda: _make(path, folder, max_age_seconds))
    failures = last.failures + bool(problem)
    outcome = last._replace(moment=now, problem=problem, failures=failures)
    if not problem:
        outcome = _examined(path, folder, outcome._replace(succeeded=now))
    now_noted = _noted(path)
    if now_noted.accepted != last.accepted:  # an administrator has accepted a loss meanwhile
        records = now_noted.accepted_records
        outcome = outcome._replace(missing=0, accepted=now_noted.accepted, accepted_records=records)
    write_outcome(path, outcome)


def _noted(path: Path) -> Outcome:
    """The noted outcome.

    If it cannot be read, it counts as empty, so that a back-up is still made.
    """
    with suppress(OSError):
        return read_outcome(path)
    return Outcome()


def _make(path: Path, folder: Path, max_age_seconds: float) -> None:
    if made := backup_into(path, folder, max_age_seconds):
        log.info("back-up %s: %d bytes, verified", made, made.stat().st_size)


def _examined(path: Path, folder: Path, last: Outcome) -> Outcome:
    newest = backup_files(path, folder, id_in(path))[0]
    outcome = last._replace(newest=newest.found_at())
    if outcome.newest != last.newest:
        outcome = outcome._replace(missing=lacking(path, folder, last))
    wait = RETRY_SECONDS if last.test_problem else TEST_SECONDS
    # After a test in the future, by a wrong clock, the next one would not come until then.
    if not -CLOCK_TOLERANCE_SECONDS <= last.moment - last.tested <= wait:
        test_problem = _problem_of(lambda: _test(path, newest.file))
        outcome = outcome._replace(tested=last.moment, test_problem=test_problem)
    return outcome


def _problem_of(work: Callable[[], object]) -> str:
    try:
        work()
    except Unusable as error:
        log.error("%s", error)  # noqa: TRY400 - a traceback tells the operator nothing
        return str(error)[:PROBLEM_MAX_CHARACTERS]
    return ""


def _test(path: Path, file: Path) -> None:
    """Restore a back-up into a temporary file, and compare the numbers; raise Unusable."""
    folder = real_file(path).parent  # the start of the service removes leftovers there
    if problem := lack_of_room(folder, file.stat().st_size):
        raise Unusable(f"{file} was not restored as a test: {problem}")
    with unfinished(folder) as private:
        restored = restore(private / "test.db", file).records
    if restored != (expected := count_records(file)):
        raise Unusable(f"a test restore of {file} has {restored} records, not {expected}")
    log.info("restored %s as a test: %d records", file, restored)

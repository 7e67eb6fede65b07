"""Helper processes: other clients notice neither hostile files nor kills, and no helper outlives its worker."""

import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from attack import attacked
from harness import Service
from processes import children, helpers, is_running, memory, until
from sockets import Line, upload
from spreadsheets import (
    HEADER,
    HEADER_XML,
    by_openpyxl,
    sheet_xml,
    text_cell,
    with_sheet,
    zip_bomb,
)

from mahasiswa import wording
from mahasiswa.server.helper import PREVIEW_MEMORY_BYTES, PREVIEW_PROCESSOR_SECONDS
from mahasiswa.sheets.export import FILE_MAX_BYTES
from mahasiswa.web.helpers import PREVIEW_SILENT_SECONDS

pytestmark = pytest.mark.alone

TOO_HEAVY = wording.TOO_HEAVY[:40].encode()
WORKER_GROWS_MAX_MB = 40.0
MEGABYTE = 1 << 20
LONG_ADDRESS = "Alamat " * 120


def far_cell() -> bytes:
    """Two cells at opposite corners: a dense table between them would have 17,000 million cells."""
    return with_sheet(
        sheet_xml(HEADER_XML, b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')
    )


def huge_text() -> bytes:
    start, end = b'<row><c t="inlineStr"><is><t>', b"</t></is></c></row>"
    return with_sheet(sheet_xml(HEADER_XML, start, *[b"A" * (1 << 20)] * 600, end))


def repeated_text() -> bytes:
    """One long shared string in 27,000 cells: small when unpacked, large in memory."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet()
        for row in range(9_000):
            sheet.write_row(row, 0, ["A" * 30_000] * 3)
    return file.getvalue()


def wide_rows() -> bytes:
    """Rows of 16,384 cells, which take 42 KB as a file."""
    row = b"<row>" + text_cell(b"1") * 16_384 + b"</row>"
    return with_sheet(sheet_xml(HEADER_XML, *[row] * 500))


@pytest.fixture
def worker(service: Service) -> int:
    return service.worker


def is_previewed(service: Service) -> bool:
    """Return whether an ordinary workbook is previewed."""
    answer = service.raw(
        upload(by_openpyxl(HEADER, ("1", "Ani", "Solo")), b"berkas", b"a.xlsx"), 60
    )
    return answer.startswith(b"HTTP/1.1 200") and b"Simpan 1 mahasiswa baru" in answer


@pytest.mark.parametrize(
    "bomb",
    [
        far_cell,
        wide_rows,
        *(
            pytest.param(bomb, marks=pytest.mark.torture)
            for bomb in (zip_bomb, huge_text, repeated_text)
        ),
    ],
)
def test_a_bomb_is_refused_in_bounded_memory_and_time(
    service: Service, worker: int, bomb: Callable[[], bytes]
) -> None:
    """The worker only passes the file on, so it hardly grows."""
    file = bomb()
    assert len(file) < 16 << 20
    assert is_previewed(service)
    before = memory(worker, "VmHWM")
    with attacked(service):
        answer = service.raw(upload(file, b"berkas", b"a.xlsx"), 120)
    assert answer.startswith(b"HTTP/1.1 413")
    assert TOO_HEAVY in answer
    assert memory(worker, "VmHWM") - before < len(file) / (1 << 20) + WORKER_GROWS_MAX_MB


@contextmanager
def reading(service: Service) -> Iterator[tuple[int, Future[bytes]]]:
    """Upload a bomb; yield the helper that reads it, and the answer."""
    worker = service.worker
    until(lambda: not helpers(worker))  # of an earlier file
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(service.raw, upload(zip_bomb(), b"berkas", b"a.xlsx"), 120)
        (helper,) = until(lambda: helpers(worker))
        yield helper, answer


STANDS_STILL = "a helper stands still"  # it takes no processor time, so the kernel does not end it


@pytest.mark.parametrize(
    "fault",
    [
        "a helper is killed",
        "their parent is killed",
        pytest.param(STANDS_STILL, marks=pytest.mark.torture),
    ],
)
def test_a_fault_of_a_helper_or_of_their_parent_costs_one_page(
    service: Service, worker: int, fault: str
) -> None:
    """The page says that the file was not read. The next one is, by a new helper."""
    assert is_previewed(service)  # by a parent that runs
    until(lambda: not helpers(worker))
    before = children(worker)
    began = time.monotonic()
    with reading(service) as (helper, answer):
        whom = before[0] if fault.startswith("their") else helper
        os.kill(whom, signal.SIGSTOP if fault == STANDS_STILL else signal.SIGKILL)
        assert TOO_HEAVY in answer.result()
    assert time.monotonic() - began < PREVIEW_SILENT_SECONDS + 20
    assert is_previewed(service)
    until(lambda: not helpers(worker))
    assert (children(worker) == before) == (whom == helper)
    assert len(children(worker)) == 1


FAILING_FORK = """
import errno, os, pathlib, sys
fork = os.fork
def fails_at_times():
    if pathlib.Path(FAULT).exists():
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
    return fork()
if "mahasiswa.server.helper" in sys.orig_argv:
    os.fork = fails_at_times
"""


def test_a_fork_of_a_helper_that_fails_costs_one_page(tmp_path: Path) -> None:
    """The page says that the service is busy. Another task of the worker goes on."""
    fault = tmp_path / "fault"
    (tmp_path / "sitecustomize.py").write_text(FAILING_FORK.replace("FAULT", repr(str(fault))))
    with (
        Service(tmp_path / "a.db", {"PYTHONPATH": str(tmp_path)}) as service,
        reading(service) as (helper, bomb),
    ):
        worker = service.worker
        parents = children(worker)
        os.kill(helper, signal.SIGSTOP)
        fault.touch()
        answer = service.raw(upload(b"NIM\tNama\tAlamat\n1\tSiti\tSolo" + b" " * MEGABYTE))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: " in answer
        fault.unlink()
        os.kill(helper, signal.SIGCONT)
        assert TOO_HEAVY in bomb.result()
        assert is_previewed(service)
        assert children(worker) == parents


def test_a_helper_has_no_password_and_few_rights(service: Service, worker: int) -> None:
    """It is ended first if memory is short. Its limits fit into the unit's memory."""
    with reading(service) as (helper, _):
        (parent,) = children(worker)
        assert "DATABASE_URL" not in psutil.Process(parent).environ()
        limits = psutil.Process(helper).rlimit(psutil.RLIMIT_AS)
        until(lambda: Path(f"/proc/{helper}/oom_score_adj").read_text() == "1000\n")
        assert psutil.Process(helper).rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
        assert limits[0] in (PREVIEW_MEMORY_BYTES, psutil.RLIM_INFINITY)
        limits = psutil.Process(helper).rlimit(psutil.RLIMIT_CPU)
        assert limits[0] in (PREVIEW_PROCESSOR_SECONDS, psutil.RLIM_INFINITY)


@pytest.mark.parametrize("how", ["worker is killed", "service is killed", "service is stopped"])
def test_no_helper_outlives_its_worker(tmp_path: Path, how: str) -> None:
    """Whatever ends the worker while a file is read, all helpers and their parent are gone."""
    with Service(tmp_path / "a.db") as service:
        worker = service.worker
        assert is_previewed(service)
        with reading(service) as (helper, answer):
            processes = [*children(worker), helper]
            if how == "service is stopped":
                service.stop()
            else:
                os.kill(worker if how.startswith("worker") else service.pid, signal.SIGKILL)
            until(lambda: not any(map(is_running, processes)), 10)
            answer.exception()


def exporting(worker: int) -> list[int]:
    """Return the children of a worker that write a workbook: only they may write long files."""
    found = []
    for child in children(worker):
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(child).rlimit(psutil.RLIMIT_FSIZE)[0] == FILE_MAX_BYTES:
                found.append(child)
    return found


def test_little_memory_is_a_page(tmp_path: Path) -> None:
    """A service whose processes may have 256 MB each refuses a large file, and answers everything else."""
    command = ("sh", "-c", 'ulimit -v 262144 && exec "$0" -m mahasiswa', sys.executable)
    with Service(tmp_path / "a.db", command=command) as service:
        assert is_previewed(service)
        answer = service.raw(upload(zip_bomb(), b"berkas", b"a.xlsx"), 120)
        assert TOO_HEAVY in answer
        with Line(service.port) as line:
            line.stores("1", "Ani", "Solo")

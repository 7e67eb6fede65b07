"""An upload: it is spooled while it arrives, and a child process with bounded rights reads it. Its faults cost no one else anything."""

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from faults.test_cost import zip_bomb
from harness import Service
from processes import until
from sockets import statuses
from spreadsheets import HEADER, csv
from web.importer import counts, uploaded

from mahasiswa import wording
from mahasiswa.sheets.read import FILE_MAX_BYTES, MEMORY_BYTES, PROCESSOR_SECONDS

ANI = csv(HEADER, ("2301", "Ani", "Solo"))


@contextmanager
def reading(service: Service) -> Iterator[tuple[psutil.Process, "Future[bytes]"]]:
    """Upload a bomb, and stop the child that reads it; yield it, and the answer."""
    process = psutil.Process(service.pid)
    until(lambda: not process.children())
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(service.raw, zip_bomb(), 120)
        (child,) = until(process.children)
        child.suspend()
        yield child, answer


def test_a_child_that_dies_costs_one_page(service: Service) -> None:
    """It says that the file was not read, and nothing is kept. The next one is read."""
    with reading(service) as (child, answer):
        child.kill()
        page = answer.result()
    assert statuses(page) == [413]
    assert wording.TOO_HEAVY.split(".")[0].encode() in page
    with service.site() as site:
        assert counts(uploaded(site, ANI)) == {"Baru": 1}


def test_a_zip_bomb_is_refused_with_its_page(service: Service) -> None:
    page = service.raw(zip_bomb(), 120)
    assert statuses(page) == [413]
    assert wording.TOO_HEAVY.split(".")[0].encode() in page


def test_a_child_has_no_password_and_few_rights(tmp_path: Path) -> None:
    variables = {"DATABASE_URL": f"sqlite:///{tmp_path}/a.db", "PGPASSWORD": "rahasia"}
    with Service(tmp_path / "a.db", variables) as service, reading(service) as (child, answer):
        child.resume()
        # Until then it may still be a copy of the service.
        until(lambda: child.rlimit(psutil.RLIMIT_AS)[0] == MEMORY_BYTES)
        environment = str(child.environ())
        assert "DATABASE_URL" not in environment
        assert "rahasia" not in environment
        assert child.rlimit(psutil.RLIMIT_CPU)[0] == PROCESSOR_SECONDS
        assert child.rlimit(psutil.RLIMIT_FSIZE)[0] == FILE_MAX_BYTES
        answer.result()


@pytest.mark.parametrize("how", ["the service is killed", "the client goes away"])
def test_no_child_outlives_its_request(tmp_path: Path, how: str) -> None:
    with Service(tmp_path / "a.db") as service:
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall(zip_bomb())
            (child,) = until(psutil.Process(service.pid).children)
            until(lambda: child.rlimit(psutil.RLIMIT_AS)[0] == MEMORY_BYTES)
            if how == "the service is killed":
                os.kill(service.pid, signal.SIGKILL)
                wait_for_end(child)
            else:
                child.suspend()
        wait_for_end(child)


def wait_for_end(child: psutil.Process) -> None:
    """Wait until a process has ended, also if its parent does not wait for it."""
    with suppress(psutil.NoSuchProcess):
        until(lambda: child.status() == psutil.STATUS_ZOMBIE)

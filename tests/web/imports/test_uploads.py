"""An upload: it is spooled while it arrives, and a child process with bounded rights reads it. Its faults cost no one else anything."""

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from engines import empty_database
from harness import Service
from processes import children, is_running, until
from sockets import HOST, Line, statuses, upload
from spreadsheets import HEADER, IMPORT, Importer, csv, zip_bomb

from mahasiswa import wording
from mahasiswa.sheets.read import FILE_MAX_BYTES, MEMORY_BYTES, PROCESSOR_SECONDS
from mahasiswa.work import UPLOAD

ANI = csv(HEADER, ("2301", "Ani", "Solo"))


@contextmanager
def reading(service: Service) -> Iterator[tuple[int, "Future[bytes]"]]:
    """Upload a bomb, and stop the child that reads it; yield its id, and the answer."""
    until(lambda: not children(service.pid))
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(service.raw, upload(zip_bomb(), b"berkas", b"a.xlsx"), 120)
        (child,) = until(lambda: children(service.pid))
        os.kill(child, signal.SIGSTOP)
        yield child, answer


def test_a_child_that_dies_costs_one_page(service: Service) -> None:
    """It says that the file was not read, and nothing is kept. The next one is read."""
    with reading(service) as (child, answer):
        os.kill(child, signal.SIGKILL)
        page = answer.result()
    assert statuses(page) == [413]
    assert wording.TOO_HEAVY.split(".")[0].encode() in page
    with service.site() as site:
        assert Importer(site).upload(ANI).counts == {"Baru": 1}


def test_a_bomb_is_refused_while_others_are_answered(service: Service) -> None:
    with ThreadPoolExecutor(1) as thread, Line(service.port) as bystander:
        answer = thread.submit(service.raw, upload(zip_bomb(), b"berkas", b"a.xlsx"), 120)
        while not answer.done():
            assert bystander.get("/sehat").status == 200
    assert statuses(answer.result()) in ([413], [400])


def test_a_child_has_no_password_and_few_rights(tmp_path: Path) -> None:
    variables = {"DATABASE_URL": f"sqlite:///{tmp_path}/a.db", "PGPASSWORD": "rahasia"}
    with Service(tmp_path / "a.db", variables) as service, reading(service) as (child, answer):
        environment = Path(f"/proc/{child}/environ").read_bytes()
        assert not any(word in environment for word in (b"rahasia", b"DATABASE_URL"))
        os.kill(child, signal.SIGCONT)
        process = psutil.Process(child)
        until(lambda: process.rlimit(psutil.RLIMIT_AS)[0] == MEMORY_BYTES)
        assert process.rlimit(psutil.RLIMIT_CPU)[0] == PROCESSOR_SECONDS
        assert process.rlimit(psutil.RLIMIT_FSIZE)[0] == FILE_MAX_BYTES
        answer.result()


@pytest.mark.parametrize("how", ["the service is killed", "the client goes away"])
def test_no_child_outlives_its_request(tmp_path: Path, how: str) -> None:
    with Service(tmp_path / "a.db") as service:
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall(upload(zip_bomb(), b"berkas", b"a.xlsx"))
            (child,) = until(lambda: children(service.pid))
            process = psutil.Process(child)
            until(lambda: process.rlimit(psutil.RLIMIT_AS)[0] == MEMORY_BYTES)
            os.kill(child, signal.SIGSTOP)
            if how == "the service is killed":
                os.kill(service.pid, signal.SIGKILL)
                until(lambda: not is_running(child))
        until(lambda: not is_running(child))


def test_further_uploads_of_one_address_are_busy(service: Service) -> None:
    """Others are answered, and a slow upload ends by itself."""
    head = b"POST %b HTTP/1.1\r\n%b" % (IMPORT.encode(), HOST)
    head += b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n"
    with ExitStack() as stack, service.site() as site:
        for _ in range(UPLOAD.of_address):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            # The answer 100 Continue comes when the application starts to read the body.
            client.sendall(head + b"Expect: 100-continue\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 100 ")
            client.sendall(b"--x\r\n")
        answer = Importer(site).send(ANI, "a.csv")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert site.get("/").status_code == 200
    with service.site() as site:
        until(lambda: Importer(site).send(ANI, "a.csv").status_code == 302)


def test_a_preview_is_on_its_instance_only(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Two hosts share PostgreSQL. One of them shows, repairs and saves the upload, and the other one asks for the file again."""
    with empty_database("postgres", tmp_path, request) as database, ExitStack() as stack:
        sites = []
        for name in ("satu", "dua"):
            (tmp_path / name).mkdir()
            service = Service(database, {"TMPDIR": str(tmp_path / name)})
            sites.append(stack.enter_context(stack.enter_context(service).site()))
        importer = Importer(sites[0])
        preview = importer.upload(csv(HEADER, ("2301", "Ani", "Solo"), ("", "Budi", "Bantul")))
        other = sites[1].get(preview.path)
        assert other.status_code == 404
        assert wording.PREVIEW_GONE.split(".")[0] in other.text
        preview = importer.pressed(preview, "periksa", {"nim.0.3": "2302"})
        importer.save(preview)
        assert sites[1].nims == ["2301", "2302"]

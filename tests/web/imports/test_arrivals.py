"""Uploads while they arrive: their number, time and size, and the page of an upload that cannot be read."""

import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import Service, Site, led_to, page_of
from processes import until
from sockets import A_FILE, HOST, connected, post, upload
from spreadsheets import HEADER, csv
from web.importer import IMPORT, post_upload

from mahasiswa import wording
from mahasiswa.work import PREVIEW_FORM, UPLOAD

REQUEST = upload(csv(HEADER, ("2301", "Ani", "Solo")), A_FILE)
PROXIED = {"TRUSTED_PROXIES": "127.0.0.0/8"}


def of(address: str, request: bytes = REQUEST) -> bytes:
    """Return a request that a proxy has forwarded from an address."""
    return request.replace(HOST, HOST + b"X-Forwarded-For: %b\r\n" % address.encode(), 1)


def arriving(service: Service, stack: ExitStack, *requests: bytes) -> list[socket.socket]:
    """Send requests without their last byte."""
    return [connected(service, stack, request[:-1]) for request in requests]


def test_only_some_uploads_arrive_at_the_same_time(tmp_path: Path) -> None:
    """One more is busy. An address has a part of them, and all addresses of one IPv6 network are one."""
    with Service(tmp_path / "a.db", PROXIED) as service:
        with ExitStack() as stack:
            own = [of(f"2001:db8::{number}") for number in range(UPLOAD.of_address)]
            clients = arriving(service, stack, *own)
            until(lambda: service.raw(of("2001:db8::9")).startswith(b"HTTP/1.1 503 "))
            assert service.raw(of("198.51.100.1")).startswith(b"HTTP/1.1 302 ")
            clients[0].sendall(REQUEST[-1:])
            assert clients[0].recv(12) == b"HTTP/1.1 302"
            assert service.raw(of("2001:db8::9")).startswith(b"HTTP/1.1 302 ")
        with ExitStack() as stack:
            others = [of(f"198.51.100.{number}") for number in range(UPLOAD.running)]
            arriving(service, stack, *others)
            until(lambda: service.raw(of("203.0.113.1")).startswith(b"HTTP/1.1 503 "))
            answer = service.raw(of("203.0.113.1"))
            assert b"\r\nretry-after: " in answer.lower()
            with service.site() as site:
                led_to(site.add("1", "Ani", "Solo"))


def test_only_some_forms_of_previews_arrive_at_the_same_time(service: Service) -> None:
    form = post(f"{IMPORT}/{'0' * 32}", b"versi=1&aksi=periksa")
    with ExitStack() as stack:
        arriving(service, stack, *[form] * PREVIEW_FORM.running)
        with service.site() as site:
            target = f"{IMPORT}/{'0' * 32}"
            until(lambda: site.post(target, data={"versi": "1"}).status_code == 503)


def test_a_child_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    program = (
        "import mahasiswa.web.uploads as m; m.READ_TIMEOUT_SECONDS = 0.001;"
        "from mahasiswa.commands.cli import main; main()"
    )
    with Service(tmp_path / "a.db", command=(sys.executable, "-c", program)) as service:
        answer = service.raw(REQUEST)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert wording.TOO_HEAVY[:40].encode() in answer
        assert not list((tmp_path / "a.db-unggahan").iterdir())


def test_an_upload_that_cannot_be_read_leads_back_to_its_form(site: Site) -> None:
    """A pasted text is shown again."""
    assert page_of(post_upload(site, ""), 400).texts("[role=alert]") == [
        wording.NOTHING_CHOSEN["impor"]
    ]
    assert page_of(post_upload(site, b"%PDF-1.7 ", "surat.pdf"), 400).texts("[role=alert]") == [
        wording.PDF
    ]
    answer = post_upload(site, "tanpa nomor\n" * 5)
    assert page_of(answer, 400).texts("[role=alert]") == [wording.LINES_NOT_READ]
    assert "tanpa nomor\n" * 5 in answer.text


@pytest.mark.parametrize("broken", [b"--x\r\nX: y\r\n\r\n", b""])
def test_a_form_that_is_no_upload_is_refused(service: Service, broken: bytes) -> None:
    kind = b"Content-Type: multipart/form-data; boundary=x\r\n"
    head = b"POST %b HTTP/1.1\r\n%b%bConnection: close\r\n" % (IMPORT.encode(), HOST, kind)
    request = head + b"Content-Length: %d\r\n\r\n%b" % (len(broken), broken)
    assert service.raw(request).startswith(b"HTTP/1.1 400 ")


def test_a_limit_of_memory_that_is_lower_than_that_of_a_child_is_kept(tmp_path: Path) -> None:
    command = ("sh", "-c", 'ulimit -v 393216 && exec "$0" -m mahasiswa', sys.executable)
    with Service(tmp_path / "a.db", command=command) as service:
        assert service.raw(REQUEST).startswith(b"HTTP/1.1 302 ")

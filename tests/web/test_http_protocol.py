"""Streams of good and broken requests, cut into pieces at random, get the same answers from the service as from nginx."""

import os
import random
import re
import select
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from attack import CLOSE, FORM, HOST, assert_log_is_sound, until
from harness import Service, free_port

NGINX = """
$user daemon off; master_process off; pid $folder/nginx.pid; error_log $folder/errors;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000;
  client_body_temp_path $folder/1; proxy_temp_path $folder/2; fastcgi_temp_path $folder/3;
  uwsgi_temp_path $folder/4; scgi_temp_path $folder/5;
  server { listen 127.0.0.1:$port; location / { return 200 "$request_uri"; } }
}
"""


class Sent(NamedTuple):
    """A request, with a text that only its own answer contains: one of the service's, one of nginx's."""

    data: bytes
    ours: bytes = b""
    nginx: bytes = b""


def get(target: str, ours: bytes, *headers: bytes, method: str = "GET", body: bytes = b"") -> Sent:
    line = f"{method} {target} HTTP/1.1\r\n".encode()
    return Sent(line + HOST + b"".join(headers) + b"\r\n" + body, ours, target.encode())


def add(number: int, framing: bytes, body: bytes, *headers: bytes) -> Sent:
    """A form without its last fields, which is shown again with its NIM."""
    return get(
        f"/mahasiswa/add?n{number}x", b'value="n%dx"' % number, FORM, framing, *headers, method="POST", body=body
    )


def good(number: int, dice: random.Random) -> Sent:
    """Return a request that both servers answer. In most of them its number is a part of the answer."""
    mark = b"n%dx" % number
    search = f"/?cari={mark.decode()}"
    form = b"nim=" + mark + b"&x=" + b"y" * dice.choice((0, 1, 30_000))
    chunks = b"4\r\nnim=\r\n%x\r\n%b\r\n0\r\nX: y\r\n\r\n" % (len(mark), mark)
    long_header = b"X: " + b"y" * dice.randrange(5000) + b"\r\n"
    return dice.choice((
        get("/", b"<h1>List Data Mahasiswa</h1>"),
        get("/", b"", long_header, method="HEAD"),
        get(search, mark),
        get(search, mark, b"Connection: upgrade\r\nUpgrade: websocket\r\n"),
        get(search, mark, b"Content-Length: 2\r\n", body=b"ab"),
        get(f"/mahasiswa/delete/{mark.decode()}", b" 302 ", b"Content-Length: 2\r\n", method="POST", body=b"ab"),
        add(number, b"Content-Length: %d\r\n" % len(form), form),
        add(number, b"Transfer-Encoding: chunked\r\n", chunks),
    ))  # fmt: skip


BROKEN = (
    b"GET / HTTP/1.1\r\n" + HOST + b"X : y\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/2.0\r\n" + HOST + b"\r\n",
    b"GET / a HTTP/1.1\r\n" + HOST + b"\r\n",
    b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n\0\0\0\0",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\0\r\n\r\n",
    b"\0\r\n\r\n",
)


class Answered(NamedTuple):
    """How many requests were answered in order, whether one was refused after that, and what the last answer announced."""

    requests: int
    is_refused: bool
    closes: bool


def answered(received: bytes, requests: Sequence[Sent], marks: Sequence[bytes]) -> Answered:
    """Assign the answers to the requests in order. Fail if one belongs to another request, or is cut off."""
    closes = False
    for number, (request, mark) in enumerate(zip(requests, marks, strict=True)):
        if not received:
            return Answered(number, is_refused=False, closes=closes)
        head, end, rest = received.partition(b"\r\n\r\n")
        assert end, received
        closes = b"connection: close" in head.lower()
        length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
        if request.data.startswith(b"HEAD"):
            length = 0
        body, received = rest[:length], rest[length:]
        assert len(body) == length
        if int(head[9:12]) >= 400 and (not mark or mark not in body):
            assert not received, "an answer after a refusal"
            return Answered(number, is_refused=True, closes=closes)
        assert mark in head + body, (mark, head, body)
    assert not received, "more answers than requests"
    return Answered(len(requests), is_refused=False, closes=closes)


def exchange(port: int, pieces: Sequence[bytes]) -> bytes:
    """Send the pieces, read what comes between them, and then everything until the server closes the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            for number, piece in enumerate(pieces):
                connection.sendall(piece)
                if select.select([connection], [], [], 0.002 * (number % 2))[0]:
                    received += connection.recv(65536)
        with suppress(ConnectionResetError):
            while part := connection.recv(65536):
                received += part
    return received


def cut(dice: random.Random, data: bytes) -> list[bytes]:
    places = sorted(dice.sample(range(1, len(data)), min(len(data) - 1, dice.choice((0, 1, 3, 10)))))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start nginx, and return its port."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("nginx")
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    settings = NGINX.replace("$folder", str(folder)).replace("$port", str(port)).replace("$user", user)
    (folder / "nginx.conf").write_text(settings)
    with subprocess.Popen([program, "-c", folder / "nginx.conf", "-e", folder / "errors"]) as process:
        try:
            until(lambda: listens(port))
            yield port
        finally:
            process.terminate()


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def test_streams_of_requests_are_answered_as_nginx_does(tmp_path: Path, nginx: int) -> None:
    """Each good request gets its own answer. A broken one gets one refusal after those, and then the connection ends.

    nginx goes on after a chunked body and a body that its handler does not read. The service may close instead.
    """
    dice = random.Random(1)
    refused = whole = 0
    with Service(tmp_path / "a.db", {"LOG_LEVEL": "warning"}) as service, ThreadPoolExecutor(2) as threads:
        for number in range(150):
            requests = [good(number * 10 + place, dice) for place in range(dice.choice((1, 2, 4, 9)))]
            if dice.randrange(2):
                requests.append(Sent(dice.choice(BROKEN)))
            requests.append(get("/?cari=akhir", b"akhir", CLOSE))
            pieces = cut(dice, b"".join(request.data for request in requests))
            theirs = threads.submit(exchange, nginx, pieces)
            got = answered(exchange(service.port, pieces), requests, [request.ours for request in requests])
            expected = answered(theirs.result(), requests, [request.nginx for request in requests])
            if got.closes and not got.is_refused and got.requests < len(requests):
                assert got.requests <= expected.requests
                assert any(
                    word in requests[got.requests - 1].data for word in (b"Transfer-Encoding", b"Content-Length")
                )
            else:
                assert got[:2] == expected[:2], (number, pieces)
                whole += 1
            refused += got.is_refused
        assert refused > 20
        assert whole > 60
        assert_log_is_sound(service.stderr())

"""Requests as bytes, and connections that send them faster, slower or with less room than an HTTP client library."""

import re
import socket
import struct
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from http.client import HTTPException, HTTPResponse
from typing import NamedTuple
from urllib.parse import quote, urlencode

from harness import URL_ENCODED, Service
from processes import Closing

RESET = struct.pack("ii", 1, 0)
"""With this SO_LINGER, closing a socket resets its connection."""

HOST = b"Host: localhost\r\n"
CLOSE = b"Connection: close\r\n"
FORM = b"Content-Type: " + URL_ENCODED.encode() + b"\r\n"
PART = b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n--x--\r\n'


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Line(Closing):
    """A kept-alive connection for requests one after another, faster than an HTTP client library."""

    def __init__(self, port: int, seconds: float = 30.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> Answer:
        """Send a request and read its answer. Raise OSError if the connection ends before the answer is complete."""
        self.socket.sendall(request)
        with HTTPResponse(self.socket) as response:
            try:
                response.begin()
                headers = {name.lower(): value for name, value in response.getheaders()}
                return Answer(response.status, headers, response.read())
            except HTTPException as broken:
                raise ConnectionResetError from broken

    def get(self, path: str) -> Answer:
        return self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def add(self, nim: str, nama: str, alamat: str) -> Answer:
        return self.post("/mahasiswa/add", nim=nim, nama=nama, alamat=alamat)

    def stores(self, nim: str, nama: str, alamat: str) -> None:
        """Add a record. Fail unless the answer says that it is stored."""
        assert self.add(nim, nama, alamat).status == 302

    def edit(self, nim: str, nama: str, alamat: str) -> Answer:
        return self.post(f"/mahasiswa/edit/{quote(nim, safe='')}", nama=nama, alamat=alamat)

    def delete(self, nim: str) -> Answer:
        return self.post(f"/mahasiswa/delete/{quote(nim, safe='')}")

    def post(self, target: str, **fields: str) -> Answer:
        return self.ask(post(target, urlencode(fields).encode()))

    def close(self) -> None:
        self.socket.close()


def post(target: str, body: bytes, *headers: bytes) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return (
        b"POST %b HTTP/1.1\r\n" % target.encode()
        + HOST
        + FORM
        + length
        + b"".join(headers)
        + b"\r\n"
        + body
    )


def get(target: str, rest: bytes = b"") -> bytes:
    """Return the bytes of a request for a page, whose connection ends after it. `rest` is the end of the target."""
    return b"GET %b%b HTTP/1.1\r\n%b%b\r\n" % (target.encode(), rest, HOST, CLOSE)


def upload(
    body: bytes,
    name: bytes = b"tempel",
    filename: bytes = b"",
    target: str = "/mahasiswa/impor",
    parameters: str = "",
) -> bytes:
    """Return the bytes of a request that uploads one part of a form. `parameters` are added to its Content-Type."""
    data = PART % (name, b'; filename="%b"' % filename if filename else b"", body)
    kind = f"Content-Type: multipart/form-data; boundary=x{parameters}\r\n".encode()
    return post(target, data, CLOSE).replace(FORM, kind, 1)


def connected(
    service: Service,
    stack: ExitStack,
    request: bytes,
    *,
    linger: bytes = b"",
    address: str = "127.0.0.1",
) -> socket.socket:
    """Send a request on a connection whose receive buffer holds almost nothing of an answer."""
    client = stack.enter_context(socket.socket())
    client.bind((address, 0))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    if linger:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    client.settimeout(60)
    client.connect(("127.0.0.1", service.port))
    with suppress(ConnectionError):
        client.sendall(request)
    return client


def statuses(answers: bytes) -> list[int]:
    """Return the status of each response in a stream of responses. Each one must have the length that it announces."""
    found = []
    while answers:
        assert answers.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")), answers[:80]
        head, end, rest = answers.partition(b"\r\n\r\n")
        assert end, head
        found.append(int(head[9:12]))
        if found[-1] == 100:
            answers = rest
            continue
        length = re.search(rb"(?im)^content-length: *(\d+)\r?$", head)
        if length:
            assert len(rest) >= int(length[1]), "an answer is shorter than it says"
            answers = rest[int(length[1]) :]
        else:
            assert not rest or b"transfer-encoding: chunked" in head.lower(), head
            _, _, answers = rest.partition(b"0\r\n\r\n")
    return found

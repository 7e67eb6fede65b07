"""Requests as bytes, connections that read slowly, and the statuses of answers in bytes."""

import socket
from contextlib import ExitStack, suppress
from types import SimpleNamespace

from harness import Service
from httptools import HttpResponseParser

HOST = b"Host: localhost\r\n"
CLOSE = b"Connection: close\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
MULTIPART = b"Content-Type: multipart/form-data; boundary=x\r\n"
PART = b"--x\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n--x--\r\n"
PASTED = b'name="tempel"'
A_FILE = b'name="berkas"; filename="a.csv"'
POST = b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n%b\r\n%b"


def post(target: str, body: bytes, *headers: bytes) -> bytes:
    return POST % (target.encode(), HOST, FORM, len(body), b"".join(headers), body)


def get(target: str) -> bytes:
    """Return the bytes of a request for a page, whose connection ends after it."""
    return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (target.encode(), HOST, CLOSE)


def upload(body: bytes, name: bytes = PASTED) -> bytes:
    """Return the bytes of a request that uploads a pasted text, or a file."""
    return post("/mahasiswa/impor", PART % (name, body), CLOSE).replace(FORM, MULTIPART, 1)


def connected(service: Service, stack: ExitStack, request: bytes) -> socket.socket:
    """Send a request on a connection whose receive buffer holds almost nothing of an answer."""
    client = stack.enter_context(socket.socket())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", service.port))
    with suppress(ConnectionError):
        client.sendall(request)
    return client


def statuses(answers: bytes) -> list[int]:
    """Return the status of each response in a stream of responses. Each one must have the length that it announces."""
    found: list[int] = []
    noted = SimpleNamespace(on_message_complete=lambda: found.append(parser.get_status_code()))
    parser: HttpResponseParser = HttpResponseParser(noted)
    parser.feed_data(answers)
    return found

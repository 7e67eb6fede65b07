"""Streams of good and broken requests, cut into pieces at random, are answered in order, until a refusal ends them."""

import random
import re
import select
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from attack import assert_log_is_sound
from harness import Service
from sockets import CLOSE, FORM, HOST, Line, half_closed, post, statuses
from web.service.test_raw import CORPUS

from mahasiswa.server.http_protocol import BODY_TIMEOUT_SECONDS, CHECK_SECONDS


class Sent(NamedTuple):
    """A request, with a text that only its own answer contains."""

    data: bytes
    mark: bytes = b""


def request(
    target: str, mark: bytes, *headers: bytes, method: str = "GET", body: bytes = b""
) -> Sent:
    return Sent(
        f"{method} {target} HTTP/1.1\r\n".encode() + HOST + b"".join(headers) + b"\r\n" + body, mark
    )


def good(number: int, dice: random.Random) -> Sent:
    """Return a request that is answered. In most of them its number is a part of the answer."""
    mark = b"n%dx" % number
    search = f"/?cari={mark.decode()}"
    delete = partial(request, f"/mahasiswa/delete/{mark.decode()}", b" 302 ", method="POST")
    # A form without its last fields is shown again with its NIM.
    add = partial(
        request, f"/mahasiswa/add?{mark.decode()}", b'value="%b"' % mark, FORM, method="POST"
    )
    form = b"nim=" + mark + b"&x=" + b"y" * dice.choice((0, 1, 30_000))
    chunks = b"4\r\nnim=\r\n%x\r\n%b\r\n0\r\nX: y\r\n\r\n" % (len(mark), mark)
    long_header = b"X: " + b"y" * dice.randrange(5000) + b"\r\n"
    return dice.choice((
        request("/", b"<h1>List Data Mahasiswa</h1>"),
        request("/", b"", long_header, method="HEAD"),
        request(search, mark),
        request(search, mark, b"Connection: upgrade\r\nUpgrade: websocket\r\n"),
        request(search, mark, b"Content-Length: 2\r\n", body=b"ab"),
        delete(b"Content-Length: 2\r\n", body=b"ab"),
        add(b"Content-Length: %d\r\n" % len(form), body=form),
        add(b"Transfer-Encoding: chunked\r\n", body=chunks),
    ))  # fmt: skip


BROKEN = [data for data, statuses in CORPUS.values() if statuses == [400] and len(data) < 5000]


def answered(received: bytes, requests: Sequence[Sent]) -> tuple[int, bool, bool]:
    """Return how many requests were answered in order, whether one was refused, and whether the connection ends."""
    closes = False
    for number, (data, mark) in enumerate(requests):
        if not received:
            return number, False, closes
        head, end, rest = received.partition(b"\r\n\r\n")
        assert end, received
        closes = b"connection: close" in head.lower()
        length = (
            0
            if data.startswith(b"HEAD")
            else int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
        )
        body, received = rest[:length], rest[length:]
        assert len(body) == length
        if int(head[9:12]) >= 400 and (not mark or mark not in body):
            assert not received, "an answer after a refusal"
            return number, True, closes
        assert mark in head + body, (mark, head, body)
    assert not received, "more answers than requests"
    return len(requests), False, closes


def exchange(port: int, pieces: Sequence[bytes]) -> bytes:
    """Send the pieces, and read answers between them. Then read until the server closes the connection."""
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


def test_streams_of_requests_are_answered_in_order(tmp_path: Path) -> None:
    """Each good request gets its own answer. A broken one gets one refusal, and then the connection ends."""
    dice = random.Random(1)
    refused = whole = 0
    with Service(tmp_path / "a.db", {"LOG_LEVEL": "warning"}) as service:
        for number in range(150):
            requests = [
                good(number * 10 + place, dice) for place in range(dice.choice((1, 2, 4, 9)))
            ]
            is_broken = bool(dice.randrange(2))
            expected = len(requests) + (not is_broken)
            if is_broken:
                requests.append(Sent(dice.choice(BROKEN)))
            requests.append(request("/?cari=akhir", b"akhir", CLOSE))
            data = b"".join(sent.data for sent in requests)
            cuts = [
                0,
                *sorted(dice.sample(range(1, len(data)), dice.choice((0, 1, 3, 10)))),
                len(data),
            ]
            pieces = [data[start:end] for start, end in pairwise(cuts)]
            count, is_refused, closes = answered(exchange(service.port, pieces), requests)
            # After a body, chunked or not read.
            if closes and not is_refused and count < len(requests):
                last = requests[count - 1].data
                assert b"Transfer-Encoding" in last or b"Content-Length" in last
            else:
                assert (count, is_refused) == (expected, is_broken), (number, pieces)
                whole += 1
            refused += is_refused
        assert refused > 20
        assert whole > 60
        assert_log_is_sound(service.stderr())


BODY = b"nim=1&nama=Siti&alamat=" + b"y" * 50_000
LIST = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
ADD_PAGE = b"GET /mahasiswa/add HTTP/1.1\r\n" + HOST + b"\r\n"
IN_CHUNKS = post("/mahasiswa/add", b"").replace(
    b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n"
)
# The bytes that a client sends before it ends its input, the answers, and the number of records.
ENDED: Mapping[str, tuple[bytes, list[int], int]] = {
    "nothing": (b"", [], 0),
    "half a head": (ADD_PAGE[:-2], [], 0),
    "a request": (post("/mahasiswa/add", BODY), [302], 1),
    "a request in chunks": (IN_CHUNKS + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY), [302], 1),
    "requests": ((ADD_PAGE + LIST) * 2 + post("/mahasiswa/add", BODY) + LIST, [200] * 4 + [302, 200], 1),
    "a request and half of one": (ADD_PAGE + post("/mahasiswa/add", BODY)[:-1], [200], 0),
    "half a chunk": (IN_CHUNKS + b"ffff\r\n" + BODY, [], 0),
    "a request that is refused": (ADD_PAGE + b"FOO / HTTP/1.1\r\n" + HOST + b"\r\n", [200, 405], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDED)
def test_a_client_that_ends_its_input_gets_the_answers_to_its_complete_requests(
    service: Service, name: str
) -> None:
    """Then the connection ends at once, long before its deadlines. An incomplete request is not answered."""
    sent, expected, stored = ENDED[name]
    with Line(service.port) as line:
        line.delete("1")
        began = time.monotonic()
        assert statuses(half_closed(service.port, sent)) == expected
        assert time.monotonic() - began < BODY_TIMEOUT_SECONDS / 2
        assert line.get("/").body.count(b"<tr><td>") == stored


@pytest.mark.torture
def test_a_body_has_a_time_of_its_own_on_an_old_connection(service: Service) -> None:
    """A client that has sent forms for a while, and then sends one slowly, is not too slow."""
    form = post("/mahasiswa/add", b"nim=1&nama=Siti&alamat=Solo")
    with Line(service.port) as line:
        line.delete("1")
        began = time.monotonic()
        while time.monotonic() - began < BODY_TIMEOUT_SECONDS + 1:
            line.edit("1", "Siti", "Solo")
            assert not select.select([line.socket], [], [], CHECK_SECONDS)[0]
        line.socket.sendall(form[:-1])
        assert not select.select([line.socket], [], [], 3 * CHECK_SECONDS)[0]
        assert line.ask(form[-1:]).status == 302

"""Malformed and ambiguous HTTP: each request gets one answer, never 5xx, and no request can be smuggled.

test_limits.py has the requests at each limit.
"""

import random
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from cli.operators import records_of
from harness import URL_ENCODED, Service, assert_log_is_sound, led_to
from processes import until
from sockets import CLOSE, get, post, statuses, upload

from mahasiswa.server.http_protocol import PIPELINE_MAX_REQUESTS
from mahasiswa.web.forms import FORM_MAX_BYTES

Row = tuple[str, list[int]]
INNER = post("/mahasiswa/add", b"nim=selundupan&nama=Siti&alamat=Solo", CLOSE).decode()
"""A request that is hidden in the body of another one."""

# In the texts below, a bar stands for the end of a line, and a word in capitals for a line that occurs often.
LINES = {
    "LAST": "GET / HTTP/1.1|HOST|CLOSE||",
    "HOST": "Host: localhost",
    "FORM": f"Content-Type: {URL_ENCODED}",
    "CLOSE": "Connection: close",
    "CHUNKS": "Transfer-Encoding: chunked",
    "LENGTH": f"Content-Length: {len(INNER)}",
    "SIZE": f"{len(INNER):x}",
    "INNER": INNER,
}
LONG_CHUNKS = f"4000|{'a' * 0x4000}|" * 5


def wire(text: str) -> bytes:
    """Return the bytes of requests that are written as texts."""
    for word, line in LINES.items():
        text = text.replace(word, line)
    return text.replace("|", "\r\n").encode("latin-1")


# The bytes that are sent. Each of them is answered 400, and then the service closes the connection. The database refuses
# the form `nim=r`, because two fields are missing: this 400 shows that the form arrived completely.
BAD = {
    "the length 5\\r\\nContent-Length: 5": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 5|Content-Length: 5|CLOSE||nim=r",
    "the length 5, 5": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 5, 5|CLOSE||nim=r",
    "the length +5": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: +5|CLOSE||nim=r",
    "the length -5": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: -5|CLOSE||nim=r",
    "the length 0x5": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 0x5|CLOSE||nim=r",
    "the length 99999999999999999999999": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 99999999999999999999999|CLOSE||nim=r",
    "the target /a\\x00": "GET /a\x00b HTTP/1.1|HOST|CLOSE||",
    "the target /a ": "GET /a b HTTP/1.1|HOST|CLOSE||",
    "the target /a\\xff": "GET /a\xffb HTTP/1.1|HOST|CLOSE||",
    "the target mahasiswa": "GET mahasiswa HTTP/1.1|HOST|CLOSE||",
    "the target file:///etc/passwd": "GET file:///etc/passwd HTTP/1.1|HOST|CLOSE||",
    "the target http://localhost": "GET http://localhost HTTP/1.1|HOST|CLOSE||",
    "the header Host: other": "GET / HTTP/1.1|HOST|Host: other|CLOSE||",
    "the header X: a\\x01": "GET / HTTP/1.1|HOST|X: a\x01b|CLOSE||",
    "the header X: a\\r": "GET / HTTP/1.1|HOST|X: a\rb|CLOSE||",
    "the header : a": "GET / HTTP/1.1|HOST|: a|CLOSE||",
    "the header abc": "GET / HTTP/1.1|HOST|abc|CLOSE||",
    "the line CONNECT localhost:443 HTTP/1.1": "CONNECT localhost:443 HTTP/1.1|HOST|CLOSE||",
    "the line GET / HTTP/1.2": "GET / HTTP/1.2|HOST|CLOSE||",
    "an empty Host": "GET / HTTP/1.1|Host:|CLOSE||",
    "two Hosts in HTTP/1.0": "GET / HTTP/1.0|HOST|HOST||",
    "chunks and a length": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|Content-Length: 3|CLOSE||5|nim=r|0||",
    "a coding that is not known": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Transfer-Encoding: xchunked|CLOSE||5|nim=r|0||",
    "chunked is not last": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Transfer-Encoding: chunked, identity|CLOSE||5|nim=r|0||",
    "identity": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Transfer-Encoding: identity|CLOSE||nim=r",
    "a space before a colon": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length : 5|CLOSE||nim=r",
    "a space before Transfer-Encoding's colon": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Transfer-Encoding : chunked|CLOSE||5|nim=r|",
    "chunks in HTTP/1.0": "POST /mahasiswa/add HTTP/1.0|HOST|FORM|CHUNKS||5|nim=r|0||",
    "chunks": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|CLOSE||5|nim=r|0||",
    "chunks with an extension and a trailer": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|CLOSE||5;a=b|nim=r|0|X: y||",
    "a chunk size that is no number": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|CLOSE||zz|nim=r|0||",
    "a negative chunk size": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|CLOSE||-1|nim=r|0||",
    "a chunk size that overflows": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|CLOSE||ffffffffffffffffff|nim=r|0||",
    "a chunk longer than its size": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|CLOSE||3|nim=r|0||",
    "chunks with bare LF": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|CLOSE||5\nnim=r\n0\n\n",
    "a space before the first header": "GET / HTTP/1.1| HOST|CLOSE||",
    "HTTP/0.9": "GET /||",
    "the preface of HTTP/2": "PRI * HTTP/2.0||SM||",
    "an unknown expectation": "POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 5|Expect: 200-ok|CLOSE||nim=r",
}
# The bytes that are sent, and the status of each answer until the service closes the connection.
TEXTS: Mapping[str, Row] = {
    **{name: (text, [400]) for name, text in BAD.items()},
    "no Host in HTTP/1.0": ("GET / HTTP/1.0||", [200]),
    "the greatest length": ("POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 18446744073709551615|CLOSE||nim=r", [413]),
    "a query that is not UTF-8": ("GET /?cari=%ff HTTP/1.1|HOST|CLOSE||", [200]),
    "absolute form": ("GET http://localhost/mahasiswa/add HTTP/1.1|HOST|CLOSE||", [200]),
    "asterisk form": ("OPTIONS * HTTP/1.1|HOST|CLOSE||", [404]),
    "an expectation": ("POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 5|Expect: 100-continue|CLOSE||nim=r", [100, 400]),
    "dots": ("GET /../../etc/passwd HTTP/1.1|HOST|CLOSE||", [404]),
    "an unknown method": ("FOO / HTTP/1.1|HOST|CLOSE||", [400]),
    "an upgrade": ("GET / HTTP/1.1|HOST|Upgrade: h2c|HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA|CLOSE||", [200]),
    "a WebSocket": ("GET / HTTP/1.1|HOST|Upgrade: websocket|Sec-WebSocket-Version: 13|Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==|Connection: upgrade, close||", [200]),
    "empty lines first": ("||GET / HTTP/1.1|HOST|CLOSE||", [200]),
    "another method for the list": ("PUT / HTTP/1.1|HOST||GET / HTTP/1.1|HOST|CLOSE||", [405, 200]),
    "a chunked request before another one": ("POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS||5|nim=r|0||GET / HTTP/1.1|HOST|CLOSE||", [400, 200]),
    "CONNECT and a body": ("CONNECT http://a/ HTTP/1.1|HOST|CLOSE|Content-Length: 3||abcGET / HTTP/1.1|HOST|CLOSE||", [405]),
    "a pipeline with a fault in it": ("GET /mahasiswa/add HTTP/1.1|HOST||GET / HTTP/1.1|HOST||GET / HTTP/1.1|X : y||GET / HTTP/1.1|HOST|CLOSE||", [200]),
    "a pipeline": ("GET /mahasiswa/add HTTP/1.1|HOST||GET /mahasiswa/add HTTP/1.1|HOST||GET /mahasiswa/add HTTP/1.1|HOST||GET /mahasiswa/add HTTP/1.1|HOST||GET / HTTP/1.1|HOST|CLOSE||", [200, 200, 200, 200, 200]),
    "a method of 70 KB": (f"{'A' * 70_000} / HTTP/1.1|HOST|CLOSE||", [400]),
}  # fmt: skip
CORPUS: Mapping[str, tuple[bytes, list[int]]] = {
    **{name: (wire(text), found) for name, (text, found) in TEXTS.items()},
    # The service writes a line of the log for each of these two, of at most 4,500 bytes.
    "a path of control characters": (get("/" + "%01" * 1000), [404]),
    "a NIM of control characters": (
        post("/mahasiswa/add", b"nim=" + b"%01" * 20_000, CLOSE),
        [400],
    ),
    "a Content-Type of 2 KB": (
        upload(b"1").replace(b"=x\r\n", b"=x; " + b'";' * 1000 + b"\r\n", 1),
        [400],
    ),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), [400]),
    "all 256 byte values": (bytes(range(256)) * 4, [400]),
}

# Each of them names the record UNTIDY, and must not change it. The body of a deletion is ignored, but read to its end.
REFUSED: Mapping[str, Row] = {
    "a deletion with a broken chunk": ("POST /mahasiswa/delete/ada HTTP/1.1|HOST|CHUNKS||3|abc|ZZ|", [400]),
    "a deletion with a body past the limit": (f"POST /mahasiswa/delete/ada HTTP/1.1|HOST|Content-Length: {FORM_MAX_BYTES + 1}|CLOSE||", [413]),
    "a deletion with chunks past the limit": (f"POST /mahasiswa/delete/ada HTTP/1.1|HOST|CHUNKS||{LONG_CHUNKS}", [413]),
}  # fmt: skip
UNTIDY = ("Siti  Aminah", "Solo")

# The bytes of a body are never taken for a second request. The next one is answered.
HIDDEN: Mapping[str, Row] = {
    "in a form": ("POST /mahasiswa/add HTTP/1.1|HOST|FORM|LENGTH||INNERLAST", [400, 200]),
    "in a body that is ignored": ("POST /mahasiswa/delete/x HTTP/1.1|HOST|LENGTH||INNERLAST", [302, 200]),
    "in chunks that are ignored": ("POST /mahasiswa/delete/x HTTP/1.1|HOST|CHUNKS||SIZE|INNER|0||LAST", [302, 200]),
    "in the body of a GET": ("GET / HTTP/1.1|HOST|LENGTH||INNERLAST", [200, 200]),
    "in the chunks of a GET": ("GET / HTTP/1.1|HOST|CHUNKS||SIZE|INNER|0||LAST", [200, 200]),
    "in a body of another type": ("POST /mahasiswa/add HTTP/1.1|HOST|Content-Type: text/plain|LENGTH||INNERLAST", [415, 200]),
    "by a length beside chunks": ("POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 99|CHUNKS||SIZE|INNER|0||", [400]),
    "by chunks and a length of zero": ("POST /mahasiswa/add HTTP/1.1|HOST|FORM|CHUNKS|Content-Length: 0||SIZE|INNER|0||", [400]),
    "in a body past the limit": ("POST /mahasiswa/add HTTP/1.1|HOST|FORM|Content-Length: 90000||" + "INNER" * 520, [413]),
}  # fmt: skip
OTHERS = {**HIDDEN, **REFUSED}
EVERYTHING = {**CORPUS, **{name: (wire(text), found) for name, (text, found) in OTHERS.items()}}


@pytest.fixture(scope="module")
def answered(service: Service) -> dict[str, bytes]:
    """Send everything at once."""
    with service.site() as site:
        led_to(site.add("ada", *UNTIDY))
    with ThreadPoolExecutor(len(EVERYTHING)) as threads:
        answers = threads.map(lambda row: service.raw(row[0]), EVERYTHING.values())
        return dict(zip(EVERYTHING, answers, strict=True))


@pytest.mark.parametrize("name", EVERYTHING)
def test_malformed_http_is_answered_once_and_never_with_5xx(
    answered: dict[str, bytes], name: str
) -> None:
    """Each request gets the expected status, and the connection is closed after it."""
    expected = EVERYTHING[name][1]
    assert statuses(answered[name]) == expected


@pytest.mark.usefixtures("answered")
def test_malformed_http_changes_nothing_and_ends_no_worker(service: Service) -> None:
    assert isinstance(service.database, Path)
    assert records_of(service.database) == [("ada", *UNTIDY)]
    with service.site() as site:
        assert site.add("1", "Siti", "Solo").status_code == site.delete("1").status_code == 302
    assert service.process.poll() is None
    until(lambda: service.stderr().count("\n") > 40)
    assert_log_is_sound(service.stderr())


def test_requests_in_any_pieces_are_answered_in_order(service: Service) -> None:
    """Wherever the stream is cut, each request gets its own answer."""
    dice = random.Random(1)
    for turn in range(50):
        marks = [b"n%dx%dn" % (turn, number) for number in range(6)]
        stream = get("/mahasiswa/add")
        for mark in reversed(marks):
            search = get(f"/?cari={mark.decode()}").replace(CLOSE, b"")
            refused = post("/mahasiswa/add", b"nim=" + mark)  # its page shows the NIM
            stream = dice.choice((search, refused)) + stream
        cuts = [0, *sorted(dice.sample(range(1, len(stream)), turn % 9)), len(stream)]
        received = b""
        with socket.create_connection(("127.0.0.1", service.port), 20) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start, end in pairwise(cuts):
                client.sendall(stream[start:end])
            while part := client.recv(65536):
                received += part
        *answers, last = statuses(received)
        assert len(answers) == len(marks), cuts
        assert last == 200, cuts
        places = [received.index(mark) for mark in marks]
        assert places == sorted(places), cuts


@pytest.mark.parametrize(("more", "answered"), [(0, 1 + PIPELINE_MAX_REQUESTS), (1, 1)])
def test_so_many_requests_wait_on_a_connection(service: Service, more: int, answered: int) -> None:
    """With one more, the connection ends after the answer to the request that is running."""
    waiting = get("/mahasiswa/add").replace(CLOSE, b"") * (PIPELINE_MAX_REQUESTS + more)
    assert statuses(service.raw(waiting + get("/mahasiswa/add"))) == [200] * answered


def test_an_answer_before_the_end_of_the_body_is_the_last_of_its_connection(
    service: Service,
) -> None:
    """The answer says so. Otherwise the client would send its next request on a connection that is closed."""
    answer = service.raw(b"POST /tidak-ada HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nnim")
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"\r\nconnection: close\r\n" in answer

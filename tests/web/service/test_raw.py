"""Malformed and ambiguous HTTP: each request gets one answer, never 5xx, and no request can be smuggled."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attack import assert_log_is_sound, holds
from harness import Service
from processes import children, until
from sockets import CLOSE, FORM, HOST, Line, post, statuses, upload

END = CLOSE + b"\r\n"
GET = b"GET / HTTP/1.1\r\n"
ADD = b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = b"nim=r"
SIZED = b"5\r\nnim=r\r\n"
FAULT = GET + b"X : y\r\n\r\n"
WEBSOCKET = b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

# The bytes that are sent, and the status of each answer until the service closes the connection. The database refuses
# the form BODY (400), because two fields are missing: this 400 shows that the form arrived completely.
LENGTHS = (
    b"5\r\nContent-Length: 5",
    b"5\r\nContent-Length: 6",
    b"5, 5",
    b"+5",
    b"-5",
    b"0x5",
    b"9" * 23,
)
TARGETS = (
    *(b"/a%bb" % odd for odd in (b"\0", b"\x1b[2J", b"\t", b"\x7f", b" ", b"\xff")),
    *(b"mahasiswa", b"file:///etc/passwd", b"http://localhost"),
)
HEADERS = (
    HOST.strip(),
    b"Host: other",
    b"X: a\x01b",
    b"X: a\0b",
    b"X: a\rb",
    b": a",
    b"abc",
    b"X: a\r\n b",
)
LINES = (b"CONNECT localhost:443 HTTP/1.1", b"GET / HTTP/1.2", b"GET / HTTP/2.0")
CORPUS: Mapping[str, tuple[bytes, list[int]]] = {
    **{f"the length {length!r}": (ADD + b"Content-Length: " + length + b"\r\n" + END + BODY, [400]) for length in LENGTHS},
    **{f"the target {target!r}": (b"GET " + target + b" HTTP/1.1\r\n" + HOST + END, [400]) for target in TARGETS},
    **{f"the header {header!r}": (GET + HOST + header + b"\r\n" + END, [400]) for header in HEADERS},
    **{f"the line {line!r}": (line + b"\r\n" + HOST + END, [400]) for line in LINES},
    # Host
    "no Host": (GET + END, [400]),
    "an empty Host": (GET + b"Host:\r\n" + END, [400]),
    "two Hosts in HTTP/1.0": (b"GET / HTTP/1.0\r\n" + HOST + HOST + b"\r\n", [400]),
    "no Host in HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", [200]),
    # the length of a body
    "the greatest length": (ADD + b"Content-Length: 18446744073709551615\r\n" + END + BODY, [413]),
    "a length past the limit": (ADD + b"Content-Length: 65537\r\n" + END + BODY, [413]),
    "a length and chunks": (ADD + b"Content-Length: 5\r\n" + CHUNKED + END + SIZED + b"0\r\n\r\n", [400]),
    "chunks and a length": (ADD + CHUNKED + b"Content-Length: 3\r\n" + END + SIZED + b"0\r\n\r\n", [400]),
    "a coding that is not known": (ADD + b"Transfer-Encoding: xchunked\r\n" + END + SIZED + b"0\r\n\r\n", [400]),
    "chunked is not last": (ADD + b"Transfer-Encoding: chunked, identity\r\n" + END + SIZED + b"0\r\n\r\n", [400]),
    "identity": (ADD + b"Transfer-Encoding: identity\r\n" + END + BODY, [400]),
    "a space before a colon": (ADD + b"Content-Length : 5\r\n" + END + BODY, [400]),
    "a space before Transfer-Encoding's colon": (ADD + b"Transfer-Encoding : chunked\r\n" + END + SIZED, [400]),
    "chunks in HTTP/1.0": (ADD.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n" + SIZED + b"0\r\n\r\n", [400]),
    # chunks
    "chunks": (ADD + CHUNKED + END + SIZED + b"0\r\n\r\n", [400]),
    "chunks with an extension and a trailer": (ADD + CHUNKED + END + b"5;a=b\r\nnim=r\r\n0\r\nX: y\r\n\r\n", [400]),
    "a chunk size that is no number": (ADD + CHUNKED + END + b"zz\r\nnim=r\r\n0\r\n\r\n", [400]),
    "a negative chunk size": (ADD + CHUNKED + END + b"-1\r\nnim=r\r\n0\r\n\r\n", [400]),
    "a chunk size that overflows": (ADD + CHUNKED + END + b"f" * 18 + b"\r\nnim=r\r\n0\r\n\r\n", [400]),
    "a chunk longer than its size": (ADD + CHUNKED + END + b"3\r\nnim=r\r\n0\r\n\r\n", [400]),
    "chunks with bare LF": (ADD + CHUNKED + END + b"5\nnim=r\n0\n\n", [400]),
    "chunks past the limit": (ADD + CHUNKED + END + (b"4000\r\n" + b"a" * 0x4000 + b"\r\n") * 5 + b"0\r\n\r\n", [413]),
    "20 fields": (post("/mahasiswa/edit/x", b"nama=Ani&alamat=Solo" + b"&x" * 18, CLOSE), [302]),
    "21 fields": (post("/mahasiswa/edit/x", b"nama=Ani&alamat=Solo" + b"&x" * 19, CLOSE), [400]),
    "1,000 ticks": (post("/mahasiswa/hapus/pilihan", b"&".join([b"nim[]=1"] * 1000), CLOSE), [200]),
    "1,001 ticks": (post("/mahasiswa/hapus/pilihan", b"&".join([b"nim[]=1"] * 1001), CLOSE), [400]),
    # the target
    "a query that is not UTF-8": (b"GET /?cari=%ff HTTP/1.1\r\n" + HOST + END, [200]),
    "a malformed escape in a query": (b"GET /?cari=%zz HTTP/1.1\r\n" + HOST + END, [400]),
    "20 parameters": (b"GET /?" + b"&a" * 19 + b" HTTP/1.1\r\n" + HOST + END, [200]),
    "21 parameters": (b"GET /?" + b"&a" * 20 + b" HTTP/1.1\r\n" + HOST + END, [400]),
    "a path as long as a NIM needs": (b"GET /" + b"a" * 3199 + b" HTTP/1.1\r\n" + HOST + END, [404]),
    "a path that is longer": (b"GET /" + b"a" * 3200 + b" HTTP/1.1\r\n" + HOST + END, [414]),
    "a query of 8 KB": (b"GET /?" + b"a" * 8192 + b" HTTP/1.1\r\n" + HOST + END, [200]),
    "a longer query": (b"GET /?" + b"a" * 8193 + b" HTTP/1.1\r\n" + HOST + END, [400]),
    "absolute form": (b"GET http://localhost/mahasiswa/add HTTP/1.1\r\n" + HOST + END, [200]),
    "asterisk form": (b"OPTIONS * HTTP/1.1\r\n" + HOST + END, [404]),
    "dots": (b"GET /../../etc/passwd HTTP/1.1\r\n" + HOST + END, [404]),
    "a target of 60 KB": (b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\n" + HOST + END, [414]),
    "a target of 70 KB": (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST + END, [414]),
    # headers
    "a space before the first header": (GET + b" " + HOST + END, [400]),
    "bare LF": (b"GET / HTTP/1.1\nHost: localhost\nConnection: close\n\n", [400]),
    "a header of 60 KB": (GET + HOST + b"X: " + b"a" * 60_000 + b"\r\n" + END, [200]),
    "a header of 1 MB": (GET + HOST + b"X: " + b"a" * 1_000_000 + b"\r\n" + END, [431]),
    "a Content-Type of 2 KB": (upload(b"1", parameters="; " + '";' * 1000), [400]),
    "200 headers": (GET + HOST + b"".join(b"X%d: a\r\n" % n for n in range(200)) + END, [431]),
    "a header's name of 70 KB": (GET + HOST + b"a" * 70_000 + b": a\r\n" + END, [431]),
    # methods and versions
    "an unknown method": (b"FOO / HTTP/1.1\r\n" + HOST + END, [405]),
    "a method of 70 KB": (b"A" * 70_000 + b" / HTTP/1.1\r\n" + HOST + END, [414]),
    "HTTP/0.9": (b"GET /\r\n\r\n", [400]),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
    "an upgrade": (GET + HOST + b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n" + END, [200]),
    "a WebSocket": (GET + HOST + WEBSOCKET + b"Connection: upgrade, close\r\n\r\n", [200]),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), [400]),
    "all 256 byte values": (bytes(range(256)) * 4, [400]),
    "an unknown expectation": (post("/mahasiswa/add", BODY, b"Expect: 200-ok\r\n", CLOSE), [400]),
    "empty lines first": (b"\r\n\r\n" + GET + HOST + END, [200]),
    # several requests at once
    "another method for the list": (b"PUT / HTTP/1.1\r\n" + HOST + b"\r\n" + GET + HOST + END, [405, 200]),
    "an upgrade and then a fault": (GET + HOST + WEBSOCKET + b"Connection: upgrade\r\n\r\n" + FAULT, [200, 400]),
    "CONNECT and then a fault": (b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n" + FAULT, [400]),
    "CONNECT and a body": (b"CONNECT http://a/ HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc" + GET + HOST + END, [400]),
    "a request after a chunked one": (ADD + CHUNKED + b"\r\n" + SIZED + b"0\r\n\r\n" + GET + HOST + END, [400]),
    "a pipeline": ((b"GET /mahasiswa/add HTTP/1.1\r\n" + HOST + b"\r\n") * 4 + GET + HOST + END, [200] * 5),
    "a pipeline with a fault in it": ((GET + HOST + b"\r\n") * 2 + FAULT + GET + HOST + END, [200, 200, 400]),
}  # fmt: skip

DELETE = b"POST /mahasiswa/delete/ada HTTP/1.1\r\n" + HOST
TIDY = b"POST /mahasiswa/periksa HTTP/1.1\r\n" + HOST
BROKEN_CHUNK = CHUNKED + b"\r\n3\r\nabc\r\nZZ\r\n"
LONG_CHUNKS = CHUNKED + b"\r\n" + (b"4000\r\n" + b"a" * 0x4000 + b"\r\n") * 5
# Each of them names the record UNTIDY, and must not change it. The body of a deletion is ignored, but read to its end.
REFUSED: Mapping[str, tuple[bytes, list[int]]] = {
    "a deletion with a broken chunk": (DELETE + BROKEN_CHUNK, [400]),
    "a deletion with a body past the limit": (DELETE + b"Content-Length: 65537\r\n" + END, [413]),
    "a deletion with chunks past the limit": (DELETE + LONG_CHUNKS, [413]),
    "a deletion with a body that never comes": (DELETE + b"Content-Length: 9\r\n\r\n", [408]),
    "an edit with a broken chunk": (ADD.replace(b"add", b"edit/ada") + BROKEN_CHUNK, [400]),
    "tidying with a broken chunk": (TIDY + BROKEN_CHUNK, [400]),
    "an undo with a broken chunk": (TIDY.replace(b"periksa", b"riwayat/perubahan/1") + BROKEN_CHUNK, [400]),
}  # fmt: skip
UNTIDY = ("Siti  Aminah", "Solo")

INNER = post("/mahasiswa/add", b"nim=selundupan&nama=Siti&alamat=Solo", CLOSE)
"""A request that is hidden in the body of another one."""


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def sized(head: bytes) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(INNER) + INNER


# The bytes of a body are never taken for a second request.
HIDDEN: Mapping[str, tuple[bytes, list[int]]] = {
    "in a form": (sized(ADD), [400]),
    "in a body that is ignored": (sized(b"POST /mahasiswa/delete/x HTTP/1.1\r\n" + HOST), [302]),
    "in JSON that is ignored": (sized(b"POST /mahasiswa/delete/x HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"), [302]),
    "in chunks that are ignored": (b"POST /mahasiswa/delete/x HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + chunked(INNER), [302]),
    "in the body of a GET": (sized(GET + HOST), [200]),
    "in the chunks of a GET": (GET + HOST + CHUNKED + b"\r\n" + chunked(INNER), [200]),
    "in the body of a request without Host": (sized(b"POST /mahasiswa/delete/x HTTP/1.1\r\n"), [400]),
    "in the body for an unknown path": (sized(b"POST /tidak-ada HTTP/1.1\r\n" + HOST), [404]),
    "in a body of another type": (sized(b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + b"Content-Type: text/plain\r\n"), [415]),
    "in a body past the limit": (ADD + b"Content-Length: 90000\r\n\r\n" + INNER * (90000 // len(INNER)), [413]),
    "by a length beside chunks": (ADD + b"Content-Length: %d\r\n" % (len(INNER) + 5) + CHUNKED + b"\r\n" + chunked(INNER), [400]),
    "by chunks and a length of zero": (ADD + CHUNKED + b"Content-Length: 0\r\n\r\n" + chunked(INNER), [400]),
    "in a multipart body": (sized(b"POST /mahasiswa/impor HTTP/1.1\r\n" + HOST + b"Content-Type: multipart/form-data; boundary=x\r\n"), [400]),
}  # fmt: skip
EVERYTHING = {**CORPUS, **HIDDEN, **REFUSED}


@pytest.fixture(scope="module")
def answered(service: Service) -> dict[str, bytes]:
    """Send everything at once, because the service closes some connections only after ten seconds."""
    with Line(service.port) as line:
        assert line.add("ada", *UNTIDY).status == 302
    with ThreadPoolExecutor(len(EVERYTHING)) as threads:
        answers = threads.map(lambda row: service.raw(row[0]), EVERYTHING.values())
        return dict(zip(EVERYTHING, answers, strict=True))


@pytest.mark.parametrize("name", EVERYTHING)
def test_malformed_http_is_answered_once_and_never_with_5xx(
    answered: dict[str, bytes], name: str
) -> None:
    """Each request gets the expected status, and the connection is closed after it."""
    assert statuses(answered[name]) == EVERYTHING[name][1]


@pytest.mark.usefixtures("answered")
def test_malformed_http_changes_nothing_and_ends_no_worker(service: Service) -> None:
    assert isinstance(service.database, Path)
    assert holds(service.database) == {"ada": UNTIDY}
    before = children(service.pid)
    with Line(service.port) as line:
        assert line.add("1", "Siti", "Solo").status == line.delete("1").status == 302
    assert children(service.pid) == before
    until(lambda: service.stderr().count("\n") > 40)
    assert_log_is_sound(service.stderr())

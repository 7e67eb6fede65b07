"""Bodies that are no form, too large, too slow or incomplete: how they are refused, and that nothing is stored."""

import socket
import time
from contextlib import ExitStack
from itertools import product

import pytest
from form_answers import ADD, KEPT, assert_error, parsed, post_raw, read_all, two_records
from harness import URL_ENCODED, Service, Site

# The fixtures, which pytest finds by these names.
__all__ = ["two_records"]

TOO_LARGE = "Data yang dikirim terlalu besar (maksimal 64 KB)."
LIMIT = 64 * 1024


@pytest.mark.parametrize("target", [ADD, "/mahasiswa/edit/0001"])
@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "multipart/form-data; boundary=x"},
        {"content_type": "application/json"},
        {"content_type": "text/plain"},
        {"content_type": "application/x-www-form-urlencodedx"},
        {"content_type": ""},
        {},
        {"content_type": URL_ENCODED, "content_encoding": "gzip"},
    ],
    ids=str,
)
def test_a_body_that_is_no_form_is_refused(site: Site, target: str, headers: dict[str, str]) -> None:
    """A body that is not `application/x-www-form-urlencoded` is answered with 415 (specification 4)."""
    answer = site.send("POST", target, b"nim=3&nama=Ani&alamat=Klaten", **headers)
    assert answer.status_code == 415
    assert_error(answer, site, "tidak dikirim sebagai formulir")


@pytest.mark.parametrize("content_type", [URL_ENCODED.upper(), f"{URL_ENCODED}; charset=UTF-8", f"{URL_ENCODED} ;x"])
def test_the_content_type_of_a_form_ignores_case_and_parameters(site: Site, content_type: str) -> None:
    """The media type of a form may be in capitals and have parameters."""
    assert site.send("POST", ADD, b"nim=3&nama=Ani&alamat=Klaten", content_type=content_type).status_code == 302
    site.delete("3")


def test_a_form_of_exactly_64_kib_is_accepted(site: Site) -> None:
    """A body of exactly 65,536 bytes is accepted."""
    body = b"nama=Siti&alamat="
    assert post_raw(site, "/mahasiswa/edit/0001", body + b"a" * (LIMIT - len(body))).status_code == 302
    assert len(site.page("/mahasiswa/edit/0001").record_form.values["alamat"]) == LIMIT - len(body)
    site.edit(*KEPT[0])


@pytest.mark.parametrize("target", [ADD, "/mahasiswa/edit/0001"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_64_kib_is_refused(site: Site, service: Service, target: str, *, chunked: bool) -> None:
    """A longer body is answered with a 413 page, with a Content-Length as well as in chunks."""
    body = b"nim=3&nama=Ani&alamat=".ljust(LIMIT + 1, b"a")
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {URL_ENCODED}\r\nConnection: close\r\n".encode()
    if chunked:
        pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
        sent = b"Transfer-Encoding: chunked\r\n\r\n"
        sent += b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        sent = b"Content-Length: %d\r\n\r\n" % len(body) + body
    answer = parsed(service.raw(head + sent))
    assert answer.status_code == 413
    assert_error(answer, site, TOO_LARGE)


@pytest.mark.parametrize(
    ("target", "host", "expected"),
    [
        (ADD, "a", (413, TOO_LARGE)),
        ("/mahasiswa/impor", "a", (413, "melebihi 16 MB")),
        ("/tidak/ada", "a", (404, "Halaman tidak ditemukan")),
        ("/sehat", "a", (405, "tidak dapat dibuka dengan cara tersebut")),
        (ADD, "", (400, "Alamat atau data yang dikirim rusak")),
    ],
)
def test_a_client_that_sends_its_whole_body_first_gets_the_refusal(
    site: Site, service: Service, target: str, host: str, expected: tuple[int, str]
) -> None:
    """The service reads the rest of a refused body, so that the client receives the page instead of a reset."""
    size = 32 << 20
    head = f"POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {URL_ENCODED}\r\nContent-Length: {size}\r\n"
    answer = parsed(service.raw(f"{head}Connection: close\r\n\r\n".encode() + bytes(size), 30))
    assert answer.status_code == expected[0]
    assert_error(answer, site, expected[1])


def test_the_first_of_two_content_types_counts(site: Site, service: Service) -> None:
    """If a request has two Content-Type headers, the service uses the first one, as proxies do."""
    head = f"POST {ADD} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Type: {URL_ENCODED}\r\n"
    answer = parsed(service.raw(f"{head}Connection: close\r\nContent-Length: 5\r\n\r\nnim=3".encode()))
    assert answer.status_code == 415
    assert_error(answer, site, "tidak dikirim sebagai formulir")


@pytest.mark.torture
def test_a_body_that_does_not_arrive_is_answered_408_after_ten_seconds(site: Site, service: Service) -> None:
    """A body that is missing, incomplete, or sent a byte per second gets 408, and other clients are answered."""
    heads = [
        f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {URL_ENCODED}\r\n".encode()
        for target in (ADD, "/mahasiswa/edit/0001")
    ]
    starts = [b"Content-Length: 99\r\n\r\n", b"Content-Length: 99\r\n\r\nnim=3&nama=Ani&alamat=Klaten"]
    starts += [b"Transfer-Encoding: chunked\r\n\r\n5\r\nnim=3\r\n"]
    with ExitStack() as stack:
        connections = []
        for head, start in product(heads, starts):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 20))
            connection.sendall(head + start)
            connections.append(connection)
        dripping = connections[0]
        began = time.monotonic()
        dripping.settimeout(1)
        while True:  # one byte a second must not extend the deadline
            assert time.monotonic() - began < 20
            try:
                received = dripping.recv(65536)
                break
            except TimeoutError:
                dripping.sendall(b"a")
                assert site.get("/").status_code == 200
        took = time.monotonic() - began
        assert 8 < took < 20
        answers = [received + read_all(dripping)] + [read_all(connection) for connection in connections[1:]]
    for data in answers:
        answer = parsed(data)
        assert answer.status_code == 408
        assert_error(answer, site, "Data tidak diterima lengkap pada waktunya, jadi belum disimpan.")

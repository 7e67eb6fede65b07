"""The limits of docs/reference.md: input at a limit is accepted, and input that is one beyond it is refused.

Each maximum is taken from its constant. test_docs.py finds a constant that is neither here nor in a test that it names.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil  # type: ignore[import-untyped]
import pytest
from apsw import Connection
from harness import Service, Site
from processes import until
from sockets import A_FILE, CLOSE, HOST, get, post, statuses, upload
from spreadsheets import HEADER, csv, numbered
from stores import connect, merge, refill

from mahasiswa.record import NIM_MAX_CHARACTERS
from mahasiswa.server.http_protocol import HEAD_MAX_HEADERS, INPUT_MAX_BYTES, PATH_MAX_BYTES
from mahasiswa.sheets.export import MEMORY_MAX_BYTES, PROCESSOR_MAX_SECONDS
from mahasiswa.sheets.read import UPLOAD_MAX_ROWS
from mahasiswa.web.checks import SUSPECTS_MAX
from mahasiswa.web.forms import (
    CONTENT_TYPE_MAX_BYTES,
    FORM_MAX_BYTES,
    MAX_FIELDS,
    PREVIEW_FORM_MAX_BYTES,
    PREVIEW_MAX_FIELDS,
)
from mahasiswa.web.list_query import MAX_ROWS_PER_PAGE, PRINTED_MAX_ROWS, SEARCH_MAX_CHARACTERS
from mahasiswa.web.request_guard import QUERY_MAX_BYTES
from mahasiswa.web.uploads import FILE_MAX_BYTES, PASTED_MAX_BYTES
from mahasiswa.wording import size
from mahasiswa.work import slices


class Limit(NamedTuple):
    """`request` makes a request of a size. The next two are the statuses of the answers, and `says` is in the refusal."""

    maximum: int
    request: Callable[[int], bytes]
    accepted: int
    refused: int
    says: bytes = b""


EDIT = "/mahasiswa/edit/x"
"""The route of no record, so its forms are accepted and change nothing."""

TOO_LARGE = f"terlalu besar (maksimal {size(FORM_MAX_BYTES)})".encode()
TOO_MANY_ROWS = b"Berkas ini berisi lebih dari 10.000 baris."
FIELDS = b"nama=Ani&alamat=Solo"
GET = b"GET /mahasiswa/add HTTP/1.1\r\n" + HOST + CLOSE


def form(body: bytes, target: str = EDIT) -> bytes:
    return post(target, body, CLOSE)


def in_chunks(body: bytes) -> bytes:
    plain = form(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunks = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in slices(body, 1000)]
    return b"".join([plain, *chunks, b"0\r\n\r\n"])


def with_content_type(size: int) -> bytes:
    """The boundary ends at `size` bytes of the header."""
    pasted = csv(HEADER, ("2301", "Ani", "Solo")).replace(b";", b"\t")
    start, end = b"multipart/form-data; a=", b"; boundary=x"
    return upload(pasted).replace(start[:19] + end, start.ljust(size - len(end), b"a") + end, 1)


def file_of(data: bytes) -> bytes:
    return upload(data, A_FILE)


def padded(size: int) -> bytes:
    """A table of this size, most of whose lines are blank."""
    table = csv(HEADER, ("2301", "Ani", "Solo")).replace(b";", b"\t")
    lines = table + (b" " * 999 + b"\n") * (size // 1000)
    return lines[:size].ljust(size)


def rows(count: int) -> list[tuple[str, str, str]]:
    return numbered(count, "Ani", "Jalan {}")


def fields(count: int) -> bytes:
    return form(FIELDS + b"&x" * (count - 2))


REQUESTS: Mapping[str, Limit] = {
    "FORM_MAX_BYTES": Limit(FORM_MAX_BYTES, lambda n: form(FIELDS.ljust(n, b"a")), 302, 413, TOO_LARGE),
    "FORM_MAX_BYTES in chunks": Limit(FORM_MAX_BYTES, lambda n: in_chunks(FIELDS.ljust(n, b"a")), 302, 413, TOO_LARGE),
    "MAX_FIELDS": Limit(MAX_FIELDS, fields, 302, 400),
    "PREVIEW_MAX_FIELDS": Limit(PREVIEW_MAX_FIELDS, lambda n: form(b"&".join([b"nim[]=1"] * n), "/mahasiswa/pilih/centang"), 302, 400),
    "PATH_MAX_BYTES": Limit(PATH_MAX_BYTES, lambda n: get("/".ljust(n, "a")), 404, 414),
    "QUERY_MAX_BYTES": Limit(QUERY_MAX_BYTES, lambda n: get("/?" + "a" * n), 200, 400),
    "HEAD_MAX_HEADERS": Limit(HEAD_MAX_HEADERS, lambda n: GET + b"X: a\r\n" * (n - 2) + b"\r\n", 200, 431),
    "INPUT_MAX_BYTES": Limit(INPUT_MAX_BYTES, lambda n: GET + b"X: " + b"a" * (n - len(b"/mahasiswa/add" b"Host" b"localhost" b"Connection" b"close" b"X")) + b"\r\n\r\n", 200, 431),
    "CONTENT_TYPE_MAX_BYTES": Limit(CONTENT_TYPE_MAX_BYTES, with_content_type, 302, 400),
    "NIM_MAX_CHARACTERS": Limit(NIM_MAX_CHARACTERS, lambda n: form("nim={}&nama=A&alamat=B".format("🎓" * n).encode(), "/mahasiswa/add"), 302, 400),
    "FILE_MAX_BYTES": Limit(FILE_MAX_BYTES, lambda n: file_of(padded(n)), 302, 413, b"Ukuran berkas melebihi 16 MB"),
    "PASTED_MAX_BYTES": Limit(PASTED_MAX_BYTES, lambda n: upload(padded(n)), 302, 413, b"maksimal 1 MB"),
    "UPLOAD_MAX_ROWS": Limit(UPLOAD_MAX_ROWS, lambda n: file_of(csv(HEADER, *rows(n))), 302, 400, TOO_MANY_ROWS),
    "PREVIEW_FORM_MAX_BYTES": Limit(PREVIEW_FORM_MAX_BYTES, lambda n: form(b"x=".ljust(n, b"x"), "/mahasiswa/impor/1"), 404, 413, b"maksimal 1 MB"),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_at_a_limit_is_accepted_and_one_beyond_it_is_refused(
    service: Service, name: str
) -> None:
    limit = REQUESTS[name]
    assert statuses(service.raw(limit.request(limit.maximum), 60)) == [limit.accepted]
    request = limit.request(limit.maximum + 1)
    answer = service.raw(request, 60)
    assert statuses(answer) == [limit.refused]
    assert limit.says in answer


def suspects(count: int) -> Sequence[tuple[str, str, str]]:
    return [(nim, "Ani  Sari", alamat) for nim, _, alamat in rows(count)]


# The maximum of the things that a page shows, the records, the address, and the element of a thing.
PAGES: Mapping[str, tuple[int, Callable[[int], Sequence[Sequence[str]]], str, str]] = {
    "MAX_ROWS_PER_PAGE": (MAX_ROWS_PER_PAGE, rows, "/?per=99999", "tbody tr"),
    "PRINTED_MAX_ROWS": (PRINTED_MAX_ROWS, rows, "/mahasiswa/cetak", "tbody tr"),
    "SUSPECTS_MAX": (SUSPECTS_MAX, suspects, "/mahasiswa/periksa", "tbody tr"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_all_things_up_to_its_limit_and_then_the_first_ones(
    site: Site, other: Connection, name: str
) -> None:
    maximum, records, target, thing = PAGES[name]
    for count in (maximum, maximum + 1):
        refill(other, records(count))
        assert len(site.page(target).css(thing)) == maximum


def test_the_rest_of_a_long_search_does_not_count(site: Site, other: Connection) -> None:
    found = "a" * SEARCH_MAX_CHARACTERS
    refill(other, [("1", found, "Solo")])
    for cari, nims in ((found + "b", ["1"]), (found[1:] + "b", [])):
        assert site.page(f"/?cari={cari}").nims == nims


def service_with(folder: Path, constant: str, value: float) -> Service:
    """Start a service in which a constant has another value, because its own one would take long to reach."""
    module, _, name = constant.rpartition(".")
    program = (
        f"import {module} as m; m.{name} = {value}; from mahasiswa.commands.cli import main; main()"
    )
    return Service(folder / "a.db", command=(sys.executable, "-c", program))


def test_a_page_that_would_be_too_long_is_503(tmp_path: Path) -> None:
    maximum = 100_000
    with (
        service_with(tmp_path, "mahasiswa.web.page_renderer.PAGE_MAX_BYTES", maximum) as service,
        service.site() as site,
        closing(connect(tmp_path / "a.db")) as other,
    ):

        def answer(size: int) -> httpx.Response:
            refill(other, [("1", "Ani", "x" * size)])
            return site.get("/mahasiswa/edit/1")

        left = maximum - len(answer(0).content)
        assert answer(left).status_code == 200
        assert answer(left + 1).status_code == 503


def test_a_worker_refuses_further_connections(tmp_path: Path) -> None:
    maximum = 5
    with (
        service_with(tmp_path, "mahasiswa.server.worker.MAX_CONNECTIONS", maximum) as service,
        ExitStack() as stack,
    ):
        answers = [
            stack.enter_context(service.site()).get("/sehat").status_code
            for _ in range(maximum + 1)
        ]
        assert answers == [200] * maximum + [503]


def test_a_child_that_packs_a_workbook_has_limits(tmp_path: Path) -> None:
    """Of memory, of the processor, and of its time in all."""
    constant = "mahasiswa.web.exports.WORKBOOK_TIMEOUT_SECONDS"
    with service_with(tmp_path, constant, 5.0) as service, ThreadPoolExecutor(1) as thread:
        merge(tmp_path / "a.db", *numbered(3_000, "Nama {}", "Alamat " * 120, nim="{:08}"))
        answer = thread.submit(service.raw, get("/mahasiswa/ekspor.xlsx"), 60)
        (child,) = until(psutil.Process(service.pid).children)
        until(lambda: child.rlimit(psutil.RLIMIT_AS)[0] == MEMORY_MAX_BYTES)
        child.suspend()
        assert child.rlimit(psutil.RLIMIT_CPU)[0] == PROCESSOR_MAX_SECONDS
        assert statuses(answer.result()) == [503]

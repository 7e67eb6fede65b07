"""The cost contract: the worst input of a route, alone or from many clients, does not take the service from others."""

import io
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from faults.attack import at_once, attacked
from harness import Service, assert_log_is_sound
from processes import cannot, until
from sockets import A_FILE, CLOSE, connected, get, post, upload
from spreadsheets import HEADER, by_openpyxl, numbered
from stores import connect, execute, merge, refill

from mahasiswa.work import EXPORT, SEARCH, Kind

pytestmark = pytest.mark.alone

CONFIRM = f"/mahasiswa/impor/{'0' * 32}"
EXPORTED = "/mahasiswa/ekspor.csv"
MEGABYTE = 1 << 20


def form(target: str, body: bytes) -> bytes:
    return post(target, body, CLOSE)


def pasted(nim: bytes) -> bytes:
    return upload(b"NIM\tNama\tAlamat\r\n" + nim + b"\tAni\tSolo\r\n")


def workbook(text: bytes, cells: int, rows: int) -> bytes:
    """Return the upload of a workbook with this text in so many cells of so many rows."""
    row = b"<row>" + b'<c t="inlineStr"><is><t>%b</t></is></c>' % text * cells + b"</row>"
    usual = io.BytesIO(by_openpyxl(HEADER))
    file = io.BytesIO()
    with (
        zipfile.ZipFile(usual) as source,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for name in source.namelist():
            before, end, after = source.read(name).partition(b"</sheetData>")
            with target.open(name, "w") as part:
                part.write(before)
                part.writelines([row] * rows if end else [])
                part.write(end + after)
    return upload(file.getvalue(), A_FILE)


def zip_bomb() -> bytes:
    """Return the upload of a workbook that is small, and large when it is unpacked."""
    return workbook(b"A" * 5_000, 200, 300)


def removed(body: bytes) -> bytes:
    return upload(body).replace(b"/impor", b"/pilih", 1)


REQUESTS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "a NIM with 80,000 spaces inside is pasted": (2, lambda: pasted(b"x" + b" " * 80_000 + b"x")),
    "16 MB of emoji are pasted": (2, lambda: pasted("🎓".encode() * (15 * MEGABYTE // 4))),
    # Python takes four bytes for each character of a text with an emoji.
    "a million rows and an emoji are pasted": (
        7,
        lambda: pasted("🎓\tA\tS\n".encode() + b"1\tSiti\tSolo\n" * 1_200_000),
    ),
    "a cell of 15 MB and an emoji are pasted to remove records": (
        7,
        lambda: removed("🎓\n".encode() + b"1" * 15 * MEGABYTE),
    ),
    "100,000 fields are confirmed": (
        2,
        lambda: form(CONFIRM, b"&".join(b"%d" % n for n in range(100_000))),
    ),
    "16 MB of line breaks are pasted to remove records": (
        2,
        lambda: removed(b"1" + b"\n" * 15 * MEGABYTE + b"2"),
    ),
    "10,000 long texts are pasted to remove records": (
        2,
        lambda: removed((b"'" * 1500 + b"\n") * 10_000),
    ),
    "rows of 16,384 cells are uploaded": (2, lambda: workbook(b"a", 16_384, 10)),
    "10,000 NIMs of 255 letters of three bytes are pasted": (
        2,
        lambda: pasted(
            "".join(f"{number:05}{'ก' * 250}\tAni\tSolo\r\n" for number in range(9_999)).encode()
            + b"1"
        ),
    ),
    "lines that are nearly a chat are pasted": (
        2,
        lambda: upload(b"[12/3 10.15] Bu Rina: 23000181 Siti Nur\n" * 60_000),
    ),
    "exports are abandoned": (64, lambda: get("/mahasiswa/ekspor.xlsx")),
    "zip bombs are uploaded and abandoned": (8, zip_bomb),
}
"""The number of clients that send a request at once, and the request."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service with 3,000 records; it must be the same process in the end, with a sound log."""
    path = tmp_path_factory.mktemp("cost") / "a.db"
    with Service(path) as service:
        merge(path, *numbered(3000, "Nama {}", "Alamat", nim="{:08}"))
        yield service
        assert service.process.poll() is None
        # On a busy machine a child may be late.
        assert_log_is_sound(
            service.stderr(), ["busy: ", ": interrupted", "did not finish its task"]
        )


@pytest.mark.torture
@pytest.mark.parametrize("name", REQUESTS)
def test_expensive_requests_do_not_delay_others(service: Service, name: str) -> None:
    """While the worst input of a route is worked on, others are answered in time."""
    count, request = REQUESTS[name]
    is_abandoned = name.endswith("abandoned")

    def send() -> None:
        with suppress(*[TimeoutError] * is_abandoned):
            service.raw(request(), 0.5 if is_abandoned else 300)

    with attacked(service):
        at_once(count, send)


PIPELINED = {
    path: get(path).replace(CLOSE, b"") * 2_000 for path in ("/", "/mahasiswa/add", EXPORTED)
}


@pytest.mark.torture
@pytest.mark.parametrize("sent", PIPELINED.values(), ids=PIPELINED)
def test_pipelined_requests_that_wait_on_their_connections_take_bounded_memory(
    service: Service, sent: bytes
) -> None:
    """Hundreds of clients read nothing, and others are answered."""
    with attacked(service), ExitStack() as stack:
        for _ in range(300):
            connected(service, stack, sent)


@pytest.mark.parametrize(
    ("kind", "path", "other"),
    [
        (EXPORT, "/mahasiswa/ekspor.xlsx", "/?cari=siti"),
        (SEARCH, "/mahasiswa/periksa", "/?halaman=1"),
    ],
    ids=["exports", "searches"],
)
def test_a_full_queue_is_answered_503_with_retry_after(
    service: Service, kind: Kind, path: str, other: str
) -> None:
    """More than may run and wait is refused with a page, and the log names the queue. Another kind of work has its own."""
    answers: list[bytes] = []
    others: list[bytes] = []

    def ask() -> None:
        answers.append(service.raw(get(path), 300))
        if answers[-1].startswith(b"HTTP/1.1 503"):
            others.append(service.raw(get(other), 300)[:12])

    at_once(3 * (kind.running + kind.waiting), ask)
    assert set(others) == {b"HTTP/1.1 200"}
    assert all(
        b"\r\nretry-after: " in answer
        for answer in answers
        if not answer.startswith(b"HTTP/1.1 200")
    )
    assert any(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    service.says(f"busy: {kind.name} (request ")


@pytest.fixture
def control_group() -> Iterator[Path]:
    unit = Path(__file__).parents[2] / "packaging" / "systemd" / "mahasiswa.service"
    (limit,) = re.findall(r"(?m)^MemoryMax=(\d+M)$", unit.read_text("utf-8"))
    root = Path("/sys/fs/cgroup/memory")  # version 1
    root, file = (root, "memory.limit_in_bytes") if root.exists() else (root.parent, "memory.max")
    group = root / f"mahasiswa-{os.getpid()}"
    try:
        group.mkdir()
        (group / file).write_text(limit)
    except OSError as error:
        cannot("make a control group", error)
    yield group
    until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


@pytest.mark.torture
def test_all_loads_at_once_fit_into_the_memory_of_the_unit(
    tmp_path: Path, control_group: Path
) -> None:
    """The kernel kills no process of a service that has the MemoryMax= of its unit."""
    start = f"echo $$ >{control_group}/cgroup.procs; exec {sys.executable} -m mahasiswa"
    loads = [*REQUESTS.values()][1:3] * 3 + [*REQUESTS.values()][-1:] * 4
    with Service(tmp_path / "a.db", {"LOG_LEVEL": "error"}, command=("sh", "-c", start)) as service:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)"
        insert = "INSERT INTO mahasiswa SELECT i, hex(zeroblob(5000)), hex(zeroblob(5000)) FROM n"
        execute(tmp_path / "a.db", f"{numbers} {insert}")
        with closing(connect(tmp_path / "a.db")) as other:
            refill(other, numbered(40_000, "Nama {}", "Alamat", nim="{:08}"))
        with attacked(service, "/?halaman=1"), ExitStack() as stack:
            for target in (
                "/",
                "/?per=500",
                "/mahasiswa/riwayat",
                "/mahasiswa/ekspor.csv",
            ) * 8:
                connected(service, stack, get(target))
            with ThreadPoolExecutor(len(loads)) as clients:
                list(
                    clients.map(
                        service.raw, [request() for _, request in loads], [300] * len(loads)
                    )
                )
        counted = control_group / "memory.events"
        counted = counted if counted.exists() else control_group / "memory.oom_control"
        assert "oom_kill 0" in counted.read_text().splitlines()

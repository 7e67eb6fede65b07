"""Soak test: under mixed, malformed and abandoned requests the memory and the open files of a worker do not grow."""

import random
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from attack import CLOSE, FORM, HOST, Line, assert_log_is_sound, fill, holds, linux, memory, open_files, until, workers
from harness import Service

CLIENTS = 4
VISITS = 6000
"""Number of visits of all clients together. Each has up to five requests."""

ROWS = 1500
NIMS = 50

BROKEN = (
    b"GET / HTTP/1.1\r\n" + CLOSE + b"\r\n",
    b"GET /%zz HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n",
    b"GET /?cari=%ff%00&urut=x&halaman=-1&per=1e9 HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n",
    b"\x16\x03\x01" + bytes(200),
    b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 5\r\n" + CLOSE + b"\r\n%%%==",
    b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + CLOSE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    *(
        b"POST /mahasiswa/impor HTTP/1.1\r\n" + HOST + CLOSE + b"Content-Type: multipart/form-data; boundary=x\r\n"
        + b"Content-Length: %d\r\n\r\n" % len(body) + body
        for body in (
            b"--x\r\nabc\n",
            b'--x\r\nContent-Disposition: form-data; name="berkas"; filename="a.xlsx"\r\n\r\nPK\3\4 not a zip\r\n--x--\r\n',
        )
    ),
)  # fmt: skip

ABANDONED = (
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Accept-Encoding: gzip\r\n\r\n",
    b"GET /?cari=1 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /mahasiswa/ekspor.csv HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /mahasiswa/ekspor.xlsx HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /mahasiswa/add HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 999\r\n\r\nnim=a",
    b"POST /mahasiswa/delete/x HTTP/1.1\r\n" + HOST + b"\r\n",
)


@linux
@pytest.mark.torture
def test_memory_and_open_files_stay_level(tmp_path: Path) -> None:  # noqa: C901, PLR0915 - the concurrent clients share its variables
    """The worker has no more memory and open files late in the run than early in it, and logs no faults of its own."""
    stop = threading.Event()
    done = [0] * CLIENTS

    def visit(number: int) -> None:
        dice = random.Random(number)
        while not stop.is_set():
            kind = dice.random()
            if kind < 0.5:
                use_the_list(dice, number)
            elif kind < 0.75:
                with suppress(OSError):
                    service.raw(dice.choice(BROKEN), 10)
            else:
                abandon(dice)
            done[number] += 1

    def use_the_list(dice: random.Random, number: int) -> None:
        with Line(service.port) as line:
            for _ in range(dice.randrange(1, 6)):
                nim = f"{number}/{dice.randrange(NIMS)}"
                answer = dice.choice((
                    lambda: line.get("/"),
                    lambda: line.get(f"/?cari={dice.randrange(99)}&urut=nama&halaman={dice.randrange(9)}"),
                    lambda: line.get(f"/mahasiswa/edit/{quote(nim, safe='')}"),  # noqa: B023
                    lambda: line.get("/mahasiswa/ekspor.csv"),
                    lambda: line.add(nim, "Siti", "x" * dice.randrange(2000)),  # noqa: B023
                    lambda: line.edit(nim, "Budi", "y" * dice.randrange(2000)),  # noqa: B023
                    lambda: line.delete(nim),  # noqa: B023
                ))()  # fmt: skip
                assert answer.status in (200, 302, 404, 409)

    def abandon(dice: random.Random) -> None:
        """Disconnect in the middle of a request or an answer, half of the times with a reset."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", service.port), 10) as client:
            if dice.random() < 0.5:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(dice.choice(ABANDONED))
            if dice.random() < 0.5:
                client.settimeout(0.05)
                client.recv(100)

    with Service(tmp_path / "a.db") as service:
        fill(tmp_path / "a.db", ROWS)
        (worker,) = workers(service)
        with ThreadPoolExecutor(CLIENTS) as threads:
            visitors = [threads.submit(visit, number) for number in range(CLIENTS)]
            try:
                samples = []
                while sum(done) < VISITS and not any(visitor.done() for visitor in visitors):
                    samples.append((memory(worker), open_files(worker)))
                    stop.wait(0.1)  # the interval between two samples
            finally:
                stop.set()
            for visitor in visitors:
                visitor.result()
        assert min(done) > VISITS // 10, done
        warm, late = samples[len(samples) // 4 : len(samples) // 2], samples[-len(samples) // 4 :]
        grown = max(size for size, _ in late) - max(size for size, _ in warm)
        assert grown < 20, f"{grown:.1f} MB more"
        assert max(files for _, files in late) < max(files for _, files in warm) + 30
        # All abandoned connections are closed: about 60 files are the service's own.
        until(lambda: open_files(worker) <= 60)
        assert workers(service) == [worker]
        assert_log_is_sound(service.stderr())
        assert len(holds(tmp_path / "a.db")) >= ROWS

"""What one client can cost others: the codec of an upload, long headers, slow readers, a full disk, no file descriptor."""

import os
import resource
import socket
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
from faults.attack import assert_says_nothing_was_saved, attacked
from harness import Service, led_to
from postgres import locked, new_schema
from processes import until
from sockets import A_FILE, HOST, connected, get, post, statuses, upload
from stores import Place, execute

from mahasiswa.web.list_cache import VERSIONS_MAX
from mahasiswa.work import FILE, LONG_PAGE

pytestmark = pytest.mark.alone

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) INSERT INTO mahasiswa"
TABLE = b"NIM\tNama\tAlamat\n"


def add(database: Place, count: int, records: str) -> None:
    """Let another program add records. They are selected from the table `n` with the numbers from 1 to `count` as `i`."""
    execute(database, f"{NUMBERS.format(count=count)} {records}")


@pytest.mark.parametrize("charset", ["punycode", "undefined"])
def test_an_upload_cannot_choose_its_codec(service: Service, charset: str) -> None:
    """Its text is UTF-8. The codec punycode takes a minute for this one, and the other one raises an error of its own."""
    request = upload(b"a" * 400_000 + b"-" + b"kva" * 130_000)
    request = request.replace(b"boundary=x", b"boundary=x; charset=%b" % charset.encode(), 1)
    with attacked(service):
        answer = service.raw(request)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Kolom NIM" in answer or b"Judul kolom" in answer or b"bukan" in answer


def test_a_worker_without_a_free_file_descriptor_answers_with_pages(tmp_path: Path) -> None:
    """Nothing that a page needs is read when it is asked for. An export is refused, and a record is saved."""
    with Service(tmp_path / "a.db") as service, service.site() as site:
        assert site.get("/sehat").status_code == 200
        used = {int(file.name) for file in Path(f"/proc/{service.pid}/fd").iterdir()}
        lowest_free = min(set(range(len(used) + 1)) - used)
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (lowest_free, 4096))
        for path, status in {
            "/tidak-ada": 404,
            "/mahasiswa/edit/1": 404,
            "/mahasiswa/ekspor.csv": 503,
        }.items():
            assert site.get(path).status_code == status
        led_to(site.add("1", "Siti", "Solo"))
        assert site.add("1", "Budi", "Solo").status_code == 409
        assert "Traceback" not in service.stderr()


def test_a_full_folder_for_temporary_files_is_a_page(tmp_path: Path, small_disk: Path) -> None:
    """An export or an upload that does not fit is 503, and the page says that nothing was saved."""
    with (
        Service(tmp_path / "a.db", {"TMPDIR": str(small_disk)}) as service,
        service.site() as site,
    ):
        add(tmp_path / "a.db", 50_000, "SELECT i, hex(zeroblob(50)), 'Solo' FROM n")
        for _ in range(3):
            for target in ("/mahasiswa/ekspor.csv", "/mahasiswa/ekspor.xlsx"):
                assert_says_nothing_was_saved(site.get(target))
        answer = service.raw(upload(TABLE + b"1\tSiti\tSolo\n" * 400_000, A_FILE))
        assert answer.startswith(b"HTTP/1.1 503 ")
        led_to(site.add("baru", "Siti", "Solo"))
        until(lambda: os.statvfs(small_disk).f_bfree == os.statvfs(small_disk).f_blocks)
        assert "Traceback" not in service.stderr()


@pytest.mark.torture
@pytest.mark.parametrize(
    "request_",
    [b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", get("/")],
    ids=["by the parser", "by the app"],
)
def test_slow_readers_of_many_versions_of_the_list_take_bounded_memory(
    tmp_path: Path, request_: bytes
) -> None:
    """The list is shared by its clients, but after each change it is another one. Clients of the oldest are cut off."""
    with (
        Service(tmp_path / "a.db", {"LOG_LEVEL": "warning"}) as service,
        service.site() as site,
    ):
        add(tmp_path / "a.db", 11_900, "SELECT printf('%06d', i), 'Siti', 'Solo' FROM n")
        with attacked(service, "/?halaman=1"), ExitStack() as stack:
            for number in range(4 * VERSIONS_MAX):
                # Each list is in another place of the memory, also if it is equal to the one before the last.
                change = "add" if number % 2 == 0 else "delete/lagi"
                fields = {"nim": "lagi", "nama": "Siti", "alamat": "Solo"}
                assert site.post(f"/mahasiswa/{change}", data=fields).status_code == 302
                assert connected(service, stack, request_).recv(12) == b"HTTP/1.1 200"
        service.says("was cut off", 2 * VERSIONS_MAX)


def test_files_are_sent_to_some_slow_readers_at_a_time(tmp_path: Path) -> None:
    """One address has a share of them, so another one gets its file. A reader that is gone makes room."""
    with Service(tmp_path / "a.db", {"TRUSTED_PROXIES": "127.0.0.1"}) as service:

        def export() -> httpx.Response:
            with service.site() as site:
                return site.get("/mahasiswa/ekspor.csv")

        add(tmp_path / "a.db", 500, "SELECT i, hex(zeroblob(1000)), 'Solo' FROM n")
        with attacked(service), ExitStack() as stack:
            for _ in range(FILE.of_address):
                reader = connected(service, stack, get("/mahasiswa/ekspor.csv"))
                assert reader.recv(12) == b"HTTP/1.1 200"
            refused = export()
            assert refused.status_code == 503
            assert refused.headers["retry-after"]
            forwarded = HOST + b"X-Forwarded-For: 198.51.100.1\r\n"
            request = get("/mahasiswa/ekspor.csv").replace(HOST, forwarded)
            other = connected(service, stack, request)
            assert other.recv(12) == b"HTTP/1.1 200"
            reader.close()
            until(lambda: export().status_code == 200)


def test_long_pages_are_sent_to_some_slow_readers_at_a_time(tmp_path: Path) -> None:
    """A further one is refused, and a short page is not. Each client that has its page makes room."""
    with Service(tmp_path / "a.db") as service, ExitStack() as stack:
        records = "SELECT i, replace(hex(zeroblob(500)), '0', '&'), 'Solo' FROM n"
        add(tmp_path / "a.db", 500, records)
        readers = [connected(service, stack, get("/?per=500")) for _ in range(LONG_PAGE.running)]
        assert all(reader.recv(12) == b"HTTP/1.1 200" for reader in readers)
        assert statuses(service.raw(get("/?per=500"))) == [503]
        assert statuses(service.raw(get("/?per=10"))) == [200]
        readers[0].close()
        until(lambda: statuses(service.raw(get("/?per=500"))) == [200])


def test_an_answer_that_a_fault_of_the_service_cuts_is_reset(tmp_path: Path) -> None:
    """A long list is streamed, and its table is gone before the second chunk."""
    with Service(tmp_path / "a.db", {"METRICS": "1"}) as service:
        records = "SELECT i, hex(zeroblob(500)), 'Solo' FROM n"
        add(tmp_path / "a.db", 20_000, records)
        with ExitStack() as stack:
            client = connected(service, stack, get("/"))
            assert client.recv(12) == b"HTTP/1.1 200"
            execute(tmp_path / "a.db", "ALTER TABLE mahasiswa RENAME TO elsewhere")
            with pytest.raises(ConnectionResetError):
                list(iter(partial(client.recv, 1 << 20), b""))
        service.says("an answer could not be completed")
        assert b'route="/",status="500"' in service.raw(get("/metrics"))


@pytest.mark.parametrize("attack", [get("/?cari=a"), post("/mahasiswa/periksa", b"")])
def test_work_ends_when_its_client_leaves(postgres: str, attack: bytes) -> None:
    """Also a change that looks for its records. Another program holds the table, so the work would take five seconds."""
    database = new_schema(postgres)
    with Service(database) as service:
        with locked(database), psycopg.connect(database) as third:
            with socket.create_connection(("127.0.0.1", service.port)) as client:
                client.sendall(attack)
                until(lambda: third.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall())
            service.says("127.0.0.1")
        service.says(" 499 ")

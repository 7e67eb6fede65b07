"""Lists and histories that are dear to read or to change: others wait for none of them, whatever kind of work they ask for."""

import time
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from threading import Event

import pytest
from attack import assert_waits_not_long, at_once
from engines import run_elsewhere
from harness import Service
from processes import working
from sockets import CLOSE, Line, get, post
from spreadsheets import numbered
from stores import ask, fill, migrate

pytestmark = pytest.mark.alone

# How a statement makes long texts. `thai` are 252 letters of three bytes.
VALUES = {
    "moment": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
    "text": "replace(hex(zeroblob(16000)), '0', 'a') || replace(hex(zeroblob(7500)), '00', 'aéB ')",
    "quotes": "replace(hex(zeroblob(30000)), '0', '\"')",
    "letters": "replace(hex(zeroblob(30000)), '0', 'a')",
    "words": "replace(hex(zeroblob(5000)), '0', 'Siti  ')",
    "thai": "replace(hex(zeroblob(126)), '0', 'ก')",
}
ROWS = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) INSERT INTO"
)
ENTRY = "mahasiswa_history (moment, nim, nama_before, alamat_before, nama_after, alamat_after) SELECT {moment},"

# How another program makes the records or the history beside SITI. The others are imported.
DATA = {
    "long texts": f"{ROWS.format(count=150)} mahasiswa SELECT 'x' || i, {{text}} || i, {{text}} FROM n",
    # They still cost much after an attack: a NIM cannot be tidied, and a quote becomes five letters.
    "untidy NIMs and quotes": f"{ROWS.format(count=480)} mahasiswa SELECT i || '  x', 'Siti', {{quotes}} FROM n",
    # They are percent-encoded byte by byte. With the additions of the bystander, a page of all has fewer than 64 K characters.
    "long Thai NIMs": f"{ROWS.format(count=200)} mahasiswa SELECT (100 + i) || {{thai}}, 'Siti', 'Solo' FROM n",
    # Just short enough to be kept; Python takes four bytes for each letter of a text with an emoji.
    "16 MB and an emoji": (
        f"{ROWS.format(count=270)} mahasiswa"
        " SELECT i, {letters} || CASE i WHEN 1 THEN '🎓' ELSE '' END, 'Solo' FROM n"
    ),
    "untidy long names": f"{ROWS.format(count=480)} mahasiswa SELECT 'x' || i, {{words}} || i, 'Solo' FROM n",
    "equal names": f"{ROWS.format(count=10_000)} mahasiswa SELECT 'x' || i, 'Budi', 'Solo' FROM n",
    "nearly equal NIMs": "",
    "a million entries": f"{ROWS.format(count=1_000_000)} {ENTRY} 'x' || i, 'a', 'b', 'c', 'd' FROM n",
    "entries of long texts": f"{ROWS.format(count=1000)} {ENTRY} 'x' || i, {{text}}, 'b', {{text}}, 'd' FROM n",
    "a batch of 10,000": "",
}

# The dear requests, and the kind of work that they wait for in the queue.
ATTACKS = {
    "GET /": "list",
    "GET /?per=500": "search",
    f"GET /?cari=zzz+{'a' * 240}b": "search",  # it nearly matches everywhere in the long texts
    "GET /?urut=nama&halaman=2": "search",
    "GET /mahasiswa/riwayat?cari=zzz": "search",
    "GET /mahasiswa/riwayat?halaman=300": "search",
    "GET /mahasiswa/periksa": "search",
    "GET /mahasiswa/ekspor.csv": "",
    "GET /mahasiswa/cetak?cari=a": "",
    "POST /mahasiswa/edit/0 nama=Ani&alamat=Solo&versi=0": "record",
    "POST /mahasiswa/nim/0 nim=0": "record",
    "POST /mahasiswa/periksa": "",
    # The newest batch, which is taken back, and then taken back again.
    "POST /mahasiswa/riwayat/perubahan/": "",
}

# The requests of the bystanders. The list is the longest that is kept, or its first page.
BYSTANDERS = {
    "record": "/mahasiswa/edit/0",
    "list": "/?per=50",
    "search": "/?cari=siti&per=10",
    "addition": "",
}
# That attack at once; a request for one record takes less of a client.
CLIENTS, SMALL_CLIENTS = 4, 64
ATTEMPTS = 3
ATTACK_SECONDS = 1.0


def prepare(data: str, database: Path) -> None:
    """Fill a database, which does not exist yet."""
    migrate(database)
    run_elsewhere(database, "INSERT INTO mahasiswa VALUES ('0', 'Siti', 'Solo')")
    if DATA[data]:
        run_elsewhere(database, DATA[data].format(**VALUES))
    elif data == "nearly equal NIMs":
        nims = ["1" + "".join(letters) for letters in product("0O", repeat=13)]
        fill(database, [(nim, "Siti", "Solo") for nim in nims])
    else:
        fill(database, numbered(10_000, "Siti {}"))


def visit(service: Service, kind: str, number: int) -> float:
    """Return the seconds until one request of that kind is answered rightly."""
    with Line(service.port) as line:
        began = time.monotonic()
        answer = (
            line.get(BYSTANDERS[kind])
            if BYSTANDERS[kind]
            else line.add(f"tamu-{number}", "Siti", "Solo")
        )
        assert answer.status == (200 if BYSTANDERS[kind] else 302), (kind, answer)
        return time.monotonic() - began


NEWEST = """
SELECT id || '-' || CAST(round((julianday(moment) - 2440587.5) * 86400000) AS INTEGER) || '000'
FROM (SELECT * FROM mahasiswa_history ORDER BY id DESC LIMIT 20000) AS newest
WHERE kind IS NOT NULL ORDER BY id DESC LIMIT 1"""


def newest(service: Service) -> object:
    """Return the key of the newest batch. To read it from the page of the history would make the attack a search."""
    found = ask(Path(service.database), NEWEST)
    return found[0][0] if found else "1-1"


def waits(service: Service, attack: str) -> dict[str, tuple[float, float]]:
    """Attack from several clients at once; return the slowest visit of each other kind, before and during it."""
    method, target, *body = attack.split(" ")
    kinds = [kind for kind in BYSTANDERS if kind != ATTACKS[attack]]
    numbers = iter(range(time.monotonic_ns(), 1 << 63))
    usual = {kind: max(visit(service, kind, next(numbers)) for _ in range(5)) for kind in kinds}
    worst, over = dict.fromkeys(kinds, 0.0), Event()

    def watch(kind: str) -> None:
        while not over.is_set():
            worst[kind] = max(worst[kind], visit(service, kind, next(numbers)))

    def send() -> None:
        end = time.monotonic() + ATTACK_SECONDS
        while time.monotonic() < end:
            address = f"{target}{newest(service) if target.endswith('perubahan/') else ''}"
            service.raw(
                get(address) if method == "GET" else post(address, "".join(body).encode(), CLOSE),
                30,
            )

    with working([partial(watch, kind) for kind in kinds], over):
        at_once(SMALL_CLIENTS if ATTACKS[attack] == "record" else CLIENTS, send)
    return {kind: (usual[kind], worst[kind]) for kind in kinds}


def assert_waits(data: str, attack: str, found: dict[str, tuple[float, float]]) -> None:
    for kind, (usual, worst) in found.items():
        row = f"{data} | {attack} | {kind} | {usual * 1000:.0f} ms | {worst * 1000:.0f} ms"
        print(row)  # noqa: T201 - the table of `-s`
        assert_waits_not_long(worst, usual)


@pytest.mark.torture
@pytest.mark.parametrize("data", DATA)
def test_no_list_and_no_history_delays_others(data: str, tmp_path: Path) -> None:
    """Each route that reads or changes it is asked for by several clients at once. Only its own kind of work waits for it.

    Each attack is tried up to ATTEMPTS times, because another program may take the processors.
    """
    prepare(data, tmp_path / "a.db")
    with Service(tmp_path / "a.db", {"LOG_LEVEL": "error"}) as service:
        for attack in ATTACKS:
            for attempt in range(ATTEMPTS):
                is_last = attempt == ATTEMPTS - 1
                with suppress(*() if is_last else (AssertionError,)):
                    assert_waits(data, attack, waits(service, attack))
                    break

"""Lists and histories that are dear to read or to change: others wait for none of them, whatever kind of work they ask for."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from threading import Event
from typing import Any, cast

import pytest
from attack import assert_waits_not_long, at_once
from engines import run_elsewhere
from harness import Service
from postgres import execute
from processes import working
from sockets import CLOSE, Line, get, post
from spreadsheets import numbered
from stores import ask, fill, migrate

from mahasiswa.settings import SQLiteURL, parse_database_url
from mahasiswa.store.history_items import key_of

# Of each kind of text, how a statement of each engine makes it. `thai` are 252 letters of three bytes.
VALUES = {
    "sqlite": {
        "moment": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
        "text": "replace(hex(zeroblob(16000)), '0', 'a') || replace(hex(zeroblob(7500)), '00', 'aéB ')",
        "quotes": "replace(hex(zeroblob(30000)), '0', '\"')",
        "letters": "replace(hex(zeroblob(30000)), '0', 'a')",
        "words": "replace(hex(zeroblob(5000)), '0', 'Siti  ')",
        "thai": "replace(hex(zeroblob(126)), '0', 'ก')",
    },
    "postgresql": {
        "moment": "now()",
        "text": "repeat('a', 32000) || repeat('aéB ', 7500)",
        "quotes": "repeat('\"', 60000)",
        "letters": "repeat('a', 60000)",
        "words": "repeat('Siti  ', 10000)",
        "thai": "repeat('ก', 252)",
    },
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
    "GET /mahasiswa/rekap": "search",
    "GET /mahasiswa/ekspor.csv": "",
    "GET /mahasiswa/cetak?cari=a": "",
    "POST /mahasiswa/edit/0 nama=Ani&alamat=Solo&versi=0": "record",
    "POST /mahasiswa/nim/0 nim=0": "record",
    "POST /mahasiswa/periksa": "",
    # The newest batch, which is taken back, and then taken back again.
    "POST /mahasiswa/riwayat/kelompok/": "",
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
# Each with the number of its dearest attack.
SAMPLE = [
    ("long texts", 0),
    ("long texts", 8),
    ("entries of long texts", 10),
    ("a batch of 10,000", 13),
    ("untidy NIMs and quotes", 1),
    ("untidy NIMs and quotes", 12),
    ("long Thai NIMs", 1),
    ("16 MB and an emoji", 0),
    ("untidy long names", 12),
]


def prepare(data: str, database: str) -> None:
    """Fill a database, which does not exist yet."""
    url = parse_database_url(database)
    migrate(url)
    scheme = "sqlite" if isinstance(url, SQLiteURL) else "postgresql"
    run_elsewhere(url, "INSERT INTO mahasiswa VALUES ('0', 'Siti', 'Solo')")
    if DATA[data]:
        run_elsewhere(url, DATA[data].format(**VALUES[scheme]))
    elif data == "nearly equal NIMs":
        fill(
            url, [("1" + "".join(letters), "Siti", "Solo") for letters in product("0O", repeat=13)]
        )
    else:
        fill(url, numbered(10_000, "Siti {}"))


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
SELECT id, moment FROM (SELECT * FROM mahasiswa_history ORDER BY id DESC LIMIT 20000) AS newest
WHERE kind IS NOT NULL ORDER BY id DESC LIMIT 1"""


def newest(service: Service) -> object:
    """Return the key of the newest batch. To read it from the page of the history would make the attack a search."""
    url = parse_database_url(str(service.database))
    found = ask(url.address, NEWEST) if isinstance(url, SQLiteURL) else execute(url.address, NEWEST)
    return next((key_of(*cast("Any", row)) for row in found), "1-1")


def waits(service: Service, attack: str, seconds: float) -> dict[str, tuple[float, float]]:
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
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            address = f"{target}{newest(service) if target.endswith('kelompok/') else ''}"
            service.raw(
                get(address) if method == "GET" else post(address, "".join(body).encode(), CLOSE),
                30,
            )

    with working([partial(watch, kind) for kind in kinds], over):
        at_once(SMALL_CLIENTS if ATTACKS[attack] == "record" else CLIENTS, send)
    return {kind: (usual[kind], worst[kind]) for kind in kinds}


def assert_others_wait_for_none(
    data: str, database: str, attacks: Sequence[str], seconds: float
) -> None:
    """Try each attack up to ATTEMPTS times, because another program may take the processors."""
    prepare(data, database)
    with Service(database, {"LOG_LEVEL": "error"}) as service:
        for attack in attacks:
            for attempt in range(ATTEMPTS):
                is_last = attempt == ATTEMPTS - 1
                with suppress(*() if is_last else (AssertionError,)):
                    assert_waits(data, attack, waits(service, attack, seconds))
                    break


def assert_waits(data: str, attack: str, found: dict[str, tuple[float, float]]) -> None:
    for kind, (usual, worst) in found.items():
        row = f"{data} | {attack} | {kind} | {usual * 1000:.0f} ms | {worst * 1000:.0f} ms"
        print(row)  # noqa: T201 - the table of `-s`
        assert_waits_not_long(worst, usual)


@pytest.mark.parametrize(("data", "attack"), SAMPLE)
def test_the_dearest_changes_delay_nobody(data: str, attack: int, database: str) -> None:
    """A sample of the long test below."""
    assert_others_wait_for_none(data, database, [list(ATTACKS)[attack]], 1.0)


@pytest.mark.torture
@pytest.mark.parametrize("data", DATA)
def test_no_list_and_no_history_delays_others(data: str, database: str) -> None:
    """Each route that reads or changes it is asked for by several clients at once. Only its own kind of work waits for it."""
    assert_others_wait_for_none(data, database, list(ATTACKS), 2.0)

"""Lists and histories that are dear to read or to change: others wait for none of them, whatever kind of work they ask for."""

import time
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from faults.attack import at_once, attacked
from harness import Service
from sockets import CLOSE, get, post
from spreadsheets import numbered
from stores import execute, merge, migrate

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

# The dear requests. The last one takes back the newest batch, and then takes that back again.
ATTACKS = (
    "GET /",
    "GET /?per=500",
    f"GET /?cari=zzz+{'a' * 240}b",
    "GET /?urut=nama&halaman=2",
    "GET /mahasiswa/riwayat?cari=zzz",
    "GET /mahasiswa/riwayat?halaman=300",
    "GET /mahasiswa/periksa",
    "GET /mahasiswa/ekspor.csv",
    "GET /mahasiswa/cetak?cari=a",
    "POST /mahasiswa/edit/0 nama=Ani&alamat=Solo&versi=0",
    "POST /mahasiswa/nim/0 nim=0",
    "POST /mahasiswa/periksa",
    "POST /mahasiswa/riwayat/perubahan/",
)
# That attack at once.
CLIENTS = 4
ATTACK_SECONDS = 1.0


def prepare(data: str, database: Path) -> None:
    """Fill a database, which does not exist yet."""
    migrate(database)
    execute(database, "INSERT INTO mahasiswa VALUES ('0', 'Siti', 'Solo')")
    if DATA[data]:
        execute(database, DATA[data].format(**VALUES))
    elif data == "nearly equal NIMs":
        nims = ["1" + "".join(letters) for letters in product("0O", repeat=13)]
        merge(database, *[(nim, "Siti", "Solo") for nim in nims])
    else:
        merge(database, *numbered(10_000, "Siti {}"))


NEWEST = """
SELECT id || '-' || CAST(round((julianday(moment) - 2440587.5) * 86400000) AS INTEGER) || '000'
FROM (SELECT * FROM mahasiswa_history ORDER BY id DESC LIMIT 20000) AS newest
WHERE kind IS NOT NULL ORDER BY id DESC LIMIT 1"""


def newest(service: Service) -> object:
    """Return the key of the newest batch. To read it from the page of the history would make the attack a search."""
    found = execute(Path(service.database), NEWEST)
    return found[0][0] if found else "1-1"


def attack(service: Service, request: str) -> None:
    """Send a request again and again."""
    method, target, *body = request.split(" ")
    end = time.monotonic() + ATTACK_SECONDS
    while time.monotonic() < end:
        address = f"{target}{newest(service) if target.endswith('perubahan/') else ''}"
        form = post(address, "".join(body).encode(), CLOSE)
        service.raw(get(address) if method == "GET" else form, 30)


@pytest.mark.torture
@pytest.mark.parametrize("data", DATA)
def test_no_list_and_no_history_delays_others(data: str, tmp_path: Path) -> None:
    """Each route that reads or changes it is asked for by several clients at once. Single records wait for none."""
    prepare(data, tmp_path / "a.db")
    with Service(tmp_path / "a.db", {"LOG_LEVEL": "error"}) as service:
        for request in ATTACKS:
            with attacked(service, "/mahasiswa/edit/0"):
                at_once(CLIENTS, partial(attack, service, request))

"""USER_HEADER: who made a change, as a proxy says, in the history and in the log."""

from pathlib import Path

import pytest
from harness import Service
from processes import until

from mahasiswa.web.request_guard import NAME_MAX_CHARACTERS

HISTORY = "/mahasiswa/riwayat"
ANI = {"nama": "Ani", "alamat": "Solo"}
NAMED = {"USER_HEADER": "X-Remote-User"}


def who(service: Service, query: str = "") -> list[list[str]]:
    with service.site() as site:
        rows = site.page(HISTORY + query).parts("tbody tr")
    return [row.texts("td[id] bdi") for row in rows]


@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_each_change_has_the_name_that_the_proxy_gives(tmp_path: Path, host: str) -> None:
    """The history shows it and finds it, the log has it. A service on all addresses sees the proxy as ::ffff:127.0.0.1."""
    with Service(tmp_path / "a.db", NAMED | {"HOST": host}) as service, service.site() as site:
        names = {
            "1": "Siti Aminah",
            "2": "Bu\u00f1di \N{PEOPLE HUGGING}",
            "3": "x" * (NAME_MAX_CHARACTERS + 1),
            "4": ".",
            "5": "\u200e",  # nothing that can be shown
        }
        for nim, name in names.items():
            headers = {b"X-Remote-User": name.encode()}
            assert (
                site.post("/mahasiswa/add", data={"nim": nim, **ANI}, headers=headers).status_code
                == 302
            )
        site.post(
            "/mahasiswa/edit/2", data=ANI | {"nama": "Ina"}, headers={"x-remote-user": "Wa\tti"}
        )
        site.post("/mahasiswa/delete/3")
        expected = [
            ["3"],
            ["Wa ti", "2"],
            ["5"],
            [".", "4"],
            ["x" * NAME_MAX_CHARACTERS, "3"],
            [names["2"], "2"],
            ["Siti Aminah", "1"],
        ]
        assert who(service) == expected
        assert who(service, "?cari=siti+aminah") == [["Siti Aminah", "1"]]
        (undo,) = site.page(f"{HISTORY}?cari=siti+aminah").posts
        # As a command of the machine writes it.
        site.post(undo.target, headers={"X-Remote-User": "command: eko"})
        assert who(service)[0] == ["eko", "1"]
        assert "oleh perintah " in site.page(HISTORY).html
        service.says("POST /mahasiswa/delete/3 302")
        assert 'POST /mahasiswa/add "1" by "Siti Aminah" 302' in service.stderr()
        assert 'POST /mahasiswa/add "5" 302' in service.stderr()
        history = site.page("/mahasiswa/edit/2").target("Riwayat data ini")
        assert "Wa ti" in site.page(history).html


def test_the_header_is_believed_from_trusted_addresses_only(tmp_path: Path) -> None:
    """Elsewhere it is ignored, and the log says so once. Two of them are refused. Without the setting it is nothing."""
    trusted = NAMED | {"TRUSTED_PROXIES": "10.0.0.0/8, ::1"}
    with Service(tmp_path / "a.db", trusted) as service, service.site() as site:
        for nim in "12":
            site.post("/mahasiswa/add", data={"nim": nim, **ANI}, headers={"X-Remote-User": "Siti"})
        assert who(service) == [["2"], ["1"]]
        until(lambda: service.stderr().count("127.0.0.1 is not in TRUSTED_PROXIES") == 1)
        twice = b"POST /mahasiswa/delete/1 HTTP/1.1\r\nHost: a\r\nX-Remote-User: a\r\nx-remote-user: b\r\nConnection: close\r\n\r\n"
        assert service.raw(twice).startswith(b"HTTP/1.1 400 ")
    with Service(tmp_path / "a.db") as service, service.site() as site:
        site.post("/mahasiswa/add", data={"nim": "3", **ANI}, headers={"X-Remote-User": "Siti"})
        assert who(service) == [["3"], ["2"], ["1"]]

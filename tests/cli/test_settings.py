"""Settings: each one works, and each wrong value is refused in one line."""

import os
import pty
import re
import socket
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest
from harness import Service, free_port, is_free
from processes import COMMAND, cannot, run, started

from mahasiswa.settings import SettingError, Settings, SQLiteURL

WRONG_DATABASES = """
    mahasiswa.db sqlite://mahasiswa.db sqlite:/// sqlite:///:memory: mysql://admin:rahasia@localhost/mahasiswa
    password=rahasia sqlite:///a.db?mode=ro sqlite:///? postgresql://siti:rah@sia@localhost/mahasiswa postgresql://siti:rah/sia@localhost/mahasiswa
    postgresql://siti:rah%sia@localhost/mahasiswa
    postgresql://localhost/mahasiswa?sslmod=verify-full
"""
WRONG_ADDRESSES = """
    localhost:3000 ftp://kampus.example http:// http://kampus.example:0 http://kampus.example:65536
    http://kampus.example/a?b=c http://kampus.example/#a http://kampus.example//a http://kampus.example/a/../b
    http://kampus.example/a%20b http://kampus.example/"><script>
"""
WRONG_SHEETS = """
    bootstrap.min.css //cdn.example/a.css javascript:alert(1) https://cdn.example/a.css?v=<1>
    https://cdn.example/a.css#a https://cdn.example/"><script>
"""
WRONG_HOSTS = "nowhere.example 256.1.1.1 127.0.0.1:3000 [::1] * unix:a"
WRONG_HEADERS = "X-Remote-User: é Authorization cookie PROXY-authorization"
WRONG_PORTS = "0 65536 -1 3e3 http ٣٠٠٠ 30000000000"
WRONG = {
    "HOST": WRONG_HOSTS.split(),
    "PORT": WRONG_PORTS.split(),
    "DATABASE_URL": WRONG_DATABASES.split(),
    "BASE_URL": WRONG_ADDRESSES.split(),
    "CDN_URL": [*WRONG_SHEETS.split(), "https://cdn.example; script-src *"],
    "WORKERS": ["0", "65", "-1", "two", "1.5"],
    "SAME_ORIGIN_ONLY": ["2", "yes"],
    "HISTORY_DAYS": ["0", "-1", "36501", "30 days", "1.5"],
    "TIMEZONE": ["WIB", "Asia", "Asia/Bandung", "/etc/localtime", "../UTC", "+07:00"],
    "METRICS": ["2", "yes"],
    "USER_HEADER": [*WRONG_HEADERS.split(), "X Remote User"],
    "BACKUP_DIR": [],  # any other text may be the name of a folder
    "TRUSTED_PROXIES": ["localhost", "10.0.0.0/33", "10.0.0.1/8/8", "10.0.0.1;10.0.0.2"],
    "BACKUP_HOURS": ["0", "721", "24h", "0.5"],
    "LOG_LEVEL": ["loud", "1"],
}

# Only Linux has other IPv4 addresses than the first on its loopback device.
LOOPBACKS = ["127.0.0.1", *["127.0.0.2"] * (sys.platform == "linux"), "::1"]

DECLARED = [variable for variable, _ in Settings.declared()]


def test_help_shows_every_setting_and_its_default() -> None:
    """`mahasiswa --help` has a line for each setting, with its name, its meaning and its default."""
    shown = run(Path(sys.executable).with_name("mahasiswa"), "--help")
    lines = dict(re.findall(r"^ +([A-Z][A-Z_]+) +(\S.*)$", shown, re.MULTILINE))
    assert lines.keys() == set(DECLARED)
    for line in lines.values():
        assert re.fullmatch(r"\S.{15,} \[\S+\]", line)
    defaults = {"PORT": "3000", "DATABASE_URL": "sqlite:///mahasiswa.db", "WORKERS": "1"}
    for variable, default in defaults.items():
        assert lines[variable].endswith(f"[{default}]")


def test_every_wrong_value_is_refused_in_one_line() -> None:
    """The line has the setting and the value. An address of a database may hold a password, so it is not shown."""
    assert set(WRONG) == set(DECLARED)
    for variable, values in WRONG.items():
        for value in values:
            with pytest.raises(SettingError) as refused:
                Settings.from_environment({variable: value})
            shown = "that" if variable == "DATABASE_URL" else repr(value)
            assert re.fullmatch(
                rf"{variable} must be [^\n]{{5,}}, not {re.escape(shown)}", str(refused.value)
            )


def test_a_control_character_or_a_blank_at_an_end_of_a_value_is_refused() -> None:
    for form in "{}\r", "\t{}", "{}\x7f", "{}\x85", " {}", "{} ", "{}\u00a0":
        for variable, field in Settings.declared():
            given = {variable: form.format(field.metadata["default"] or "a")}
            with pytest.raises(
                SettingError, match=f"^{variable} must be without control characters"
            ):
                Settings.from_environment(given)


def test_values_that_mean_the_same() -> None:
    """An empty value is the default, as `NAME=` in a file of systemd."""
    assert Settings.from_environment(dict.fromkeys(DECLARED, "")) == Settings.from_environment({})


@pytest.mark.parametrize(
    ("host", "addresses"),
    [("", LOOPBACKS), ("0.0.0.0", LOOPBACKS[:-1]), ("localhost", LOOPBACKS[:1])],
)
def test_the_service_listens_only_on_host(tmp_path: Path, host: str, addresses: list[str]) -> None:
    """By default on IPv4 and IPv6. With an IPv4 address not on IPv6, and with one loopback address not on another."""
    if not host and not (socket.has_dualstack_ipv6() and has_ipv6()):
        cannot("use IPv6", "the loopback device has none")
    with Service(tmp_path / "mahasiswa.db", {"HOST": host}) as service:
        assert [address for address in LOOPBACKS if not is_free(service.port, address)] == addresses


def test_the_first_start_in_a_terminal_shows_four_short_lines(tmp_path: Path) -> None:
    """It says the address, the place of the records, that no back-ups are made, and how to stop, and nothing else."""
    screen, terminal = pty.openpty()
    environment = {**os.environ, "HOST": "127.0.0.1", "PORT": str(free_port())}
    options = {"cwd": tmp_path, "env": environment, "stdout": terminal, "stderr": terminal}
    with os.fdopen(screen, "rb", 0) as shown, started(*COMMAND, **options) as service:
        os.close(terminal)
        lines = [shown.readline().decode().rstrip() for _ in range(4)]
        service.terminate()
        # The terminal has no other end any more.
        with pytest.raises(OSError, match="Input/output error"):
            lines.append(shown.readline().decode())
    assert lines == [
        f"mahasiswa {version('mahasiswa')}: http://localhost:{environment['PORT']}/",
        f"The records are in {tmp_path}/mahasiswa.db",
        "No back-ups are made. To have them, set BACKUP_DIR to a folder.",
        "Ctrl-C stops the service.",
    ]


def test_database_url_is_the_path_of_the_file() -> None:
    """After three slashes the path is relative to the working directory, after four it is absolute."""
    for address, path in (
        ("", Path("mahasiswa.db")),
        ("sqlite:///arsip/data siswa.sqlite3", Path("arsip/data siswa.sqlite3")),
        ("sqlite:////srv/a.db", Path("/srv/a.db")),
    ):
        assert Settings.from_environment({"DATABASE_URL": address}).database_url == SQLiteURL(path)


def has_ipv6() -> bool:
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False

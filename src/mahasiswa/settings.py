"""Settings: each is declared once, read from an environment variable, and shown by `mahasiswa --help`."""

import dataclasses
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from mahasiswa.digits import whole_number

BOOTSTRAP = "https://cdn.jsdelivr.net/npm/bootstrap@5.3.8/dist/css/bootstrap.min.css"
BOOTSTRAP_INTEGRITY = "sha384-sRIl4kxILFvY47J16cr9ZwB07vP4J8+LH7qKQnuqkuIAvNWLzeN8tE5YBujZqJLB"

SQLITE = "sqlite:///"
DEFAULT_DATABASE_URL = "sqlite:///mahasiswa.db"
DATABASE_FORMS = "sqlite:///file.db, sqlite:////absolute/path.db or postgresql://…"
DEFAULT_HISTORY_DAYS = 30
DEFAULT_PORT = "3000"

UNIX = "unix:"
SOCKET_FORM = "unix:/run/mahasiswa/socket"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SettingError(ValueError):
    """A setting has a value that cannot be used. The text is one line with its name and the values that are allowed."""

    exit_code = 2


@dataclasses.dataclass(frozen=True)
class SQLiteURL:
    """`sqlite:///relative.db` or `sqlite:////absolute.db`."""

    address: Path

    def __str__(self) -> str:
        return str(self.address.absolute())


@dataclasses.dataclass(frozen=True)
class PostgresURL:
    """`postgresql://…`, as libpq reads it. It may hold a password, so only the hosts and the name are shown."""

    address: str = dataclasses.field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.address)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


DatabaseURL = SQLiteURL | PostgresURL

# If a shell reads a file with CRLF, each value ends with CR.
UNCLEAN = re.compile(r"[\x00-\x1f\x7f-\x9f]|^\s|\s$")
CLEAN = "without control characters, and without blanks at its ends"


def parse_database_url(text: str) -> DatabaseURL:
    """Read a database's address; raise ValueError with the forms that are allowed."""
    if text.startswith(SQLITE):
        path = text.removeprefix(SQLITE)
        if "?" in path:
            raise ValueError("an SQLite file without ? in its path")
        if path and Path(path).name != ":memory:":
            return SQLiteURL(Path(path))
    elif text.startswith(("postgresql://", "postgres://")):
        _check_postgres(text)
        return PostgresURL(text)
    raise ValueError(DATABASE_FORMS)


def _check_postgres(text: str) -> None:
    # If the password holds `@` or `/`, libpq takes the text after it for a host, and shows this
    # text in its messages.
    if re.match("[^/@]*@[^/?]*@|[^@?]*/[^?]*@", text.partition("://")[2]):
        raise ValueError("an address with %40 for @ and %2F for / in a name or a password")
    try:
        from psycopg import ProgrammingError  # noqa: PLC0415 - SQLite alone needs no psycopg
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ValueError(
            f"an SQLite file, unless mahasiswa[postgres] is installed ({error})"
        ) from None
    try:
        urlsplit(text)
        conninfo_to_dict(text)
    except (ProgrammingError, ValueError):
        raise ValueError(
            "postgresql://… with parameters that libpq knows, and with %25 for each % in it"
        ) from None


def _number(high: int, default: str, explanation: str) -> Any:  # noqa: ANN401 - as _setting()
    def parse(text: str) -> int:
        number = whole_number(text)
        if number is None or not 1 <= number <= high:
            raise ValueError
        return number

    return _setting(parse, default, explanation, f"a whole number from 1 to {high}")


HOST = r"https?://([A-Za-z0-9.\-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?"
STYLE_SHEET = HOST + r"(/[A-Za-z0-9.\-_~/@+%=]*(\?[A-Za-z0-9.\-_~/@+%=&]*)?)?(?<!/)"
# No segment is empty, or a step in a path.
SITE = HOST + r"(/(?!\.{1,2}(/|$))[A-Za-z0-9.\-_~@+=]+)*/*"


def _matching(pattern: str) -> Callable[[str], str]:
    """Return a parser of texts that match the pattern. It removes slashes at the end, and refuses an address with port 0."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text) or urlsplit(text).port == 0:
            raise ValueError
        return text.rstrip("/")

    return parse


# The history would hold the passwords that these headers carry.
WITHOUT_PASSWORDS = "(?i)(?!(?:authorization|cookie|proxy-authorization)$)[a-z0-9-]*"

EVERY_ADDRESS = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104


_switch = {"0": False, "1": True}.__getitem__


def _host(text: str) -> str:
    if text.startswith(f"{UNIX}/"):
        return text
    return str(ipaddress.ip_address("127.0.0.1" if text == "localhost" else text))


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(","))


def _folder(text: str) -> Path | None:
    return Path(text).absolute() if text else None


def _setting(parse: Callable[[str], Any], default: str, explanation: str, allowed: str = "") -> Any:  # noqa: ANN401 - as field()
    """A setting, whose value `parse` reads.

    If `parse` raises an error, the operator sees which values are allowed: `allowed`, or without it
    the text of the error.
    """
    return dataclasses.field(
        metadata={"parse": parse, "default": default, "help": explanation, "allowed": allowed}
    )


@dataclasses.dataclass(frozen=True)
class Settings:
    """All settings. A field's name in capitals is its environment variable."""

    host: str = _setting(
        _host,
        EVERY_ADDRESS,
        f"IP address to listen on (:: includes IPv4), or a socket such as {SOCKET_FORM}",
        f"an IP address to listen on, such as 127.0.0.1, 0.0.0.0 or ::, or a socket as {SOCKET_FORM}",
    )
    port: int = _number(65535, DEFAULT_PORT, "TCP port to listen on")
    database_url: DatabaseURL = _setting(
        parse_database_url, DEFAULT_DATABASE_URL, f"address of the database: {DATABASE_FORMS}"
    )
    base_url: str = _setting(
        _matching(SITE),
        f"http://localhost:{DEFAULT_PORT}",
        "address that people open, by default with PORT; every link begins with its path, if it has one",
        "the address people open, such as http://localhost:3000 or https://kampus.example/mahasiswa-ti",
    )
    cdn_url: str = _setting(
        _matching(STYLE_SHEET),
        BOOTSTRAP,
        "style sheet that the pages load in addition to their own",
        "the http(s) address of a style sheet",
    )
    workers: int = _number(64, "1", "processes that answer requests")
    log_level: str = _setting(
        _matching("(?i)debug|info|warning|error"),
        "info",
        "debug, info (POST and refusals), warning (refusals) or error",
        "debug, info, warning or error",
    )
    same_origin_only: bool = _setting(
        _switch,
        "0",
        "1 refuses forms that other sites send through a browser, and a Host that is not that of BASE_URL",
        "1 or 0",
    )
    history_days: int = _number(
        36500, str(DEFAULT_HISTORY_DAYS), "days for which a change can be undone"
    )
    timezone: ZoneInfo = _setting(
        ZoneInfo,
        "Asia/Jakarta",
        "time zone of the pages and of the log",
        "the name of a time zone, such as Asia/Jakarta, Asia/Makassar or Asia/Jayapura",
    )
    metrics: bool = _setting(_switch, "0", "1 shows counters for Prometheus at /metrics", "1 or 0")
    backup_dir: Path | None = _setting(
        _folder, "", "folder in which the service keeps back-ups of an SQLite file"
    )
    backup_hours: int = _number(720, "24", "hours between two of these back-ups")

    user_header: str = _setting(
        _matching(WITHOUT_PASSWORDS),
        "",
        "header in which a proxy names the person, such as X-Remote-User; never a header with a password",
        "the name of a header without passwords, such as X-Remote-User, or nothing",
    )
    trusted_proxies: tuple[Network, ...] = _setting(
        _networks,
        "127.0.0.1,::1",
        "addresses or networks of the proxies whose USER_HEADER and X-Forwarded-For are believed",
        "IP addresses or networks with commas between them, such as 127.0.0.1,10.0.0.0/8",
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read every setting from `environ`; raise SettingError. An empty value counts as unset."""
        given = {name: value for name, value in environ.items() if value}
        given.setdefault("BASE_URL", f"http://localhost:{given.get('PORT', DEFAULT_PORT)}")
        values = {}
        for variable, field in cls.declared():
            text = given.get(variable, field.metadata["default"])
            if UNCLEAN.search(text):
                raise SettingError(f"{variable} must be {CLEAN}")
            try:
                values[field.name] = field.metadata["parse"](text)
            except (KeyError, OSError, ValueError) as error:  # OSError: a folder, not a zone
                allowed = field.metadata["allowed"] or error
                # A database's address may hold a password, which must not get into a log.
                shown = "that" if variable == "DATABASE_URL" else repr(text)
                raise SettingError(f"{variable} must be {allowed}, not {shown}") from None
        return cls(**values)

    @classmethod
    def declared(cls) -> list[tuple[str, dataclasses.Field[Any]]]:
        """Every setting's environment variable and field, in order."""
        return [(field.name.upper(), field) for field in dataclasses.fields(cls)]

    @property
    def socket(self) -> str:
        """The path of the Unix socket to listen on; empty for an address."""
        return self.host.partition(UNIX)[2]

    @property
    def takes_foreign_forms(self) -> bool:
        """Whether other computers reach the service, perhaps through a proxy, and forms of other sites are not refused."""
        local = "127.0.0.1", "::1", "localhost"
        listens_locally = self.socket or self.host in local
        is_named_locally = urlsplit(self.base_url).hostname in local
        return not (self.same_origin_only or (listens_locally and is_named_locally))

    @property
    def prefix(self) -> str:
        """The path of BASE_URL: empty, or `/something` without a slash at its end."""
        return urlsplit(self.base_url).path

"""Rejects ambiguous requests and, optionally, cross-site ones, and tells who sent a request, and from which address."""

import ipaddress
import logging
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.types import Scope

from mahasiswa.settings import Settings
from mahasiswa.web.routes import HEALTH_PATH, METRICS_PATH
from mahasiswa.wording import ProblemName

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

malformed_escape = re.compile(rb"%(?![0-9A-Fa-f]{2})")

QUERY_MAX_BYTES = 8 * 1024  # a search of 255 characters takes at most 3 KB
QUERY_MAX_PARAMETERS = 20  # our own links have at most ten
FORWARDED_MAX_BYTES = 1000  # of X-Forwarded-For, at its end: about twenty proxies
NAME_MAX_CHARACTERS = 255  # of a person; a longer name is cut
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

log = logging.getLogger(__name__)


class RequestGuard:
    """Tells which requests must not reach a route, and the person's name in USER_HEADER."""

    def __init__(self, settings: Settings) -> None:
        self.prefix = settings.prefix.encode()
        self.list_url = self.prefix + b"/"
        self.monitor_urls = tuple(
            self.prefix + path.encode() for path in (HEALTH_PATH, METRICS_PATH)
        )
        self.hosts = _allowed_hosts(settings) if settings.same_origin_only else None
        self._user_header = settings.user_header.lower().encode()
        self._trusted = settings.trusted_proxies
        # Only a proxy can open the Unix socket, and none of its connections has an address.
        self._trusts_unknown = bool(settings.socket)
        self._has_warned = False

    def problem(self, scope: Scope) -> ProblemName | None:
        """The problem that the request must be answered with, or None if it may pass."""
        path: bytes = scope["raw_path"]
        query = scope.get("query_string", b"")  # the parser's callback asks before there is one
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        host = hosts[0] if hosts else b""
        if (
            len(hosts) > 1
            or scope["http_version"] not in ("1.0", "1.1")
            # HTTP/1.0 allows a request without a Host.
            or not (host or scope["http_version"] == "1.0")
            or not path
            or malformed_escape.search(path)
            or len(query) > QUERY_MAX_BYTES  # many `&%` take long to parse
            or query.count(b"&") >= QUERY_MAX_PARAMETERS
            or malformed_escape.search(query)
            or (
                self._user_header
                and sum(name == self._user_header for name, _ in scope["headers"]) > 1
            )
        ):
            return "bad request"
        # A load balancer and Prometheus send an address as Host. Their answers hold no record and
        # no Host.
        if self.hosts and not (
            (host.lower() in self.hosts or path in self.monitor_urls)
            and self._is_same_origin(scope["method"], host, scope["headers"])
        ):
            return "other site"
        if path != self.prefix and not path.startswith(self.list_url):
            return "no page"
        return None

    def _is_same_origin(
        self, method: str, host: bytes, headers: Sequence[tuple[bytes, bytes]]
    ) -> bool:
        """Whether the request, if it may change something, comes from a page of ours.

        Browsers name the origin of a request in Sec-Fetch-Site, older ones in Origin. A client that sends neither is
        no browser. `problem` checks the host against DNS rebinding: a foreign site's name can lead to our address.
        """
        if method in SAFE_METHODS:
            return True
        sent = dict(headers)
        if site := sent.get(b"sec-fetch-site"):
            return site in (b"same-origin", b"none")
        origin = sent.get(b"origin")
        return not origin or origin.lower().partition(b"://")[2] == host.lower()

    def person(self, scope: Scope) -> str | None:
        """The name in USER_HEADER, or None. It is believed only from a trusted proxy."""
        value = dict(scope["headers"]).get(self._user_header) if self._user_header else None
        if not value:
            return None
        address = _sender(scope)
        if self._is_trusted(address):
            text = "".join(filter(str.isprintable, value.decode(errors="replace"))).strip()
            return text[:NAME_MAX_CHARACTERS] or None
        if address and not self._has_warned:
            log.warning(
                "the header of USER_HEADER is ignored: %s is not in TRUSTED_PROXIES", address
            )
            self._has_warned = True
        return None

    def address(self, scope: Scope) -> str:
        """The address of the client: the last one in X-Forwarded-For that is no proxy's, if a trusted proxy sent it."""
        address = _sender(scope)
        forwarded = b",".join(
            [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        )
        for text in reversed(forwarded[-FORWARDED_MAX_BYTES:].decode("latin-1").split(",")):
            if not self._is_trusted(address):
                break
            try:
                address = _address(text.strip())
            except ValueError:  # the header is absent, or a proxy has written no address
                break
        return str(address or "-")

    def _is_trusted(self, address: Address | None) -> bool:
        """Whether a proxy is in TRUSTED_PROXIES, or has opened the Unix socket."""
        if address is None:
            return self._trusts_unknown
        return any(address in network for network in self._trusted)


def _sender(scope: Scope) -> Address | None:
    """The address of the connection; None on a Unix socket, and if the client has ended the connection."""
    return _address(scope["client"][0]) if scope["client"] else None


def _address(text: str) -> Address:
    """An address without its zone; raise ValueError. An IPv4 address may be written as IPv6."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _allowed_hosts(settings: Settings) -> frozenset[bytes]:
    """The values of Host that BASE_URL allows; if it is a loopback name, all loopback names."""
    parts = urlsplit(settings.base_url.lower())
    port = f":{parts.port}" if parts.port else ""
    name = parts.netloc.removesuffix(port)
    names = LOOPBACK_NAMES if name in LOOPBACK_NAMES else (name,)
    default_port = {"http": ":80", "https": ":443"}[parts.scheme]
    ports = {"", default_port} if port in ("", default_port) else {port}
    return frozenset(f"{name}{port}".encode() for name in names for port in ports)

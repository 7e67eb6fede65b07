"""Rejects ambiguous requests and, optionally, cross-site ones, and tells who sent a request, and from which address."""

import ipaddress
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
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
        self._settings = settings
        self._monitor_urls = [self.prefix + path.encode() for path in (HEALTH_PATH, METRICS_PATH)]
        self._hosts = _allowed_hosts(settings) if settings.same_origin_only else None
        self._user_header = settings.user_header.lower().encode()
        self._has_warned = False

    def problem(self, scope: Scope) -> ProblemName | None:
        """The problem that the request must be answered with, or None if it may pass."""
        path: bytes = scope["raw_path"]
        query: bytes = scope["query_string"]
        names = [name for name, _ in scope["headers"]]
        sent = dict(scope["headers"])
        host = sent.get(b"host", b"").lower()
        version = scope["http_version"]
        if (
            names.count(b"host") > 1
            or names.count(self._user_header) > 1
            # HTTP/1.0 allows a request without a Host.
            or (version, bool(host)) not in (("1.1", True), ("1.0", True), ("1.0", False))
            or not path
            or len(query) > QUERY_MAX_BYTES  # many `&%` take long to parse
            or query.count(b"&") >= QUERY_MAX_PARAMETERS
            or malformed_escape.search(path + b"?" + query)
        ):
            return "bad request"
        # A load balancer and Prometheus send an address as Host. Their answers hold no record and
        # no Host.
        if self._hosts and not (
            (host in self._hosts or path in self._monitor_urls)
            and (scope["method"] in SAFE_METHODS or _is_same_origin(host, sent))
        ):
            return "other site"
        is_ours = path == self.prefix or path.startswith(self.list_url)
        return None if is_ours else "no page"

    def person(self, scope: Scope) -> str | None:
        """The name in USER_HEADER, or None. It is believed only from a trusted proxy."""
        value: bytes = dict(scope["headers"]).get(self._user_header, b"")
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
        texts = forwarded[-FORWARDED_MAX_BYTES:].decode("latin-1").split(",") if forwarded else []
        with suppress(ValueError):  # a proxy has written no address
            while texts and self._is_trusted(address):
                address = _address(texts.pop().strip())
        return str(address or "-")

    def _is_trusted(self, address: Address | None) -> bool:
        """Whether a proxy is in TRUSTED_PROXIES, or has opened the Unix socket, whose connections have no address."""
        if address is None:
            return bool(self._settings.socket)
        return any(address in network for network in self._settings.trusted_proxies)


def _is_same_origin(host: bytes, sent: Mapping[bytes, bytes]) -> bool:
    """Whether a request that may change something comes from a page of ours.

    Browsers name the origin of a request in Sec-Fetch-Site, older ones in Origin. A client that sends neither is no
    browser. `problem` checks the host against DNS rebinding: a foreign site's name can lead to our address.
    """
    if site := sent.get(b"sec-fetch-site"):
        return site in (b"same-origin", b"none")
    origin = sent.get(b"origin")
    return not origin or origin.lower().partition(b"://")[2] == host


def _sender(scope: Scope) -> Address | None:
    """The address of the connection; None on a Unix socket, and if the client has ended the connection."""
    return _address(scope["client"][0]) if scope["client"] else None


@lru_cache  # a connection has the same address in each request
def _address(text: str) -> Address:
    """An address without its zone; raise ValueError. An IPv4 address may be written as IPv6."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _allowed_hosts(settings: Settings) -> frozenset[bytes]:
    """The values of Host that BASE_URL allows; if it is a loopback name, all loopback names."""
    parts = urlsplit(settings.base_url.lower())
    default = {"http": 80, "https": 443}[parts.scheme]
    port = parts.port or default
    name = parts.netloc.removesuffix(f":{port}")
    names = LOOPBACK_NAMES if name in LOOPBACK_NAMES else (name,)
    ends = {f":{port}"} | ({""} if port == default else set())
    return frozenset(f"{name}{end}".encode() for name in names for end in ends)

"""Rejects ambiguous requests and, optionally, cross-site ones, and tells who sent a request, and from which address."""

import ipaddress
import logging
import re
from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from urllib.parse import urlsplit

from mahasiswa.settings import Settings
from mahasiswa.web.request import Request
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
VERSIONS = (("1.1", True), ("1.0", True), ("1.0", False))  # with a Host or without

# Once for each of the latest addresses.
warn_once = lru_cache(16)(logging.getLogger(__name__).warning)


class RequestGuard:
    """Tells which requests must not reach a route, and who sent a request, from which address."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._prefix = settings.prefix.encode()
        self._hosts, self._default_port = _hosts_of(settings.base_url.lower())
        self._user_header = settings.user_header.lower().encode()

    def problem(self, request: Request) -> ProblemName | None:
        """The problem that the request must be answered with, or None if it may pass."""
        scope = request.scope
        path: bytes = scope["raw_path"]
        query: bytes = scope["query_string"]
        names = [name for name, _ in scope["headers"]]
        host = request.sent.get(b"host", b"").lower()
        if (
            names.count(b"host") > 1
            or names.count(self._user_header) > 1
            # HTTP/1.0 allows a request without a Host.
            or (scope["http_version"], bool(host)) not in VERSIONS
            or not path
            or len(query) > QUERY_MAX_BYTES  # many `&%` take long to parse
            or query.count(b"&") >= QUERY_MAX_PARAMETERS
            or malformed_escape.search(path + b"?" + query)
        ):
            return "bad request"
        if self._settings.same_origin_only and not self._is_same_site(request, host):
            return "other site"
        is_ours = path == self._prefix or path.startswith(self._prefix + b"/")
        return None if is_ours else "no page"

    def sender(self, request: Request) -> tuple[str, str | None]:
        """The address of the client, and the person's name in USER_HEADER or None.

        The address is the last one in X-Forwarded-For that is no proxy's. Only a trusted proxy is
        believed. Its own header is the last one.
        """
        client = request.scope["client"]  # None on a Unix socket, and if the client is gone
        proxy = address = _address(client[0]) if client else None
        forwarded = request.sent.get(b"x-forwarded-for", b"")[-FORWARDED_MAX_BYTES:]
        texts = forwarded.decode("latin-1").split(",") if forwarded else []
        with suppress(ValueError):  # a proxy has written no address
            while texts and self._is_trusted(address):
                address = _address(texts.pop().strip())
        return str(address or "-"), self._person(request, proxy)

    def _person(self, request: Request, proxy: Address | None) -> str | None:
        value = request.sent.get(self._user_header)
        if not value:
            return None
        if self._is_trusted(proxy):
            text = "".join(filter(str.isprintable, value.decode(errors="replace"))).strip()
            return text[:NAME_MAX_CHARACTERS] or None
        warn_once("the header of USER_HEADER is ignored: %s is not in TRUSTED_PROXIES", proxy)
        return None

    def _is_trusted(self, address: Address | None) -> bool:
        """Whether a proxy is in TRUSTED_PROXIES, or has opened the Unix socket, whose connections have no address."""
        if address is None:
            return bool(self._settings.socket)
        return any(address in network for network in self._settings.trusted_proxies)

    def _is_same_site(self, request: Request, host: bytes) -> bool:
        """Whether a request comes from a page of ours, or from no browser, or changes nothing.

        Its Host must be that of BASE_URL against DNS rebinding: a foreign site's name can lead to our address. A load
        balancer and Prometheus send an address as Host. Their answers hold no record and no Host.
        """
        is_our_host = host.removesuffix(self._default_port) in self._hosts
        if not is_our_host and request.path not in (HEALTH_PATH, METRICS_PATH):
            return False
        if request.method in SAFE_METHODS:
            return True
        # Browsers name the origin of a request in Sec-Fetch-Site, older ones in Origin. A client
        # that sends neither is no browser.
        if site := request.sent.get(b"sec-fetch-site"):
            return site in (b"same-origin", b"none")
        origin = request.sent.get(b"origin")
        return not origin or origin.lower().partition(b"://")[2] == host


@lru_cache  # a connection has the same address in each request
def _address(text: str) -> Address:
    """An address without its zone; raise ValueError. An IPv4 address may be written as IPv6."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _hosts_of(base_url: str) -> tuple[Collection[bytes], bytes]:
    """The values of Host that BASE_URL allows without its default port, and this port.

    If it is a loopback name, all loopback names are allowed.
    """
    parts = urlsplit(base_url)
    default = {"http": ":80", "https": ":443"}[parts.scheme]
    port = f":{parts.port}" if parts.port else default
    name = parts.netloc.removesuffix(port)
    names = LOOPBACK_NAMES if name in LOOPBACK_NAMES else (name,)
    hosts = [f"{name}{port}".removesuffix(default).encode() for name in names]
    return hosts, default.encode()

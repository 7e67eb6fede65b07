"""Rejects ambiguous requests and, optionally, cross-site ones, and tells who sent a request, and from which address."""

import logging
import re
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from mahasiswa.record import tidy
from mahasiswa.settings import Settings
from mahasiswa.web.request import Request
from mahasiswa.web.routes import HEALTH_PATH, METRICS_PATH
from mahasiswa.wording import ProblemName

Address = IPv4Address | IPv6Address

default_port = re.compile(rb":(80|443)$")
loopback_address = re.compile(rb"^(127\.0\.0\.1|\[::1\])(?=:|$)")
malformed_escape = re.compile(rb"%(?![0-9A-Fa-f]{2})")

QUERY_MAX_BYTES = 8 * 1024  # a search of 255 characters takes at most 3 KB
NAME_MAX_CHARACTERS = 255  # of a person; a longer name is cut

# Once for each of the latest addresses.
warn_once = lru_cache(logging.getLogger(__name__).warning)


class RequestGuard:
    """Tells which requests must not reach a route, and who sent a request, from which address."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._host = _plain(urlsplit(settings.base_url).netloc.encode())
        self._user_header = settings.user_header.lower().encode()
        self._trusts = lru_cache(self._is_trusted)

    def problem(self, request: Request) -> ProblemName | None:
        """The problem that the request must be answered with, or None if it may pass."""
        scope = request.scope
        names = [name for name, _ in scope["headers"]]
        if (
            names.count(b"host") > 1
            or names.count(self._user_header) > 1
            or (scope["http_version"] != "1.0" and not request.sent.get(b"host"))
            or len(scope["query_string"]) > QUERY_MAX_BYTES  # many `&%` take long to parse
            or malformed_escape.search(scope["raw_path"] + b"?" + scope["query_string"])
        ):
            return "bad request"
        if self._settings.same_origin_only and not self._is_same_site(request):
            return "other site"
        return None

    def sender(self, request: Request) -> tuple[str, str | None]:
        """The address of the client, and the person's name in USER_HEADER or None.

        The address is the last one in X-Forwarded-For that is no proxy's. Only a trusted proxy is
        believed. Its own header is the last one.
        """
        client = request.scope["client"]  # None on a Unix socket, and if the client is gone
        proxy = address = _address(client[0]) if client else None
        forwarded = re.findall(rb"[^,\s]+", request.sent.get(b"x-forwarded-for", b""))
        with suppress(ValueError):  # a proxy has written no address
            while forwarded and self._trusts(address):
                address = _address(forwarded.pop().decode("latin-1"))
        name = request.sent.get(self._user_header, b"").decode(errors="replace")
        person = tidy(name)[:NAME_MAX_CHARACTERS]
        if person and not self._trusts(proxy):
            warn_once("the header of USER_HEADER is ignored: %s is not in TRUSTED_PROXIES", proxy)
            person = ""
        return str(address or "-"), person or None

    def _is_trusted(self, address: Address | None) -> bool:
        """Whether a proxy is in TRUSTED_PROXIES, or has opened the Unix socket, whose connections have no address."""
        if address is None:
            return bool(self._settings.socket)
        return any(address in network for network in self._settings.trusted_proxies)

    def _is_same_site(self, request: Request) -> bool:
        """Whether a request comes from a page of ours, or from no browser, or changes nothing.

        Its Host must be that of BASE_URL against DNS rebinding: a foreign site's name can lead to our address. A load
        balancer and Prometheus send an address as Host. Their answers hold no record and no Host.
        """
        host = _plain(request.sent.get(b"host", b""))
        if host != self._host and request.path not in (HEALTH_PATH, METRICS_PATH):
            return False
        if request.method != "POST":
            return True
        # Browsers name the origin of a request in Sec-Fetch-Site, older ones in Origin. A client
        # that sends neither is no browser.
        if site := request.sent.get(b"sec-fetch-site"):
            return site in (b"same-origin", b"none")
        origin = request.sent.get(b"origin")
        return not origin or _plain(origin.partition(b"://")[2]) == self._host


@lru_cache  # a connection has the same address in each request
def _address(text: str) -> Address:
    """An address without its zone; raise ValueError. An IPv4 address may be written as IPv6."""
    address = ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


@lru_cache
def _plain(host: bytes) -> bytes:
    """A host in lower case, without a default port, and with one name for this machine."""
    return loopback_address.sub(b"localhost", default_port.sub(b"", host.lower()))

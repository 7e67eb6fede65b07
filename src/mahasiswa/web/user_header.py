"""Reads the name of the person from the header that a trusted proxy sets (USER_HEADER)."""

import ipaddress
import logging

from starlette.types import Scope

from mahasiswa.settings import Settings

NAME_MAX_CHARACTERS = 255
"""Maximum length of a name in the history. A longer one is cut."""

log = logging.getLogger(__name__)


class UserHeader:
    """The name in the header, believed only if the connection comes from an address in TRUSTED_PROXIES."""

    def __init__(self, settings: Settings) -> None:
        self._header = settings.user_header.lower().encode()
        self._trusted = settings.trusted_proxies
        self._has_warned = False

    def is_ambiguous(self, scope: Scope) -> bool:
        """Whether the request has the header more than once."""
        return bool(self._header) and sum(name == self._header for name, _ in scope["headers"]) > 1

    def name(self, scope: Scope) -> str | None:
        """The name, or None if there is none, or if the client is not to be believed."""
        value = dict(scope["headers"]).get(self._header) if self._header else None
        if not value:
            return None
        client = scope["client"][0] if scope["client"] else ""
        if not self._is_trusted(client):
            if not self._has_warned:
                log.warning("the header of USER_HEADER is ignored: %s is not in TRUSTED_PROXIES", client)
            self._has_warned = True
            return None
        text = "".join(filter(str.isprintable, value.decode(errors="replace"))).strip()
        return text[:NAME_MAX_CHARACTERS] or None

    def _is_trusted(self, client: str) -> bool:
        try:
            address = ipaddress.ip_address(client.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._trusted)

"""The interface of a request's connection beyond ASGI. Of all ASGI servers, only HttpProtocol has it."""

from typing import Protocol, cast
from weakref import WeakSet

from starlette.types import Scope

MIN_BYTES_PER_SECOND = 4 * 1024  # average speed of a client that sends a body, or takes a response

KEY = "mahasiswa.connection"  # in the extensions of a scope


class Connection(Protocol):
    """Limits slow clients."""

    readers: "Readers"
    """The clients that do not take the same list page as fast as it is sent."""

    def awaits_body(self) -> bool:
        """Whether the body of the request has not yet arrived as a whole."""

    def cut_off(self) -> None:
        """Reset the connection."""


Readers = WeakSet[Connection]


def connection_of(scope: Scope) -> Connection:
    """The connection of a request."""
    return cast("Connection", scope["extensions"][KEY])

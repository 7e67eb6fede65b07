"""The interface of a request's connection beyond ASGI. Of all ASGI servers, only HttpProtocol has it."""

from typing import Protocol, cast

from starlette.types import Scope

from mahasiswa.work import Client

KEY = "mahasiswa.connection"  # in the extensions of a scope


class Connection(Client, Protocol):
    """Limits slow clients, and writes complete responses at once."""

    @property
    def body_is_late(self) -> bool:
        """Whether the client sends the body too slowly. Then a waiting `receive` returns."""

    def give_body_up(self) -> None:
        """Treat the body as late from now on, because other requests need its room."""

    async def drain(self) -> None:
        """Return when the client has taken all that was written; raise ClientDisconnect if the connection is lost."""

    async def leave(self) -> None:
        """Wait until the client sends no more, or is gone. Then it gets no answer."""

    def cut_off(self) -> None:
        """Close the connection at once, because other requests need the room of its answer."""

    def write_now(self, status: int, head: bytes, body: bytes) -> bool:
        """Write a complete response, whose body other clients share; False if the server must write it by `send`."""


def connection_of(scope: Scope) -> Connection:
    """The connection of a request."""
    return cast("Connection", scope["extensions"][KEY])

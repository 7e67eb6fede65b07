"""Opens the socket that the service listens on: a TCP port, or a Unix socket."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mahasiswa.settings import Settings

# The kernel's send buffer of each connection. Linux doubles this number. Without it, the buffer
# grows to 4 MB for a client that does not read. A list of 3 MB is sent 20% faster with this buffer,
# because the buffer stays in the processor's cache.
SEND_BUFFER_BYTES = 512 * 1024
# Maximum bytes that the kernel takes before it can send them. The limit lets a worker see how fast
# a client reads.
UNSENT_MAX_BYTES = 64 * 1024

SOCKET_MODE = 0o660  # a client of the socket can give any name, so only the proxy may open it

# Exit codes of a start. After FAILED systemd tries again, because the fault may pass. After IN_VAIN
# it does not, because no restart heals the fault.
FAILED = 1
IN_VAIN = 2


class CannotStart(Exception):
    """The service cannot start. The text is one line for the operator."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


@contextmanager
def listening(settings: Settings) -> Iterator[None]:
    """Raise CannotStart if the service cannot listen."""
    try:
        yield
    except OSError as error:
        port = "" if settings.socket else f" port {settings.port}"
        text = f"cannot listen on {settings.host}{port}: {error.strerror or error}"
        raise CannotStart(
            text, IN_VAIN if isinstance(error, PermissionError) else FAILED
        ) from error


def bind(settings: Settings) -> socket.socket:
    """Bind without SO_REUSEPORT, so that a port that is taken is noticed before anything else; raise OSError."""
    host = settings.host
    if settings.socket:
        listener = socket.socket(socket.AF_UNIX)
        _bind_file(listener, Path(settings.socket))
    else:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_MAX_BYTES)
        listener.bind((host, settings.port))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listener


def _bind_file(listener: socket.socket, path: Path) -> None:
    """Bind a Unix socket, and remove the socket that a killed service has left; raise OSError."""
    # Another instance may have made its socket without listening yet, so a lock is needed. The lock
    # ends with this process.
    lock = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
    with suppress(BlockingIOError):  # the socket of another instance stays, so it is in use
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_socket():
            path.unlink()
    listener.bind(str(path))
    path.chmod(SOCKET_MODE)

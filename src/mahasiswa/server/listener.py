"""Opens the socket that the service listens on: a TCP port, or a Unix socket."""

import errno
import fcntl
import os
import socket
from contextlib import suppress
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
    """The service cannot listen because of `cause`. The text is one line for the operator."""

    def __init__(self, settings: Settings, cause: OSError) -> None:
        port = "" if settings.socket else f" port {settings.port}"
        super().__init__(f"cannot listen on {settings.host}{port}: {cause.strerror or cause}")
        self.exit_code = IN_VAIN if isinstance(cause, PermissionError) else FAILED


def bind(settings: Settings) -> socket.socket:
    """Bind without SO_REUSEPORT, so that a port that is taken is noticed before anything else; raise CannotStart."""
    host = settings.host
    try:
        if settings.socket:
            return _bind_file(Path(settings.socket))
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_MAX_BYTES)
        listener.bind((host, settings.port))
    except OSError as error:
        raise CannotStart(settings, error) from error
    return listener


def _bind_file(path: Path) -> socket.socket:
    """Make a Unix socket, and remove the socket that a killed service has left; raise OSError."""
    # Another instance may have made its socket without listening yet, so a lock is needed. The lock
    # ends with this process.
    lock = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
    taken = OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise taken from None
    with (
        suppress(FileNotFoundError, ConnectionRefusedError),
        socket.socket(socket.AF_UNIX) as other,
    ):
        other.connect(str(path))
        raise taken
    if path.is_socket():
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    listener.bind(str(path))
    path.chmod(SOCKET_MODE)
    return listener

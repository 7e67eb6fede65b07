"""Lists processes by `ps`, which macOS has as well."""

import subprocess
from collections.abc import Iterator


def children(pid: int) -> list[int]:
    """Return the living processes whose parent is `pid`."""
    return [child for child, parent in _living() if parent == pid]


def is_running(pid: int) -> bool:
    """Return whether there is a living process with this id."""
    return any(pid == other for other, _ in _living())


def _living() -> Iterator[tuple[int, int]]:
    """Yield every living process and its parent."""
    shown = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    for pid, parent, state in map(str.split, shown.splitlines()):
        if not state.startswith("Z"):  # a zombie has ended, but its parent has not waited for it
            yield int(pid), int(parent)

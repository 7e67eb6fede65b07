"""Notices clients that send a body, or take a response, too slowly."""

import time

MIN_BYTES_PER_SECOND = 4 * 1024  # minimum average speed of a client, when its timeout has passed


class Pace:
    """The speed of one client, measured from now on.

    The client may be silent, or slower than the minimum, for `timeout_seconds`.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._began = self._moved = time.monotonic()
        self._total = 0

    def moved_at(self, total: int) -> float:
        """When the client moved its last byte. By now it has sent or taken `total` bytes."""
        if total > self._total:
            self._total = total
            self._moved = time.monotonic()
        return self._moved

    def is_too_slow(self, total: int, *, has_minimum: bool = True) -> bool:
        """Whether the client is too slow. By now it has sent or taken `total` bytes."""
        moved = self.moved_at(total)
        now = time.monotonic()
        expected = self._began + total / MIN_BYTES_PER_SECOND if has_minimum else now
        return now > min(moved, expected) + self._timeout_seconds

    def excuse(self, seconds: float) -> None:
        """Do not count the time in which the event loop did not look at the client."""
        self._began += seconds
        self._moved += seconds

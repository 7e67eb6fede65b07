"""Ends a child process when its parent process is killed."""

import ctypes
import os
import signal
import sys


def end_with(parent: int) -> None:
    """End this process at once when its parent is killed. Otherwise it would keep the port and answer requests."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

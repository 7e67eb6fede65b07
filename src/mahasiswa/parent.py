"""Ends a child process when its parent process is killed."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import wait


def end_with(parent: int) -> None:
    """End this process at once when its parent is killed. Otherwise it would keep the port and answer requests."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
    elif process := multiprocessing.parent_process():

        def watch() -> None:
            wait([process.sentinel])
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()

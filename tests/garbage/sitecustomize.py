"""Python imports this file at its start, because a test puts its folder into PYTHONPATH.

It counts the objects of a worker that only the garbage collector can free, each time the test asks. The test listens on the
socket that the variable GARBAGE names.
"""

import gc
import os
import threading
import time
from multiprocessing.connection import Client

START_SECONDS = 0.05  # time between two looks whether the worker serves


def _start() -> None:
    threading.Thread(target=_answer, name="garbage", daemon=True).start()


def _answer() -> None:
    # Only a worker freezes its objects, when it begins to serve.
    while not gc.get_freeze_count():
        time.sleep(START_SECONDS)
    gc.disable()
    with Client(os.environ["GARBAGE"]) as test:
        while test.recv():
            test.send(gc.collect())


if "GARBAGE" in os.environ:  # helpers lack it
    os.register_at_fork(after_in_child=_start)

"""A standby takes over from a primary that was killed, and no acknowledged change is lost."""

import os
import random
import signal
import time
from contextlib import ExitStack

import pytest
from faults.clients import changing
from harness import Service
from postgres import Server
from processes import until
from stores import execute

pytestmark = pytest.mark.torture

SYNCHRONOUS = "SELECT pid FROM pg_stat_replication WHERE sync_state = 'sync'"


def test_no_acknowledged_change_is_lost_with_the_primary() -> None:
    """Two instances write when the primary is killed; the standby is promoted, and both continue within 5 seconds, or 100 changes."""
    with Server() as primary, Server(primary) as standby, ExitStack() as stack:
        primary.alter("SET synchronous_standby_names = 'standby'")
        until(lambda: execute(primary.url, SYNCHRONOUS))
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        address = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
        urls = [stack.enter_context(Service(address)).url for _ in range(2)]
        with changing(*urls) as wait_for:
            began = time.monotonic()
            wait_for(50)
            usual = (time.monotonic() - began) / 50
            # The primary no longer reaches the standby, and then it ends at any moment of a transaction.
            ((sender,),) = execute(primary.url, SYNCHRONOUS)
            os.kill(sender, signal.SIGSTOP)
            time.sleep(random.uniform(0, 0.5))
            primary.stop(signal.SIGQUIT)
            execute(standby.url, "SELECT pg_promote(wait => true)")
            promoted = time.monotonic()
            wait_for(1)
            assert time.monotonic() - promoted < max(5, 100 * usual)
            wait_for(50)

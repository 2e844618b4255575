"""Ports of 127.0.0.1 for servers of tests: each is drawn by one process of this machine only."""

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from random import SystemRandom

__all__ = ["DRAWN", "free_port"]

DRAWN = (10_000, 20_000)
"""The first port of tests, and the first beyond.

`kraft-wire cluster` claims nothing: a port that it drew, and does not listen on yet, looks free
here. So it draws from others.
"""

CLAIMS = Path(tempfile.gettempdir(), f"kraft-wire-test-ports-{os.getuid()}")
"""The process that has locked the byte at N has port N; the kernel unlocks it when it ends."""


def free_port() -> int:
    """Draw a port that is free, that no connection takes, and that no other test process draws.

    A server of a test is down now and then, and its port has to be free when it starts again. The
    kernel draws the ports of outgoing connections from 32,768 upwards: below it only a listener can
    be there. Listeners of tests draw their ports here, and parallel workers draw different ones. A
    process never returns the same port twice until it has been through all of them.
    """
    for port in _PORTS:
        with socket.socket() as probe, suppress(OSError):
            fcntl.lockf(_CLAIMED, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("itertools.cycle ends only if it is empty")


def _own_ports() -> Iterator[int]:
    """All ports of tests, from where this process alone is likely to begin."""
    ports = range(*DRAWN)
    first = SystemRandom().choice(ports)
    return cycle((*range(first, ports.stop), *range(ports.start, first)))


_PORTS = _own_ports()
_CLAIMED = os.open(CLAIMS, os.O_RDWR | os.O_CREAT, 0o600)
"""Closing it would give up every claim of this process."""

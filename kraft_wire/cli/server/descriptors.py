"""How many connections the process has file descriptors for."""

import resource
from contextlib import suppress
from typing import Final

from kraft_wire.node.limits import UNBOUNDED

__all__ = ["connections_possible"]

_CONNECTIONS_PERCENT: Final = 80
"""Share of the descriptors that connections may take: files of logs need them too."""


def connections_possible() -> int:
    """Return how many connections there are descriptors for; raise the soft limit, as JVMs do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # refused by the system: the soft limit stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    share = soft * _CONNECTIONS_PERCENT // 100
    return UNBOUNDED if soft == resource.RLIM_INFINITY else min(UNBOUNDED, share)

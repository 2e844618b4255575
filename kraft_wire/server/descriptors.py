"""How many connections the process has descriptors for.

Files of logs need descriptors too, so the connections get a share of them. The soft limit is raised
as far as the system allows, as a JVM does.
"""

import resource
from contextlib import suppress

from kraft_wire.node.limits import UNBOUNDED

__all__ = ["connections_possible"]

_SHARE_PERCENT = 80


def connections_possible() -> int:
    """Return 80 % of the descriptors, as far as they are limited."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # refused by the system: the soft limit stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return UNBOUNDED
    return min(UNBOUNDED, soft * _SHARE_PERCENT // 100)

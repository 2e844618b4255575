"""How many connections the process has descriptors for.

Files of logs need descriptors too, so the connections get a share of them. The soft limit is raised
as far as the system allows, as a JVM does.
"""

import resource
from contextlib import suppress

__all__ = ["connections_max"]

_SHARE_PERCENT = 80


def connections_max(configured: int) -> int:
    """Return `max.connections`, but no more than 80 % of the descriptors, as far as limited."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # refused by the system: the soft limit stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return configured
    return min(configured, soft * _SHARE_PERCENT // 100)

"""Python's cyclic collector, kept away from work that makes millions of objects that stay.

Each time their number grew by a quarter it goes over all of them, which took 28 % of the time
of a metadata log's replay. Records and states hold no cycles, so there is nothing for it to find.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Run the body without the collector; leaves it as it was."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

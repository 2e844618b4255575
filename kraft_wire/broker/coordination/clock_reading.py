"""A reading of both clocks: monotonic for deadlines, wall clock for stamps on records."""

from typing import NamedTuple

from kraft_wire.broker.context import RequestContext

__all__ = ["ClockReading", "arrival_of"]


class ClockReading(NamedTuple):
    """The time of one step, handed down to everything that the step does."""

    now_ms: int
    """Monotonic: deadlines are counted from it."""
    wall_ms: int
    """Wall clock: stamps records and changes of state, and decides expiry."""


def arrival_of(context: RequestContext) -> ClockReading:
    """Return the time at which a request arrived."""
    return ClockReading(context.now_ms, context.wall_ms)

"""The two times of one step: monotonic for deadlines, wall clock for stamps on records."""

from typing import NamedTuple

from kraft_wire.broker.context import RequestContext

__all__ = ["Moment", "moment_of"]


class Moment(NamedTuple):
    """When a step happens."""

    now_ms: int
    """Monotonic: deadlines are counted from it."""
    wall_ms: int
    """Wall clock: stamps commits and state changes, and decides which offsets are too old."""


def moment_of(context: RequestContext) -> Moment:
    """Return the moment at which a request arrived."""
    return Moment(context.now_ms, context.wall_ms)

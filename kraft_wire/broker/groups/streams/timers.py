"""The timers of a streams group: sessions, time to give tasks back, and the first rebalance."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

__all__ = ["StreamsTimer", "StreamsTimerKind", "first_rebalance", "timers_of"]


class StreamsTimerKind(StrEnum):
    """The kind of a deadline; a text, because its hash is cheap."""

    SESSION = "session"
    REBALANCE = "rebalance"
    """The member must have given back what it was told to."""
    FIRST_REBALANCE = "first rebalance"
    """More members may have joined a group that was empty."""


class StreamsTimer(NamedTuple):
    """The name of a deadline."""

    kind: StreamsTimerKind
    group_id: str
    member_id: str
    """Empty for `StreamsTimerKind.FIRST_REBALANCE`."""

    @property
    def owner_id(self) -> str:
        """The group, with which all its timers are dropped."""
        return self.group_id


def timers_of(group_id: str, member_id: str) -> Iterator[StreamsTimer]:
    """Yield the names of all deadlines that a member may have."""
    yield StreamsTimer(StreamsTimerKind.SESSION, group_id, member_id)
    yield StreamsTimer(StreamsTimerKind.REBALANCE, group_id, member_id)


def first_rebalance(group_id: str) -> StreamsTimer:
    """Return the name of the end of the initial rebalance delay."""
    return StreamsTimer(StreamsTimerKind.FIRST_REBALANCE, group_id, "")

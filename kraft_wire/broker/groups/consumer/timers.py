"""The timers of a consumer group: sessions of members, and the time that they have to revoke."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

__all__ = ["ConsumerTimer", "ConsumerTimerKind", "timers_of"]


class ConsumerTimerKind(StrEnum):
    """The kind of a deadline; a text, because its hash is cheap."""

    SESSION = "session"
    REBALANCE = "rebalance"
    """The member must have revoked what it was told to."""
    JOIN = "join"
    """The classic member must have joined again."""
    SYNC = "sync"
    """The classic member must have asked for its assignment."""
    REGEX = "regex"
    """The group's regular expressions are evaluated."""


class ConsumerTimer(NamedTuple):
    """The name of a deadline."""

    kind: ConsumerTimerKind
    group_id: str
    member_id: str
    """Empty for `ConsumerTimerKind.REGEX`."""

    @property
    def owner_id(self) -> str:
        """The group, with which all its timers are dropped."""
        return self.group_id


def timers_of(group_id: str, member_id: str) -> Iterator[ConsumerTimer]:
    """Yield the names of all deadlines that a member may have."""
    return (ConsumerTimer(kind, group_id, member_id) for kind in _OF_MEMBERS)


_OF_MEMBERS: Final = (
    ConsumerTimerKind.SESSION,
    ConsumerTimerKind.REBALANCE,
    ConsumerTimerKind.JOIN,
    ConsumerTimerKind.SYNC,
)

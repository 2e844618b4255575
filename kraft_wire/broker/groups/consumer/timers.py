"""The timers of a consumer group: sessions of members, and the time that they have to revoke."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["ConsumerTimer", "ConsumerTimerKind"]


class ConsumerTimerKind(StrEnum):
    """The kind of a deadline; a text, because its hash is cheap."""

    SESSION = "session"
    REBALANCE = "rebalance"
    """The member must have revoked what it was told to."""
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

"""The timers of a classic group: sessions of members, the end of a join phase, assignments."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Timer", "TimerKind"]


class TimerKind(StrEnum):
    """The kind of a deadline; a text, because its hash is cheap."""

    MEMBER = "member"
    """The member's session is over, or the id that it was given was never used."""
    JOIN = "join"
    """The join phase ends with the members that have joined."""
    SYNC = "sync"
    """Members that have not asked for their assignment are removed."""


class Timer(NamedTuple):
    """The name of a deadline."""

    kind: TimerKind
    group_id: str
    member_id: str = ""
    """Only for `TimerKind.MEMBER`."""

    @property
    def owner_id(self) -> str:
        """The group, with which all its timers are dropped."""
        return self.group_id

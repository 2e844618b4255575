"""The timer of a share group's member: how long it may be silent."""

from typing import NamedTuple

__all__ = ["ShareSession"]


class ShareSession(NamedTuple):
    """The name of a deadline."""

    group_id: str
    member_id: str

    @property
    def owner_id(self) -> str:
        """The group, with which all its timers are dropped."""
        return self.group_id

"""Groups of other protocols that Apache's coordinator wrote to `__consumer_offsets`.

Streams groups (KIP-1071) are not served here, but their records must be kept: they stay in the log,
and the group ids stay in use while the group has members. An empty one may be deleted or become a
classic group, as in Apache's coordinator; for that every key that the group has in the log is
remembered and gets a tombstone.
"""

from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.group_types import GROUP_TYPES_OF_RECORDS, GroupType

__all__ = ["UnsupportedGroup", "unsupported_group_id"]

_INT16: Final = Struct(">h")

_MEMBER_TYPE: Final = 19
"""Record type with one record per member."""


def unsupported_group_id(key: bytes) -> str | None:
    """Return the group id that all these keys start with, after the record type."""
    if len(key) < 2 * _INT16.size:
        return None
    size = _INT16.unpack_from(key, _INT16.size)[0]
    text = key[2 * _INT16.size : 2 * _INT16.size + max(size, 0)]
    if size < 0 or len(text) != size:
        return None
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return None


@dataclass(slots=True)
class UnsupportedGroup:
    """A group that another kind of coordinator owns."""

    group_id: str
    kind: GroupType
    keys: dict[bytes, None] = field(default_factory=dict)
    """Keys of the group that have a value in the log."""
    member_count: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return self.member_count == 0

    @property
    def state_name(self) -> str:
        """The state that ListGroups shows: only whether there are members is known."""
        state = GroupState.EMPTY if self.is_empty else GroupState.STABLE
        return state.value

    @property
    def offsets_expire(self) -> bool:
        """Never: what members of streams groups read is not known."""
        return False

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member may read the topic."""
        return not self.is_empty

    def replay(self, kind: int, key: bytes, *, is_tombstone: bool) -> None:
        """Take one record of the group."""
        assert GROUP_TYPES_OF_RECORDS[kind] is self.kind, (kind, self.kind)
        known = key in self.keys
        if is_tombstone:
            self.keys.pop(key, None)
        else:
            self.keys[key] = None
        if kind == _MEMBER_TYPE:
            self.member_count += (not is_tombstone) - known

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the tombstones that remove the group from the log, latest key first."""
        return [CoordinatorRecord(key, None) for key in reversed(self.keys)]

    def release(self) -> None:
        """Do nothing: its memory is not counted."""

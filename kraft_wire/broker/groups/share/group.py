"""A share group (KIP-932): epochs, members, targets and its share partitions.

Bookkeeping only. Every change is a record, so `replay.py` and a heartbeat change a group by the
same methods, and the group is always what its log says.
"""

from collections.abc import Iterable
from enum import Enum

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.assignors.spec import Target
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.java_collections import TimelineHashMap
from kraft_wire.broker.groups.object_sizes import GROUP_BYTES, PARTITION_BYTES
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.records import group_tombstones
from kraft_wire.broker.groups.share.state_partitions import StatePartitions
from kraft_wire.metadata.image import MetadataImage, TopicImage

__all__ = ["ShareGroup", "ShareGroupState"]

_FIRST_EPOCH = 1


class ShareGroupState(Enum):
    """A state, by the name that ListGroups and ShareGroupDescribe show."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup:
    """One group; memory and the counts of subscribers always agree with its members."""

    kind = GroupType.SHARE
    offsets_expire = False
    """There are none, and a group without members stays."""

    __slots__ = (
        "_memory",
        "_seen_image",
        "_seen_topics",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "noted_at_ms",
        "safe_at",
        "size_bytes",
        "state_partitions",
        "subscribers",
        "targets",
    )

    def __init__(self, group_id: str, memory: MemoryUse) -> None:
        self._memory = memory
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        """Of the subscribed topics, when the epoch was last raised."""
        self.assignment_epoch = _FIRST_EPOCH
        """The group's epoch for which the targets were computed; -1 after their tombstone."""
        self.assignment_timestamp_ms = 0
        """Wall clock of that computation."""
        self.members: TimelineHashMap[str, ShareMember] = TimelineHashMap()
        self.subscribers: TimelineHashMap[str, int] = TimelineHashMap()
        """Topic to the number of members that subscribe to it."""
        self.targets: TimelineHashMap[str, Target] = TimelineHashMap()
        """Member id to the partitions that the member is to have."""
        self.state_partitions: StatePartitions | None = None
        """None: there is no record of them."""
        self.noted_at_ms = 0
        """When they were noted, or loaded: their initialisation is repeated some time later."""
        self.safe_at = 0
        """High watermark that commits the newest records of the group."""
        self._seen_image: MetadataImage | None = None
        self._seen_topics: dict[str, TopicImage | None] = {}
        """The group's topics when its metadata hash was last looked at."""
        self.size_bytes = 0
        self._resize(GROUP_BYTES + len(group_id))

    # --- What the group is -------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """The state that ListGroups shows."""
        state = ShareGroupState.EMPTY if self.is_empty else ShareGroupState.STABLE
        return state.value

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not len(self.members)

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return all(count == len(self.members) for count in self.subscribers.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member names the topic."""
        return topic in self.subscribers

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the tombstones that remove the group from the log, in the order of Kafka's."""
        member_ids = dict.fromkeys((*self.members, *self.targets))
        return group_tombstones(self.group_id, list(member_ids))

    def is_metadata_due(self, image: MetadataImage) -> bool:
        """Whether a topic of the group may have changed since the hash was looked at."""
        if self._seen_image is None:
            return True
        if image is self._seen_image:
            return False
        return any(image.topic(name) is not seen for name, seen in self._seen_topics.items())

    def note_metadata(self, names: Iterable[str], image: MetadataImage) -> None:
        """Note that the hash of the group's topics was looked at."""
        self._seen_image = image
        self._seen_topics = {name: image.topic(name) for name in names}

    def keep_metadata_due(self, image: MetadataImage) -> None:
        """Have a change looked at, also if it is undone before the next heartbeat."""
        if self.is_metadata_due(image):
            self._seen_image = None

    # --- Changes -----------------------------------------------------------------------------

    def put_member(self, member: ShareMember) -> None:
        """Store a member in place of the one with its id."""
        former = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(former, -1)
        self._count(member, 1)
        self._resize(member.size_bytes - (0 if former is None else former.size_bytes))

    def remove_member(self, member_id: str) -> None:
        """Drop a member, if it is there."""
        member = self.members.pop(member_id)
        if member is not None:
            self._count(member, -1)
            self._resize(-member.size_bytes)

    def put_target(self, member_id: str, target: Target) -> None:
        """Store what a member is to have."""
        former = self.targets.get(member_id)
        self.targets[member_id] = target
        self._resize(_target_bytes(target) - _target_bytes(former))

    def remove_target(self, member_id: str) -> None:
        """Drop a member's target, if it has one."""
        self._resize(-_target_bytes(self.targets.pop(member_id)))

    def put_state_partitions(self, topics: StatePartitions | None) -> None:
        """Store what the newest record says about share partitions; None: its tombstone."""
        former = self.state_partitions
        self.state_partitions = topics
        after, before = (0 if each is None else each.size_bytes for each in (topics, former))
        self._resize(after - before)

    def release(self) -> None:
        """Release the counted memory of the group, which is removed."""
        self._resize(-self.size_bytes)

    def _count(self, member: ShareMember | None, sign: int) -> None:
        """Count subscribers, as often as Apache does: the order of the map depends on it."""
        for name in () if member is None else member.subscribed_topic_names:
            count = (self.subscribers.get(name) or 0) + sign
            if count:
                self.subscribers[name] = count
            else:
                self.subscribers.pop(name)

    def _resize(self, more_bytes: int) -> None:
        self.size_bytes += more_bytes
        self._memory.add(more_bytes)


def _target_bytes(target: Target | None) -> int:
    return 0 if target is None else PARTITION_BYTES * sum(map(len, target.values()))

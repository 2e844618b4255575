"""A consumer group (KIP-848): epochs, members, targets and resolved regular expressions.

Bookkeeping only. Every change is a record, so `replay.py` and a heartbeat change a group by the
same methods, and the group is always what its log says.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.assignors.spec import Target
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.records import group_tombstones
from kraft_wire.broker.groups.consumer.regex_evaluation import RegexEvaluation
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.java_collections import TimelineHashMap
from kraft_wire.broker.groups.object_sizes import GROUP_BYTES, PARTITION_BYTES
from kraft_wire.metadata.image import MetadataImage, TopicImage
from kraft_wire.model import Uuid

__all__ = ["ConsumerGroup", "ConsumerGroupState"]

_FIRST_EPOCH = 1


class ConsumerGroupState(Enum):
    """A state, by the name that ListGroups and ConsumerGroupDescribe show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target is older than the group's epoch."""
    RECONCILING = "Reconciling"
    """A member does not have all of its target yet."""
    STABLE = "Stable"


class ConsumerGroup:
    """One group; memory and static members always agree with its members."""

    kind = GroupType.CONSUMER
    offsets_expire = True

    __slots__ = (
        "_holders",
        "_memory",
        "_seen_image",
        "_seen_topics",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "assignor_users",
        "epoch",
        "evaluation",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "regex_users",
        "regexes",
        "safe_at",
        "size_bytes",
        "static_members",
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
        self.members: TimelineHashMap[str, ConsumerMember] = TimelineHashMap()
        self._holders: dict[tuple[Uuid, int], int] = {}
        self.static_members: dict[str, str] = {}
        """Group instance id to member id."""
        self.targets: TimelineHashMap[str, Target] = TimelineHashMap()
        """Member id to the partitions that the member is to have."""
        self.assignor_users: TimelineHashMap[str, int] = TimelineHashMap()
        """Server assignor to the number of members that ask for it."""
        self.regex_users: TimelineHashMap[str, int] = TimelineHashMap()
        """Regular expression to the number of members that use it."""
        self.regexes: TimelineHashMap[str, ResolvedRegex] = TimelineHashMap()
        self.has_partition_metadata = False
        """Whether the log has a ConsumerGroupPartitionMetadata record, which Kafka 4.0 wrote.

        No release since reads it.
        """
        self.evaluation: RegexEvaluation | None = None
        """The run that finds the topics of the regular expressions, until it is done."""
        self.safe_at = 0
        """High watermark that commits the newest records of the group."""
        self._seen_image: MetadataImage | None = None
        self._seen_topics: dict[str, TopicImage | None] = {}
        """The group's topics when its metadata hash was last looked at."""
        self.size_bytes = 0
        self._resize(GROUP_BYTES + len(group_id))

    # --- What the group is -------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        """How far the group is on its way to the newest assignment."""
        if not len(self.members):
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        """The state that ListGroups shows."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not len(self.members)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member names the topic, or has a regular expression that matched it."""
        return any(topic in each.subscribed_topic_names for each in self.members.values()) or any(
            topic in each.topics for each in self.regexes.values()
        )

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the tombstones that remove the group from the log, in the order of Kafka's."""
        member_ids = dict.fromkeys((*self.members, *self.targets))
        return group_tombstones(self.group_id, list(member_ids), list(self.regexes))

    def is_metadata_due(self, image: MetadataImage) -> bool:
        """Whether a topic of the group changed since the hash was looked at.

        A change that is undone counts, too, once it was seen: the hash may have it.
        """
        if image is self._seen_image:
            return False
        if any(image.topic(name) is not seen for name, seen in self._seen_topics.items()):
            self._seen_image = None
        return self._seen_image is None

    def note_metadata(self, names: Iterable[str], image: MetadataImage) -> None:
        """Note that the hash of the group's topics was looked at."""
        self._seen_image = image
        self._seen_topics = {name: image.topic(name) for name in names}

    def holders(self) -> Mapping[tuple[Uuid, int], int]:
        """Return the partitions that members have, or must still give up, and how often each.

        It is kept with each change of a member: each step of each member asks for it.
        """
        return self._holders

    # --- Changes -----------------------------------------------------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        """Store a member in place of the one with its id."""
        former = self.members.get(member.member_id)
        self._count(former, -1)
        self._count(member, 1)
        if former is None or _held_by(former) != _held_by(member):
            self._hold(former, -1)
            self._hold(member, 1)
        self._resize(member.size_bytes - (0 if former is None else former.size_bytes))
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        """Drop a member; a member that took its instance over keeps the instance."""
        member = self.members.pop(member_id)
        if member is None:
            return
        self._count(member, -1)
        self._hold(member, -1)
        self._resize(-member.size_bytes)
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def put_target(self, member_id: str, target: Target) -> None:
        """Store what a member is to have."""
        self.remove_target(member_id)
        self.targets[member_id] = target
        self._resize(_target_bytes(target))

    def remove_target(self, member_id: str) -> None:
        """Drop a member's target, if it has one."""
        former = self.targets.pop(member_id)
        self._resize(0 if former is None else -_target_bytes(former))

    def put_regex(self, regex: str, resolved: ResolvedRegex) -> None:
        """Store the topics of a regular expression."""
        self.remove_regex(regex)
        self.regexes[regex] = resolved
        self._resize(resolved.size_bytes)

    def remove_regex(self, regex: str) -> None:
        """Drop a regular expression, if it is there."""
        former = self.regexes.pop(regex)
        self._resize(0 if former is None else -former.size_bytes)

    def release(self) -> None:
        """Release the counted memory of the group, which is removed."""
        self._resize(-self.size_bytes)

    def _count(self, member: ConsumerMember | None, sign: int) -> None:
        """Count what a member uses, as often as Apache does: the order of maps depends on it."""
        if member is None:
            return
        used = (
            (self.assignor_users, member.server_assignor),
            (self.regex_users, member.subscribed_topic_regex or None),
        )
        for users, name in used:
            if name is None:
                continue
            count = (users.get(name) or 0) + sign
            assert count >= 0, (self.group_id, name)
            if count:
                users[name] = count
            else:
                users.pop(name)

    def _hold(self, member: ConsumerMember | None, sign: int) -> None:
        """Count the partitions of a member among those that are held."""
        for place in () if member is None else _held_by(member):
            count = self._holders.get(place, 0) + sign
            assert count >= 0, (self.group_id, place)
            if count:
                self._holders[place] = count
            else:
                del self._holders[place]

    def _resize(self, more_bytes: int) -> None:
        self.size_bytes += more_bytes
        self._memory.add(more_bytes)


def _held_by(member: ConsumerMember) -> list[tuple[Uuid, int]]:
    return [
        (topic_id, partition)
        for topics in (member.assigned, member.pending_revocation)
        for topic_id, partitions in topics.items()
        for partition in partitions
    ]


def _target_bytes(target: Target) -> int:
    return PARTITION_BYTES * sum(map(len, target.values()))

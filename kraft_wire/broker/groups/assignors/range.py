"""The `range` assignor: the partitions of each topic in a row, to its subscribers in a fixed order.

Static members come first, by instance id, then the others by member id. Members with the same
subscriptions get the same partitions of each topic, so topics can be joined by key.
"""

from dataclasses import dataclass

from kraft_wire.broker.groups.assignors.spec import GroupSpec, MemberSpec, Target
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_order
from kraft_wire.model import Uuid

__all__ = ["assign"]


@dataclass(slots=True)
class _Topic:
    """A topic whose partitions are handed out from the first to the last."""

    partition_count: int
    subscriber_count: int = 0
    next_partition: int = 0
    served_count: int = 0
    """How many subscribers have their part."""

    def take(self) -> tuple[int, ...]:
        """Return the part of the next subscriber; the first ones get one partition more."""
        quota, extra_count = divmod(self.partition_count, self.subscriber_count)
        start = self.next_partition
        self.next_partition += quota + (self.served_count < extra_count)
        self.served_count += 1
        return tuple(range(start, self.next_partition))


def assign(group: GroupSpec) -> dict[str, Target]:
    """Return the targets of all members; they do not depend on former ones."""
    members = sorted(group.members.items(), key=_order)
    subscriptions = [
        (member_id, (members[0][1] if group.is_homogeneous else member).topic_ids, member)
        for member_id, member in members
    ]
    topics: dict[Uuid, _Topic] = {}
    for _, topic_ids, _ in subscriptions:
        for topic_id in topic_ids:
            topic = topics.setdefault(topic_id, _Topic(group.partition_counts[topic_id]))
            topic.subscriber_count += 1
    targets: dict[str, Target] = {}
    for member_id, topic_ids, member in subscriptions:
        topic_count = len(topic_ids) if group.is_homogeneous else member.names_count
        made: JavaHashMap[Uuid, tuple[int, ...]] = JavaHashMap(int(topic_count / 0.75 + 1))
        for topic_id in topic_ids:
            taken = topics[topic_id].take()
            if taken:
                made[topic_id] = taken
        targets[member_id] = dict(made.items())
    return targets


def _order(entry: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    member_id, member = entry
    text = member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, java_order(text)

"""The range assignor and the consumer protocol's messages (KIP-62): values in, values out.

Each topic's partitions, in order, are divided among the members that subscribe to it, in the order
of their ids; the first members get one more where the division leaves a rest.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated import consumer_protocol_assignment as assignment
from kraft_wire.wire.generated.consumer_protocol_subscription import ConsumerProtocolSubscription

__all__ = [
    "assigned_by_range",
    "assignment_bytes",
    "assignment_of_bytes",
    "subscription_bytes",
    "topics_of_subscription",
]

_VERSION: Final = 0
_VERSION_BYTES: Final = 2


def assigned_by_range(
    subscriptions: Mapping[str, Sequence[str]], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each member, from its topics and the partition counts of topics."""
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in sorted(subscriptions)}
    for topic in sorted(partitions):
        members = [member for member in assigned if topic in subscriptions[member]]
        begin = 0
        for number, member in enumerate(members):
            each, rest = divmod(partitions[topic], len(members))
            end = begin + each + (number < rest)
            assigned[member] += [TopicPartition(topic, index) for index in range(begin, end)]
            begin = end
    return assigned


def subscription_bytes(topics: Sequence[str]) -> bytes:
    """Return a member's metadata: a version and the subscription."""
    message = ConsumerProtocolSubscription(topics=list(topics))
    return _VERSION.to_bytes(_VERSION_BYTES, "big") + bytes(message.encode(_VERSION))


def topics_of_subscription(data: bytes | memoryview) -> list[str]:
    """Read a member's topics. Errors: MalformedMessage."""
    version = min(_version_of(data), ConsumerProtocolSubscription.MAX_VERSION)
    found, _ = ConsumerProtocolSubscription.decode(memoryview(data), version, _VERSION_BYTES)
    return found.topics


def assignment_bytes(partitions: Sequence[TopicPartition]) -> bytes:
    """Return a member's assignment: a version and the partitions by topic."""
    topics: dict[str, list[int]] = {}
    for key in partitions:
        topics.setdefault(key.topic, []).append(key.partition)
    message = assignment.ConsumerProtocolAssignment(
        assigned_partitions=[
            assignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in topics.items()
        ]
    )
    return _VERSION.to_bytes(_VERSION_BYTES, "big") + bytes(message.encode(_VERSION))


def assignment_of_bytes(data: bytes | memoryview) -> list[TopicPartition]:
    """Read a member's assignment; an empty one has no partitions. Errors: MalformedMessage."""
    if not data:
        return []
    version = min(_version_of(data), assignment.ConsumerProtocolAssignment.MAX_VERSION)
    found, _ = assignment.ConsumerProtocolAssignment.decode(
        memoryview(data), version, _VERSION_BYTES
    )
    return sorted(
        TopicPartition(topic.topic, index)
        for topic in found.assigned_partitions
        for index in topic.partitions
    )


def _version_of(data: bytes | memoryview) -> int:
    return max(int.from_bytes(data[:_VERSION_BYTES], "big", signed=True), _VERSION)

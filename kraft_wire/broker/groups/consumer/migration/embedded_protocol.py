"""What consumers put into classic requests: subscriptions and assignments (ConsumerProtocol).

Opaque to a classic group; a consumer group with classic members reads and writes it. The bytes are
an int16 version and the struct of that version; a newer version is read as the newest known one.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final

from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from kraft_wire.wire.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraft_wire.wire.message import MalformedMessage

__all__ = [
    "assignment_of",
    "encoded_assignment",
    "owned_partitions",
    "partitions_by_id",
    "subscription_of",
    "version_of",
]

_VERSION: Final = Struct(">h")


def version_of(data: bytes) -> int:
    """Return the version of the bytes; MalformedMessage for too few or a negative version."""
    if len(data) < _VERSION.size:
        raise MalformedMessage("version", 0, f"{len(data)} bytes")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage("version", 0, f"version {version}")
    return version


def subscription_of(data: bytes) -> ConsumerProtocolSubscription:
    """Return a member's subscription; MalformedMessage."""
    version = min(version_of(data), ConsumerProtocolSubscription.MAX_VERSION)
    return ConsumerProtocolSubscription.decode(data, version, _VERSION.size)[0]


def assignment_of(data: bytes) -> ConsumerProtocolAssignment:
    """Return a member's assignment; MalformedMessage."""
    version = min(version_of(data), ConsumerProtocolAssignment.MAX_VERSION)
    return ConsumerProtocolAssignment.decode(data, version, _VERSION.size)[0]


def encoded_assignment(
    topics: Mapping[Uuid, Iterable[int]], version: int, image: MetadataImage
) -> bytes:
    """Return an assignment as bytes; topics that do not exist are left out."""
    assigned = []
    for topic_id, partitions in topics.items():
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            assigned.append(TopicPartition(topic=topic.name, partitions=list(partitions)))
    written = min(version, ConsumerProtocolAssignment.MAX_VERSION)
    body = ConsumerProtocolAssignment(assigned_partitions=assigned).encode(written)
    return _VERSION.pack(written) + bytes(body)


def partitions_by_id(
    assignment: ConsumerProtocolAssignment, image: MetadataImage
) -> JavaHashMap[Uuid, tuple[int, ...]]:
    """Return the partitions of an assignment by topic id, as far as topics exist; each once."""
    found: JavaHashMap[Uuid, tuple[int, ...]] = JavaHashMap()
    for each in assignment.assigned_partitions:
        topic = image.topic(each.topic)
        if topic is not None:
            capacity = max(int(len(each.partitions) / 0.75) + 1, 16)
            found[topic.topic_id] = tuple(java_hash_set(each.partitions, capacity))
    return found


def owned_partitions(
    subscription: ConsumerProtocolSubscription, image: MetadataImage
) -> dict[Uuid, list[int]]:
    """Return the partitions that a member says it owns, as far as topics exist."""
    owned: dict[Uuid, list[int]] = {}
    for each in subscription.owned_partitions:
        topic = image.topic(each.topic)
        if topic is not None:
            owned.setdefault(topic.topic_id, []).extend(each.partitions)
    return owned

"""Share groups whose start offsets are asked about, changed or deleted."""

from __future__ import annotations

from kraft_wire.broker.share_persister import SharePartitionKey
from tests.broker.groups.harness import Harness, topic_id_of
from tests.broker.groups.test_share_group_heartbeat import leaving, send, sharing

UNKNOWN = "This server does not host this topic-partition."


def left(partitions: int = 2) -> Harness:
    """Return a group whose only member has left, with initialised partitions."""
    harness = sharing("member", partitions=partitions)
    send(harness, leaving())
    return harness


def key(number: int, group_id: str = "group") -> SharePartitionKey:
    return SharePartitionKey(group_id, topic_id_of("topic"), number)

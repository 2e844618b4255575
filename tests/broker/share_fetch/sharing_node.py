"""A whole node with its share coordinator, whose cluster has share groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
)
from kraft_wire.model import Offset
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kraft_wire.wire.generated.share_fetch import (
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from tests.node.quotas.throttled_node import TOPIC, ThrottledDoor

VERSION = 2


class SharingDoor(ThrottledDoor):
    """One node whose cluster has share groups, and a group `g` that begins at offset 0."""

    def __init__(self, consumer_byte_rate: float | None = None) -> None:
        super().__init__(
            share_coordinator_state_topic_num_partitions="1",
            share_coordinator_state_topic_replication_factor="1",
            share_coordinator_state_topic_min_isr="1",
        )
        broker = self.node.broker
        topic = broker.image.topic(TOPIC)
        assert topic is not None
        self.key = SharePartitionKey("g", topic.topic_id, 0)
        results: list[PersisterResult] = []
        broker.share_persister.initialize(
            {self.key: InitialShareState(1, Offset(0))},
            ClockReading(self.now_ms, self.wall_ms),
            lambda found, at: results.extend(found.values()),
        )
        self.advance(5_000)
        assert [each.error for each in results] == [ErrorCode.NONE]
        self.set_quota("consumer_byte_rate", consumer_byte_rate)

    def share_fetch(self, member: str, epoch: int, *, connection: int, max_wait_ms: int = 0) -> Any:
        """Send one ShareFetch; return its reply."""
        partition = FetchPartition(partition_index=0)
        topic = FetchTopic(topic_id=self.key.topic_id, partitions=[partition])
        request = ShareFetchRequest(
            group_id="g",
            member_id=member,
            share_session_epoch=epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=100,
            batch_size=100,
            topics=[topic] if epoch == 0 else [],
        )
        return self.send(request, VERSION, connection=connection)

    def acknowledge(
        self, member: str, epoch: int, asked: Sequence[tuple[int, int, int]], *, connection: int
    ) -> Any:
        """Acknowledge ranges, each with its first and last offset and type; return the reply."""
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
            for first, last, kind in asked
        ]
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id=member,
            share_session_epoch=epoch,
            topics=[AcknowledgeTopic(topic_id=self.key.topic_id, partitions=[partition])],
        )
        return self.send(request, VERSION, connection=connection)


def ranges(reply: Any) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count, for each acquired range."""
    assert reply.response is not None, "it waits"
    assert reply.response.error_code == ErrorCode.NONE
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in reply.response.responses
        for data in topic.partitions
        for each in data.acquired_records
    ]

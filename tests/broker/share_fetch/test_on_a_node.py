"""Share groups on a whole node: its share coordinator, frames, quotas and closed connections."""

from __future__ import annotations

from dataclasses import replace
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
from kraft_wire.wire.records.record_batch import parse_batches
from tests.node.quotas.throttled_node import CONSUMER, TOPIC, ThrottledDoor

VERSION = 2
OTHER = 9
"""A connection."""


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
        features = {**broker.image.finalized_features, "share.version": 1}
        broker.image = replace(broker.image, finalized_features=features)

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

    def acknowledge(self, member: str, epoch: int, last: int, *, connection: int) -> Any:
        """Accept the records from 0 on; return the reply."""
        batch = AcknowledgementBatch(first_offset=0, last_offset=last, acknowledge_types=[1])
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
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


def test_records_leave_as_parts_of_the_log_and_their_state_is_kept() -> None:
    """932-FETCH-07, 932-ACK-06, 932-REC-14: also for the next share partition of this leader."""
    node = SharingDoor()
    for _ in range(3):
        node.produce(100)
    first = node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    assert ranges(first) == [(0, 2, 1)]
    records = first.response.responses[0].partitions[0].records
    assert [each.base_offset for each in parse_batches(bytes(records))] == [0, 1, 2]
    done = node.acknowledge("m", 1, 1, connection=CONSUMER)
    node.advance(100)
    assert done.response.responses[0].partitions[0].error_code == ErrorCode.NONE
    node.close(CONSUMER)
    node.settle()
    again = node.share_fetch("other", 0, connection=OTHER)
    node.advance(100)
    assert ranges(again) == [(2, 2, 2)]


def test_closed_connection_without_a_request_releases_its_records() -> None:
    """932-FETCH-11: the fetch of another member that waits gets them at once."""
    node = SharingDoor()
    node.produce(100)
    held = node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    assert ranges(held) == [(0, 0, 1)]
    waiting = node.share_fetch("other", 0, connection=OTHER, max_wait_ms=20_000)
    node.advance(100)
    assert waiting.response is None
    node.close(CONSUMER)
    node.advance(100)
    assert ranges(waiting) == [(0, 0, 2)]


def test_share_fetch_counts_against_the_quota_of_fetches() -> None:
    """932-FETCH-13: its answer is empty, and the connection is muted."""
    node = SharingDoor(consumer_byte_rate=100)
    node.produce(9_000)
    reply = node.share_fetch("m", 0, connection=CONSUMER, max_wait_ms=500)
    node.advance(100)
    assert reply.response.throttle_time_ms > 0
    assert reply.response.responses == []
    assert CONSUMER in node.muted

"""Who may commit offsets by which epoch: KIP-1251, as `ConsumerGroup.validateOffsetCommit`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.groups.consumer.offset_checks import check_commit
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.groups.harness import Harness, topic_id_of
from tests.broker.groups.requests import committed
from tests.broker.groups.test_consumer_group_heartbeat import group_in, joining, send, with_topic

OK, STALE = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH
MEMBER_EPOCH = 9
ASSIGNED = {0: 4, 1: 7}
"""Partition -> the epoch since which the member has it."""
REVOKED = {2: 5}


def had_since(epochs: dict[int, int]) -> JavaHashMap[Uuid, JavaHashMap[int, int]]:
    partitions: JavaHashMap[int, int] = JavaHashMap()
    for partition, epoch in epochs.items():
        partitions[partition] = epoch
    found: JavaHashMap[Uuid, JavaHashMap[int, int]] = JavaHashMap()
    found[topic_id_of("topic")] = partitions
    return found


def with_member() -> Harness:
    """Return a group whose member has had its partitions since different epochs."""
    harness = with_topic()
    send(harness, joining())
    group = group_in(harness)
    member = replace(
        group.members["member"],
        member_epoch=MEMBER_EPOCH,
        assigned=had_since(ASSIGNED),
        pending_revocation=had_since(REVOKED),
    )
    group.members["member"] = member  # type: ignore[index]  # beside its log
    return harness


def error_of(epoch: int, *partitions: int, topic: str = "topic") -> ErrorCode:
    """Commit as the member, and with an epoch."""
    group = group_in(with_member())
    topics = [
        OffsetCommitRequestTopic(
            topic_id=topic_id_of(topic),
            partitions=[OffsetCommitRequestPartition(partition_index=at) for at in partitions],
        )
    ]
    request = OffsetCommitRequest(
        group_id="group", member_id="member", generation_id_or_member_epoch=epoch, topics=topics
    )
    return check_commit(group, request, topics, 10, is_transactional=False)


@pytest.mark.parametrize(("partition", "since"), [*ASSIGNED.items(), *REVOKED.items()])
def test_partition_is_committed_from_the_epoch_on_since_which_the_member_has_it(
    partition: int, since: int
) -> None:
    found = {epoch: error_of(epoch, partition) for epoch in range(-1, MEMBER_EPOCH + 2)}
    right = {epoch: OK if since <= epoch <= MEMBER_EPOCH else STALE for epoch in found}
    assert found == right


def test_one_partition_refuses_all() -> None:
    assert [error_of(epoch, 0, 1, 2) for epoch in (6, 7)] == [STALE, OK]
    assert [error_of(epoch, 1, 2, 0) for epoch in (6, 7)] == [STALE, OK]


@pytest.mark.parametrize("epoch", [0, 7, MEMBER_EPOCH - 1])
def test_partition_that_the_member_does_not_have_needs_its_own_epoch(epoch: int) -> None:
    assert error_of(epoch, 3) == STALE
    assert error_of(epoch, 0, topic="another") == STALE
    assert error_of(MEMBER_EPOCH, 3) == OK
    assert error_of(MEMBER_EPOCH, 0, topic="another") == OK


def test_an_epoch_refuses_no_partition_that_its_metadata_refuses() -> None:
    """`OffsetMetadataManager.commitOffset` looks at the metadata of each partition first."""
    harness = with_member()
    harness.create_topic("topic", 5)
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=at, committed_offset=5, committed_metadata=note
        )
        for at, note in ((0, "short"), (3, "m" * 4_097))
    ]
    request = OffsetCommitRequest(
        group_id="group",
        member_id="member",
        generation_id_or_member_epoch=7,
        topics=[OffsetCommitRequestTopic(name="topic", partitions=partitions)],
    )
    (topic,) = harness.send(request, 9).response.topics
    found = {each.partition_index: each.error_code for each in topic.partitions}
    assert found == {0: OK, 3: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert committed(harness) == {("topic", 0): 5}

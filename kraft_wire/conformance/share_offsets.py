"""Start offsets of share groups (KIP-932), for the cases about them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.requests import batch, written
from kraft_wire.conformance.share_members import (
    LEAVE_EPOCH,
    ask_about_shares,
    heartbeat,
    member_epoch,
    share_group,
)
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.wire.generated import alter_share_group_offsets as altering
from kraft_wire.wire.generated import describe_share_group_offsets as describing
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatResponse

__all__ = [
    "NO_OFFSET",
    "alter_offsets",
    "describe_offsets",
    "empty_group",
    "expect_start_offset",
    "set_start_offset",
]

NO_OFFSET: Final = -1
"""The start offset, or the lag, of a share partition that has none yet."""


@contextmanager
def empty_group(broker: Subject) -> Iterator[tuple[str, Topic]]:
    """Write 3 records for a new group whose only member has left.

    Returns the group's id and the topic.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a", b"b", b"c"))
    with share_group(broker) as group_id:
        member_epoch(broker, group_id, topic)
        broker.prepare(heartbeat(group_id, LEAVE_EPOCH), ShareGroupHeartbeatResponse)
        yield group_id, topic


def describe_offsets(
    group_id: str, topics: Sequence[str] | None
) -> DescribeShareGroupOffsetsRequest:
    """Return the question about partition 0 of some topics of a group, or about all it has."""
    named = None
    if topics is not None:
        named = [
            describing.DescribeShareGroupOffsetsRequestTopic(topic_name=each, partitions=[0])
            for each in topics
        ]
    group = describing.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=named)
    return DescribeShareGroupOffsetsRequest(groups=[group])


def alter_offsets(group_id: str, *changes: tuple[str, int, int]) -> AlterShareGroupOffsetsRequest:
    """Return the request that sets start offsets, each a topic, a partition and its offset."""
    topics = [
        altering.AlterShareGroupOffsetsRequestTopic(
            topic_name=topic,
            partitions=[
                altering.AlterShareGroupOffsetsRequestPartition(
                    partition_index=partition, start_offset=offset
                )
            ],
        )
        for topic, partition, offset in changes
    ]
    return AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)


def set_start_offset(broker: Subject, group_id: str, topic: Topic, offset: int) -> None:
    """Set the start offset of partition 0, as a preparation."""
    request = alter_offsets(group_id, (topic.name, 0, offset))
    answer = broker.prepare(request, AlterShareGroupOffsetsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, "responses[0].partitions[0].error_code", ErrorCode.NONE)


def expect_start_offset(
    broker: Subject,
    version: int,
    group_id: str,
    topic: Topic,
    offset: int,
    lag: int,
    *moved_on: int,
) -> None:
    """State where partition 0 begins; the lag is known from version 1 on. Errors: Mismatch.

    `moved_on` are other starts that a broker may show, which Apache Kafka does not.
    """
    request = describe_offsets(group_id, [topic.name])
    answer = ask_about_shares(broker, request, version, DescribeShareGroupOffsetsResponse)
    expect.error(answer, "groups[0].error_code", ErrorCode.NONE)
    expect.equal(answer, "groups[0].topics[0].topic_name", topic.name)
    expect.equal(answer, "groups[0].topics[0].topic_id", topic.topic_id)
    partition = "groups[0].topics[0].partitions[0]"
    expect.error(answer, f"{partition}.error_code", ErrorCode.NONE)
    expect.equal(answer, f"{partition}.partition_index", 0)
    seen = expect.at(answer, f"{partition}.start_offset")
    starts = (offset, *moved_on)
    expect.one_of(answer, f"{partition}.start_offset", *starts)
    expect.as_release(seen == offset, str(offset), seen, f"{partition}.start_offset")
    expect.equal(answer, f"{partition}.lag", lag if version >= 1 else NO_OFFSET)

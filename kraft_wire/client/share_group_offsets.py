"""Start offsets of a share group: read, set, deleted from outside the group (KIP-932, KIP-1226)."""

from collections.abc import Mapping
from typing import NamedTuple

from kraft_wire.client.cluster import the_only
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)

__all__ = [
    "ShareOffset",
    "alter_share_offsets",
    "delete_share_offsets",
    "share_offsets",
]


class ShareOffset(NamedTuple):
    """How far a share group has read a partition."""

    start_offset: int | None
    """The first record that is not final; None until a member has read the partition."""
    lag: int | None
    """Records that are not final; None if unknown, as always from brokers before 4.2."""


def share_offsets(coordinator: GroupCoordinator) -> dict[TopicPartition, ShareOffset]:
    """Return the offsets of all partitions that the group knows. Errors: AdminRefused."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id=coordinator.group, topics=None)
    answer = coordinator.send(
        DescribeShareGroupOffsetsRequest(groups=[group]),
        DescribeShareGroupOffsetsResponse,
        lambda each: the_only(each.groups, "groups").error_code,
    )
    found = the_only(answer.groups, "groups")
    if found.error_code:
        raise AdminRefused(f"group {coordinator.group}", found.error_code, found.error_message)
    offsets = {}
    for topic in found.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.topic_name, each.partition_index)
            if each.error_code:
                what = f"group {coordinator.group}: {key}"
                raise AdminRefused(what, each.error_code, each.error_message)
            offsets[key] = ShareOffset(_known(each.start_offset), _known(each.lag))
    return offsets


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def alter_share_offsets(
    coordinator: GroupCoordinator, offsets: Mapping[TopicPartition, int]
) -> None:
    """Set start offsets of a group without members; one that is missing is created.

    Errors: AdminRefused with the first refusal; other partitions may have been set.
    """
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for key, offset in offsets.items():
        each = AlterShareGroupOffsetsRequestPartition(
            partition_index=key.partition, start_offset=offset
        )
        topics.setdefault(key.topic, []).append(each)
    request = AlterShareGroupOffsetsRequest(
        group_id=coordinator.group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )
    answer = coordinator.send(request, AlterShareGroupOffsetsResponse, lambda each: each.error_code)
    if answer.error_code:
        raise AdminRefused(f"group {coordinator.group}", answer.error_code, answer.error_message)
    for topic in answer.responses:
        for result in topic.partitions:
            if result.error_code:
                key = TopicPartition(topic.topic_name, result.partition_index)
                what = f"group {coordinator.group}: {key}"
                raise AdminRefused(what, result.error_code, result.error_message)


def delete_share_offsets(coordinator: GroupCoordinator, topic: str) -> None:
    """Delete the offsets of a topic from a group without members. Errors: AdminRefused."""
    request = DeleteShareGroupOffsetsRequest(
        group_id=coordinator.group,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic)],
    )
    answer = coordinator.send(
        request, DeleteShareGroupOffsetsResponse, lambda each: each.error_code
    )
    if answer.error_code:
        raise AdminRefused(f"group {coordinator.group}", answer.error_code, answer.error_message)
    for each in answer.responses:
        if each.error_code:
            what = f"group {coordinator.group}: {topic}"
            raise AdminRefused(what, each.error_code, each.error_message)

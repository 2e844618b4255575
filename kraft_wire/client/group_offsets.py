"""Committed offsets of a group, read, written and deleted (KIP-98, KIP-211, KIP-496)."""

from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.client.cluster import ClusterRefused
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

__all__ = ["commit_offsets", "committed_offsets", "delete_offsets"]

_FETCH_VERSION_MAX: Final = 7
"""The last that asks for one group."""
_COMMIT_VERSION_MAX: Final = 9
"""The last that carries topic names."""
_NO_GENERATION: Final = -1


def committed_offsets(
    coordinator: GroupCoordinator, keys: Sequence[TopicPartition] | None
) -> dict[TopicPartition, int]:
    """Return the committed offsets of partitions; None means all partitions that have one.

    Errors: ClusterRefused.
    """
    topics: dict[str, list[int]] = {}
    for key in keys or ():
        topics.setdefault(key.topic, []).append(key.partition)
    request = OffsetFetchRequest(
        group_id=coordinator.group,
        topics=None
        if keys is None
        else [
            OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in topics.items()
        ],
    )
    answer = coordinator.send(
        request, OffsetFetchResponse, lambda each: each.error_code, at_most=_FETCH_VERSION_MAX
    )
    if answer.error_code:
        raise ClusterRefused(f"group {coordinator.group}: {error_name(answer.error_code)}")
    found = {}
    for topic in answer.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                raise ClusterRefused(
                    f"group {coordinator.group}: {key}: {error_name(each.error_code)}"
                )
            if each.committed_offset >= 0:
                found[key] = each.committed_offset
    return found


def commit_offsets(
    coordinator: GroupCoordinator,
    offsets: Mapping[TopicPartition, int],
    generation_id: int = _NO_GENERATION,
    member_id: str = "",
) -> int:
    """Commit as a member, or from outside a group without members; return the first error code."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for key, offset in offsets.items():
        each = OffsetCommitRequestPartition(
            partition_index=key.partition, committed_offset=offset, committed_metadata=""
        )
        topics.setdefault(key.topic, []).append(each)
    request = OffsetCommitRequest(
        group_id=coordinator.group,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )
    answer = coordinator.send(
        request, OffsetCommitResponse, _first_refusal, at_most=_COMMIT_VERSION_MAX
    )
    return _first_refusal(answer)


def _first_refusal(answer: OffsetCommitResponse) -> int:
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    return next((code for code in codes if code), 0)


def delete_offsets(coordinator: GroupCoordinator, keys: Sequence[TopicPartition]) -> None:
    """Delete committed offsets that no member is subscribed to; missing ones do not matter.

    Errors: AdminRefused with the first refusal; other offsets may have been deleted.
    """
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for key in keys:
        each = OffsetDeleteRequestPartition(partition_index=key.partition)
        topics.setdefault(key.topic, []).append(each)
    request = OffsetDeleteRequest(
        group_id=coordinator.group,
        topics=[
            OffsetDeleteRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )
    answer = coordinator.send(request, OffsetDeleteResponse, lambda each: each.error_code)
    if answer.error_code:
        raise AdminRefused(f"group {coordinator.group}", answer.error_code, None)
    for topic in answer.topics:
        for result in topic.partitions:
            if result.error_code:
                key = TopicPartition(topic.name, result.partition_index)
                raise AdminRefused(f"group {coordinator.group}: {key}", result.error_code, None)

"""Partitions of topics as brokers describe them: replicas, ISR, ELR, and reassignments.

It uses DescribeTopicPartitions (75, KIP-966) if the broker serves it, page by page; else Metadata,
which has no eligible leader replicas. AlterPartitionReassignments and ListPartitionReassignments
(45, 46, KIP-455) are for reassignments. A partition lacks replicas when its ISR is smaller than its
replicas without those that are being added, as `kafka-topics` counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kraft_wire.cli.topics.admin import AdminRefused, id_text
from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

__all__ = ["DescribedPartition", "DescribedTopic", "described", "reassign"]

_Moves: TypeAlias = dict[TopicPartition, tuple[list[int], list[int]]]
"""The replicas that are being added, and those being removed."""

_PAGE_PARTITIONS = 2_000
"""A broker's default maximum of partitions per response."""
_TIMEOUT_MS = 60_000
_CONTROLLER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """One partition."""

    partition: int
    leader: int
    """-1 without one."""
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int] | None
    """Eligible leader replicas; None if the broker does not report it."""
    last_known_elr: list[int] | None
    offline: list[int]
    error: str | None
    adding: list[int] | None
    """Replicas that a reassignment adds; None if no controller answered."""
    removing: list[int] | None

    @property
    def is_under_replicated(self) -> bool:
        """Whether the ISR lacks a replica that is not just being added."""
        return len(self.isr) < len(self.replicas) - len(self.adding or ())


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """One topic."""

    name: str
    topic_id: str | None
    internal: bool
    partitions: list[DescribedPartition]


def described(connection: BrokerConnection, names: Sequence[str]) -> list[DescribedTopic]:
    """Return the named topics, or all of them, in name order. Errors: AdminRefused for one.

    Only the active controller knows reassignments. It is asked last, with a short timeout: the
    partitions are returned even without a controller.
    """
    try:
        connection.version_of(DescribeTopicPartitionsRequest())
    except BrokerConnectionError:
        found = _by_metadata(connection, names)
    else:
        found = _by_pages(connection, names)
    moves = _moves(connection)
    for topic in found:
        for number, each in enumerate(topic.partitions):
            key = TopicPartition(topic.name, each.partition)
            if moves is None or key in moves:
                adding, removing = (None, None) if moves is None else moves[key]
                topic.partitions[number] = replace(each, adding=adding, removing=removing)
    return found


def reassign(
    connection: BrokerConnection, topic: str, wanted: Mapping[int, list[int] | None]
) -> list[AdminRefused]:
    """Request other replicas, or with None cancel a reassignment; return the refusals."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(partition_index=partition, replicas=replicas)
                    for partition, replicas in wanted.items()
                ],
            )
        ],
    )
    answer = connection.send(request, AlterPartitionReassignmentsResponse)
    if answer.error_code:
        raise AdminRefused(f"topic {topic}", answer.error_code, answer.error_message)
    return [
        AdminRefused(f"{topic}-{each.partition_index}", each.error_code, each.error_message)
        for result in answer.responses
        for each in result.partitions
        if each.error_code
    ]


def _moves(connection: BrokerConnection) -> _Moves | None:
    """Return the replicas being added and removed; None without a response."""
    request = ListPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=None)
    connection.wait_at_most(_CONTROLLER_SECONDS)
    try:
        answer = connection.send(request, ListPartitionReassignmentsResponse)
    except BrokerConnectionError:
        return None
    if answer.error_code:
        return None
    return {
        TopicPartition(topic.name, each.partition_index): (
            list(each.adding_replicas),
            list(each.removing_replicas),
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def _by_metadata(connection: BrokerConnection, names: Sequence[str]) -> list[DescribedTopic]:
    asked = [MetadataRequestTopic(name=name) for name in names] if names else None
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    found = []
    for topic in connection.send(request, MetadataResponse).topics:
        name = topic.name or ""
        _check(name, topic.error_code)
        partitions = [_partition(each) for each in topic.partitions]
        partitions.sort(key=lambda each: each.partition)
        found.append(DescribedTopic(name, id_text(topic.topic_id), topic.is_internal, partitions))
    return sorted(found, key=lambda topic: topic.name)


def _by_pages(connection: BrokerConnection, names: Sequence[str]) -> list[DescribedTopic]:
    found: dict[str, DescribedTopic] = {}
    for page in _pages(connection, names):
        for topic in page.topics:
            name = topic.name or ""
            _check(name, topic.error_code)
            begun = found.setdefault(
                name, DescribedTopic(name, id_text(topic.topic_id), topic.is_internal, [])
            )
            begun.partitions.extend(_partition(each) for each in topic.partitions)
    return [found[name] for name in sorted(found)]


def _pages(
    connection: BrokerConnection, names: Sequence[str]
) -> Iterator[DescribeTopicPartitionsResponse]:
    """Repeat the request until the answer has no cursor. Errors: BrokerConnectionError if the
    cursor does not advance.
    """
    cursor: Cursor | None = None
    while True:
        rest = [name for name in sorted(set(names)) if not cursor or name >= cursor.topic_name]
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in rest],
            response_partition_limit=_PAGE_PARTITIONS,
            cursor=cursor,
        )
        answer = connection.send(request, DescribeTopicPartitionsResponse)
        yield answer
        if answer.next_cursor is None:
            return
        former = cursor
        cursor = Cursor(
            topic_name=answer.next_cursor.topic_name,
            partition_index=answer.next_cursor.partition_index,
        )
        if former is not None and _place(cursor) <= _place(former):
            raise BrokerConnectionError("the broker repeats the same partitions")


def _place(cursor: Cursor) -> tuple[str, int]:
    return cursor.topic_name, cursor.partition_index


def _partition(
    each: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
) -> DescribedPartition:
    elr, last_known_elr = None, None
    if isinstance(each, DescribeTopicPartitionsResponsePartition):
        elr = list(each.eligible_leader_replicas or ())
        last_known_elr = list(each.last_known_elr or ())
    return DescribedPartition(
        partition=each.partition_index,
        leader=each.leader_id,
        leader_epoch=each.leader_epoch,
        replicas=list(each.replica_nodes),
        isr=list(each.isr_nodes),
        elr=elr,
        last_known_elr=last_known_elr,
        offline=list(each.offline_replicas),
        error=error_name(each.error_code) if each.error_code else None,
        adding=[],
        removing=[],
    )


def _check(topic: str, error_code: int) -> None:
    if error_code:
        raise AdminRefused(f"topic {topic}", error_code, None)

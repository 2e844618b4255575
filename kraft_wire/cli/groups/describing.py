"""A group as its coordinator describes it: classic, of a newer protocol, a share or streams group.

A group id has one kind, and only its own request shows it: DescribeGroups the classic ones,
ConsumerGroupDescribe those of KIP-848, ShareGroupDescribe those of KIP-932, StreamsGroupDescribe
those of KIP-1071. They are sent in this order until one finds the group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, Protocol, TypeAlias

from kraft_wire.cli.groups.facts import GroupFacts, Member
from kraft_wire.client.cluster import ClusterRefused, the_only
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.group_offsets import committed_offsets
from kraft_wire.client.range_assignment import assignment_of_bytes
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kraft_wire.wire.generated.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kraft_wire.wire.generated.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    TaskIds,
    Topology,
)
from kraft_wire.wire.message import MalformedMessage

__all__ = ["described_group", "find_group"]


class _Coded(Protocol):
    """A described group of any kind."""

    error_code: int


_Described: TypeAlias = (
    DescribeGroupsResponse
    | ConsumerGroupDescribeResponse
    | ShareGroupDescribeResponse
    | StreamsGroupDescribeResponse
)
_CONSUMER: Final = "consumer"
_CLASSIC_VERSION_MAX: Final = 5
"""The last that describes a group that does not exist as Dead."""
_NOT_THIS_KIND: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""The second one where the kind's feature, such as `share.version`, is not finalised."""


class _Assigned(Protocol):
    """Partitions of a topic, as both newer answers have them."""

    topic_name: str
    partitions: list[int]


def described_group(coordinator: GroupCoordinator) -> GroupFacts:
    """Return a group. Errors: ClusterRefused for one that does not exist, AdminRefused."""
    facts = find_group(coordinator)
    if facts is None:
        raise ClusterRefused(f"group {coordinator.group} does not exist")
    return facts


def find_group(coordinator: GroupCoordinator) -> GroupFacts | None:
    """Return a group, None if it does not exist. Errors: ClusterRefused, AdminRefused."""
    facts = _classic(coordinator)
    if facts.state.lower() != "dead":
        return facts
    newer = _consumer(coordinator) or _share(coordinator) or _streams(coordinator)
    if newer is None and committed_offsets(coordinator, None):
        return replace(facts, state="Empty")  # a group of offsets alone
    return newer


def _code(answer: _Described) -> int:
    """Return the error of the one group that was asked for."""
    groups: Sequence[_Coded] = answer.groups
    return the_only(groups, "groups").error_code


def _classic(coordinator: GroupCoordinator) -> GroupFacts:
    """Return a classic group, Dead if there is none. Errors: ClusterRefused."""
    answer = coordinator.send(
        DescribeGroupsRequest(groups=[coordinator.group]),
        DescribeGroupsResponse,
        _code,
        at_most=_CLASSIC_VERSION_MAX,
    )
    found = the_only(answer.groups, "groups")
    if found.error_code:
        raise ClusterRefused(f"group {coordinator.group}: {error_name(found.error_code)}")
    return GroupFacts(
        group=coordinator.group,
        kind="classic",
        state=found.group_state,
        assignor=found.protocol_data,
        members=tuple(_classic_members(found)),
    )


def _classic_members(found: DescribedGroup) -> Iterable[Member]:
    for each in found.members:
        yield Member(
            member_id=each.member_id,
            instance_id=each.group_instance_id,
            client_id=each.client_id,
            host=each.client_host,
            partitions=tuple(_assigned(found.protocol_type, each.member_assignment)),
        )


def _assigned(protocol_type: str, data: bytes | memoryview) -> Sequence[TopicPartition]:
    """Return an assignment of consumers; others have a form that is their own.

    A member of the group wrote it: one that cannot be read is shown without partitions.
    """
    try:
        return assignment_of_bytes(data) if protocol_type == _CONSUMER else ()
    except MalformedMessage:
        return ()


def _consumer(coordinator: GroupCoordinator) -> GroupFacts | None:
    """Return a group of KIP-848; None without such a group or protocol. Errors: AdminRefused."""
    request = ConsumerGroupDescribeRequest(group_ids=[coordinator.group])
    if not coordinator.serves(request):
        return None
    answer = coordinator.send(request, ConsumerGroupDescribeResponse, _code)
    found = the_only(answer.groups, "groups")
    if not _is_of_this_kind(coordinator, found.error_code, found.error_message):
        return None
    members = tuple(
        Member(
            member_id=each.member_id,
            instance_id=each.instance_id,
            client_id=each.client_id,
            host=each.client_host,
            partitions=_partitions(each.assignment.topic_partitions),
        )
        for each in found.members
    )
    return GroupFacts(
        coordinator.group, "consumer", found.group_state, found.assignor_name, members
    )


def _share(coordinator: GroupCoordinator) -> GroupFacts | None:
    """Return a share group; None without such a group or protocol. Errors: AdminRefused."""
    request = ShareGroupDescribeRequest(group_ids=[coordinator.group])
    if not coordinator.serves(request):
        return None
    answer = coordinator.send(request, ShareGroupDescribeResponse, _code)
    found = the_only(answer.groups, "groups")
    if not _is_of_this_kind(coordinator, found.error_code, found.error_message):
        return None
    members = tuple(
        Member(
            member_id=each.member_id,
            instance_id=None,
            client_id=each.client_id,
            host=each.client_host,
            partitions=_partitions(each.assignment.topic_partitions),
        )
        for each in found.members
    )
    return GroupFacts(coordinator.group, "share", found.group_state, found.assignor_name, members)


def _streams(coordinator: GroupCoordinator) -> GroupFacts | None:
    """Return a streams group; None without such a group or protocol. Errors: AdminRefused."""
    request = StreamsGroupDescribeRequest(group_ids=[coordinator.group])
    if not coordinator.serves(request):
        return None
    answer = coordinator.send(request, StreamsGroupDescribeResponse, _code)
    found = the_only(answer.groups, "groups")
    if not _is_of_this_kind(coordinator, found.error_code, found.error_message):
        return None
    read = _topics_read(coordinator, found.topology)
    members = tuple(
        Member(
            member_id=each.member_id,
            instance_id=each.instance_id,
            client_id=each.client_id,
            host=each.client_host,
            partitions=_partitions_of_tasks(each.assignment.active_tasks, read),
            active_tasks=_task_names(each.assignment.active_tasks),
            standby_tasks=_task_names(each.assignment.standby_tasks),
        )
        for each in found.members
    )
    return GroupFacts(coordinator.group, "streams", found.group_state, "", members)


def _topics_read(
    coordinator: GroupCoordinator, topology: Topology | None
) -> dict[str, dict[str, int]]:
    """Return the topics that each subtopology reads, and how many partitions those have."""
    if topology is None:
        return {}
    names = {
        each.subtopology_id: [
            *each.source_topics,
            *(topic.name for topic in each.repartition_source_topics),
        ]
        for each in topology.subtopologies or ()
    }
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=name)
            for name in sorted(set(chain.from_iterable(names.values())))
        ],
        allow_auto_topic_creation=False,
    )
    answer = coordinator.send(request, MetadataResponse, lambda _: ErrorCode.NONE)
    sizes = {each.name: len(each.partitions) for each in answer.topics}
    return {key: {name: sizes.get(name, 0) for name in each} for key, each in names.items()}


def _partitions_of_tasks(
    tasks: Iterable[TaskIds], read: Mapping[str, Mapping[str, int]]
) -> tuple[TopicPartition, ...]:
    """Return what tasks read: the partitions of their number in the topics of the subtopology."""
    found = [
        TopicPartition(name, index)
        for task in tasks
        for name, size in read.get(task.subtopology_id, {}).items()
        for index in task.partitions
        if index < size
    ]
    return tuple(sorted(found))


def _task_names(tasks: Iterable[TaskIds]) -> tuple[str, ...]:
    """Return tasks by the names that Kafka Streams gives them: `0_3`."""
    return tuple(f"{each.subtopology_id}_{n}" for each in tasks for n in sorted(each.partitions))


def _is_of_this_kind(coordinator: GroupCoordinator, code: int, message: str | None) -> bool:
    if code and code not in _NOT_THIS_KIND:
        raise AdminRefused(f"group {coordinator.group}", code, message)
    return not code


def _partitions(assigned: Iterable[_Assigned]) -> tuple[TopicPartition, ...]:
    found = [
        TopicPartition(topic.topic_name, index) for topic in assigned for index in topic.partitions
    ]
    return tuple(sorted(found))

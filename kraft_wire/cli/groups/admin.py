"""The requests of the `groups` verbs to a cluster, as plain values.

ListGroups goes to every broker, everything else to a group's coordinator. Members of groups of the
newer protocol (KIP-848) come from ConsumerGroupDescribe, those of classic ones from DescribeGroups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kraft_wire.cli.topics.admin import topics
from kraft_wire.client.cluster import LATEST_TIMESTAMP, ClusterClient, ClusterRefused
from kraft_wire.client.coordinator import ELSEWHERE, GroupCoordinator
from kraft_wire.client.group_offsets import committed_offsets
from kraft_wire.client.range_assignment import assignment_of_bytes
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse

__all__ = [
    "GroupFacts",
    "ListedGroup",
    "Member",
    "OffsetRow",
    "delete_group",
    "described_group",
    "listed_groups",
    "offset_rows",
]

_CONSUMER: Final = "consumer"
_CLASSIC_VERSION_MAX: Final = 5
"""The last that describes a group that does not exist as Dead."""
_NO_NEWER_GROUP: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""The second one where the feature `group.version` is not finalised."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a list; None if the broker's version does not report it."""

    group: str
    state: str | None
    type: str | None
    protocol_type: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member and its partitions."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group as its coordinator describes it."""

    group: str
    state: str
    assignor: str
    members: tuple[Member, ...]

    @property
    def is_active(self) -> bool:
        """Whether it has members, or is waiting for them."""
        return self.state.lower() not in ("empty", "dead")


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One partition of a group: how far it has read."""

    topic: str
    partition: int
    committed_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member: Member | None


def listed_groups(cluster: ClusterClient) -> list[ListedGroup]:
    """Return the groups of all brokers, in the order of their names. Errors: ClusterRefused."""
    found: dict[str, ListedGroup] = {}
    for broker_id in cluster.broker_ids():
        answer = cluster.broker(broker_id).send(ListGroupsRequest(), ListGroupsResponse)
        if answer.error_code and answer.error_code not in ELSEWHERE:
            raise AdminRefused(f"broker {broker_id}", answer.error_code, None)
        for each in answer.groups:
            found[each.group_id] = ListedGroup(
                group=each.group_id,
                state=each.group_state or None,
                type=each.group_type or None,
                protocol_type=each.protocol_type,
            )
    return [found[name] for name in sorted(found)]


def described_group(coordinator: GroupCoordinator) -> GroupFacts:
    """Return a group. Errors: ClusterRefused for one that does not exist."""
    request = DescribeGroupsRequest(groups=[coordinator.group])
    answer = coordinator.send(
        request,
        DescribeGroupsResponse,
        lambda each: each.groups[0].error_code,
        at_most=_CLASSIC_VERSION_MAX,
    )
    found = answer.groups[0]
    if found.error_code:
        raise ClusterRefused(f"group {coordinator.group}: {error_name(found.error_code)}")
    facts = GroupFacts(
        group=coordinator.group,
        state=found.group_state,
        assignor=found.protocol_data,
        members=tuple(
            Member(
                member_id=each.member_id,
                instance_id=each.group_instance_id,
                client_id=each.client_id,
                host=each.client_host,
                partitions=tuple(_assigned(found.protocol_type, each.member_assignment)),
            )
            for each in found.members
        ),
    )
    if facts.state.lower() != "dead":
        return facts
    return _described_newer(coordinator) or _with_offsets_alone(coordinator, facts)


def _described_newer(coordinator: GroupCoordinator) -> GroupFacts | None:
    """Return a group of the newer protocol; None without such a group or protocol."""
    request = ConsumerGroupDescribeRequest(group_ids=[coordinator.group])
    if not coordinator.serves(request):
        return None
    answer = coordinator.send(
        request, ConsumerGroupDescribeResponse, lambda each: each.groups[0].error_code
    )
    found = answer.groups[0]
    if found.error_code in _NO_NEWER_GROUP:
        return None
    if found.error_code:
        raise AdminRefused(f"group {coordinator.group}", found.error_code, found.error_message)
    members = []
    for each in found.members:
        partitions = [
            TopicPartition(topic.topic_name, index)
            for topic in each.assignment.topic_partitions
            for index in topic.partitions
        ]
        members.append(
            Member(
                member_id=each.member_id,
                instance_id=each.instance_id,
                client_id=each.client_id,
                host=each.client_host,
                partitions=tuple(sorted(partitions)),
            )
        )
    return GroupFacts(
        group=coordinator.group,
        state=found.group_state,
        assignor=found.assignor_name,
        members=tuple(members),
    )


def _with_offsets_alone(coordinator: GroupCoordinator, facts: GroupFacts) -> GroupFacts:
    """Return a group that has only offsets as empty. Errors: ClusterRefused without offsets."""
    if not committed_offsets(coordinator, None):
        raise ClusterRefused(f"group {coordinator.group} does not exist")
    return replace(facts, state="Empty")


def _assigned(protocol_type: str, data: bytes | memoryview) -> Sequence[TopicPartition]:
    """Return an assignment of consumers; others have a form that is their own."""
    return assignment_of_bytes(data) if protocol_type == _CONSUMER else ()


def offset_rows(
    cluster: ClusterClient, coordinator: GroupCoordinator, facts: GroupFacts
) -> list[OffsetRow]:
    """Return a row for each partition that has an offset or a member, in their order."""
    committed = committed_offsets(coordinator, None)
    owners = {key: member for member in facts.members for key in member.partitions}
    ends = _ends(cluster, [*committed, *owners])
    rows = []
    for key in sorted({*committed, *owners}):
        offset, end = committed.get(key), ends.get(key)
        lag = None if offset is None or end is None else max(0, end - offset)
        row = OffsetRow(key.topic, key.partition, offset, end, lag, owners.get(key))
        rows.append(row)
    return rows


def _ends(cluster: ClusterClient, keys: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Return the log end offsets of existing partitions, none for a deleted topic."""
    counts = {each.name: each.partitions_count for each in topics(cluster.any_broker())}
    there = [key for key in keys if key.partition < counts.get(key.topic, 0)]
    return cluster.offsets_at(dict.fromkeys(there, LATEST_TIMESTAMP)) if there else {}


def delete_group(coordinator: GroupCoordinator) -> None:
    """Delete a group without members. Errors: AdminRefused."""
    answer = coordinator.send(
        DeleteGroupsRequest(groups_names=[coordinator.group]),
        DeleteGroupsResponse,
        lambda each: each.results[0].error_code,
    )
    code = answer.results[0].error_code
    if code:
        raise AdminRefused(f"group {coordinator.group}", code, None)

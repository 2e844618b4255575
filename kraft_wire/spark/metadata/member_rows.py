"""Rows of the table `members`: members of classic, consumer, share and streams groups."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from kraft_wire.broker.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from kraft_wire.broker.groups.classic.member import Member
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.migration.embedded_protocol import (
    assignment_of,
    subscription_of,
)
from kraft_wire.broker.groups.group_types import OtherGroup
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import MemberState as StreamsMemberState
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.tasks import NO_TASKS, TasksTuple
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.spark.metadata.group_rows import Row
from kraft_wire.spark.metadata.group_state import LoadedPartition
from kraft_wire.wire.message import MalformedMessage

__all__ = ["TopicNames", "member_rows"]

TopicNames: TypeAlias = Mapping[Uuid, str]
"""Names of the topics that exist."""

_AnyMember: TypeAlias = ConsumerMember | ShareMember | StreamsMember
_KINDS = ("active", "standby", "warmup")


def member_rows(loaded: LoadedPartition, names: TopicNames) -> Iterator[Row]:
    """Yield the members of a partition's groups, by group and member id."""
    state = loaded.state
    groups: dict[str, ClassicGroup | OtherGroup] = {**state.groups, **state.other_groups}
    for group_id, group in sorted(groups.items()):
        kind = "classic" if isinstance(group, ClassicGroup) else group.kind.value
        rows = sorted(_rows(group, names), key=lambda row: str(row["memberId"]))
        yield from ({"groupId": group_id, "groupType": kind} | row for row in rows)


def _rows(group: ClassicGroup | OtherGroup, names: TopicNames) -> Iterable[Row]:
    match group:
        case ClassicGroup():
            return [_classic(group, each) for each in group.members.values()]
        case ConsumerGroup():
            return [_consumer(group, each, names) for each in group.members.values()]
        case ShareGroup():
            return [_share(group, each, names) for each in group.members.values()]
        case StreamsGroup():
            return [_streams(group, each) for each in group.members.values()]
        case _:
            raise AssertionError(group)


def _classic(group: ClassicGroup, member: Member) -> Row:
    """Describe a member; what it subscribes to and has is told of consumers only."""
    row: Row = {
        "memberId": member.member_id,
        "instanceId": member.group_instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "isClassic": True,
        "memberEpoch": group.generation_id,
        "assignor": group.protocol_name,
    }
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE:
        row |= _subscription(member.protocols[group.protocol_name or ""])
        row["assignment"] = _embedded_assignment(member.assignment)
    return row


def _subscription(metadata: bytes) -> Row:
    try:
        subscription = subscription_of(metadata)
    except MalformedMessage:
        return {}
    return {"subscribedTopics": list(subscription.topics), "rack": subscription.rack_id}


def _embedded_assignment(data: bytes) -> list[Row] | None:
    """Return the partitions; None if the bytes are not those of a consumer."""
    if not data:
        return []
    try:
        topics = assignment_of(data).assigned_partitions
    except MalformedMessage:
        return None
    found = {(each.topic, partition) for each in topics for partition in each.partitions}
    return [{"topic": topic, "partition": partition} for topic, partition in sorted(found)]


def _consumer(group: ConsumerGroup, member: ConsumerMember, names: TopicNames) -> Row:
    return _common(member) | {
        "instanceId": member.instance_id,
        "isClassic": member.classic_metadata is not None,
        "state": _title(member.state.name),
        "subscribedTopics": sorted(member.subscribed_topic_names),
        "subscribedRegex": member.subscribed_topic_regex or None,
        "assignor": member.server_assignor,
        "assignment": _assigned(member.assigned.items(), names),
        "pendingRevocation": _assigned(member.pending_revocation.items(), names),
        "targetAssignment": _assigned((group.targets.get(member.member_id) or {}).items(), names),
    }


def _share(group: ShareGroup, member: ShareMember, names: TopicNames) -> Row:
    return _common(member) | {
        "isClassic": False,
        "state": "Stable" if member.state == 0 else "Unknown",
        "subscribedTopics": sorted(member.subscribed_topic_names),
        "assignment": _assigned(member.assigned.items(), names),
        "targetAssignment": _assigned((group.targets.get(member.member_id) or {}).items(), names),
    }


def _streams(group: StreamsGroup, member: StreamsMember) -> Row:
    return _common(member) | {
        "instanceId": member.instance_id,
        "isClassic": False,
        "state": _title(StreamsMemberState(member.state).name),
        "processId": member.process_id,
        "topologyEpoch": member.topology_epoch,
        "tasks": _tasks(member.assigned.without_epochs),
        "tasksPendingRevocation": _tasks(member.pending_revocation.without_epochs),
        "targetTasks": _tasks(group.targets.get(member.member_id) or NO_TASKS),
    }


def _common(member: _AnyMember) -> Row:
    return {
        "memberId": member.member_id,
        "rack": member.rack_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "memberEpoch": member.member_epoch,
    }


def _assigned(topics: Iterable[tuple[Uuid, Iterable[int]]], names: TopicNames) -> list[Row]:
    """Return partitions by topic id and number; a topic that is gone has no name."""
    return [
        {"topic": names.get(topic_id), "topicId": uuid_to_text(topic_id), "partition": partition}
        for topic_id, partitions in sorted(topics, key=lambda each: each[0])
        for partition in sorted(partitions)
    ]


def _tasks(tasks: TasksTuple) -> list[Row]:
    return [
        {"kind": kind, "subtopology": subtopology, "partition": partition}
        for kind, each in zip(_KINDS, tasks, strict=True)
        for subtopology, partitions in sorted(each.items())
        for partition in sorted(partitions)
    ]


def _title(name: str) -> str:
    """Return a state's name as groups' states are written: UNREVOKED_TASKS is UnrevokedTasks."""
    return name.title().replace("_", "")

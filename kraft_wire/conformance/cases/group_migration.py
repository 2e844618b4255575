"""Members of classic groups and of consumer groups in one group (KIP-848, online migration)."""

import struct
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import (
    LEAVE_EPOCH,
    MEMBER_ID,
    heartbeat,
    joining,
    prepared_member,
)
from kraft_wire.conformance.members import join_request, joined, subscription, sync_request
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

_SOURCE: Final = "KIP-848, Online Migration"
_JOIN_VERSION: Final = 5
_SYNC_VERSION: Final = 3
_PROTOCOL_NAMED_SINCE: Final = 5
_SEVERAL_SINCE: Final = 3
"""Version of LeaveGroup from which on it names several members."""
_PARTITIONS: Final = 2


def _assignment(topic: str, *partitions: int) -> bytes:
    """Return what a leader assigns to a consumer, in version 0."""
    name, count = topic.encode(), len(partitions)
    layout = f">hih{len(name)}si{count}ii"
    return struct.pack(layout, 0, 1, len(name), name, count, *partitions, -1)


def _consumer_group(broker: Subject) -> tuple[str, Topic, int]:
    """Return a consumer group with one member, its topic of 2 partitions, the member's epoch."""
    group_id, topic = broker.group(), broker.topic(partitions=_PARTITIONS)
    return group_id, topic, prepared_member(broker, group_id, topic).member_epoch


def _classic_member(broker: Subject, group_id: str, topic: Topic) -> JoinGroupResponse:
    """Have a member join by JoinGroup; return its answer."""
    metadata = subscription(topic.name)
    answer = joined(broker.connect(), _JOIN_VERSION, group_id, metadata=metadata)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def _classic_group(broker: Subject) -> tuple[str, Topic, JoinGroupResponse]:
    """Return a stable classic group of one consumer, its topic, and the member."""
    group_id, topic = broker.group(), broker.topic(partitions=_PARTITIONS)
    connection = broker.connect()
    member = joined(connection, _JOIN_VERSION, group_id, metadata=subscription(topic.name))
    expect.error(member, "error_code", ErrorCode.NONE)
    request = sync_request(group_id, member, _SYNC_VERSION)
    request.assignments[0].assignment = _assignment(topic.name, 0, 1)
    synced = connection.ask(request, _SYNC_VERSION, SyncGroupResponse)
    expect.error(synced, "error_code", ErrorCode.NONE)
    return group_id, topic, member


def _beat(group_id: str, member: JoinGroupResponse) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group_id, generation_id=member.generation_id, member_id=member.member_id
    )


def _give_up_a_partition(broker: Subject, group_id: str, epoch: int) -> None:
    """Send heartbeats until the member is to keep one partition, and report that it has only that.

    Its epoch is the group's after that.
    """
    request = heartbeat(group_id, epoch)
    for _ in broker.attempts("the member to give up a partition"):
        answer = broker.prepare(request, ConsumerGroupHeartbeatResponse)
        expect.error(answer, "error_code", ErrorCode.NONE)
        if answer.assignment is not None:
            (kept,) = answer.assignment.topic_partitions
            request.topic_partitions = [
                TopicPartitions(topic_id=kept.topic_id, partitions=kept.partitions)
            ]
            break
    expect.equal(answer, "member_epoch", epoch)
    answer = broker.prepare(request, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "member_epoch", epoch + 1)


@case("JoinGroup", _SOURCE)
def classic_member_of_a_consumer_group(broker: Subject, version: int) -> None:
    """A consumer joins a consumer group by JoinGroup: its generation is an epoch of the group.

    Join with ConsumerGroupHeartbeat, then with JoinGroup, subscribed to the same topic: without a
    leader there is no list of members. The epoch is the next one if the assignment came at once.
    """
    group_id, topic, epoch = _consumer_group(broker)
    metadata = subscription(topic.name)
    answer = joined(broker.connect(), version, group_id, metadata=metadata)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.one_of(answer, "generation_id", epoch, epoch + 1)
    expect.equal(answer, "protocol_name", "range")
    expect.equal(answer, "members", [])
    expect.true(bool(answer.member_id), "a member id", answer.member_id, "member_id")


@case("JoinGroup", _SOURCE)
def other_protocols_in_a_consumer_group(broker: Subject, version: int) -> None:
    """Members of another protocol type are refused with INCONSISTENT_GROUP_PROTOCOL.

    Join with ConsumerGroupHeartbeat, then with JoinGroup as "connect".
    """
    group_id, topic, _ = _consumer_group(broker)
    request = join_request(group_id, metadata=subscription(topic.name))
    request.protocol_type = "connect"
    answer = broker.ask(request, version, JoinGroupResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@case("JoinGroup", _SOURCE)
def member_id_of_its_own(broker: Subject, version: int) -> None:
    """A classic member may join a consumer group with a member id that the group does not know.

    Join with ConsumerGroupHeartbeat, then with JoinGroup and an id.
    """
    group_id, topic, _ = _consumer_group(broker)
    request = join_request(group_id, "made-up", metadata=subscription(topic.name))
    answer = broker.ask(request, version, JoinGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "member_id", "made-up")


@case("SyncGroup", _SOURCE)
def assignment_of_a_classic_member(broker: Subject, version: int) -> None:
    """SyncGroup returns the partitions that the coordinator has assigned.

    Join with ConsumerGroupHeartbeat and with JoinGroup, let the first give up a partition, join
    with the second again until SyncGroup has an assignment.
    """
    group_id, topic, epoch = _consumer_group(broker)
    member = _classic_member(broker, group_id, topic)
    _give_up_a_partition(broker, group_id, epoch)
    again = join_request(group_id, member.member_id, metadata=subscription(topic.name))
    for _ in broker.attempts("an assignment of the classic member"):
        member = broker.prepare(again, JoinGroupResponse, until=_JOIN_VERSION)
        expect.error(member, "error_code", ErrorCode.NONE)
        request = sync_request(group_id, member, version, leads=False)
        answer = broker.ask(request, version, SyncGroupResponse)
        if topic.name.encode() in bytes(answer.assignment):
            break
    expect.error(answer, "error_code", ErrorCode.NONE)
    wanted = [_assignment(topic.name, each) for each in range(_PARTITIONS)]
    seen = bytes(answer.assignment)
    expect.true(seen in wanted, "one partition of the topic", seen, "assignment")


@case("SyncGroup", _SOURCE)
def sync_of_another_generation(broker: Subject, version: int) -> None:
    """A classic member syncs with its generation, and the protocol that it joined with.

    Join with ConsumerGroupHeartbeat and with JoinGroup; sync with the next generation:
    ILLEGAL_GENERATION, as an unknown member: UNKNOWN_MEMBER_ID, and from version 5 on with another
    protocol: INCONSISTENT_GROUP_PROTOCOL.
    """
    group_id, topic, _ = _consumer_group(broker)
    member = _classic_member(broker, group_id, topic)
    request = sync_request(group_id, member, version, leads=False)
    request.generation_id += 1
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.ILLEGAL_GENERATION)
    request = sync_request(group_id, member, version, leads=False)
    request.member_id = "made-up"
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.UNKNOWN_MEMBER_ID)
    if version >= _PROTOCOL_NAMED_SINCE:
        request = sync_request(group_id, member, version, leads=False)
        request.protocol_name = "roundrobin"
        answer = broker.ask(request, version, SyncGroupResponse)
        expect.error(answer, "error_code", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@case("Heartbeat", _SOURCE)
def heartbeat_of_a_classic_member(broker: Subject, version: int) -> None:
    """A classic member is to join again once the group's assignment has changed.

    Join with ConsumerGroupHeartbeat and with JoinGroup, let the first give up a partition, send a
    heartbeat of the second, with its generation and with another, and as an unknown member.
    """
    group_id, topic, epoch = _consumer_group(broker)
    member = _classic_member(broker, group_id, topic)
    _give_up_a_partition(broker, group_id, epoch)
    for member_id, generation_id, code in (
        (member.member_id, member.generation_id, ErrorCode.REBALANCE_IN_PROGRESS),
        (member.member_id, member.generation_id + 1, ErrorCode.ILLEGAL_GENERATION),
        ("made-up", member.generation_id, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation_id, member_id=member_id
        )
        answer = broker.ask(request, version, HeartbeatResponse)
        expect.error(answer, "error_code", code)


@case("Heartbeat", _SOURCE)
def heartbeat_of_a_member_that_speaks_heartbeats(broker: Subject, version: int) -> None:
    """A member of ConsumerGroupHeartbeat is unknown to Heartbeat: UNKNOWN_MEMBER_ID.

    Join with ConsumerGroupHeartbeat, send a Heartbeat with the member's id and epoch.
    """
    group_id, _, epoch = _consumer_group(broker)
    request = HeartbeatRequest(group_id=group_id, generation_id=epoch, member_id=MEMBER_ID)
    answer = broker.ask(request, version, HeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.UNKNOWN_MEMBER_ID)


@case("LeaveGroup", _SOURCE)
def classic_member_leaves_a_consumer_group(broker: Subject, version: int) -> None:
    """A classic member leaves a consumer group by LeaveGroup.

    Join with ConsumerGroupHeartbeat and with JoinGroup; the second leaves, then leaves again, which
    is refused with UNKNOWN_MEMBER_ID.
    """
    group_id, topic, _ = _consumer_group(broker)
    member_id = _classic_member(broker, group_id, topic).member_id
    for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        request = LeaveGroupRequest(group_id=group_id, member_id=member_id, members=[])
        if version >= _SEVERAL_SINCE:
            request = LeaveGroupRequest(
                group_id=group_id,
                members=[MemberIdentity(member_id=member_id, group_instance_id=None)],
            )
        answer = broker.ask(request, version, LeaveGroupResponse)
        path = "members[0].error_code" if version >= _SEVERAL_SINCE else "error_code"
        expect.error(answer, path, code)


@case("ConsumerGroupHeartbeat", _SOURCE)
def classic_group_becomes_a_consumer_group(broker: Subject, version: int) -> None:
    """A consumer that joins a classic group makes it a consumer group; the others join again.

    Bring a classic group of one consumer into Stable, join with ConsumerGroupHeartbeat, send a
    Heartbeat of the first.
    """
    group_id, topic, member = _classic_group(broker)
    request = joining(group_id, topic.name)
    answer = broker.ask(request, version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "member_epoch", member.generation_id + 1)
    expect.equal(answer, "assignment.topic_partitions", [])
    beat = broker.prepare(_beat(group_id, member), HeartbeatResponse)
    expect.error(beat, "error_code", ErrorCode.REBALANCE_IN_PROGRESS)


@case("ConsumerGroupHeartbeat", _SOURCE)
def classic_group_of_others_stays(broker: Subject, version: int) -> None:
    """A classic group whose assignments no consumer can read is refused with GROUP_ID_NOT_FOUND.

    Bring a group of the protocol type "connect" into Stable, join with ConsumerGroupHeartbeat.
    """
    group_id, topic = broker.group(), broker.topic()
    connection = broker.connect()
    request = join_request(group_id, protocol_type="connect")
    member = connection.ask(request, _JOIN_VERSION, JoinGroupResponse)
    request.member_id = member.member_id
    member = connection.ask(request, _JOIN_VERSION, JoinGroupResponse)
    expect.error(member, "error_code", ErrorCode.NONE)
    synced = connection.ask(
        sync_request(group_id, member, _SYNC_VERSION), _SYNC_VERSION, SyncGroupResponse
    )
    expect.error(synced, "error_code", ErrorCode.NONE)
    answer = broker.ask(joining(group_id, topic.name), version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.GROUP_ID_NOT_FOUND)
    beat = broker.prepare(_beat(group_id, member), HeartbeatResponse)
    expect.error(beat, "error_code", ErrorCode.NONE)


@case("ConsumerGroupHeartbeat", _SOURCE)
def last_consumer_of_a_mixed_group_leaves(broker: Subject, version: int) -> None:
    """The group is a classic group again once only classic members are left.

    Join with ConsumerGroupHeartbeat and with JoinGroup; the first leaves. DescribeGroups describes
    the group; the other member joins again, and leads.
    """
    group_id, topic, _ = _consumer_group(broker)
    member_id = _classic_member(broker, group_id, topic).member_id
    request = heartbeat(group_id, LEAVE_EPOCH)
    answer = broker.ask(request, version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    question = DescribeGroupsRequest(groups=[group_id])
    described = broker.prepare(question, DescribeGroupsResponse)
    expect.error(described, "groups[0].error_code", ErrorCode.NONE)
    expect.equal(described, "groups[0].group_state", "PreparingRebalance")
    expect.equal(described, "groups[0].members[0].member_id", member_id)
    again = join_request(group_id, member_id, metadata=subscription(topic.name))
    member = broker.prepare(again, JoinGroupResponse, until=_JOIN_VERSION)
    expect.error(member, "error_code", ErrorCode.NONE)
    expect.equal(member, "leader", member_id)

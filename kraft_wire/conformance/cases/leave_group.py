"""LeaveGroup, API key 13: members leave, one by one or several at a time (KIP-345)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import join_request, joined, stable_member
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

_SEVERAL_SINCE: Final = 3
_STATIC_JOIN: Final = 5


def _leave(broker: Subject, version: int, group_id: str, member_id: str) -> LeaveGroupResponse:
    request = LeaveGroupRequest(group_id=group_id)
    if version >= _SEVERAL_SINCE:
        request.members = [MemberIdentity(member_id=member_id)]
    else:
        request.member_id = member_id
    return broker.ask(request, version, LeaveGroupResponse)


def _code(version: int) -> str:
    return "members[0].error_code" if version >= _SEVERAL_SINCE else "error_code"


@case("LeaveGroup", "Kafka protocol guide, LeaveGroup API")
def member_leaves(broker: Subject, version: int) -> None:
    """A member leaves, and then is unknown.

    Join, leave, leave again: UNKNOWN_MEMBER_ID.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    answer = _leave(broker, version, group_id, member.member_id)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, _code(version), ErrorCode.NONE)
    again = _leave(broker, version, group_id, member.member_id)
    expect.error(again, _code(version), ErrorCode.UNKNOWN_MEMBER_ID)


@case("LeaveGroup", "Kafka protocol guide, LeaveGroup API")
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member id gets UNKNOWN_MEMBER_ID.

    Leave a group of one member with an unknown member id.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    answer = _leave(broker, version, group_id, "made-up")
    expect.error(answer, _code(version), ErrorCode.UNKNOWN_MEMBER_ID)


@case("LeaveGroup", "KIP-345", since=_SEVERAL_SINCE)
def several_members(broker: Subject, version: int) -> None:
    """Each member of a request has its own result, in the order of the request.

    Leave with a proper and an unknown member id.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    members = [MemberIdentity(member_id=each) for each in (member.member_id, "made-up")]
    request = LeaveGroupRequest(group_id=group_id, members=members)
    answer = broker.ask(request, version, LeaveGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, "members[0].error_code", ErrorCode.NONE)
    expect.error(answer, "members[1].error_code", ErrorCode.UNKNOWN_MEMBER_ID)


@case("LeaveGroup", "KIP-345", since=_SEVERAL_SINCE)
def static_member(broker: Subject, version: int) -> None:
    """A static member leaves by its instance id; other ids are refused.

    Join as a static member; leave with another member id, with an unknown instance id, and with
    the instance id only, twice.
    """
    group_id = broker.group()
    joined(broker.connect(), _STATIC_JOIN, group_id, group_instance_id="one")
    for member_id, instance, code in (
        ("made-up", "one", ErrorCode.FENCED_INSTANCE_ID),
        ("", "two", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "one", ErrorCode.NONE),
        ("", "one", ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        members = [MemberIdentity(member_id=member_id, group_instance_id=instance)]
        request = LeaveGroupRequest(group_id=group_id, members=members)
        answer = broker.ask(request, version, LeaveGroupResponse)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.error(answer, "members[0].error_code", code)
        expect.equal(answer, "members[0].member_id", member_id)
        expect.equal(answer, "members[0].group_instance_id", instance)


@case("LeaveGroup", "org.apache.kafka.coordinator.group.GroupMetadataManager, classicGroupLeave")
def unknown_group(broker: Subject, version: int) -> None:
    """A member of a group that does not exist is UNKNOWN_MEMBER_ID.

    Leave a new group with an unknown member id.
    """
    answer = _leave(broker, version, broker.group(), "made-up")
    expect.error(answer, _code(version), ErrorCode.UNKNOWN_MEMBER_ID)


@case("LeaveGroup", "Kafka protocol guide, LeaveGroup API")
def others_rebalance(broker: Subject, version: int) -> None:
    """When the last member has left, the group is empty.

    Join, leave, describe the group.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    _leave(broker, version, group_id, member.member_id)
    request = DescribeGroupsRequest(groups=[group_id])
    answer = broker.prepare(request, DescribeGroupsResponse, until=5)
    expect.equal(answer, "groups[0].group_state", "Empty")
    expect.equal(answer, "groups[0].members", [])


@case("LeaveGroup", "org.apache.kafka.coordinator.group.GroupCoordinatorService, leaveGroup")
def empty_group_id(broker: Subject, version: int) -> None:
    """The empty group id is refused with INVALID_GROUP_ID.

    Leave the group "".
    """
    broker.group()
    answer = _leave(broker, version, "", "made-up")
    expect.error(answer, "error_code", ErrorCode.INVALID_GROUP_ID)


@case("LeaveGroup", "KIP-394")
def member_that_has_not_joined_yet(broker: Subject, version: int) -> None:
    """A member leaves that got its id, and has not joined with it.

    Join without a member id: MEMBER_ID_REQUIRED. Leave with the id of the response, twice.
    """
    group_id = broker.group()
    given = broker.prepare(join_request(group_id), JoinGroupResponse, until=_STATIC_JOIN)
    expect.error(given, "error_code", ErrorCode.MEMBER_ID_REQUIRED)
    for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        answer = _leave(broker, version, group_id, given.member_id)
        expect.error(answer, _code(version), code)


@case("LeaveGroup", "KIP-345", since=_SEVERAL_SINCE)
def last_member_beside_an_unknown_one(broker: Subject, version: int) -> None:
    """A group is Empty after its last member left, also in a request with an unknown member.

    Leave with an unknown and a proper member id, describe the group.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    members = [MemberIdentity(member_id=each) for each in ("unknown", member.member_id)]
    request = LeaveGroupRequest(group_id=group_id, members=members)
    answer = broker.ask(request, version, LeaveGroupResponse)
    expect.error(answer, "members[0].error_code", ErrorCode.UNKNOWN_MEMBER_ID)
    expect.error(answer, "members[1].error_code", ErrorCode.NONE)
    question = DescribeGroupsRequest(groups=[group_id])
    described = broker.prepare(question, DescribeGroupsResponse)
    expect.equal(described, "groups[0].group_state", "Empty")


@case("LeaveGroup", "Kafka protocol guide, LeaveGroup API")
def member_leaves_a_rebalance(broker: Subject, version: int) -> None:
    """The other members of a rebalance are still waited for when one of them leaves.

    Two members begin to join a stable group, one of them leaves, the first sends a heartbeat.
    """
    group_id = broker.group()
    first = stable_member(broker, group_id)
    staying, leaving = broker.connect(), broker.connect()
    member_ids = []
    for each in (staying, leaving):
        named = each.ask(join_request(group_id), _STATIC_JOIN, JoinGroupResponse)
        member_ids.append(named.member_id)
        payload, _ = each.encoded(join_request(group_id, named.member_id), _STATIC_JOIN)
        each.send_frame(payload)
    question = DescribeGroupsRequest(groups=[group_id])
    for _ in broker.attempts("two more members"):
        described = broker.prepare(question, DescribeGroupsResponse).groups[0]
        if len(described.members) == 1 + len(member_ids):
            break
    answer = _leave(broker, version, group_id, member_ids[1])
    expect.error(answer, _code(version), ErrorCode.NONE)
    expect.true(staying.is_silent(0.1), "a JoinGroup that waits", "a response")
    request = HeartbeatRequest(
        group_id=group_id, generation_id=first.generation_id, member_id=first.member_id
    )
    beat = broker.prepare(request, HeartbeatResponse)
    expect.error(beat, "error_code", ErrorCode.REBALANCE_IN_PROGRESS)

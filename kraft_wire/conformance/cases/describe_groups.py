"""DescribeGroups, API key 15: the state of groups and their members."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.connection import CLIENT_ID
from kraft_wire.conformance.members import ASSIGNMENT, joined, stable_member
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_ABSENT_IS_AN_ERROR_SINCE: Final = 6
_JOIN_VERSION: Final = 5
_UNKNOWN_OPERATIONS: Final = -(1 << 31)


def _ask(broker: Subject, version: int, group_id: str) -> DescribeGroupsResponse:
    return broker.ask(DescribeGroupsRequest(groups=[group_id]), version, DescribeGroupsResponse)


@case("DescribeGroups", "Kafka protocol guide, DescribeGroups API")
def stable_group(broker: Subject, version: int) -> None:
    """A group with a member is Stable, and the description has the member's assignment.

    Join, sync, describe.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    answer = _ask(broker, version, group_id)
    expect.error(answer, "groups[0].error_code", ErrorCode.NONE)
    expect.equal(answer, "groups[0].group_id", group_id)
    expect.equal(answer, "groups[0].group_state", "Stable")
    expect.equal(answer, "groups[0].protocol_type", "consumer")
    expect.equal(answer, "groups[0].protocol_data", "range")
    expect.equal(answer, "groups[0].members[0].member_id", member.member_id)
    seen = bytes(answer.groups[0].members[0].member_assignment)
    path = "groups[0].members[0].member_assignment"
    expect.true(seen == ASSIGNMENT, "the assignment", seen, path)


@case("DescribeGroups", "KIP-1043", since=_ABSENT_IS_AN_ERROR_SINCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets GROUP_ID_NOT_FOUND.

    Describe a group without members and offsets.
    """
    answer = _ask(broker, version, broker.group())
    expect.error(answer, "groups[0].error_code", ErrorCode.GROUP_ID_NOT_FOUND)


@case("DescribeGroups", "KIP-1043", until=_ABSENT_IS_AN_ERROR_SINCE - 1)
def unknown_group_in_older_versions(broker: Subject, version: int) -> None:
    """A group that does not exist is Dead, without an error, below version 6.

    Describe a group without members and offsets.
    """
    answer = _ask(broker, version, broker.group())
    expect.error(answer, "groups[0].error_code", ErrorCode.NONE)
    expect.equal(answer, "groups[0].group_state", "Dead")


@case("DescribeGroups", "Kafka protocol guide, DescribeGroups API")
def client_of_a_member(broker: Subject, version: int) -> None:
    """The description of a member has its client id, and its address after a slash.

    Join, sync, describe.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    answer = _ask(broker, version, group_id)
    expect.equal(answer, "groups[0].members[0].client_id", CLIENT_ID)
    path = "groups[0].members[0].client_host"
    seen = answer.groups[0].members[0].client_host
    is_written_so = seen[:1] == "/" and seen[1:2].isdigit()
    expect.as_release(is_written_so, "a slash and an address", seen, path)


@case("DescribeGroups", "KIP-430", since=3)
def operations_of_an_absent_group(broker: Subject, version: int) -> None:
    """Operations are described for a group that exists.

    Ask for the operations of a stable group, and of one that does not exist.
    """
    group_ids = [broker.group(), broker.group()]
    stable_member(broker, group_ids[0])
    request = DescribeGroupsRequest(groups=group_ids, include_authorized_operations=True)
    answer = broker.ask(request, version, DescribeGroupsResponse)
    seen = {each.group_id: each.authorized_operations for each in answer.groups}
    path = "groups[0].authorized_operations"
    expect.true(seen[group_ids[0]] != _UNKNOWN_OPERATIONS, "operations", seen, path)
    if version >= _ABSENT_IS_AN_ERROR_SINCE:
        expect.true(seen[group_ids[1]] == _UNKNOWN_OPERATIONS, "none", seen, path)


@case("DescribeGroups", "Kafka protocol guide, DescribeGroups API")
def two_groups(broker: Subject, version: int) -> None:
    """Groups of one request are described in its order.

    Describe a stable group, a new one, and the stable one again.
    """
    first, second = broker.group(), broker.group()
    stable_member(broker, first)
    request = DescribeGroupsRequest(groups=[first, second, first])
    answer = broker.ask(request, version, DescribeGroupsResponse)
    names = {each.group_id for each in answer.groups}
    expect.true(names == {first, second}, "both groups", names, "groups")


def _with_members(broker: Subject, version: int, group_id: str) -> DescribeGroupsResponse:
    """Describe a group once its members are committed, which takes a while in a cluster."""
    for _ in broker.attempts(f"members of the group {group_id}"):
        answer = _ask(broker, version, group_id)
        if answer.groups[0].members:
            return answer
    raise AssertionError("attempts end in an exception")


@case("DescribeGroups", "Kafka protocol guide, DescribeGroups API")
def group_in_a_rebalance(broker: Subject, version: int) -> None:
    """A group without an assignment has no protocol, and its members have no metadata.

    Join, and describe before SyncGroup.
    """
    group_id = broker.group()
    member = joined(broker.connect(), _JOIN_VERSION, group_id)
    answer = _with_members(broker, version, group_id)
    expect.equal(answer, "groups[0].group_state", "CompletingRebalance")
    expect.equal(answer, "groups[0].protocol_data", "")
    expect.equal(answer, "groups[0].members[0].member_id", member.member_id)
    for field in ("member_metadata", "member_assignment"):
        seen = bytes(getattr(answer.groups[0].members[0], field))
        expect.true(seen == b"", "nothing", seen, f"groups[0].members[0].{field}")


@case("DescribeGroups", "KIP-345", since=4)
def instance_of_a_member(broker: Subject, version: int) -> None:
    """A static member is described with its instance id.

    Join under the instance id "instance", describe the group.
    """
    group_id = broker.group()
    joined(broker.connect(), _JOIN_VERSION, group_id, group_instance_id="instance")
    answer = _with_members(broker, version, group_id)
    expect.equal(answer, "groups[0].members[0].group_instance_id", "instance")


@case("DescribeGroups", "Kafka protocol guide, DescribeGroups API")
def no_groups(broker: Subject, version: int) -> None:
    """A request without groups has a response without groups.

    Describe no group.
    """
    broker.group()
    answer = broker.ask(DescribeGroupsRequest(groups=[]), version, DescribeGroupsResponse)
    expect.equal(answer, "groups", [])

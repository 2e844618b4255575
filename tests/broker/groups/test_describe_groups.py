"""DescribeGroups: members, states and authorized operations."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import (
    begin_loading,
    harness_with_groups,
    lose_coordination,
)
from tests.broker.groups.requests import subscription


@pytest.mark.parametrize("version", range(7))
def test_describe_shows_members_of_a_stable_group(version: int) -> None:
    response = (
        harness_with_groups().send(DescribeGroupsRequest(groups=["stable"]), version).response
    )
    (group,) = response.groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (member,) = group.members
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.group_instance_id == ("instance" if version >= 4 else None)
    assert bytes(member.member_metadata) == subscription("topic")
    assert bytes(member.member_assignment) == member.member_id.encode()
    assert group.authorized_operations == -(1 << 31)


@pytest.mark.parametrize("version", range(7))
def test_describe_of_a_group_that_does_not_exist_is_dead(version: int) -> None:
    response = harness_with_groups().send(DescribeGroupsRequest(groups=["none"]), version).response
    (group,) = response.groups
    assert group.group_state == "Dead"
    expected = (ErrorCode.NONE, None)
    if version >= 6:
        expected = (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")
    assert (group.error_code, group.error_message) == expected


def test_describe_shows_all_operations_when_asked() -> None:
    request = DescribeGroupsRequest(groups=["stable", "none"], include_authorized_operations=True)
    response = harness_with_groups().send(request, 6).response
    assert [g.authorized_operations for g in response.groups] == [0b110101001000, -(1 << 31)]


def test_errors_in_order() -> None:
    harness = Harness()

    def error_of_unknown_group() -> int:
        response = harness.send(DescribeGroupsRequest(groups=["none"]), 6).response
        return int(response.groups[0].error_code)

    lose_coordination(harness)
    assert error_of_unknown_group() == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert error_of_unknown_group() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert error_of_unknown_group() == ErrorCode.GROUP_ID_NOT_FOUND

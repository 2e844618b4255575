"""LeaveGroup: one member or several, and what is left of the group."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import (
    begin_loading,
    harness_with_delay,
    lose_coordination,
    stable_group,
)
from tests.broker.groups.requests import Member, finish_rebalance


@pytest.mark.parametrize("version", range(6))
def test_a_leaving_member_makes_the_others_rebalance(version: int) -> None:
    harness = harness_with_delay()
    leader, members = stable_group(harness)
    follower = next(member for member in members if member is not leader)
    assert follower.leave(version).error == ErrorCode.NONE
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    again = follower.leave(version)
    errors = [m.error_code for m in again.response.members] or [again.error]
    assert errors == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_leaving_of_several_members_is_answered_one_by_one() -> None:
    harness = harness_with_delay()
    _, (first, second, third) = stable_group(harness)
    leaving = [MemberIdentity(member_id=m) for m in (first.member_id, "nobody", second.member_id)]
    request = LeaveGroupRequest(group_id="group", members=leaving)
    response = harness.send(request, 5).response
    assert [m.error_code for m in response.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert list(harness.group("group").members) == [third.member_id]


def test_when_the_last_member_leaves_the_group_is_empty_in_a_new_generation() -> None:
    harness = Harness()
    member = Member(harness)
    member.join()
    harness.settle()
    finish_rebalance(member)
    member.leave()
    group = harness.group("group")
    assert (group.state.value, group.generation_id, group.leader_id) == ("Empty", 2, None)
    again = Member(harness)
    again.join()
    harness.settle()
    assert again.joined().generation_id == 3


def test_a_leaving_given_id_is_forgotten() -> None:
    harness = Harness()
    member = Member(harness)
    member.join_once()
    member.member_id = member.joining.response.member_id
    assert member.leave().response.members[0].error_code == ErrorCode.NONE
    assert harness.group("group").pending_members == {}


@pytest.mark.parametrize("version", range(6))
def test_errors_in_order(version: int) -> None:
    harness = Harness()
    nobody = Member(harness, group_id="", member_id="nobody")
    lose_coordination(harness)
    assert nobody.leave(version).error == ErrorCode.INVALID_GROUP_ID
    nobody.group_id = "group"
    assert nobody.leave(version).error == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert nobody.leave(version).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    left = nobody.leave(version)
    errors = [m.error_code for m in left.response.members] or [left.error]
    assert errors == [ErrorCode.UNKNOWN_MEMBER_ID]

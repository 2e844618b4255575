"""Sequences of requests that no client of Apache's makes, but any client can."""

from __future__ import annotations

import pytest

from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.groups.consumer.test_migration import assignment, classic_group
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Member, subscription
from tests.broker.groups.test_consumer_group_heartbeat import (
    group_in,
    joining,
    send,
    staying,
    with_topic,
)


def left_by_its_second_instance() -> Harness:
    """Return a group whose member joined under two instances, and left."""
    harness = with_topic()
    assert send(harness, joining(instance_id="first")).error == ErrorCode.NONE
    assert send(harness, joining(instance_id="second")).error == ErrorCode.NONE
    assert send(harness, staying(-1, instance_id="second")).error == ErrorCode.NONE
    return harness


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("epoch", [0, 5, -1, -2])
@pytest.mark.parametrize("member_id", ["member", "other"])
def test_an_instance_whose_member_left_by_another_one_is_refused(
    member_id: str, epoch: int, restarts: bool
) -> None:
    """As 4.3.1: the instance still has the member, and the member is unknown."""
    harness = left_by_its_second_instance()
    harness = harness.restart() if restarts else harness
    request = joining if epoch == 0 else lambda **fields: staying(epoch, **fields)
    answer = send(harness, request(member_id=member_id, instance_id="first"))
    assert answer.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.response.error_message == "Member member is not a member of group group."


def test_classic_requests_of_an_instance_whose_member_left_are_refused() -> None:
    harness = left_by_its_second_instance()
    assert send(harness, joining(member_id="other")).error == ErrorCode.NONE
    classic = Member(harness, instance_id="first")
    assert classic.join_once().error == ErrorCode.UNKNOWN_MEMBER_ID
    identity = MemberIdentity(member_id="", group_instance_id="first")
    leaving = LeaveGroupRequest(group_id="group", members=[identity])
    (left,) = harness.send(leaving, 5).response.members
    assert left.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_brings_the_classic_protocol_under_its_own_id_joins_again() -> None:
    """As 4.3.1: only a static member's place makes the group a classic one."""
    harness = with_topic()
    assert send(harness, joining()).error == ErrorCode.NONE
    member = Member(harness, member_id="member")
    for _ in range(3):
        assert member.join_once().error == ErrorCode.NONE
    member.joined()
    assert member.heartbeat() == ErrorCode.NONE
    assert isinstance(group_in(harness), ConsumerGroup)


def test_the_last_static_member_of_the_protocol_brings_the_classic_one_under_its_own_id() -> None:
    """As 4.3.1: that is a place of its own, so the group becomes a classic one."""
    harness = with_topic()
    assert send(harness, joining(instance_id="one")).error == ErrorCode.NONE
    member = Member(harness, member_id="member", instance_id="one")
    for _ in range(3):
        assert member.join_once().error == ErrorCode.NONE
    assert list(harness.group("group").members) == ["member"]


def test_a_static_member_that_is_classic_already_does_not_end_the_group() -> None:
    """As 4.3.1, also if all members are classic: too many of them kept the group as it was."""
    harness = with_topic(group_max_size=1)
    for name in ("one", "two"):
        assert send(harness, joining(member_id=name, instance_id=name)).error == ErrorCode.NONE
    members = [Member(harness, member_id=each, instance_id=each) for each in ("one", "two")]
    assert [each.join_once().error for each in members] == [ErrorCode.NONE] * 2
    harness.settings = type(harness.settings)(group_initial_rebalance_delay_ms=0)
    assert members[0].join_once().error == ErrorCode.NONE
    assert isinstance(group_in(harness), ConsumerGroup)


def test_the_first_protocol_of_a_member_may_not_be_one_of_consumers() -> None:
    """The classic group used another one, so the group could be converted."""
    harness = with_topic()
    classic_group(harness, assignment(0, 1, 2))
    (member_id,) = harness.group("group").members
    metadata = {"first": b"", "range": subscription("topic")}
    member = Member(harness, protocols=("first", "range"), metadata=metadata)
    member.join()
    leader = Member(harness, member_id=member_id, client_id="client-0")
    leader.join_once()
    harness.settle()
    leader.joined()
    member.joined()
    member.sync()
    leader.sync({leader.member_id: assignment(0), member.member_id: assignment(1)})
    joined = send(harness, joining(member_id="modern", subscribed_topic_names=[]))
    assert joined.error == ErrorCode.NONE
    member.protocols = ("first",)
    assert member.sync(protocol_name="first").error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert leader.sync().error == ErrorCode.NONE

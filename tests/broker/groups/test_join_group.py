"""JoinGroup: ids, limits and refusals, in every version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import (
    begin_loading,
    harness_with_delay,
    lose_coordination,
    stable_group,
    three_members,
    with_topic,
)
from tests.broker.groups.requests import Member
from tests.broker.groups.test_consumer_group_heartbeat import joining as consumer_joining
from tests.broker.groups.test_streams_group_heartbeat import joining as streams_joining


@pytest.mark.parametrize("version", range(10))
def test_a_member_without_id_joins_at_once_below_v4_and_is_sent_back_with_an_id_since(
    version: int,
) -> None:
    harness = Harness()
    member = Member(harness, client_id="my-client", join_version=version)
    member.join_once()
    harness.settle()
    response = member.joining.response
    prefix, _, digits = response.member_id.partition("-client-")
    assert prefix == "my"
    assert len(digits) == 36
    assert digits[14] == "4"
    expected = ErrorCode.NONE if version < 4 else ErrorCode.MEMBER_ID_REQUIRED
    assert member.joining.error == expected
    if version >= 4:
        member.member_id = response.member_id
        member.join_once()
        harness.settle()
        assert member.joining.error == ErrorCode.NONE
        response = member.joining.response
    assert response.generation_id == 1
    assert response.leader == response.member_id
    assert response.protocol_name == "range"
    assert [m.member_id for m in response.members] == [response.member_id]


@pytest.mark.parametrize("version", range(10))
def test_refused_join_is_encodable_in_every_version(version: int) -> None:
    member = Member(Harness(), group_id="", join_version=version)
    assert member.join_once().error == ErrorCode.INVALID_GROUP_ID
    assert member.joining.response.protocol_name == ("" if version < 7 else None)


@pytest.mark.parametrize(
    ("timeout_ms", "error"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_session_timeout_outside_the_limits_is_refused(timeout_ms: int, error: ErrorCode) -> None:
    assert Member(Harness(), session_timeout_ms=timeout_ms).join_once().error == error


def test_an_id_for_a_group_that_does_not_exist_is_unknown() -> None:
    member = Member(Harness(), member_id="made-up")
    assert member.join_once().error == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.joining.response.member_id == "made-up"


def test_a_follower_that_repeats_its_join_is_told_its_generation() -> None:
    harness = harness_with_delay()
    leader, members = stable_group(harness)
    follower = next(member for member in members if member is not leader)
    follower.join_once()
    assert follower.joining.response.generation_id == 1
    assert follower.joining.response.members == []
    assert leader.heartbeat() == ErrorCode.NONE


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [
        ("connect", ("range",)),
        ("consumer", ("sticky",)),
        ("consumer", ()),
        ("", ("range",)),
    ],
)
def test_a_member_without_a_common_protocol_is_refused(
    protocol_type: str, protocols: tuple[str, ...]
) -> None:
    harness = Harness()
    first = Member(harness)
    first.join()
    other = Member(harness, protocol_type=protocol_type, protocols=protocols)
    assert other.join_once().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_group_max_size_refuses_one_member_too_many() -> None:
    harness = harness_with_delay(group_max_size=2)
    members = three_members(harness)
    for member in members:
        member.join()
    assert [member.joining.is_parked for member in members] == [True, True, False]
    assert members[2].joining.error == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_client_id_that_leaves_no_room_for_a_member_id_is_refused() -> None:
    assert Member(Harness(), client_id="x" * 32_731).join_once().error == ErrorCode.INVALID_REQUEST


def test_errors_in_order() -> None:
    harness = Harness()
    nobody = Member(harness, group_id="", member_id="nobody", session_timeout_ms=1)
    lose_coordination(harness)
    assert nobody.join_once().error == ErrorCode.INVALID_GROUP_ID
    nobody.group_id = "group"
    assert nobody.join_once().error == ErrorCode.INVALID_SESSION_TIMEOUT
    nobody.session_timeout_ms = 10_000
    assert nobody.join_once().error == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert nobody.join_once().error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert nobody.join_once().error == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("kind", [consumer_joining, streams_joining], ids=["consumer", "streams"])
def test_a_member_without_a_consumers_protocol_does_not_join_members_of_another_kind(
    kind: Callable[[], Message],
) -> None:
    harness = with_topic()
    assert harness.send(kind(), kind().MAX_VERSION).error == ErrorCode.NONE
    classic = Member(harness, protocol_type="connect")
    for _ in range(2):
        assert classic.join().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert classic.member_id == ""

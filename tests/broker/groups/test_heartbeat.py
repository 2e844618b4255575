"""Heartbeat: whose session goes on."""

from __future__ import annotations

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import (
    begin_loading,
    harness_with_delay,
    lose_coordination,
    stable_group,
)
from tests.broker.groups.requests import Member


def test_heartbeat_of_wrong_generation_member_or_group_is_refused() -> None:
    harness = harness_with_delay()
    leader, _ = stable_group(harness)
    assert leader.heartbeat(generation_id=9) == ErrorCode.ILLEGAL_GENERATION
    assert leader.heartbeat(member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.heartbeat(group_id="nowhere") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.heartbeat(group_id="") == ErrorCode.INVALID_GROUP_ID


def test_errors_in_order() -> None:
    harness = Harness()
    nobody = Member(harness, member_id="nobody")
    lose_coordination(harness)
    assert nobody.heartbeat(group_id="") == ErrorCode.INVALID_GROUP_ID
    assert nobody.heartbeat() == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert nobody.heartbeat() == ErrorCode.NONE
    harness.settle()
    assert nobody.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID

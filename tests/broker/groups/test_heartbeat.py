"""Heartbeat: whose session goes on."""

from __future__ import annotations

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.ready_groups import harness_with_delay, stable_group


def test_heartbeat_of_wrong_generation_member_or_group_is_refused() -> None:
    harness = harness_with_delay()
    leader, _ = stable_group(harness)
    assert leader.heartbeat(generation_id=9) == ErrorCode.ILLEGAL_GENERATION
    assert leader.heartbeat(member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.heartbeat(group_id="nowhere") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.heartbeat(group_id="") == ErrorCode.INVALID_GROUP_ID

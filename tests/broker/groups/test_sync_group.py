"""SyncGroup: the assignment, and who is refused one."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import (
    begin_loading,
    harness_with_delay,
    lose_coordination,
    stable_group,
)
from tests.broker.groups.requests import Member


def test_sync_of_wrong_generation_member_or_protocol_is_refused() -> None:
    harness = harness_with_delay()
    leader, _ = stable_group(harness)
    assert leader.sync(generation_id=7).error == ErrorCode.ILLEGAL_GENERATION
    assert leader.sync(member_id="nobody").error == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.sync(group_id="nowhere").error == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.sync(group_id="").error == ErrorCode.INVALID_GROUP_ID
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert leader.sync(protocol_name="sticky").error == inconsistent
    assert leader.sync(protocol_type="connect").error == inconsistent
    assert leader.sync(protocol_type=None).error == inconsistent


@pytest.mark.parametrize("version", range(6))
def test_sync_of_a_stable_group_answers_the_assignment_in_every_version(version: int) -> None:
    harness = harness_with_delay()
    leader, _ = stable_group(harness)
    leader.sync_version = version
    assert bytes(leader.sync().response.assignment) == leader.member_id.encode()


def test_errors_in_order() -> None:
    harness = Harness()
    nobody = Member(harness, group_id="", member_id="nobody")
    lose_coordination(harness)
    assert nobody.sync(protocol_name=None).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert nobody.sync().error == ErrorCode.INVALID_GROUP_ID
    nobody.group_id = "group"
    assert nobody.sync().error == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert nobody.sync().error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert nobody.sync().error == ErrorCode.UNKNOWN_MEMBER_ID

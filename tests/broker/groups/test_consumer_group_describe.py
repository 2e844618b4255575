"""ConsumerGroupDescribe: epochs, members and targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.requests import Member
from tests.broker.groups.test_consumer_group_heartbeat import (
    group_in,
    joining,
    send,
    with_topic,
)


def describe(harness: Harness, *groups: str, version: int = 1, **fields: Any) -> list[Any]:
    request = ConsumerGroupDescribeRequest(group_ids=list(groups), **fields)
    return list(harness.send(request, version).response.groups)


def error_of(harness: Harness, group_id: str) -> int:
    (group,) = describe(harness, group_id)
    return int(group.error_code)


def test_errors_in_order() -> None:
    """848-FEAT-03."""
    harness = Harness()
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    assert error_of(harness, "") == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"group.version": 1})
    assert error_of(harness, "") == ErrorCode.INVALID_GROUP_ID
    assert error_of(harness, "group") == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert error_of(harness, "group") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert error_of(harness, "group") == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_described_with_its_members(version: int) -> None:
    """848-ADMIN-01, 848-ADMIN-02."""
    harness = with_topic()
    send(harness, joining())
    (group,) = describe(harness, "group", version=version, include_authorized_operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert (group.assignor_name, group.authorized_operations) == ("uniform", 3400)
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.client_host) == (
        "member",
        2,
        "/127.0.0.1",
    )
    assert member.member_type == (1 if version else -1)
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("topic", [0, 1, 2])
    assert member.target_assignment.topic_partitions == [topic]


def test_empty_ids_come_first_and_other_kinds_are_not_found() -> None:
    """848-ADMIN-03."""
    harness = with_topic()
    Member(harness, group_id="classic").commit()
    described = describe(harness, "classic", "", "missing")
    assert [(each.group_id, each.error_code, each.error_message) for each in described] == [
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("classic", ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND, "Group missing not found."),
    ]


@pytest.mark.parametrize("error", [None, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_an_uncommitted_change_is_not_shown(
    error: ErrorCode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """848-ADMIN-01: the answer waits for the ISR."""
    harness = with_topic()
    send(harness, joining())
    assert len(describe(harness, "group")[0].members) == 1
    written = harness.store.end_offset(0)
    monkeypatch.setattr(harness.store, "high_watermark", lambda _: written - 1)
    group_in(harness).safe_at = written
    parked: list[Any] = []

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        parked.append((required, answer))
        return PARKED

    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    request = ConsumerGroupDescribeRequest(group_ids=["group", "missing"])
    assert harness.send(request, 1).is_parked
    ((required, answer),) = parked
    assert required == {0: written}
    found, missing = answer({} if error is None else {0: error}).groups
    assert (found.error_code, len(found.members)) == ((0, 1) if error is None else (15, 0))
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND

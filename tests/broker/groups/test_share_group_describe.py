"""ShareGroupDescribe: epochs and members; and share groups in ListGroups and DescribeGroups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.share_group_describe import ShareGroupDescribeRequest
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.requests import Member
from tests.broker.groups.test_share_group_heartbeat import (
    group_in,
    joining,
    leaving,
    send,
    sharing,
    with_topic,
)


def describe(harness: Harness, *groups: str, **fields: Any) -> list[Any]:
    request = ShareGroupDescribeRequest(group_ids=list(groups), **fields)
    return list(harness.send(request, 1).response.groups)


def error_of(harness: Harness, group_id: str) -> int:
    (group,) = describe(harness, group_id)
    return int(group.error_code)


def test_errors_in_order() -> None:
    """932-FEAT-02, 932-ADMIN-01."""
    harness = Harness()
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    assert error_of(harness, "") == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"share.version": 1})
    assert error_of(harness, "") == ErrorCode.INVALID_GROUP_ID
    assert error_of(harness, "group") == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert error_of(harness, "group") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert error_of(harness, "group") == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_described_with_its_members() -> None:
    """932-ADMIN-01, 932-HB-17."""
    harness = sharing("member")
    (group,) = describe(harness, "group", include_authorized_operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert (group.assignor_name, group.authorized_operations) == ("simple", 3400)
    (member,) = group.members
    assert (member.member_id, member.member_epoch) == ("member", 3)
    assert (member.client_id, member.client_host, member.rack_id) == (
        "client",
        "/127.0.0.1",
        None,
    )
    assert member.subscribed_topic_names == ["topic"]
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("topic", [0, 1, 2])
    send(harness, leaving())
    (group,) = describe(harness, "group")
    assert (group.group_state, group.members) == ("Empty", [])
    assert group.authorized_operations == -(2**31)


def test_empty_ids_come_first_and_other_kinds_are_not_found() -> None:
    """932-ADMIN-01."""
    harness = with_topic()
    Member(harness, group_id="classic").commit()
    described = describe(harness, "classic", "", "missing")
    assert [(each.group_id, each.error_code, each.error_message) for each in described] == [
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("classic", ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a share group."),
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND, "Group missing not found."),
    ]


@pytest.mark.parametrize("error", [None, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_an_uncommitted_change_is_not_shown(
    error: ErrorCode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """932-ADMIN-01: the answer waits for the ISR."""
    harness = sharing("member")
    written = harness.store.end_offset(0)
    monkeypatch.setattr(harness.store, "high_watermark", lambda _: written - 1)
    group_in(harness).safe_at = written
    parked: list[Any] = []

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        parked.append((required, answer))
        return PARKED

    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    request = ShareGroupDescribeRequest(group_ids=["group", "missing"])
    assert harness.send(request, 1).is_parked
    ((required, answer),) = parked
    assert required == {0: written}
    found, missing = answer({} if error is None else {0: error}).groups
    assert (found.error_code, len(found.members)) == ((0, 1) if error is None else (15, 0))
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_share_groups_are_listed_by_their_type() -> None:
    """932-ADMIN-02."""
    harness = sharing("member")
    send(harness, joining(group_id="left"))
    send(harness, leaving(group_id="left"))
    Member(harness, group_id="classic").commit()
    listed = harness.send(ListGroupsRequest(types_filter=["Share"]), 5).response.groups
    assert [
        (each.group_id, each.group_type, each.protocol_type, each.group_state) for each in listed
    ] == [("group", "share", "share", "Stable"), ("left", "share", "share", "Empty")]


def test_a_share_group_is_no_classic_group() -> None:
    harness = sharing("member")
    (group,) = harness.send(DescribeGroupsRequest(groups=["group"]), 6).response.groups
    assert (group.error_code, group.error_message, group.group_state) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group group is not a classic group.",
        "Dead",
    )

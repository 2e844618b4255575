"""What a share group's heartbeat must say, and which epoch its member may send."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.share.checks import check_epoch
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.request_checks import check_request, is_member_id
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatRequest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"member_id": " ", "group_id": ""}, "MemberId can't be empty."),
        ({"group_id": " ", "rack_id": ""}, "GroupId can't be empty."),
        ({"rack_id": "", "subscribed_topic_names": None}, "RackId can't be empty."),
        ({"rack_id": "r"}, None),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": 1, "subscribed_topic_names": None}, None),
        ({"member_epoch": -1, "subscribed_topic_names": None}, None),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_first_fault_of_a_heartbeat_is_told(changes: dict[str, Any], message: str | None) -> None:
    """`throwIfShareGroupHeartbeatRequestIsInvalid`, in its order."""
    fields: dict[str, Any] = {
        "group_id": "group",
        "member_id": "m",
        "member_epoch": 0,
        "subscribed_topic_names": ["a"],
    }
    expected = message and Refusal(ErrorCode.INVALID_REQUEST, message)
    assert check_request(ShareGroupHeartbeatRequest(**{**fields, **changes})) == expected


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        (None, False),
        ("", False),
        ("m", True),
        ("m" * 36, True),
        ("m" * 37, False),
        ("\U0001f600" * 18, True),
        ("\U0001f600" * 18 + "m", False),
    ],
)
def test_member_id_has_up_to_36_java_characters(text: str | None, is_id: bool) -> None:
    assert is_member_id(text) is is_id
    request = ShareGroupHeartbeatRequest(
        group_id="group", member_id=text or "", member_epoch=0, subscribed_topic_names=["a"]
    )
    assert check_request(request) == (None if is_id else Refusal(ErrorCode.INVALID_REQUEST))


@pytest.mark.parametrize(
    ("epoch", "found"),
    [
        (0, None),
        (9, None),
        (7, None),
        (10, ("greater", "")),
        (8, ("smaller", ", and it does not match the previous member epoch (7)")),
        (6, ("smaller", ", and it does not match the previous member epoch (7)")),
    ],
)
def test_member_sends_its_epoch_or_the_one_before(
    epoch: int, found: tuple[str, str] | None
) -> None:
    """`throwIfShareGroupMemberEpochIsInvalid`."""
    member = ShareMember("m", member_epoch=9, previous_member_epoch=7)
    expected = None
    if found is not None:
        size, reason = found
        expected = Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a {size} member epoch ({epoch}) than the one known by "
            f"the group coordinator (9){reason}. The member must abandon all its partitions and "
            "rejoin.",
        )
    assert check_epoch(member, epoch) == expected


def test_former_epoch_above_the_present_one_is_greater() -> None:
    odd = ShareMember("m", member_epoch=3, previous_member_epoch=4)
    found = check_epoch(odd, 4)
    assert found is not None
    assert "has a greater member epoch (4)" in (found.message or "")

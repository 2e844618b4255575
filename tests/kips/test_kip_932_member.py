"""KIP-932, members of share groups: what no test of `tests/broker/groups` shows by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.groups import share_group_describe, share_group_heartbeat
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatResponse
from kraft_wire.wire.message import Message
from tests.broker.groups.test_share_group_heartbeat import joining


def judged(guard: Any, request: Message, allowed: tuple[str, ...]) -> Verdict:
    """Return what a guard makes of a request of somebody who may use some names."""
    needs = APIS[request.API_KEY].needs_on(ListenerType.BROKER)
    asker = SimpleNamespace(
        meets=lambda _, name: name in allowed,
        allowed=lambda _, names, is_silent: {name: name in allowed for name in names},
        operations=lambda *_: 8,
    )
    verdict: Verdict = guard(Asked(asker, None, request, needs, None, None))  # type: ignore[arg-type]  # what these guards ask for
    return verdict


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        ((), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (("group", "topic"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (("group", "topic", "other"), None),
    ],
)
def test_a_heartbeat_needs_the_group_and_all_topics(
    allowed: tuple[str, ...], error: ErrorCode | None
) -> None:
    """932-HB-02: one hidden topic refuses all."""
    request = joining(subscribed_topic_names=["topic", "other"])
    verdict = judged(share_group_heartbeat, request, allowed)
    if error is None:
        assert isinstance(verdict, Passed)
    else:
        assert isinstance(verdict, ShareGroupHeartbeatResponse)
        assert verdict.error_code == error


def test_a_member_id_is_looked_at_between_the_group_and_the_topics() -> None:
    """932-HB-02, 932-HB-03: the broker then refuses the id."""
    request = joining(member_id="")
    assert isinstance(judged(share_group_heartbeat, request, ("group",)), Passed)
    assert isinstance(judged(share_group_heartbeat, request, ()), ShareGroupHeartbeatResponse)


def described(*topics: str) -> ShareGroupDescribeResponse:
    parts = [TopicPartitions(topic_name=topic, partitions=[0]) for topic in topics]
    member = Member(member_id="member", assignment=Assignment(topic_partitions=parts))
    return ShareGroupDescribeResponse(groups=[DescribedGroup(group_id="group", members=[member])])


def test_a_group_with_a_hidden_topic_shows_no_members() -> None:
    """932-ADMIN-01: groups that are hidden come first."""
    request = ShareGroupDescribeRequest(group_ids=["hidden", "group"])
    verdict = judged(share_group_describe, request, ("group", "topic"))
    assert isinstance(verdict, Passed)
    assert request.group_ids == ["group"]
    assert verdict.finish is not None
    for topics, error in ((("topic",), 0), (("topic", "other"), 29)):
        answer: Any = verdict.finish(described(*topics))
        hidden, group = answer.groups
        assert (hidden.group_id, hidden.error_code) == ("hidden", 30)
        assert (group.error_code, len(group.members)) == (error, 0 if error else 1)
    nothing: Any = judged(share_group_describe, ShareGroupDescribeRequest(group_ids=["group"]), ())
    assert [each.error_code for each in nothing.groups] == [30]

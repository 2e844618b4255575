"""KIP-932, members of share groups: what no test of `tests/broker/groups` shows by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.groups import share_group_describe, share_group_heartbeat
from kraft_wire.node.authorization.share_offsets import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
)
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponseTopic,
)
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
    verdict: Verdict = guard(Asked(asker, None, request, needs, MetadataImage(), None))  # type: ignore[arg-type]  # what these guards ask for
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
    group = DescribedGroup(group_id="group", group_state="Stable", group_epoch=3, members=[member])
    return ShareGroupDescribeResponse(groups=[group])


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
        # 4.3.1's `KafkaApis.handleShareGroupDescribe` makes a new, empty one.
        assert (group.group_state, group.group_epoch) == (("", 0) if error else ("Stable", 3))
    nothing: Any = judged(share_group_describe, ShareGroupDescribeRequest(group_ids=["group"]), ())
    assert [each.error_code for each in nothing.groups] == [30]


def test_start_offsets_need_the_group_and_each_topic() -> None:
    """932-ADMIN-05, 932-ADMIN-08: an error of all has no topics."""
    altering: Any = AlterShareGroupOffsetsRequest(
        group_id="group",
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name, partitions=[AlterShareGroupOffsetsRequestPartition()]
            )
            for name in ("topic", "hidden")
        ],
    )
    deleting: Any = DeleteShareGroupOffsetsRequest(
        group_id="group",
        topics=[
            DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("topic", "hidden")
        ],
    )
    cases: tuple[Any, ...] = (
        (alter_share_group_offsets, altering, AlterShareGroupOffsetsResponse),
        (delete_share_group_offsets, deleting, DeleteShareGroupOffsetsResponse),
    )
    for guard, request, response in cases:
        nothing: Any = judged(guard, request, ())
        assert (nothing.error_code, nothing.error_message) == (30, "Group authorization failed.")
        verdict = judged(guard, request, ("group", "topic"))
        assert isinstance(verdict, Passed)
        assert verdict.finish is not None
        assert [topic.topic_name for topic in request.topics] == ["topic"]
        answer: Any = verdict.finish(response())
        (refused,) = answer.responses
        assert refused.topic_name == "hidden"
        found = refused if response is DeleteShareGroupOffsetsResponse else refused.partitions[0]
        assert (found.error_code, found.error_message) == (29, "Topic authorization failed.")
        failed: Any = verdict.finish(response(error_code=68))
        assert failed.responses == []


def test_hidden_groups_and_topics_are_not_described() -> None:
    """932-ADMIN-03: groups keep their order; of all topics hidden ones are left out."""
    topics = [
        DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
        for name in ("topic", "hidden")
    ]
    request = DescribeShareGroupOffsetsRequest(
        groups=[
            DescribeShareGroupOffsetsRequestGroup(group_id="secret", topics=None),
            DescribeShareGroupOffsetsRequestGroup(group_id="group", topics=topics),
            DescribeShareGroupOffsetsRequestGroup(group_id="all", topics=None),
        ]
    )
    verdict = judged(describe_share_group_offsets, request, ("group", "all", "topic"))
    assert isinstance(verdict, Passed)
    assert verdict.finish is not None
    described = [
        DescribeShareGroupOffsetsResponseGroup(
            group_id=name,
            topics=[DescribeShareGroupOffsetsResponseTopic(topic_name=each) for each in found],
        )
        for name, found in (("group", ["topic"]), ("all", ["topic", "hidden"]))
    ]
    answer: Any = verdict.finish(DescribeShareGroupOffsetsResponse(groups=described))
    assert [(group.group_id, group.error_code) for group in answer.groups] == [
        ("secret", 30),
        ("group", 0),
        ("all", 0),
    ]
    _, group, every = answer.groups
    assert [topic.topic_name for topic in group.topics] == ["topic", "hidden"]
    (hidden,) = group.topics[1].partitions
    assert (hidden.start_offset, hidden.lag, hidden.error_code) == (-1, -1, 29)
    assert [topic.topic_name for topic in every.topics] == ["topic"]
    request = DescribeShareGroupOffsetsRequest(groups=request.groups)
    refused: Any = judged(describe_share_group_offsets, request, ())
    assert [group.error_code for group in refused.groups] == [30, 30]

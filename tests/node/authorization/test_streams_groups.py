"""Rights on streams groups and on the topics of their topologies; creation of internal topics.

As `KafkaApis.handleStreamsGroupHeartbeat` of 4.3.1 asks for them.
"""

from __future__ import annotations

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.broker.context import RequestContext
from kraft_wire.node.authorization.asker import Passed
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kraft_wire.wire.generated.streams_group_describe import Subtopology as DescribedSubtopology
from kraft_wire.wire.generated.streams_group_describe import Topology as DescribedTopology
from kraft_wire.wire.generated.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)
from kraft_wire.wire.message import Message
from tests.broker.small_broker import context as context_of
from tests.node.authorization.guarded_node import (
    CLUSTER,
    CLUSTER_NAME,
    GROUP,
    NOBODY,
    TOPIC,
    GuardedDoor,
    guarded_node,
)


@pytest.fixture
def node() -> GuardedDoor:
    return guarded_node("mine", "theirs")


def judged(node: GuardedDoor, request: Message) -> object:
    """Return what the guard of a request from a stranger's address says."""
    guards = node.node._guards
    assert guards is not None
    broker = node.node.broker
    return guards.judge(
        ListenerType.BROKER, stranger(), request, broker.image, broker.settings.source
    )


def stranger() -> RequestContext:
    context = context_of(0)
    context.client_host = NOBODY
    return context


def join(*sources: str) -> StreamsGroupHeartbeatRequest:
    subtopology = Subtopology(
        source_topics=list(sources), state_changelog_topics=[TopicInfo(name="store")]
    )
    return StreamsGroupHeartbeatRequest(
        group_id="g", topology=Topology(subtopologies=[subtopology])
    )


def test_a_heartbeat_needs_the_group_and_then_every_topic(node: GuardedDoor) -> None:
    refused = judged(node, join("mine"))
    assert isinstance(refused, StreamsGroupHeartbeatResponse)
    assert (refused.error_code, refused.status) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
    node.permit(GROUP, "g", Op.READ)
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    refused = judged(node, join("mine"))
    assert isinstance(refused, StreamsGroupHeartbeatResponse)
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert refused.error_message is None
    node.permit(TOPIC, "store", Op.DESCRIBE)
    assert isinstance(judged(node, join("mine")), Passed)
    assert isinstance(judged(node, StreamsGroupHeartbeatRequest(group_id="g")), Passed)


def test_topics_that_no_topology_may_have_are_left_to_the_handler(node: GuardedDoor) -> None:
    node.permit(GROUP, "g", Op.READ)
    assert isinstance(judged(node, join("theirs", "__consumer_offsets")), Passed)
    assert isinstance(judged(node, join("theirs", "a/b")), Passed)


def test_internal_topics_need_the_right_to_create_each(node: GuardedDoor) -> None:
    rights = node.node.broker.creation_rights
    assert rights is not None
    node.permit(TOPIC, "b", Op.CREATE)
    node.denied.clear()
    may_create = rights(stranger())
    assert [may_create(name) for name in "abc"] == [False, True, False]
    assert len(node.denied) == 2, "the right on the cluster is asked for silently"


def test_the_right_on_the_cluster_is_enough_for_all_internal_topics(node: GuardedDoor) -> None:
    rights = node.node.broker.creation_rights
    assert rights is not None
    node.permit(CLUSTER, CLUSTER_NAME, Op.CREATE)
    assert all(map(rights(stranger()), ("a", "b")))


def test_a_described_group_with_a_hidden_topic_shows_nothing_else(node: GuardedDoor) -> None:
    node.permit(GROUP, "g", Op.DESCRIBE)
    node.permit(GROUP, "h", Op.DESCRIBE)
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    passed = judged(node, StreamsGroupDescribeRequest(group_ids=["g", "other", "h"]))
    assert isinstance(passed, Passed)
    assert passed.finish is not None
    described = StreamsGroupDescribeResponse(
        groups=[described_group("g", "mine"), described_group("h", "mine", "theirs")]
    )
    answer = passed.finish(described)
    assert isinstance(answer, StreamsGroupDescribeResponse)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [
        ("other", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("g", ErrorCode.NONE),
        ("h", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    hidden = answer.groups[2]
    assert (hidden.topology, hidden.group_state, hidden.members) == (None, "", [])
    assert hidden.error_message == (
        "The described group uses topics that the client is not authorized to describe."
    )


def described_group(group_id: str, *sources: str) -> DescribedGroup:
    subtopology = DescribedSubtopology(source_topics=list(sources))
    topology = DescribedTopology(subtopologies=[subtopology])
    return DescribedGroup(group_id=group_id, group_state="Stable", topology=topology)

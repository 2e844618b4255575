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
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kraft_wire.wire.generated.streams_group_describe import Subtopology as DescribedSubtopology
from kraft_wire.wire.generated.streams_group_describe import TopicInfo as DescribedTopicInfo
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
    ADMINISTRATOR,
    CLUSTER,
    CLUSTER_NAME,
    GROUP,
    STRANGER,
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
    context.client_host = STRANGER
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
    rights = node.node.broker.rights
    assert rights is not None
    node.permit(TOPIC, "b", Op.CREATE)
    node.denied.clear()
    may_create = rights.creation_rights(stranger())
    assert [may_create(name) for name in "abc"] == [False, True, False]
    assert len(node.denied) == 2, "the right on the cluster is asked for silently"


def test_the_right_on_the_cluster_is_enough_for_all_internal_topics(node: GuardedDoor) -> None:
    rights = node.node.broker.rights
    assert rights is not None
    node.permit(CLUSTER, CLUSTER_NAME, Op.CREATE)
    assert all(map(rights.creation_rights(stranger()), ("a", "b")))


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


def test_repartition_and_changelog_topics_are_topics_of_a_group(node: GuardedDoor) -> None:
    """handleStreamsGroupDescribe of 4.3.1: all four lists; operations as far as they are asked."""
    for name in ("g", "h", "i", "j"):
        node.permit(GROUP, name, Op.DESCRIBE)
    node.permit(GROUP, "g", Op.READ)
    for name in ("mine", "store", "inner"):
        node.permit(TOPIC, name, Op.DESCRIBE)
    passed = judged(node, StreamsGroupDescribeRequest(group_ids=["g", "h", "i", "j"]))
    assert isinstance(passed, Passed)
    assert passed.finish is not None
    groups = [described_group(name, "mine") for name in "ghij"]
    for group, changelog, inner, sink in (
        (groups[0], "store", "inner", "inner"),
        (groups[1], "other", "inner", "inner"),
        (groups[2], "store", "other", "inner"),
        (groups[3], "store", "inner", "other"),
    ):
        assert group.topology is not None
        assert group.topology.subtopologies
        subtopology = group.topology.subtopologies[0]
        subtopology.state_changelog_topics = [DescribedTopicInfo(name=changelog)]
        subtopology.repartition_source_topics = [DescribedTopicInfo(name=inner)]
        subtopology.repartition_sink_topics = [sink]
    groups[0].authorized_operations = -1
    answer = passed.finish(StreamsGroupDescribeResponse(groups=groups))
    assert isinstance(answer, StreamsGroupDescribeResponse)
    hidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [each.error_code for each in answer.groups] == [0, hidden, hidden, hidden]
    assert answer.groups[0].authorized_operations == 1 << Op.DESCRIBE | 1 << Op.READ


def described_group(group_id: str, *sources: str) -> DescribedGroup:
    subtopology = DescribedSubtopology(source_topics=list(sources))
    topology = DescribedTopology(subtopologies=[subtopology])
    return DescribedGroup(group_id=group_id, group_state="Stable", topology=topology)


# -- a member of a whole node --------------------------------------------------------------------


def coordinating() -> GuardedDoor:
    """Return a node that coordinates a group, whose stranger may join, but create nothing."""
    node = guarded_node("mine", group_streams_initial_rebalance_delay_ms="0")
    for _ in range(3):
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        node.ask(request, host=ADMINISTRATOR)
        node.advance(100)
    node.permit(GROUP, "g", Op.READ)
    node.permit(TOPIC, "mine", Op.DESCRIBE)
    node.permit(TOPIC, "store", Op.DESCRIBE)
    return node


def member(replicas: int) -> StreamsGroupHeartbeatRequest:
    """Return the first heartbeat of a member whose store has a changelog topic."""
    request = join("mine")
    request.member_id, request.process_id, request.rebalance_timeout_ms = "m", "p", 1_000
    request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    assert request.topology is not None
    request.topology.subtopologies[0].state_changelog_topics[0].replication_factor = replicas
    return request


def beat(node: GuardedDoor, epoch: int) -> StreamsGroupHeartbeatResponse:
    node.advance(1_000)
    request = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    answer = node.ask(request)
    assert isinstance(answer, StreamsGroupHeartbeatResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer


def details(answer: StreamsGroupHeartbeatResponse) -> list[str]:
    return [each.status_detail for each in answer.status or ()]


def test_the_right_to_create_makes_the_controller_create_and_the_member_run() -> None:
    node = coordinating()
    answer = node.ask(member(replicas=1))
    missing = "Internal topics are missing: store"
    assert details(answer) == [f"{missing}; Unauthorized to CREATE on topics store."]
    assert node.node.broker.image.topic("store") is None
    node.permit(TOPIC, "store", Op.CREATE)
    assert details(beat(node, answer.member_epoch)) == [missing]
    assert node.node.broker.image.topic("store") is not None
    running = beat(node, answer.member_epoch)
    assert details(running) == []
    assert [each.partitions for each in running.active_tasks or ()] == [[0]]


def test_what_the_controller_refuses_is_told_for_two_heartbeats_and_tried_again() -> None:
    node = coordinating()
    node.permit(CLUSTER, CLUSTER_NAME, Op.CREATE)
    answer = node.ask(member(replicas=3))
    told = [*details(answer), *(details(beat(node, answer.member_epoch))[0] for _ in range(11))]
    missing = "Internal topics are missing: store"
    refused = f"{missing}; Creation failed: store (Unable to replicate the partition 3 time(s)"
    assert [each.startswith(refused) for each in told] == [False, *[True] * 9, False, True]
    assert {each for each in told if not each.startswith(refused)} == {missing}

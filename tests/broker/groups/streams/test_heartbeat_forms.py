"""What a streams heartbeat may have in its fields, and which topics its group follows."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.group_topology import (
    followed_topics,
    is_same_topology,
    subtopologies_by_source,
)
from kraft_wire.broker.groups.streams.request_checks import check_request
from kraft_wire.broker.groups.streams.seen_topics import SeenTopics
from kraft_wire.broker.groups.streams.tasks import TasksTuple
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import TaskIds, TaskOffset
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
    Subtopology,
    TopicInfo,
)
from tests.broker.groups.streams.our_answers import topics_image
from tests.broker.groups.test_streams_group_heartbeat import joining, staying, topology

TASK = [TaskIds(subtopology_id="0", partitions=[1])]
OFFSETS = [TaskOffset(subtopology_id="0", partition=1, offset=2)]
ALL_NULL = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instance_id": "i", "task_offsets": []}, "Static membership is not yet supported."),
        ({"task_offsets": [], "task_end_offsets": []}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": OFFSETS, "warmup_tasks": TASK}, "TaskEndOffsets are not supported"),
        ({"warmup_tasks": TASK, "member_id": ""}, "WarmupTasks are not supported yet."),
        ({"member_id": " ", "group_id": ""}, "MemberId can't be empty."),
        ({"group_id": "", "rack_id": ""}, "GroupId can't be empty."),
        ({"rack_id": "", "rebalance_timeout_ms": -1}, "RackId can't be empty."),
        (
            {"rebalance_timeout_ms": -1, "active_tasks": TASK},
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        ({"active_tasks": TASK, "standby_tasks": TASK}, "ActiveTasks must be empty when"),
        ({"active_tasks": None, "standby_tasks": None}, "ActiveTasks must be empty when"),
        ({"standby_tasks": TASK, "topology": None}, "StandbyTasks must be empty when"),
        ({"standby_tasks": None, "warmup_tasks": None}, "StandbyTasks must be empty when"),
        ({"warmup_tasks": None, "topology": None}, "WarmupTasks must be empty when"),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"member_epoch": -2, "rebalance_timeout_ms": -1}, "InstanceId can't be null."),
        (
            {"member_epoch": -3},
            "MemberEpoch is -3, but must be greater than or equal to -2.",
        ),
        (
            {"member_epoch": 5, "active_tasks": None},
            "If one task-type is non-null, all must be non-null.",
        ),
        (
            {"member_epoch": 5, "warmup_tasks": None, "topology": None},
            "If one task-type is non-null, all must be non-null.",
        ),
        ({"member_epoch": 5}, "Topology can only be provided when (re-)joining."),
        ({"member_epoch": -1}, "Topology can only be provided when (re-)joining."),
        ({}, None),
        ({"rack_id": "r", "rebalance_timeout_ms": 0}, None),
        ({"member_epoch": 5, "topology": None, "active_tasks": TASK}, None),
        ({"member_epoch": 5, "topology": None, **ALL_NULL}, None),
        ({"member_epoch": -1, "topology": None, "rebalance_timeout_ms": -1}, None),
    ],
)
def test_first_fault_of_a_heartbeat_is_told(changes: dict[str, Any], message: str | None) -> None:
    """`throwIfStreamsGroupHeartbeatRequestIsInvalid`, in its order."""
    found = check_request(joining(**changes))
    if message is None:
        assert found is None
    else:
        assert found is not None
        assert found.error == ErrorCode.INVALID_REQUEST
        assert (found.message or "").startswith(message)


def test_heartbeat_of_a_member_that_stays_may_say_nothing() -> None:
    assert check_request(staying(3)) is None
    pattern = joining(topology=topology(source_topic_regex=["x.*"]))
    assert isinstance(check_request(pattern), Refusal)


def infos(*names: str) -> list[TopicInfo]:
    return [TopicInfo(name=name) for name in names]


FIRST = Subtopology(
    subtopology_id="0", source_topics=["b", "a"], state_changelog_topics=infos("log", "b")
)
SECOND = Subtopology(
    subtopology_id="1",
    source_topics=["a", "c"],
    repartition_source_topics=infos("r"),
    repartition_sink_topics=["sink"],
)


def stored(*subtopologies: Subtopology, epoch: int = 0) -> StreamsGroupTopologyValue:
    return StreamsGroupTopologyValue(epoch=epoch, subtopologies=list(subtopologies))


def test_topologies_are_the_same_whatever_the_order_of_subtopologies() -> None:
    both = stored(FIRST, SECOND)
    assert is_same_topology(both, stored(SECOND, FIRST))
    assert not is_same_topology(both, stored(FIRST, SECOND, epoch=1))
    assert not is_same_topology(both, stored(FIRST))
    assert not is_same_topology(stored(FIRST), both)
    other = Subtopology(subtopology_id="0", source_topics=["a", "b"])
    assert not is_same_topology(both, stored(other, SECOND))


def test_group_follows_what_its_subtopologies_read_and_keep() -> None:
    """Topics that it only writes are those that another subtopology reads."""
    assert followed_topics(stored(FIRST, SECOND)) == ["b", "a", "log", "c", "r"]
    assert subtopologies_by_source(stored(FIRST, SECOND)) == {
        "b": "0",
        "a": "1",
        "c": "1",
        "r": "1",
    }


def test_topics_may_differ_before_the_first_look_and_after_their_own_change() -> None:
    image = topics_image({"a": 1, "b": 1})
    seen = SeenTopics()
    assert seen.may_differ(image)
    seen.note([], image)
    assert not seen.may_differ(topics_image({"a": 2}))
    seen = SeenTopics()
    seen.note(["a", "gone"], image)
    assert not seen.may_differ(image)
    seen.note(["b"], image)  # the same image has the same topics
    later = topics_image({"gone": 1})
    assert seen.may_differ(later)
    seen.note(["gone"], later)
    assert (seen.may_differ(later), seen.may_differ(image)) == (False, True)


@pytest.mark.parametrize("kind", range(3))
def test_tasks_of_one_kind_are_not_nothing(kind: int) -> None:
    kinds = [{}, {}, {}]
    assert TasksTuple(*kinds).is_empty
    kinds[kind] = {"a": frozenset({1})}
    assert not TasksTuple(*kinds).is_empty

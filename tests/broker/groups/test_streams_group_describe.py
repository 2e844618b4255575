"""StreamsGroupDescribe: epochs, topology and members; and streams groups in ListGroups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.streams_group_describe import StreamsGroupDescribeRequest
from kraft_wire.wire.generated.streams_group_heartbeat import TopicInfo
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.test_streams_group_heartbeat import (
    joining,
    send,
    staying,
    streaming,
    topology,
    with_topic,
)


def describe(harness: Harness, *groups: str, **fields: Any) -> list[Any]:
    request = StreamsGroupDescribeRequest(group_ids=list(groups), **fields)
    return list(harness.send(request, 0).response.groups)


def error_of(harness: Harness, group_id: str) -> int:
    (group,) = describe(harness, group_id)
    assert group.topology is None
    return int(group.error_code)


def test_errors_in_order() -> None:
    harness = Harness()
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    assert error_of(harness, "") == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"streams.version": 1})
    assert error_of(harness, "") == ErrorCode.INVALID_GROUP_ID
    assert error_of(harness, "group") == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert error_of(harness, "group") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert error_of(harness, "group") == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_described_with_its_members() -> None:
    harness = streaming("a")
    (group,) = describe(harness, "group", include_authorized_operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.authorized_operations == 3400
    (subtopology,) = group.topology.subtopologies
    assert subtopology.source_topics == ["topic"]
    (member,) = group.members
    assert (member.member_id, member.process_id, member.topology_epoch) == ("a", "a", 0)
    for assignment in (member.assignment, member.target_assignment):
        (task,) = assignment.active_tasks
        assert (task.subtopology_id, task.partitions) == ("0", [0, 1, 2])


def test_tasks_are_listed_in_the_order_of_their_partitions() -> None:
    """Few of many: a set of numbers has another order."""
    harness = streaming(*(f"m{number}" for number in range(12)), partitions=40)
    (group,) = describe(harness, "group")
    targets = [
        task.partitions
        for member in group.members
        for task in member.target_assignment.active_tasks
    ]
    assert sorted(each for task in targets for each in task) == [*range(40)]
    assert targets == [sorted(task) for task in targets]
    assert any([*frozenset(task)] != task for task in targets), "the test would show nothing"


@pytest.mark.parametrize(
    ("states", "found"), [([], 1), (["NOT_READY"], 1), (["NotReady"], 0), (["Stable"], 0)]
)
def test_a_group_that_is_not_ready_is_listed(states: list[str], found: int) -> None:
    """The filter names the state otherwise than the answer, as in 4.3.1."""
    harness = with_topic()
    missing = topology(state_changelog_topics=[TopicInfo(name="store-changelog")])
    send(harness, joining(topology=missing))
    request = ListGroupsRequest(states_filter=states, types_filter=["Streams"])
    listed = harness.send(request, 5).response.groups
    assert [each.group_state for each in listed] == ["NotReady"] * found
    assert [(each.group_type, each.protocol_type) for each in listed] == [
        ("streams", "streams")
    ] * found


def test_only_an_empty_group_is_deleted() -> None:
    harness = streaming("a")
    request = DeleteGroupsRequest(groups_names=["group"])
    (result,) = harness.send(request, 2).response.results
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    send(harness, staying(-1, member_id="a"))
    (result,) = harness.send(request, 2).response.results
    assert result.error_code == ErrorCode.NONE
    assert error_of(harness, "group") == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_topics_that_the_topology_reads_are_kept() -> None:
    """Seen on a node of 4.3.1: one topic is refused, not the group."""
    harness = streaming("a")
    harness.create_topic("other")
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        for name in ("topic", "other")
    ]
    request = OffsetDeleteRequest(group_id="group", topics=topics)
    found = harness.send(request, 0).response
    assert found.error_code == ErrorCode.NONE
    errors = {each.name: each.partitions[0].error_code for each in found.topics}
    assert errors == {"topic": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "other": ErrorCode.NONE}


def test_an_empty_group_without_offsets_is_removed_in_time() -> None:
    harness = streaming("a")
    send(harness, staying(-1, member_id="a"))
    assert error_of_group(harness) == ErrorCode.NONE
    harness.advance(2 * harness.settings.offsets_retention_check_interval_ms)
    assert error_of_group(harness) == ErrorCode.GROUP_ID_NOT_FOUND


def error_of_group(harness: Harness) -> int:
    (group,) = describe(harness, "group")
    return int(group.error_code)

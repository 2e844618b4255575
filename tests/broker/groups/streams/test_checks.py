"""What a member of a streams group may send: its epoch with its tasks, and tasks that there are."""

from __future__ import annotations

import pytest

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.assigned_tasks import AssignedTasks
from kraft_wire.broker.groups.streams.checks import check_epoch, check_tasks
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredSubtopology
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds

Listed = dict[str, list[int]]

MEMBER = StreamsMember(
    "m",
    member_epoch=9,
    previous_member_epoch=7,
    assigned=AssignedTasks(
        {"0": {1: 4, 2: 9}}, {"0": frozenset({5}), "1": frozenset({0})}, {"1": frozenset({3})}
    ),
)


def listed(tasks: Listed | None) -> list[TaskIds] | None:
    if tasks is None:
        return None
    return [TaskIds(subtopology_id=each, partitions=numbers) for each, numbers in tasks.items()]


@pytest.mark.parametrize(
    ("epoch", "active", "standby", "warmup", "is_refused"),
    [
        (0, None, None, None, None),
        (9, None, None, None, None),
        (9, {"5": [5]}, {}, {}, None),
        (7, {}, {}, {}, None),
        (7, {"0": [1, 2]}, {"1": [0], "0": [5]}, {"1": [3]}, None),
        (7, {"0": []}, {}, {}, None),
        (10, {}, {}, {}, "greater"),
        (8, {}, {}, {}, "smaller"),
        (6, {}, {}, {}, "smaller"),
        (7, None, {}, {}, "smaller"),
        (7, {}, None, {}, "smaller"),
        (7, {}, {}, None, "smaller"),
        (7, {"1": []}, {}, {}, "smaller"),
        (7, {"0": [1, 5]}, {}, {}, "smaller"),
        (7, {"0": [5, 1]}, {}, {}, "smaller"),
        (7, {"0": [1], "1": [0]}, {}, {}, "smaller"),
        (7, {}, {"1": [0, 3]}, {}, "smaller"),
        (7, {}, {}, {"1": [0]}, "smaller"),
        (7, {}, {}, {"0": [3]}, "smaller"),
    ],
)
def test_epoch_before_is_taken_with_tasks_that_the_member_has(
    epoch: int,
    active: Listed | None,
    standby: Listed | None,
    warmup: Listed | None,
    is_refused: str | None,
) -> None:
    """`throwIfStreamsGroupMemberEpochIsInvalid`: each kind of task by itself."""
    request = StreamsGroupHeartbeatRequest(
        member_epoch=epoch,
        active_tasks=listed(active),
        standby_tasks=listed(standby),
        warmup_tasks=listed(warmup),
    )
    expected = is_refused and Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {is_refused} member epoch ({epoch}) than the one known by "
        "the group coordinator (9). The member must abandon all its partitions and rejoin.",
    )
    assert check_epoch(MEMBER, request) == expected


def test_epoch_of_a_member_that_has_moved_on_is_not_one_before_if_it_is_later() -> None:
    """A former epoch above the present one is known of no member that follows the rules."""
    odd = StreamsMember("m", member_epoch=3, previous_member_epoch=4)
    request = StreamsGroupHeartbeatRequest(
        member_epoch=4, active_tasks=[], standby_tasks=[], warmup_tasks=[]
    )
    refused = check_epoch(odd, request)
    assert refused is not None
    assert "has a greater member epoch (4)" in str(refused.message)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (None, None),
        ({}, None),
        ({"0": [0, 2], "1": [0]}, None),
        ({"1": []}, None),
        ({"2": []}, "Subtopology 2 does not exist in the topology."),
        (
            {"0": [2, 3], "2": [0]},
            "Task 3 for subtopology 0 is invalid. Number of tasks for this subtopology: 3",
        ),
        (
            {"0": [1], "1": [0, -1, 1]},
            "Task -1 for subtopology 1 is invalid. Number of tasks for this subtopology: 1",
        ),
    ],
)
def test_reported_tasks_are_tasks_of_the_topology(
    tasks: Listed | None, message: str | None
) -> None:
    subtopologies = {
        each: ConfiguredSubtopology(count, (), {}, (), {}) for each, count in (("0", 3), ("1", 1))
    }
    expected = message and Refusal(ErrorCode.INVALID_REQUEST, message)
    assert check_tasks(subtopologies, listed(tasks)) == expected

"""A member of a streams group whose answer was lost gets its tasks with the next one.

After a request that failed, Kafka's client reports all the tasks that it has (the heartbeat of
`StreamsGroupHeartbeatRequestManager` after `reset`); 4.3.1 then answers without tasks.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.broker.groups.streams.our_groups import OurStreamsGroups

Tasks = list[dict[str, Any]]

TOPOLOGY: Final = {
    "epoch": 0,
    "subtopologies": [
        {
            "subtopologyId": "0",
            "sourceTopics": ["alpha"],
            "sourceTopicRegex": [],
            "stateChangelogTopics": [],
            "repartitionSinkTopics": [],
            "repartitionSourceTopics": [],
            "copartitionGroups": [],
        }
    ],
}
PARTITIONS: Final = 2


def tasks(*partitions: int) -> Tasks:
    return [{"subtopologyId": "0", "partitions": [*partitions]}] if partitions else []


@pytest.fixture
def group() -> OurStreamsGroups:
    """A member has both tasks of a topic, in epoch 2."""
    ours = OurStreamsGroups()
    settings = {
        "group.streams.assignment.interval.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.num.standby.replicas": "0",
    }
    ours.ask({"step": "start", "settings": settings, "nowMs": 1_700_000_000_000})
    ours.ask({"step": "broker", "id": 1, "rack": None})
    topic_id = "I6dxGoEzKHYAAAAAAAAAAQ"
    replicas = [1] * PARTITIONS
    ours.ask({"step": "topic", "name": "alpha", "id": topic_id, "replicas": replicas})
    first = told(joined(ours, "first"))
    assert (first["memberEpoch"], first["activeTasks"]) == (2, tasks(0, 1))
    return ours


def heartbeat(
    ours: OurStreamsGroups, member: str, epoch: int, active: Tasks | None, **fields: Any
) -> dict[str, Any]:
    request = {
        "groupId": "group",
        "memberId": member,
        "memberEpoch": epoch,
        "endpointInformationEpoch": -1,
        "instanceId": None,
        "rackId": None,
        "rebalanceTimeoutMs": -1,
        "topology": None,
        "activeTasks": active,
        "standbyTasks": None if active is None else [],
        "warmupTasks": None if active is None else [],
        "processId": None,
        "userEndpoint": None,
        "clientTags": None,
        "shutdownApplication": False,
    }
    step = {"step": "streams heartbeat", "client": "c", "request": {**request, **fields}}
    return ours.ask(step)


def joined(ours: OurStreamsGroups, member: str) -> dict[str, Any]:
    return heartbeat(
        ours, member, 0, [], rebalanceTimeoutMs=1_000, topology=TOPOLOGY, processId=f"of-{member}"
    )


def told(answer: dict[str, Any]) -> dict[str, Any]:
    response: dict[str, Any] = answer["response"]
    return response


def test_a_member_that_gave_back_a_task_for_another_one_is_told_again(
    group: OurStreamsGroups,
) -> None:
    """The second member waits for a task, and gets it in the epoch that it has."""
    waiting = told(joined(group, "second"))
    assert (waiting["memberEpoch"], waiting["activeTasks"]) == (3, [])
    revoked = told(heartbeat(group, "first", 2, None))
    [kept] = revoked["activeTasks"][0]["partitions"]
    assert told(heartbeat(group, "first", 2, tasks(kept)))["memberEpoch"] == 3
    lost = told(heartbeat(group, "second", 3, None))
    assert lost["activeTasks"] == tasks(1 - kept)

    again = told(heartbeat(group, "second", 3, tasks()))
    assert again["activeTasks"] == tasks(1 - kept)
    assert (again["standbyTasks"], again["warmupTasks"]) == ([], [])


def test_a_member_of_the_epoch_before_is_told_again(group: OurStreamsGroups) -> None:
    joined(group, "second")
    revoked = told(heartbeat(group, "first", 2, None))
    [kept] = revoked["activeTasks"][0]["partitions"]
    heartbeat(group, "first", 2, tasks(kept))
    told(heartbeat(group, "second", 3, None))
    heartbeat(group, "second", -1, None)
    lost = told(heartbeat(group, "first", 3, None))
    assert (lost["memberEpoch"], lost["activeTasks"]) == (4, tasks(0, 1))

    again = told(heartbeat(group, "first", 3, tasks(kept)))
    assert (again["memberEpoch"], again["activeTasks"]) == (4, tasks(0, 1))


@pytest.mark.parametrize("active", [None, tasks(0, 1), tasks(1, 0)])
def test_a_member_that_has_its_tasks_is_told_nothing(
    group: OurStreamsGroups, active: Tasks | None
) -> None:
    """Null says that nothing changed; neither is there anything to be written."""
    answer = heartbeat(group, "first", 2, active)
    assert told(answer)["activeTasks"] is None
    assert answer["writes"] == []


def test_a_report_of_one_kind_alone_says_nothing(group: OurStreamsGroups) -> None:
    """4.3.1 too reads a report only if all three kinds are there."""
    answer = heartbeat(group, "first", 2, tasks(0), standbyTasks=None)
    assert told(answer)["activeTasks"] is None

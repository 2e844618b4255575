"""StreamsGroupHeartbeat: what the request must say, and the group that comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kraft_wire.wire.generated.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tests.broker.groups.harness import Harness, Reply
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.requests import Member

SESSION_MS = 45_000


def topology(source: str = "topic", epoch: int = 0, **more: Any) -> Topology:
    subtopology = Subtopology(subtopology_id="0", source_topics=[source], **more)
    return Topology(epoch=epoch, subtopologies=[subtopology])


def joining(**changes: Any) -> StreamsGroupHeartbeatRequest:
    fields: dict[str, Any] = {
        "group_id": "group",
        "member_id": "member",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "topology": topology(),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "process",
        "client_tags": [],
        **changes,
    }
    return StreamsGroupHeartbeatRequest(**fields)


def staying(epoch: int, **changes: Any) -> StreamsGroupHeartbeatRequest:
    unchanged = dict.fromkeys(
        ("topology", "active_tasks", "standby_tasks", "warmup_tasks", "process_id", "client_tags")
    )
    fields = {"member_epoch": epoch, "rebalance_timeout_ms": -1, **unchanged, **changes}
    return joining(**fields)


def with_topic(partitions: int = 3, **settings: Any) -> Harness:
    at_once = {
        "group_streams_initial_rebalance_delay_ms": 0,
        "group_streams_assignment_interval_ms": 0,
    }
    harness = Harness(**(at_once | settings))
    harness.create_topic("topic", partitions)
    return harness


def send(harness: Harness, request: StreamsGroupHeartbeatRequest) -> Reply:
    return harness.send(request, 0)


def streaming(*members: str, **settings: Any) -> Harness:
    """Return a group whose members have the tasks of the topic."""
    harness = with_topic(**settings)
    for member in members:
        send(harness, joining(member_id=member, process_id=member))
    return harness


def group_in(harness: Harness, group_id: str = "group") -> StreamsGroup:
    shard = harness.groups.shard_of(group_id)
    assert isinstance(shard, GroupShard)
    group = shard.other_groups[group_id]
    assert isinstance(group, StreamsGroup)
    return group


def refusal(harness: Harness, request: StreamsGroupHeartbeatRequest) -> tuple[int, str | None]:
    answer = send(harness, request).response
    assert (answer.member_id, answer.member_epoch, answer.active_tasks) == ("", 0, None)
    return answer.error_code, answer.error_message


def tasks(reply: Reply) -> list[int] | None:
    listed = reply.response.active_tasks
    if listed is None:
        return None
    return [partition for each in listed for partition in each.partitions]


def statuses(reply: Reply) -> list[int]:
    return [each.status_code for each in reply.response.status]


def test_errors_in_order() -> None:
    harness = Harness()
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    internal = joining(topology=topology("__consumer_offsets"), member_id="")
    assert refusal(harness, internal)[0] == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"streams.version": 1})
    assert refusal(harness, internal)[0] == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert refusal(harness, joining(member_id=""))[0] == ErrorCode.INVALID_REQUEST
    assert refusal(harness, joining())[0] == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert refusal(harness, joining())[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert refusal(harness, staying(3))[0] == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_broker_whose_protocols_leave_streams_out_serves_none() -> None:
    harness = with_topic(group_coordinator_rebalance_protocols=("classic", "consumer"))
    assert refusal(harness, joining())[0] == ErrorCode.UNSUPPORTED_VERSION


OFFSET = [TaskOffset(subtopology_id="0", partition=0, offset=1)]
TASK = [TaskIds(subtopology_id="0", partitions=[0])]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (joining(instance_id="i"), "Static membership is not yet supported."),
        (joining(task_offsets=OFFSET), "TaskOffsets are not supported yet."),
        (joining(task_end_offsets=OFFSET), "TaskEndOffsets are not supported yet."),
        (joining(warmup_tasks=TASK), "WarmupTasks are not supported yet."),
        (
            joining(topology=topology(source_topic_regex=["a.*"])),
            "Regular expressions for source topics are not supported yet.",
        ),
        (joining(member_id=" "), "MemberId can't be empty."),
        (joining(group_id=""), "GroupId can't be empty."),
        (joining(rack_id=""), "RackId can't be empty."),
        (
            joining(rebalance_timeout_ms=-1),
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (joining(active_tasks=None), "ActiveTasks must be empty when (re-)joining."),
        (joining(standby_tasks=TASK), "StandbyTasks must be empty when (re-)joining."),
        (joining(warmup_tasks=None), "WarmupTasks must be empty when (re-)joining."),
        (joining(topology=None), "Topology must be non-null when (re-)joining."),
        (staying(-2), "InstanceId can't be null."),
        (staying(-3), "MemberEpoch is -3, but must be greater than or equal to -2."),
        (staying(1, active_tasks=[]), "If one task-type is non-null, all must be non-null."),
        (
            staying(1, topology=topology()),
            "Topology can only be provided when (re-)joining.",
        ),
    ],
)
def test_a_request_that_says_too_little_or_too_much_is_refused(
    request_: StreamsGroupHeartbeatRequest, message: str
) -> None:
    assert refusal(with_topic(), request_) == (ErrorCode.INVALID_REQUEST, message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            topology("__consumer_offsets"),
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is "
            "prohibited.",
        ),
        (topology("a b"), "Topic names a b are not valid topic names."),
        (
            topology(state_changelog_topics=[TopicInfo(name="log", partitions=3)]),
            "Changelog topic log must have an undefined partition count, but it is set to 3.",
        ),
    ],
)
def test_a_topology_that_cannot_be_used_is_refused(given: Topology, message: str) -> None:
    refused = refusal(with_topic(), joining(topology=given))
    assert refused == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def test_the_first_target_waits_for_more_members() -> None:
    harness = with_topic(group_streams_initial_rebalance_delay_ms=3_000)
    first = send(harness, joining(member_id="a", process_id="a"))
    assert (first.response.member_epoch, tasks(first), statuses(first)) == (1, [], [5])
    send(harness, joining(member_id="b", process_id="b"))
    harness.advance(3_000)
    found = [send(harness, staying(1, member_id=each)) for each in "ab"]
    assert sorted(len(tasks(each) or ()) for each in found) == [1, 2]
    assert [each.response.member_epoch for each in found] == [3, 3]


def test_the_first_target_is_not_computed_for_a_group_that_everybody_left() -> None:
    harness = with_topic(group_streams_initial_rebalance_delay_ms=3_000)
    send(harness, joining())
    send(harness, staying(-1))
    written = len(harness.store.records())
    harness.advance(3_000)
    assert len(harness.store.records()) == written
    assert group_in(harness).state_name == "Empty"


def test_a_joining_member_gets_what_another_gives_back() -> None:
    harness = streaming("a")
    second = send(harness, joining(member_id="b", process_id="b"))
    assert tasks(second) == []
    kept = send(harness, staying(2, member_id="a"))
    (left,) = kept.response.active_tasks
    assert len(left.partitions) == 2
    owned = [TaskIds(subtopology_id="0", partitions=left.partitions)]
    acknowledged = staying(2, member_id="a", active_tasks=owned, standby_tasks=[], warmup_tasks=[])
    assert send(harness, acknowledged).response.member_epoch == 3
    assert len(tasks(send(harness, staying(3, member_id="b"))) or ()) == 1
    assert group_in(harness).state_name == "Stable"


def test_a_member_that_gives_nothing_back_in_time_is_removed() -> None:
    harness = streaming("a")
    send(harness, joining(member_id="b", process_id="b"))
    send(harness, staying(2, member_id="a", rebalance_timeout_ms=9_000))
    harness.advance(8_999)
    assert "a" in group_in(harness).members
    harness.advance(1)
    assert list(group_in(harness).members) == ["b"]


def test_a_member_has_its_whole_time_to_give_back_after_a_load() -> None:
    """4.3.1 schedules it in `GroupMetadataManager.onLoaded`, beside the session."""
    harness = streaming("a")
    send(harness, joining(member_id="b", process_id="b"))
    send(harness, staying(2, member_id="a", rebalance_timeout_ms=9_000))
    harness.advance(8_000)
    loaded = harness.restart()
    loaded.advance(8_999)
    assert "a" in group_in(loaded).members
    loaded.advance(1)
    assert list(group_in(loaded).members) == ["b"]


def test_a_removal_that_cannot_be_written_is_tried_again() -> None:
    """`CoordinatorTimerImpl` of 4.3.1 schedules an operation that failed again after 500 ms."""
    harness = streaming("a")
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    harness.advance(SESSION_MS + 499)
    assert not group_in(harness).is_empty
    harness.advance(1)
    assert group_in(harness).is_empty


def test_the_first_target_keeps_the_assignment_interval_too() -> None:
    """4.3.1 asks `canComputeNextTargetAssignment` also when the initial delay is over."""
    delays = {
        "group_streams_initial_rebalance_delay_ms": 3_000,
        "group_streams_assignment_interval_ms": 10_000,
    }
    harness = streaming("a", **delays)
    harness.advance(3_000)
    assert tasks(send(harness, staying(1, member_id="a"))) == [0, 1, 2]
    computed = group_in(harness).assignment_epoch
    send(harness, staying(-1, member_id="a"))
    send(harness, joining(member_id="b", process_id="b"))
    harness.advance(3_000)
    assert group_in(harness).assignment_epoch == computed
    epoch = group_in(harness).members["b"].member_epoch
    delayed = send(harness, staying(epoch, member_id="b"))
    assert (statuses(delayed), tasks(delayed)) == ([5], None)
    harness.advance(7_000)
    assert tasks(send(harness, staying(epoch, member_id="b"))) == [0, 1, 2]
    send(harness, staying(-1, member_id="b"))
    harness.advance(10_000)
    send(harness, joining(member_id="c", process_id="c"))
    harness.advance(3_000)
    assert group_in(harness).assignment_epoch == group_in(harness).epoch, "without a heartbeat"


def test_a_silent_member_is_removed() -> None:
    harness = streaming("a")
    harness.advance(SESSION_MS)
    assert group_in(harness).state_name == "Empty"


def test_internal_topics_that_are_missing_are_created() -> None:
    harness = with_topic()
    changelog = TopicInfo(name="store-changelog")
    reply = send(harness, joining(topology=topology(state_changelog_topics=[changelog])))
    assert statuses(reply) == [3]
    (asked,) = [
        each for each in harness.controller_requests if isinstance(each, CreateTopicsRequest)
    ]
    assert [(each.name, each.num_partitions) for each in asked.topics] == [("store-changelog", 3)]
    assert group_in(harness).state_name == "NotReady"
    harness.create_topic("store-changelog", 3)
    reply = send(harness, staying(reply.response.member_epoch))
    assert (statuses(reply), tasks(reply)) == ([], [0, 1, 2])


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR])
def test_internal_topics_are_created_once_the_isr_has_the_group(
    error: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-1071: not for a heartbeat that a failover may lose."""
    harness = with_topic()
    parked: list[Any] = []

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        parked.append(answer)
        return PARKED

    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    append = harness.store.append_for_later
    monkeypatch.setattr(
        harness.store, "append_for_later", lambda *given: append(*given)._replace(safe_at=99)
    )
    changelog = TopicInfo(name="store-changelog")
    send(harness, joining(topology=topology(state_changelog_topics=[changelog])))

    def asked() -> list[str]:
        requests = [
            each for each in harness.controller_requests if isinstance(each, CreateTopicsRequest)
        ]
        return [topic.name for each in requests for topic in each.topics]

    assert asked() == []
    answer = parked[0]({} if error is ErrorCode.NONE else {0: error})
    assert answer.error_code == error
    assert asked() == (["store-changelog"] if error is ErrorCode.NONE else [])


def test_an_application_that_a_member_shuts_down_is_told() -> None:
    harness = streaming("a", "b")
    send(harness, staying(-1, member_id="a", shutdown_application=True))
    assert 4 in statuses(send(harness, joining(member_id="b", process_id="b")))


def test_another_topology_is_no_update() -> None:
    harness = streaming("a")
    other = joining(member_id="b", topology=topology("other", epoch=1))
    message = "Topology updates are not supported yet."
    assert refusal(harness, other) == (ErrorCode.INVALID_REQUEST, message)


def test_a_full_group_takes_no_join() -> None:
    harness = streaming("a", group_streams_max_size=1)
    assert refusal(harness, joining(member_id="b"))[0] == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_consumer_group_is_no_streams_group_and_the_other_way_round() -> None:
    harness = streaming("a")
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="group",
        member_id="consumer",
        member_epoch=0,
        rebalance_timeout_ms=9_000,
        subscribed_topic_names=["topic"],
        topic_partitions=[],
    )
    refused = harness.send(consumer, 1).response
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    consumer.group_id = "consumers"
    harness.send(consumer, 1)
    found = refusal(harness, joining(group_id="consumers"))
    message = "Group consumers is not a streams group."
    assert found == (ErrorCode.GROUP_ID_NOT_FOUND, message)


def test_an_empty_streams_group_becomes_a_classic_one_and_the_other_way_round() -> None:
    harness = streaming("a")
    send(harness, staying(-1, member_id="a"))
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(
        group_id="group",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    given = harness.send(join, 9).response
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    harness.advance(10_000)
    (classic_key, value), *_ = reversed(harness.store.records())
    assert value is not None
    written = len(harness.store.records())
    assert send(harness, joining(member_id="b")).response.member_epoch == 2
    assert harness.store.records()[written] == (classic_key, None)
    assert group_in(harness).members.get("b") is not None
    harness.advance(SESSION_MS - 1)
    assert "b" in group_in(harness).members
    harness.advance(1)
    assert group_in(harness).is_empty


def test_a_group_that_was_a_classic_one_waits_for_more_members_too() -> None:
    """KIP-1071: the initial delay is that of any group that was empty."""
    harness = with_topic(group_streams_initial_rebalance_delay_ms=3_000)
    Member(harness, group_id="group").commit()
    first = send(harness, joining())
    assert (tasks(first), statuses(first)) == ([], [5])
    harness.advance(2_999)
    early = send(harness, staying(first.response.member_epoch))
    assert (tasks(early), statuses(early)) == (None, [5])
    harness.advance(1)
    assert tasks(send(harness, staying(first.response.member_epoch))) == [0, 1, 2]


def test_a_topic_that_grew_is_seen_after_a_heartbeat_that_could_not_be_written() -> None:
    """An append that fails changes nothing: the next heartbeat has to look again."""
    harness = streaming("a")
    harness.create_topic("topic", 4)
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert refusal(harness, staying(2, member_id="a"))[0] == ErrorCode.NOT_COORDINATOR
    assert tasks(send(harness, staying(2, member_id="a"))) == [0, 1, 2, 3]


def test_a_group_is_the_same_after_a_load() -> None:
    harness = streaming("a", "b")
    before = group_in(harness)
    loaded = Harness(store=harness.store)
    after = group_in(loaded)
    assert list(after.members.items()) == list(before.members.items())
    assert list(after.targets.items()) == list(before.targets.items())
    assert (after.epoch, after.assignment_epoch) == (before.epoch, before.assignment_epoch)
    assert (after.size_bytes, after.state) == (before.size_bytes, before.state)
    loaded.advance(SESSION_MS)
    assert group_in(loaded).is_empty


def test_memory_of_a_removed_group_is_released() -> None:
    harness = with_topic()
    before = harness.groups.env.memory.total_bytes
    send(harness, joining())
    send(harness, staying(-1))
    shard = harness.groups.shard_of("group")
    assert isinstance(shard, GroupShard)
    shard.remove_other_group("group")
    assert harness.groups.env.memory.total_bytes == before


def test_a_new_member_for_which_there_is_no_memory_is_refused() -> None:
    harness = streaming("a")
    room = harness.groups.env.memory.total_bytes + 1_000
    harness.settings = replace(harness.settings, group_coordinator_memory_max_bytes=room)
    assert refusal(harness, joining(member_id="b")) == (ErrorCode.POLICY_VIOLATION, None)
    assert send(harness, staying(2, member_id="a")).error is ErrorCode.NONE
    assert list(group_in(harness).members) == ["a"]


def test_a_topology_for_which_there_is_no_memory_is_refused() -> None:
    harness = with_topic()
    room = harness.groups.env.memory.total_bytes + 5_000
    harness.settings = replace(harness.settings, group_coordinator_memory_max_bytes=room)
    changelogs = [TopicInfo(name=f"store-{number}-changelog") for number in range(99)]
    large = joining(topology=topology(state_changelog_topics=changelogs))
    assert refusal(harness, large) == (ErrorCode.POLICY_VIOLATION, None)
    assert send(harness, joining()).error is ErrorCode.NONE


def test_a_refused_join_leaves_the_memory_of_an_empty_group_counted() -> None:
    harness = streaming("a")
    send(harness, staying(-1, member_id="a"))
    other = joining(member_id="b", topology=topology("other", epoch=1))
    assert refusal(harness, other)[0] == ErrorCode.INVALID_REQUEST
    harness.check_memory()


def test_errors_of_a_leave() -> None:
    """`GroupMetadataManager.streamsGroupLeave`: the group, the member, the log."""
    harness = with_topic()
    assert refusal(harness, staying(-1))[0] == ErrorCode.GROUP_ID_NOT_FOUND
    send(harness, joining())
    assert refusal(harness, staying(-1, member_id="nobody"))[0] == ErrorCode.UNKNOWN_MEMBER_ID
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert refusal(harness, staying(-1))[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(group_in(harness).members) == 1
    assert send(harness, staying(-1)).response.member_epoch == -1
    assert group_in(harness).is_empty


def test_a_group_whose_first_records_are_refused_is_not_there() -> None:
    harness = with_topic()
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert refusal(harness, joining())[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.check_memory()
    assert refusal(harness, staying(1))[0] == ErrorCode.GROUP_ID_NOT_FOUND
    assert send(harness, joining()).response.member_epoch == 2


TWICE = [TaskIds(subtopology_id="0", partitions=[0]), TaskIds(subtopology_id="0", partitions=[1])]


@pytest.mark.parametrize("kind", ["active_tasks", "standby_tasks"])
def test_a_subtopology_that_is_owned_twice_is_an_unexpected_error(kind: str) -> None:
    """`TasksTuple.fromHeartbeatRequest` throws; only where a step is due is it read."""
    nothing: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    harness = streaming("a", "b")
    before = len(harness.store.records())
    twice = staying(2, member_id="a", **(nothing | {kind: TWICE}))
    assert refusal(harness, twice)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(harness.store.records()) == before


def test_a_tag_that_is_named_twice_is_an_unexpected_error() -> None:
    """`Collectors.toMap` throws, also for equal values."""
    tags = [KeyValue(key="zone", value="a"), KeyValue(key="zone", value="a")]
    harness = with_topic()
    assert refusal(harness, joining(client_tags=tags))[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    harness.check_memory()
    assert refusal(harness, staying(1))[0] == ErrorCode.GROUP_ID_NOT_FOUND

"""ConsumerGroupHeartbeat: what the request must say, and the group that comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import MemberState
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness, Reply, topic_id_of
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.requests import Member, committed


def joining(**changes: Any) -> ConsumerGroupHeartbeatRequest:
    fields: dict[str, Any] = {
        "group_id": "group",
        "member_id": "member",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["topic"],
        "topic_partitions": [],
        **changes,
    }
    return ConsumerGroupHeartbeatRequest(**fields)


def staying(epoch: int, **changes: Any) -> ConsumerGroupHeartbeatRequest:
    nothing: dict[str, Any] = {
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "topic_partitions": None,
    }
    return joining(member_epoch=epoch, **(nothing | changes))


def with_topic(partitions: int = 3, **settings: Any) -> Harness:
    harness = Harness(group_consumer_assignment_interval_ms=0, **settings)
    harness.create_topic("topic", partitions)
    return harness


def send(harness: Harness, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Reply:
    return harness.send(request, version)


def group_in(harness: Harness) -> ConsumerGroup:
    shard = harness.groups.shard_of("group")
    assert isinstance(shard, GroupShard)
    group = shard.other_groups["group"]
    assert isinstance(group, ConsumerGroup)
    return group


def assigned(reply: Reply) -> list[int]:
    (topic,) = reply.response.assignment.topic_partitions
    assert topic.topic_id == topic_id_of("topic")
    return list(topic.partitions)


def test_errors_in_order() -> None:
    """848-HB-11."""
    harness = Harness(group_consumer_max_size=1)
    request = joining(member_id="", server_assignor="none", member_epoch=3)
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    assert send(harness, request).error == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"group.version": 1})
    assert send(harness, request).error == ErrorCode.INVALID_REQUEST
    request.member_id = "member"
    assert send(harness, request).error == ErrorCode.UNSUPPORTED_ASSIGNOR
    request.server_assignor = None
    assert send(harness, request).error == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert send(harness, request).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert send(harness, request).error == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        (
            {"rebalance_timeout_ms": -1},
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_partitions": [TopicPartitions(partitions=[1])]},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_says_too_little_is_refused(changes: dict[str, Any], message: str) -> None:
    """848-HB-03, 848-HB-05, 848-HB-06, 848-HB-07, 848-HB-08, 848-HB-09."""
    answer = send(with_topic(), joining(**changes)).response
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)


def test_an_unknown_assignor_is_named_with_those_that_there_are() -> None:
    """848-HB-10."""
    answer = send(with_topic(), joining(server_assignor="")).response
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert answer.error_message == (
        "ServerAssignor  is not supported. Supported assignors: uniform, range."
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_with_the_second_epoch_and_all_partitions(version: int) -> None:
    """848-HB-01, 848-HB-21, 848-JOIN-02."""
    reply = send(with_topic(), joining(), version)
    assert reply.error == ErrorCode.NONE
    assert (reply.response.member_id, reply.response.member_epoch) == ("member", 2)
    assert reply.response.heartbeat_interval_ms == 5_000
    assert assigned(reply) == [0, 1, 2]


def test_the_server_makes_an_id_for_a_client_of_version_0() -> None:
    """848-HB-04, 848-FEAT-04."""
    harness = with_topic()
    first = send(harness, joining(member_id=""), 0).response.member_id
    second = send(harness, joining(member_id=""), 0).response.member_id
    assert len(first) == len(second) == 22
    assert first != second
    assert send(harness, joining(member_id="")).error == ErrorCode.INVALID_REQUEST


def test_partitions_move_only_after_their_owner_gave_them_up() -> None:
    """848-RECON-01, 848-RECON-02, 848-RECON-03."""
    harness = with_topic(4)
    assert assigned(send(harness, joining(member_id="first"))) == [0, 1, 2, 3]
    late = send(harness, joining(member_id="second")).response
    assert (late.member_epoch, late.assignment.topic_partitions) == (3, [])
    kept = send(harness, staying(2, member_id="first"))
    assert (kept.response.member_epoch, assigned(kept)) == (2, [0, 1])
    owned = [TopicPartitions(topic_id=topic_id_of("topic"), partitions=[0, 1])]
    assert send(harness, staying(3, member_id="second")).response.assignment is None
    done = send(harness, staying(2, member_id="first", topic_partitions=owned)).response
    assert done.member_epoch == 3
    assert assigned(send(harness, staying(3, member_id="second"))) == [2, 3]
    assert group_in(harness).state_name == "Stable"


def test_a_member_that_is_silent_for_a_session_is_removed() -> None:
    """848-TIME-01, 848-EPOCH-04."""
    harness = with_topic()
    send(harness, joining())
    harness.advance(44_999)
    assert send(harness, staying(2)).error == ErrorCode.NONE
    harness.advance(45_000)
    assert send(harness, staying(2)).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert (group_in(harness).epoch, group_in(harness).state_name) == (3, "Empty")


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    """848-TIME-03."""
    harness = with_topic()
    send(harness, joining(member_id="slow", rebalance_timeout_ms=7_000))
    send(harness, joining(member_id="other"))
    send(harness, staying(2, member_id="slow"))
    harness.advance(6_999)
    assert send(harness, staying(2, member_id="slow")).error == ErrorCode.NONE
    harness.advance(1)
    gone = send(harness, staying(2, member_id="slow"))
    assert gone.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert assigned(send(harness, staying(3, member_id="other"))) == [0, 1, 2]


def test_what_a_member_owns_may_name_a_topic_twice() -> None:
    """848-RECON-01: it has not given up what only the first entry has."""
    harness = with_topic(4)
    send(harness, joining(member_id="first"))
    send(harness, joining(member_id="second"))
    topic = topic_id_of("topic")
    owned = [TopicPartitions(topic_id=topic, partitions=each) for each in ([2, 3], [0, 1])]
    for _ in range(2):
        still = send(harness, staying(2, member_id="first", topic_partitions=owned))
        assert still.response.member_epoch == 2
    done = send(harness, staying(2, member_id="first", topic_partitions=owned[1:]))
    assert done.response.member_epoch == 3


def revoking(**changes: Any) -> Harness:
    """Return a group whose member "slow" must revoke partitions for "other" within 7 s."""
    harness = with_topic()
    send(harness, joining(member_id="slow", rebalance_timeout_ms=7_000, **changes))
    send(harness, joining(member_id="other"))
    send(harness, staying(2, member_id="slow", **changes))
    assert group_in(harness).members["slow"].state is MemberState.UNREVOKED_PARTITIONS
    return harness


def test_a_member_has_its_whole_time_to_revoke_after_a_restart() -> None:
    """848-TIME-04: 4.3.1 schedules it in `GroupMetadataManager.onLoaded`, beside the session."""
    harness = revoking()
    harness.advance(5_000)
    fresh = harness.restart()
    fresh.advance(6_999)
    assert send(fresh, staying(2, member_id="slow")).error == ErrorCode.NONE
    fresh.advance(1)
    assert send(fresh, staying(2, member_id="slow")).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_left_for_a_while_need_not_revoke_in_time() -> None:
    """848-STATIC-02, 848-STATIC-08: 4.3.1 compares the epoch of the timer with the member's."""
    harness = revoking(instance_id="instance")
    left = send(harness, staying(-2, member_id="slow", instance_id="instance"))
    assert left.error == ErrorCode.NONE
    harness.advance(44_999)
    send(harness, staying(3, member_id="other"))
    assert group_in(harness).static_members == {"instance": "slow"}
    harness.advance(1)
    assert group_in(harness).static_members == {}


def test_members_have_a_whole_session_after_a_restart() -> None:
    """848-TIME-04, 848-REC-04."""
    harness = with_topic()
    send(harness, joining())
    harness.advance(44_000)
    fresh = harness.restart()
    fresh.advance(44_000)
    assert send(fresh, staying(2)).error == ErrorCode.NONE
    assert send(fresh, joining()).response.member_epoch == 2


def test_an_empty_classic_group_becomes_a_consumer_group_in_one_batch() -> None:
    """848-JOIN-04."""
    harness = with_topic()
    member = Member(harness)
    member.join()
    harness.settle()
    member.leave()
    before = len(harness.store.batches(0))
    assert send(harness, joining()).error == ErrorCode.NONE
    (batch,) = harness.store.batches(0)[before:]
    kinds = [(record.key[1], record.value is None) for record in batch.records() if record.key]
    assert kinds == [(2, True), (5, False), (3, False), (7, False), (6, False), (8, False)]
    assert group_in(harness.restart()).state_name == "Stable"


def test_a_group_of_classic_members_is_no_consumer_group() -> None:
    """848-HB-13: only a join converts it."""
    harness = with_topic()
    Member(harness).join()
    harness.settle()
    for epoch in (-1, 5):
        answer = send(harness, staying(epoch, member_id="modern")).response
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert answer.error_message == "Group group is not a consumer group."


def test_nothing_changes_if_the_records_cannot_be_written() -> None:
    """848-REC-03."""
    harness = with_topic()
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert send(harness, joining()).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.check_memory()
    assert send(harness, staying(2)).error == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rack_id", "rack"),
        ("rebalance_timeout_ms", 7_000),
        ("server_assignor", "range"),
        ("subscribed_topic_names", ["other", "topic"]),
        ("subscribed_topic_regex", "top.*"),
    ],
)
def test_a_heartbeat_may_change_one_field_alone(field: str, value: Any) -> None:
    """As the builder of 4.3.1's members: what is given counts, null keeps what was."""
    harness = with_topic()
    send(harness, joining())
    assert send(harness, staying(2)).error == ErrorCode.NONE
    assert send(harness, staying(2, **{field: value})).error == ErrorCode.NONE
    found = getattr(group_in(harness).members["member"], field)
    assert (list(found) if isinstance(found, tuple) else found) == value


@pytest.mark.parametrize("sender", [{"client_id": "renamed"}, {"client_host": "127.0.0.2"}])
def test_a_member_is_known_by_its_newest_client(sender: dict[str, str]) -> None:
    """4.3.1 takes client id and address from each heartbeat, and writes them if they changed."""
    harness = with_topic()
    send(harness, joining())
    harness.send(staying(2), 1, **sender)
    member = group_in(harness).members["member"]
    assert member.client_id == sender.get("client_id", "client")
    assert member.client_host == "/" + sender.get("client_host", "127.0.0.1")


def test_offsets_are_committed_by_epoch() -> None:
    """848-OFF-01, 848-OFF-02, 848-OFF-03, 848-OFF-05."""
    harness = with_topic()
    send(harness, joining())
    send(harness, joining(member_id="other"))
    send(harness, staying(2))
    member = Member(harness, member_id="member")
    member.generation_id = 2
    assert member.commit(offset=4, version=9) == ErrorCode.NONE
    assert member.commit(offset=5, version=8) == ErrorCode.UNSUPPORTED_VERSION
    member.generation_id = 3
    assert member.commit(offset=5, version=9) == ErrorCode.STALE_MEMBER_EPOCH
    member.generation_id = 1
    assert member.commit(offset=5, version=9) == ErrorCode.STALE_MEMBER_EPOCH
    member.member_id = "nobody"
    assert member.commit(offset=5, version=9) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(harness) == {("topic", 0): 4}


def test_a_topic_that_came_and_went_is_looked_at() -> None:
    """848-EPOCH-05: the hash of the member that left was made with it."""
    harness = with_topic()
    send(harness, joining(subscribed_topic_names=["topic", "later"]))
    send(harness, joining(member_id="other"))
    known = send(harness, staying(2, topic_partitions=[])).response.member_epoch
    harness.create_topic("later")
    send(harness, staying(-1, member_id="other"))
    epoch = group_in(harness).epoch
    harness.delete_topic("later")
    assert send(harness, staying(known)).error == ErrorCode.NONE
    assert group_in(harness).epoch == epoch + 1


def test_an_answer_without_records_waits_for_what_the_isr_does_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """848: a failover may lose what it shows. Kafka answers a "read after all" only then, too."""
    harness = with_topic()
    epoch = send(harness, joining()).response.member_epoch
    written = harness.store.end_offset(0)
    group_in(harness).safe_at = written
    assert not send(harness, staying(epoch)).is_parked, "all is committed"
    waited: list[Any] = []

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        waited.append(required)
        return PARKED

    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    monkeypatch.setattr(harness.store, "high_watermark", lambda _: written - 1)
    assert send(harness, staying(epoch)).is_parked
    assert waited == [{0: written}]


def test_errors_of_a_leave() -> None:
    """`GroupMetadataManager.consumerGroupLeave`: the group, the member, the instance, the log."""
    harness = with_topic()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert send(harness, staying(-1)).error == ErrorCode.GROUP_ID_NOT_FOUND
    send(harness, joining())
    send(harness, joining(member_id="static", instance_id="i"))
    assert send(harness, staying(-1, member_id="nobody")).error == unknown
    assert send(harness, staying(-1, instance_id="another")).error == unknown
    assert send(harness, staying(-2, instance_id="another")).error == unknown
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert send(harness, staying(-1, instance_id="i")).error == fenced
    assert send(harness, staying(-2, instance_id="i")).error == fenced
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert send(harness, staying(-1)).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(group_in(harness).members) == ["member", "static"]
    answer = send(harness, staying(-1)).response
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "member", -1)
    assert list(group_in(harness).members) == ["static"]

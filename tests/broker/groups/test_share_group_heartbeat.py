"""ShareGroupHeartbeat: what the request must say, and the group that comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.broker.groups.harness import Harness, Reply, topic_id_of
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.requests import Member
from tests.broker.groups.share.recording_persister import RecordingPersister

ABANDON = "The member must abandon all its partitions and rejoin."


def joining(**changes: Any) -> ShareGroupHeartbeatRequest:
    fields: dict[str, Any] = {
        "group_id": "group",
        "member_id": "member",
        "member_epoch": 0,
        "subscribed_topic_names": ["topic"],
        **changes,
    }
    return ShareGroupHeartbeatRequest(**fields)


def staying(epoch: int, **changes: Any) -> ShareGroupHeartbeatRequest:
    return joining(member_epoch=epoch, **({"subscribed_topic_names": None} | changes))


def leaving(**changes: Any) -> ShareGroupHeartbeatRequest:
    return staying(-1, **changes)


def with_topic(partitions: int = 3, **settings: Any) -> Harness:
    harness = Harness(**({"group_share_assignment_interval_ms": 0} | settings))
    harness.share_persister = RecordingPersister()
    harness.create_topic("topic", partitions)
    return harness


def send(harness: Harness, request: ShareGroupHeartbeatRequest) -> Reply:
    return harness.send(request, 1)


def begin(harness: Harness) -> None:
    """Have the share coordinators begin all that they are asked to."""
    while harness.share_persister.calls:
        harness.share_persister.take().answer()


def sharing(*members: str, partitions: int = 3, **settings: Any) -> Harness:
    """Return a group whose members have the initialised partitions of the topic."""
    harness = with_topic(partitions, **settings)
    for member in members:
        send(harness, joining(member_id=member))
        begin(harness)
    for member in members:
        send(harness, joining(member_id=member))
    return harness


def group_in(harness: Harness, group_id: str = "group") -> ShareGroup:
    shard = harness.groups.shard_of(group_id)
    assert isinstance(shard, GroupShard)
    group = shard.other_groups[group_id]
    assert isinstance(group, ShareGroup)
    return group


def assigned(reply: Reply) -> list[int]:
    (topic,) = reply.response.assignment.topic_partitions
    assert topic.topic_id == topic_id_of("topic")
    return list(topic.partitions)


def refusal(harness: Harness, request: ShareGroupHeartbeatRequest) -> tuple[int, str | None]:
    answer = send(harness, request).response
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
    return answer.error_code, answer.error_message


def test_errors_in_order() -> None:
    """932-FEAT-01, 932-FEAT-02: the list of protocols does not matter."""
    harness = Harness(group_coordinator_rebalance_protocols=("classic",))
    request = staying(3, member_id="")
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    assert send(harness, request).error == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"share.version": 1})
    assert send(harness, request).error == ErrorCode.INVALID_REQUEST
    request.member_id = "member"
    assert send(harness, request).error == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert send(harness, request).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert send(harness, request).error == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"member_id": ""}, None),
        ({"member_id": "m" * 37}, None),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_says_too_little_is_refused(
    changes: dict[str, Any], message: str | None
) -> None:
    """932-HB-03, 932-HB-04, 932-HB-05."""
    assert refusal(with_topic(), joining(**changes)) == (ErrorCode.INVALID_REQUEST, message)


def test_a_member_makes_its_id_of_up_to_36_characters() -> None:
    """932-HB-03."""
    reply = send(with_topic(), joining(member_id="m" * 36))
    assert (reply.error, reply.response.member_id) == (ErrorCode.NONE, "m" * 36)
    for member_id, error in (("😀" * 18, ErrorCode.NONE), ("😀" * 19, ErrorCode.INVALID_REQUEST)):
        assert send(with_topic(), joining(member_id=member_id)).error == error, "counted as by Java"


def test_a_member_joins_stays_and_leaves() -> None:
    """932-HB-01, 932-ASSIGN-04: nothing is assigned before its state has begun."""
    harness = with_topic()
    first = send(harness, joining()).response
    assert (first.member_id, first.member_epoch) == ("member", 2)
    assert (first.heartbeat_interval_ms, first.assignment.topic_partitions) == (5_000, [])
    assert send(harness, staying(2)).response.assignment is None
    begin(harness)
    taken = send(harness, staying(2))
    assert (taken.response.member_epoch, assigned(taken)) == (3, [0, 1, 2])
    assert send(harness, staying(3)).response.assignment is None
    left = send(harness, leaving()).response
    assert (left.error_code, left.member_id, left.member_epoch) == (0, "member", -1)
    assert (left.heartbeat_interval_ms, left.assignment) == (0, None)
    assert (group_in(harness).epoch, group_in(harness).state_name) == (4, "Empty")


def test_a_full_request_is_answered_with_the_assignment() -> None:
    """932-HB-16: names make a request full."""
    harness = sharing("member")
    epoch = group_in(harness).epoch
    assert assigned(send(harness, staying(epoch, subscribed_topic_names=["topic"]))) == [0, 1, 2]


def test_unknown_groups_and_members_are_refused() -> None:
    """932-HB-06."""
    harness = with_topic()
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal(harness, staying(2)) == (missing, "Share group group not found.")
    assert refusal(harness, leaving()) == (missing, "Group group not found.")
    send(harness, joining())
    unknown = (ErrorCode.UNKNOWN_MEMBER_ID, "Member other is not a member of group group.")
    assert refusal(harness, staying(2, member_id="other")) == unknown
    assert refusal(harness, leaving(member_id="other")) == unknown


def test_a_group_of_another_kind_is_refused() -> None:
    """932-HB-07: also an empty one."""
    harness = with_topic()
    Member(harness).commit()
    wrong = (ErrorCode.GROUP_ID_NOT_FOUND, "Group group is not a share group.")
    assert refusal(harness, joining()) == refusal(harness, leaving()) == wrong


def test_a_share_group_takes_no_members_of_other_protocols() -> None:
    """932-HB-11: whether it has members or not."""
    harness = with_topic()
    send(harness, joining())
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="group",
        member_id="consumer",
        member_epoch=0,
        rebalance_timeout_ms=1,
        subscribed_topic_names=["topic"],
        topic_partitions=[],
    )
    for _ in range(2):
        classic = Member(harness)
        classic.join()
        assert classic.joining.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        refused = harness.send(consumer, 1).response
        assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert refused.error_message == "Group group is not a consumer group."
        send(harness, leaving())


def test_the_epoch_the_one_before_and_0_pass() -> None:
    """932-HB-08."""
    harness = sharing("member", "other")
    known = send(harness, joining()).response.member_epoch
    previous = group_in(harness).members["member"].previous_member_epoch
    for epoch in (known, previous, 0):
        names = ["topic"] if epoch == 0 else None
        reply = send(harness, staying(epoch, subscribed_topic_names=names))
        assert (reply.error, reply.response.member_epoch) == (ErrorCode.NONE, known)
    assert refusal(harness, staying(known + 1)) == (
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a greater member epoch ({known + 1}) than the one known by "
        f"the group coordinator ({known}). {ABANDON}",
    )
    old = previous - 1
    assert refusal(harness, staying(old)) == (
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a smaller member epoch ({old}) than the one known by the "
        f"group coordinator ({known}), and it does not match the previous member epoch "
        f"({previous}). {ABANDON}",
    )


def test_a_full_group_takes_no_more_members() -> None:
    """932-HB-09."""
    harness = with_topic(group_share_max_size=1)
    send(harness, joining())
    assert refusal(harness, joining(member_id="other")) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The share group has reached its maximum capacity of 1 members.",
    )
    assert send(harness, staying(2)).error == ErrorCode.NONE


def test_a_member_that_is_silent_for_a_session_is_removed() -> None:
    """932-HB-10, 932-HB-18: the group stays."""
    harness = with_topic()
    send(harness, joining())
    harness.advance(44_999)
    assert send(harness, staying(2)).error == ErrorCode.NONE
    harness.advance(45_000)
    assert send(harness, staying(2)).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert (group_in(harness).epoch, group_in(harness).state_name) == (3, "Empty")
    harness.advance(10_080 * 60_000 * 2)
    assert group_in(harness).is_empty


def test_a_removal_that_cannot_be_written_is_tried_again() -> None:
    """932-HB-10."""
    harness = with_topic()
    send(harness, joining())
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    harness.advance(45_499)
    assert not group_in(harness).is_empty
    harness.advance(1)
    assert group_in(harness).is_empty


def test_members_share_partitions() -> None:
    """932-HB-12, 932-HB-15: nobody gives anything up first."""
    harness = sharing("first", "second", partitions=1)
    for member in ("first", "second"):
        assert assigned(send(harness, joining(member_id=member))) == [0]


def test_a_second_member_gets_its_part_after_the_assignment_interval() -> None:
    """932-HB-19: the next heartbeat of any member computes."""
    harness = sharing("first", group_share_assignment_interval_ms=1_000)
    harness.advance(1_000)
    assert assigned(send(harness, joining(member_id="first"))) == [0, 1, 2]
    late = send(harness, joining(member_id="second")).response
    assert late.assignment.topic_partitions == []
    harness.advance(1_000)
    first = send(harness, joining(member_id="first"))
    second = send(harness, joining(member_id="second"))
    assert sorted(assigned(first) + assigned(second)) == [0, 1, 2]


def test_a_group_survives_a_move_of_its_coordinator() -> None:
    """932-HB-21: members have a whole session again."""
    harness = sharing("first", "second")
    epoch = group_in(harness).epoch
    before = assigned(send(harness, joining(member_id="first")))
    harness.advance(44_000)
    fresh = harness.restart(group_share_assignment_interval_ms=0)
    fresh.share_persister = RecordingPersister()
    fresh.advance(44_000)
    again = send(fresh, joining(member_id="first"))
    assert (again.response.member_epoch, assigned(again)) == (epoch, before)
    assert fresh.share_persister.calls == []
    fresh.advance(1_000)
    assert [*group_in(fresh).members] == ["first"]


def test_nothing_changes_if_the_records_cannot_be_written() -> None:
    harness = with_topic()
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert send(harness, joining()).error == ErrorCode.NOT_COORDINATOR
    harness.check_memory()
    assert harness.store.records() == []
    send(harness, joining())
    for request in (joining(member_id="other"), leaving()):
        harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
        assert send(harness, request).error == ErrorCode.NOT_COORDINATOR
        assert [*group_in(harness).members] == ["member"]
        harness.check_memory()


def test_a_topic_that_came_and_went_is_looked_at() -> None:
    """932-HB-13: the hash of the member that left was made with it."""
    harness = with_topic()
    send(harness, joining(subscribed_topic_names=["topic", "later"]))
    send(harness, joining(member_id="other", subscribed_topic_names=["topic"]))
    known = send(harness, staying(2)).response.member_epoch
    harness.create_topic("later")
    send(harness, leaving(member_id="other"))
    epoch = group_in(harness).epoch
    harness.delete_topic("later")
    assert send(harness, staying(known)).error == ErrorCode.NONE
    assert group_in(harness).epoch == epoch + 1


def test_a_topic_that_is_not_read_any_more_goes_before_the_next_target() -> None:
    """932-HB-15, 932-HB-19."""
    harness = with_topic(1, group_share_assignment_interval_ms=1_000)
    harness.create_topic("other")
    both = {"subscribed_topic_names": ["topic", "other"]}
    send(harness, joining(**both))
    begin(harness)
    harness.advance(1_000)
    taken = send(harness, staying(2)).response
    assert len(taken.assignment.topic_partitions) == 2
    left = send(harness, staying(3, subscribed_topic_names=["topic"]))
    assert (left.response.member_epoch, assigned(left)) == (3, [0])


def test_an_answer_without_records_waits_for_what_the_isr_does_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """932: a failover may lose what it shows."""
    harness = sharing("member")
    shard = harness.groups.shard_of("group")
    assert isinstance(shard, GroupShard)
    group = shard.other_groups["group"]
    assert isinstance(group, ShareGroup)
    epoch, written = group.members["member"].member_epoch, harness.store.end_offset(0)
    group.safe_at = written
    assert not send(harness, staying(epoch)).is_parked, "all is committed"
    waited: list[Any] = []

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        waited.append(required)
        return PARKED

    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    monkeypatch.setattr(harness.store, "high_watermark", lambda _: written - 1)
    assert send(harness, staying(epoch)).is_parked
    assert waited == [{0: written}]

"""DeleteShareGroupOffsets: the state of topics of an empty group is removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.share_persister import PersisterResult
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness, Reply, topic_id_of
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.requests import Member
from tests.broker.groups.share.ready_share_groups import UNKNOWN, key, left
from tests.broker.groups.share.test_initialization import noted
from tests.broker.groups.test_share_group_heartbeat import (
    begin,
    joining,
    leaving,
    send,
    sharing,
    with_topic,
)


def deleting(*topics: str, group_id: str = "group") -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in topics],
    )


def deleted(reply: Reply) -> list[tuple[str, int, str | None]]:
    assert reply.error == ErrorCode.NONE
    return [
        (each.topic_name, each.error_code, each.error_message) for each in reply.response.responses
    ]


def answered(harness: Harness, *topics: str, failing: str = "") -> Reply:
    """Delete offsets; the share coordinator of one topic is not there."""
    reply = harness.send(deleting(*topics), 0)
    failed = topic_id_of(failing)
    gone = {True: ErrorCode.NOT_COORDINATOR, False: ErrorCode.NONE}
    call = harness.share_persister.take()
    call.answer_each(lambda key: PersisterResult(gone[key.topic_id == failed]))
    return reply


def test_errors_in_order() -> None:
    """932-FEAT-02."""
    harness = Harness()
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    assert harness.send(deleting(group_id=""), 0).error == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"share.version": 1})
    empty = harness.send(deleting(group_id=""), 0).response
    assert (empty.error_code, empty.error_message) == (
        ErrorCode.INVALID_GROUP_ID,
        "The group id is invalid.",
    )
    moved = harness.send(deleting(), 0)
    assert (moved.error, moved.response.error_message) == (
        ErrorCode.NOT_COORDINATOR,
        "This is not the correct coordinator.",
    )
    begin_loading(harness)
    assert harness.send(deleting(), 0).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()


def test_only_share_groups_without_members_are_changed() -> None:
    """932-ADMIN-08."""
    harness = sharing("member")
    full = harness.send(deleting(), 0).response
    assert (full.error_code, full.error_message) == (
        ErrorCode.NON_EMPTY_GROUP,
        "The group is not empty.",
    )
    Member(harness, group_id="classic").commit()
    other = harness.send(deleting(group_id="classic"), 0).response
    assert (other.error_code, other.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group classic is not a share group.",
    )
    missing = harness.send(deleting("topic", group_id="missing"), 0).response
    assert (missing.error_code, missing.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group missing not found.",
    )


def test_offsets_are_deleted_topic_by_topic() -> None:
    """932-ADMIN-08: topics without state are refused."""
    harness = left()
    harness.create_topic("idle")
    before = len(noted(harness))
    reply = harness.send(deleting("idle", "missing", "topic"), 0)
    assert noted(harness)[before:] == [({}, {}, ["topic"])]
    call = harness.share_persister.take()
    assert (call.verb, sorted(call.partitions)) == ("delete", [key(0), key(1)])
    call.answer()
    assert deleted(reply) == [
        ("topic", 0, None),
        ("idle", 3, "There is no offset information to delete."),
        ("missing", 3, UNKNOWN),
    ]
    assert noted(harness)[before + 1 :] == [({}, {}, [])]


def test_a_deletion_that_fails_is_told_and_may_be_tried_again() -> None:
    """932-ADMIN-08."""
    harness = left()
    first = harness.send(deleting("topic"), 0)
    harness.share_persister.take().answer(error=ErrorCode.NOT_COORDINATOR, error_message="gone")
    assert deleted(first) == [("topic", 16, ErrorCode.NOT_COORDINATOR.message)]
    assert noted(harness)[-1] == ({}, {}, ["topic"])
    again = harness.send(deleting("topic"), 0)
    call = harness.share_persister.take()
    assert sorted(call.partitions) == [key(0), key(1)]
    call.answer()
    assert deleted(again) == [("topic", 0, None)]


def test_topics_that_could_not_be_deleted_come_last() -> None:
    """4.3.1's `GroupCoordinatorService.handleDeleteShareGroupOffsetStateResult`."""
    harness = with_topic(1)
    harness.create_topic("other")
    send(harness, joining(subscribed_topic_names=["other", "topic"]))
    begin(harness)
    send(harness, leaving())
    first, second = (each[0] for each in deleted(answered(harness, "other", "topic")))
    send(harness, joining(subscribed_topic_names=["other", "topic"]))
    begin(harness)
    send(harness, leaving())
    reply = answered(harness, "missing", "other", "topic", failing=first)
    assert [each[0] for each in deleted(reply)] == [second, "missing", first]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_topics_of_two_requests_are_noted_until_each_is_deleted(order: tuple[int, int]) -> None:
    """932-ADMIN-08: neither request forgets what the other one has not finished."""
    topics = ("other", "topic")
    harness = with_topic(1)
    harness.create_topic("other")
    send(harness, joining(subscribed_topic_names=list(topics)))
    begin(harness)
    send(harness, leaving())
    replies = [harness.send(deleting(each), 0) for each in topics]
    assert noted(harness)[-1] == ({}, {}, list(topics))
    calls = [harness.share_persister.take() for _ in topics]
    for place, left_over in zip(order, ([topics[order[1]]], []), strict=True):
        calls[place].answer()
        assert deleted(replies[place]) == [(topics[place], 0, None)]
        assert noted(harness)[-1] == ({}, {}, left_over)


def test_a_deletion_that_ends_when_the_group_is_elsewhere_says_so() -> None:
    """932-ADMIN-08: only the new coordinator can note that it is done."""
    harness = left()
    reply = harness.send(deleting("topic"), 0)
    call = harness.share_persister.take()
    harness.lead("__consumer_offsets", leader=2, leader_epoch=1)
    written = harness.store.records()
    call.answer()
    assert reply.error == ErrorCode.NOT_COORDINATOR
    assert harness.store.records() == written


def test_a_group_without_state_has_nothing_to_delete() -> None:
    """932-ADMIN-08."""
    harness = with_topic(1)
    send(harness, joining(subscribed_topic_names=["missing"]))
    send(harness, leaving())
    assert deleted(harness.send(deleting("topic"), 0)) == []


def test_an_append_that_fails_changes_nothing() -> None:
    harness = left()
    before = harness.store.records()
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert harness.send(deleting("topic"), 0).error == ErrorCode.NOT_COORDINATOR
    assert harness.store.records() == before
    assert harness.share_persister.calls == []

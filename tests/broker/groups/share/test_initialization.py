"""How the state of share partitions begins: records and calls, in their order."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.share.initialization import initializing
from kraft_wire.broker.groups.share.state_partitions import (
    StatePartitions,
    deleting_topics,
    named,
)
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
)
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
)
from tests.broker.groups.harness import Harness, topic_id_of
from tests.broker.groups.test_share_group_heartbeat import (
    assigned,
    begin,
    group_in,
    joining,
    send,
    sharing,
    staying,
    with_topic,
)

Topics = dict[str, list[int]]


def noted(harness: Harness) -> list[tuple[Topics, Topics, list[str]]]:
    """Return what each record 15 of the log says: initialising, initialised, deleting."""
    values = [
        ShareGroupStatePartitionMetadataValue.decode(value, 0, 2)[0]
        for key, value in harness.store.records()
        if key is not None and value is not None and key[:2] == b"\x00\x0f"
    ]
    return [
        (
            _partitions(value.initializing_topics),
            _partitions(value.initialized_topics),
            [topic.topic_name for topic in value.deleting_topics],
        )
        for value in values
    ]


def _partitions(topics: list[Any]) -> Topics:
    return {topic.topic_name: list(topic.partitions) for topic in topics}


def test_the_share_coordinators_are_asked_after_the_record_and_answer_with_another() -> None:
    """932-INIT-01, 932-INIT-02, 932-INIT-04: the state epoch is the group's."""
    harness = with_topic(2)
    send(harness, joining())
    assert noted(harness) == [({"topic": [0, 1]}, {}, [])]
    call = harness.share_persister.take()
    assert (call.verb, group_in(harness).epoch) == ("initialize", 2)
    assert call.partitions == {
        SharePartitionKey("group", topic_id_of("topic"), number): InitialShareState(2, -1)
        for number in (0, 1)
    }
    call.answer()
    assert noted(harness)[1:] == [({}, {"topic": [0, 1]}, [])]
    assert assigned(send(harness, staying(2))) == [0, 1]
    assert harness.share_persister.calls == []


def test_the_share_coordinators_are_not_asked_before_the_isr_has_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """932-INIT-01."""
    harness = with_topic(1)
    waits: list[Any] = []
    shard = harness.groups.shard_at(0)
    log = type(shard.log)  # type: ignore[union-attr]  # the shard is loaded
    append = log.append_for_later
    monkeypatch.setattr(log, "append_for_later", lambda *given: append(*given)._replace(safe_at=7))
    monkeypatch.setattr(log, "await_commit", lambda _, *given: waits.append(given))
    monkeypatch.setattr(
        type(harness.groups.env.commits), "answer_when_committed", lambda *given: given[3]({})
    )
    send(harness, joining())
    assert harness.share_persister.calls == []
    ((safe_at, at, committed),) = waits
    assert safe_at == 7
    committed(ErrorCode.COORDINATOR_NOT_AVAILABLE, at)
    assert harness.share_persister.calls == []
    committed(ErrorCode.NONE, at)
    assert [call.verb for call in harness.share_persister.calls] == ["initialize"]


def test_a_failed_beginning_is_taken_back_and_tried_again_by_the_next_heartbeat() -> None:
    """932-INIT-03."""
    harness = with_topic(1)
    send(harness, joining())
    harness.share_persister.take().answer(error=ErrorCode.NOT_COORDINATOR)
    assert noted(harness)[1:] == [({}, {}, [])]
    send(harness, staying(2))
    begin(harness)
    assert noted(harness)[-1] == ({}, {"topic": [0]}, [])


def test_one_error_takes_back_all_that_was_asked() -> None:
    """932-INIT-03."""
    harness = with_topic(2)
    send(harness, joining())
    call = harness.share_persister.take()
    errors = (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
    call.answer_each(lambda key: PersisterResult(errors[key.partition]))
    assert noted(harness)[1:] == [({}, {}, [])]


def test_a_beginning_without_an_answer_is_tried_again_after_the_retry_interval() -> None:
    """932-INIT-03: a move of the coordinator begins the interval anew."""
    harness = with_topic(1)
    send(harness, joining())
    harness.advance(29_999)
    send(harness, staying(2))
    assert len(harness.share_persister.calls) == 1
    harness.advance(1)
    send(harness, staying(2))
    assert len(harness.share_persister.calls) == 2
    fresh = harness.restart()
    fresh.share_persister = harness.share_persister
    send(fresh, staying(2))
    assert len(harness.share_persister.calls) == 2


def test_the_retry_interval_is_not_shorter_than_a_commit_may_take() -> None:
    """932-INIT-03."""
    harness = with_topic(1, group_share_initialize_retry_interval_ms=1)
    send(harness, joining())
    harness.advance(4_999)
    send(harness, staying(2))
    assert len(harness.share_persister.calls) == 1
    harness.advance(1)
    send(harness, staying(2))
    assert len(harness.share_persister.calls) == 2


def test_added_partitions_begin_and_the_others_stay_assigned() -> None:
    """932-INIT-05."""
    harness = sharing("member", partitions=1)
    harness.create_topic("topic", 3)
    grown = send(harness, joining())
    assert assigned(grown) == [0]
    assert noted(harness)[-1] == ({"topic": [1, 2]}, {"topic": [0]}, [])
    begin(harness)
    assert assigned(send(harness, joining())) == [0, 1, 2]


def test_a_deleted_topic_is_noted_no_more_and_its_partitions_go() -> None:
    """932-INIT-06: the share coordinators see the deletion themselves."""
    harness = sharing("member")
    harness.create_topic("other")
    harness.delete_topic("topic")
    harness.settle()
    assert noted(harness)[-1] == ({}, {}, [])
    assert harness.share_persister.calls == []
    gone = send(harness, staying(group_in(harness).epoch)).response
    assert gone.assignment.topic_partitions == []


def test_an_answer_for_a_group_that_is_gone_or_elsewhere_changes_nothing() -> None:
    """932-INIT-01."""
    harness = with_topic(1)
    send(harness, joining())
    call = harness.share_persister.take()
    written = len(harness.store.records())
    harness.lead("__consumer_offsets", leader=2, leader_epoch=1)
    call.answer()
    assert len(harness.store.records()) == written


def test_a_record_that_cannot_be_written_takes_the_beginning_back() -> None:
    """932-INIT-03."""
    harness = with_topic(1)
    send(harness, joining())
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    harness.share_persister.take().answer(ClockReading(harness.now_ms, harness.wall_ms))
    assert noted(harness)[1:] == [({}, {}, [])]


def test_topics_that_begin_again_are_not_deleted_any_more() -> None:
    """A topic of another id stays: its state is still to be deleted."""
    image = with_topic(2).image
    ours, other = topic_id_of("topic"), Uuid(b"other topic\0\0\0\0\0")
    topics = named({ours: [0, 1]}, image)
    known = StatePartitions(deleting=deleting_topics([ours, other], image))
    found = initializing(known, topics, image)
    assert list(found.deleting) == [other]
    assert {each.name: list(each.partitions) for each in found.initializing.values()} == {
        "topic": [0, 1]
    }

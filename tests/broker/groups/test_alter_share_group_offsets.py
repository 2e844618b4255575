"""AlterShareGroupOffsets: where the share partitions of an empty group begin."""

from __future__ import annotations

from dataclasses import replace

from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
)
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness, Reply, topic_id_of
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.requests import Member
from tests.broker.groups.share.ready_share_groups import UNKNOWN, key, left
from tests.broker.groups.share.test_initialization import noted
from tests.broker.groups.test_share_group_heartbeat import (
    begin,
    group_in,
    sharing,
    with_topic,
)


def altering(group_id: str = "group", **topics: dict[int, int]) -> AlterShareGroupOffsetsRequest:
    return AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=number, start_offset=offset
                    )
                    for number, offset in offsets.items()
                ],
            )
            for name, offsets in topics.items()
        ],
    )


def altered(reply: Reply) -> dict[str, list[tuple[int, int, str | None]]]:
    assert reply.error == ErrorCode.NONE
    return {
        topic.topic_name: [
            (each.partition_index, each.error_code, each.error_message) for each in topic.partitions
        ]
        for topic in reply.response.responses
    }


def test_errors_in_order() -> None:
    """932-FEAT-02."""
    harness = Harness()
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})
    assert harness.send(altering(group_id=""), 0).error == ErrorCode.UNSUPPORTED_VERSION
    harness.image = replace(harness.image, finalized_features={"share.version": 1})
    empty = harness.send(altering(group_id=""), 0).response
    assert (empty.error_code, empty.error_message) == (
        ErrorCode.INVALID_GROUP_ID,
        "The group id is invalid.",
    )
    moved = harness.send(altering(), 0)
    assert (moved.error, moved.response.error_message) == (
        ErrorCode.NOT_COORDINATOR,
        "This is not the correct coordinator.",
    )
    begin_loading(harness)
    assert harness.send(altering(), 0).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()


def test_only_share_groups_without_members_are_changed() -> None:
    """932-ADMIN-05."""
    harness = sharing("member")
    full = harness.send(altering(), 0).response
    assert (full.error_code, full.error_message) == (
        ErrorCode.NON_EMPTY_GROUP,
        "The group is not empty.",
    )
    Member(harness, group_id="classic").commit()
    other = harness.send(altering(group_id="classic"), 0).response
    assert (other.error_code, other.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group classic is not a share group.",
    )


def test_start_offsets_are_altered_by_the_share_coordinators() -> None:
    """932-ADMIN-05, 932-HB-14: the epoch of the group stays; no offset is refused."""
    harness = left()
    epoch, before = group_in(harness).epoch, len(noted(harness))
    reply = harness.send(altering(topic={0: 7, 1: -5}), 0)
    assert reply.is_parked
    assert noted(harness)[before:] == [({"topic": [0, 1]}, {"topic": [0, 1]}, [])]
    call = harness.share_persister.take()
    assert call.partitions == {
        key(0): InitialShareState(epoch, 7),
        key(1): InitialShareState(epoch, -5),
    }
    call.answer()
    assert altered(reply) == {"topic": [(0, 0, None), (1, 0, None)]}
    assert reply.response.responses[0].topic_id == topic_id_of("topic")
    assert noted(harness)[before + 1 :] == [({}, {"topic": [0, 1]}, [])]
    assert group_in(harness).epoch == epoch


def test_topics_that_do_not_exist_are_answered_first() -> None:
    """4.3.1's `KafkaApis.handleAlterShareGroupOffsetsRequest`: if partitions of them are named."""
    harness = left()
    reply = harness.send(altering(topic={0: 7}, missing={3: 0, 1: 0}, gone={}), 0)
    harness.share_persister.take().answer()
    assert list(altered(reply).items()) == [
        ("missing", [(3, 3, UNKNOWN), (1, 3, UNKNOWN)]),
        ("topic", [(0, 0, None)]),
    ]


def test_a_partition_that_is_named_twice_has_two_answers() -> None:
    """4.3.1's `AlterShareGroupOffsetsResponse.Builder`: each topic has one."""
    harness = left()
    request = altering(topic={0: 7})
    request.topics[0].partitions *= 2
    request.topics += altering(topic={1: 8}).topics
    reply = harness.send(request, 0)
    harness.share_persister.take().answer()
    assert altered(reply) == {"topic": [(0, 0, None), (0, 0, None), (1, 0, None)]}


def test_a_group_is_made_by_its_first_start_offset() -> None:
    """932-ADMIN-06: by record 15 alone."""
    harness = with_topic()
    reply = harness.send(altering("new", topic={0: 0}), 0)
    assert [record[0][:2] for record in harness.store.records() if record[0]] == [b"\x00\x0f"]
    assert harness.share_persister.calls[0].partitions == {key(0, "new"): InitialShareState(1, 0)}
    begin(harness)
    assert altered(reply) == {"topic": [(0, 0, None)]}
    assert (group_in(harness, "new").epoch, group_in(harness, "new").state_name) == (1, "Empty")


def test_unknown_topics_and_partitions_are_refused_one_by_one() -> None:
    """932-ADMIN-07: the rest is done."""
    harness = with_topic(1)
    refused = harness.send(altering(missing={0: 1}), 0)
    assert altered(refused) == {"missing": [(0, 3, UNKNOWN)]}
    assert refused.response.responses[0].topic_id == ZERO_UUID
    assert harness.store.records() == []
    harness.check_memory()
    reply = harness.send(altering(missing={0: 1}, topic={0: 5, 9: 5}), 0)
    begin(harness)
    assert altered(reply) == {
        "missing": [(0, 3, UNKNOWN)],
        "topic": [(0, 0, None), (9, 3, UNKNOWN)],
    }


def test_what_a_share_coordinator_refuses_is_told_and_stays_noted() -> None:
    """932-ADMIN-05: as in Kafka, it is not taken back."""
    harness = left()
    before = len(noted(harness))
    reply = harness.send(altering(topic={0: 7, 1: 7}), 0)
    fenced = PersisterResult(ErrorCode.FENCED_STATE_EPOCH, "old")
    harness.share_persister.take().answer_each(
        lambda each: fenced if each.partition else PersisterResult(ErrorCode.NONE)
    )
    assert altered(reply) == {"topic": [(0, 0, None), (1, 124, "old")]}
    assert len(noted(harness)) == before + 1


def test_what_cannot_be_noted_any_more_is_no_success() -> None:
    """Another broker coordinates the group by then (seed 6200036); 4.3.1 answers NONE."""
    harness = left()
    reply = harness.send(altering(topic={0: 7}), 0)
    lose_coordination(harness)
    harness.share_persister.take().answer()
    assert reply.error == ErrorCode.NOT_COORDINATOR


def test_an_append_that_fails_behind_the_share_coordinators_is_no_success() -> None:
    harness = left()
    reply = harness.send(altering(topic={0: 7}), 0)
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    harness.share_persister.take().answer()
    assert reply.error == ErrorCode.NOT_COORDINATOR


def test_an_append_that_fails_changes_nothing() -> None:
    harness = left()
    before = harness.store.records()
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert harness.send(altering(topic={0: 1}), 0).error == ErrorCode.NOT_COORDINATOR
    assert harness.store.records() == before
    assert harness.share_persister.calls == []


def test_a_group_that_could_not_be_written_is_not_there() -> None:
    harness = with_topic(1)
    harness.store.refusals.append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert harness.send(altering("fresh", topic={0: 1}), 0).error == ErrorCode.NOT_COORDINATOR
    harness.check_memory()
    assert harness.send(altering("fresh", topic={0: 1}), 0).is_parked

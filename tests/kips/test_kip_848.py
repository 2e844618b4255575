"""KIP-848 and its successors: what no test of `tests/broker/groups` shows by itself."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS
from kraft_wire.metadata.image import BrokerImage, PartitionImage, TopicImage
from kraft_wire.model import Uuid
from kraft_wire.node.authorization.asker import Asked, Passed
from kraft_wire.node.authorization.groups import consumer_group_heartbeat
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kraft_wire.wire.records.record import Record
from tests.broker.groups.harness import Harness, image_of, topic_id_of
from tests.broker.groups.requests import Member
from tests.broker.groups.test_consumer_group_heartbeat import (
    assigned,
    group_in,
    joining,
    send,
    staying,
    with_topic,
)


def owning(*partitions: int) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id_of("topic"), partitions=list(partitions))]


def static(member_id: str, epoch: int = 0, **changes: Any) -> Any:
    make = joining if epoch == 0 else staying
    named = {"member_id": member_id, "instance_id": "instance", **changes}
    return make(**named) if epoch == 0 else make(epoch, **named)


def kinds_since(harness: Harness, before: int) -> list[list[tuple[int, bool]]]:
    """Return type of record, and whether it is a tombstone, batch by batch."""
    return [
        [(record.key[1], record.value is None) for record in batch.records() if record.key]
        for batch in harness.store.batches(0)[before:]
    ]


def written(harness: Harness, request: Any) -> list[tuple[int, bool]]:
    """Return the records of one request, which are one batch or none."""
    before = len(harness.store.batches(0))
    assert send(harness, request).error == ErrorCode.NONE
    batches = kinds_since(harness, before)
    assert len(batches) <= 1
    return batches[0] if batches else []


# --- Joining, leaving, static members ---------------------------------------------------------


def test_an_epoch_of_a_missing_group_is_refused_in_kafkas_words() -> None:
    """848-HB-12."""
    answer = send(with_topic(), staying(3)).response
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Consumer group group not found."


def test_any_text_is_a_member_id_and_a_known_one_keeps_its_state_at_epoch_0() -> None:
    """848-JOIN-01, 848-JOIN-03."""
    harness = with_topic()
    odd = "any text: \u00fc / 1"
    assert send(harness, joining(member_id=odd)).response.member_epoch == 2
    again = send(harness, joining(member_id=odd))
    assert (again.response.member_epoch, assigned(again)) == (2, [0, 1, 2])
    assert group_in(harness).epoch == 2


def test_a_leave_needs_no_epoch_and_raises_that_of_the_group() -> None:
    """848-JOIN-05, 848-EPOCH-01."""
    harness = with_topic()
    send(harness, joining(member_id="first"))
    send(harness, joining(member_id="second"))
    assert group_in(harness).epoch == 3
    left = send(harness, staying(-1, member_id="first")).response
    assert (left.member_epoch, left.heartbeat_interval_ms) == (-1, 0)
    assert group_in(harness).epoch == 4
    assert assigned(send(harness, staying(3, member_id="second"))) == [0, 1, 2]


def test_a_joiner_without_topics_does_not_raise_the_epoch() -> None:
    """848-EPOCH-01."""
    harness = with_topic()
    assert send(harness, joining(subscribed_topic_names=[])).response.member_epoch == 1


def test_an_instance_has_one_member_until_it_leaves_for_a_while() -> None:
    """848-STATIC-01, 848-STATIC-04: even with the same member id."""
    harness = with_topic()
    send(harness, static("old"))
    for member_id in ("new", "old"):
        refused = send(harness, static(member_id)).response
        assert refused.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
        assert refused.error_message == (
            f"Static member {member_id} with instance id instance cannot join the group because "
            "the instance id is owned by old member."
        )


def test_a_static_member_keeps_its_partitions_while_it_is_away_and_its_heir_gets_them() -> None:
    """848-STATIC-02, 848-STATIC-03, 848-STATIC-07, 848-STATIC-09, 848-ASSIGN-12."""
    harness = with_topic()
    send(harness, static("old"))
    assert written(harness, static("old", -2)) == [(8, False)]
    away = group_in(harness).members.get("old")
    assert away is not None
    assert away.member_epoch == -2
    assert [list(epochs.values()) for epochs in away.assigned.values()] == [[0, 0, 0]]
    records = written(harness, static("new"))
    assert records[:6] == [(8, True), (7, True), (5, True), (5, False), (7, False), (8, False)]
    heir = group_in(harness).members.get("new")
    assert heir is not None
    assert (heir.member_epoch, group_in(harness).epoch) == (2, 2)
    assert [list(epochs.values()) for epochs in heir.assigned.values()] == [[0, 0, 0]]


def test_a_replaced_member_is_fenced_if_it_names_its_instance() -> None:
    """848-STATIC-05, 848-STATIC-06."""
    harness = with_topic()
    send(harness, static("old"))
    send(harness, static("old", -2))
    send(harness, static("new"))
    fenced = send(harness, static("old", 2)).response
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert send(harness, staying(2, member_id="old")).error == ErrorCode.UNKNOWN_MEMBER_ID
    unknown = send(harness, static("old", 2, instance_id="other")).response
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_is_removed_with_its_session() -> None:
    """848-STATIC-08."""
    harness = with_topic()
    send(harness, static("old"))
    send(harness, static("old", -2))
    harness.advance(45_000)
    assert (group_in(harness).is_empty, group_in(harness).epoch) == (True, 3)


# --- Epochs -----------------------------------------------------------------------------------


def test_a_changed_subscription_raises_the_epoch_and_other_fields_do_not() -> None:
    """848-EPOCH-02, 848-EPOCH-03, 848-EPOCH-06: names are compared as sets."""
    harness = with_topic()
    send(harness, joining(subscribed_topic_names=["topic", "other"]))
    same = staying(2, subscribed_topic_names=["other", "topic", "topic"])
    assert written(harness, same) == []
    other = {"server_assignor": "range", "rack_id": "north", "rebalance_timeout_ms": 9}
    assert written(harness, staying(2, **other)) == [(5, False)]
    changed = written(harness, staying(2, subscribed_topic_names=["topic"], rack_id="south"))
    assert [kind for kind, _ in changed].count(3) == 1
    assert group_in(harness).epoch == 3


def test_changed_metadata_raises_the_epoch_at_the_next_heartbeat() -> None:
    """848-EPOCH-05, 848-RECON-10: a deleted topic's partitions are revoked, and confirmed."""
    harness = with_topic()
    send(harness, joining())
    harness.delete_topic("topic")
    assert group_in(harness).epoch == 2
    revoking = send(harness, staying(2)).response
    assert (revoking.member_epoch, revoking.assignment.topic_partitions) == (2, [])
    assert group_in(harness).epoch == 3
    done = send(harness, staying(2, topic_partitions=[])).response
    assert done.member_epoch == 3


def test_missing_topics_do_not_count_for_the_hash_of_the_metadata() -> None:
    """848-EPOCH-07, 848-REC-02: values are compared in the records of `test_walks`."""
    harness = Harness(group_consumer_assignment_interval_ms=0)
    brokers = {1: BrokerImage(1, 1, Uuid(bytes(16)), {}, {}, rack="north", fenced=False)}
    partitions = {0: PartitionImage(0, (1,), (1,), 1, 0, 0)}
    image = image_of({"topic": TopicImage("topic", topic_id_of("topic"), partitions)})
    with_rack = replace(image, brokers=brokers)
    hashes = harness.groups.env.topic_hashes
    known = hashes.group_hash(["topic"], with_rack)
    assert hashes.group_hash(["topic", "missing"], with_rack) == known != 0
    assert hashes.group_hash(["missing"], with_rack) == 0


def test_a_member_moves_to_the_targets_epoch_and_keeps_the_one_before() -> None:
    """848-EPOCH-08, 848-EPOCH-09, 848-EPOCH-10."""
    harness = with_topic()
    send(harness, joining(member_id="first"))
    send(harness, joining(member_id="second"))
    group = group_in(harness)
    assert (group.epoch, group.assignment_epoch) == (3, 3)
    send(harness, staying(2, member_id="first"))
    waiting = group.members.get("first")
    assert waiting is not None
    assert (waiting.member_epoch, waiting.previous_member_epoch) == (2, 2)
    send(harness, staying(2, member_id="first", topic_partitions=owning(0)))
    moved = group.members.get("first")
    assert moved is not None
    assert (moved.member_epoch, moved.previous_member_epoch) == (3, 2)


def test_a_join_is_one_batch_in_kafkas_order() -> None:
    """848-EPOCH-11, 848-REC-07, 848-REC-08."""
    harness = with_topic()
    before = len(harness.store.batches(0))
    send(harness, joining())
    (batch,) = harness.store.batches(0)[before:]
    assert (batch.producer_id, batch.producer_epoch) == (-1, -1)
    (kinds,) = kinds_since(harness, before)
    assert kinds == [(5, False), (3, False), (7, False), (6, False), (8, False)]


# --- Targets ----------------------------------------------------------------------------------


def test_a_target_is_computed_once_per_interval() -> None:
    """848-ASSIGN-01, 848-ASSIGN-02."""
    harness = Harness()
    harness.create_topic("topic", 2)
    send(harness, joining(member_id="first"))
    late = send(harness, joining(member_id="second")).response
    assert (late.member_epoch, late.assignment.topic_partitions) == (2, [])
    harness.advance(999)
    assert send(harness, staying(2, member_id="second")).response.member_epoch == 2
    harness.advance(1)
    assert send(harness, staying(2, member_id="second")).response.member_epoch == 3


def test_only_changed_targets_are_written_and_those_of_new_members() -> None:
    """848-ASSIGN-10."""
    harness = with_topic(1)
    send(harness, joining(member_id="first"))
    records = written(harness, joining(member_id="second"))
    assert [kind for kind, _ in records].count(7) == 1


def test_an_assigned_partition_keeps_the_epoch_at_which_it_was_given() -> None:
    """848-RECON-11."""
    harness = with_topic(2)
    send(harness, joining(member_id="first"))
    send(harness, joining(member_id="second"))
    send(harness, staying(2, member_id="first"))
    send(harness, staying(2, member_id="first", topic_partitions=owning(0)))
    member = group_in(harness).members.get("first")
    assert member is not None
    assert member.member_epoch == 3
    assert [dict(each.items()) for each in member.assigned.values()] == [{0: 2}]


# --- Records, offsets, administration ---------------------------------------------------------


def test_groups_are_loaded_whatever_the_level_and_unknown_records_are_left_alone() -> None:
    """848-FEAT-05, 848-REC-09."""
    harness = with_topic()
    send(harness, joining())
    harness.store.append_records(0, [Record(b"\x00\x63unknown", b"x")])
    fresh = harness.restart()
    fresh.image = replace(fresh.image, finalized_features={})
    assert group_in(fresh).state_name == "Stable"
    assert send(fresh, staying(2)).error == ErrorCode.UNSUPPORTED_VERSION


def test_commits_of_nobody_are_for_empty_groups() -> None:
    """848-OFF-04, 848-OFF-06."""
    harness = with_topic()
    absent = Member(harness, group_id="group")
    absent.generation_id = 5
    absent.member_id = "member"
    assert absent.commit(version=9) == ErrorCode.GROUP_ID_NOT_FOUND
    assert absent.commit(version=8) == ErrorCode.ILLEGAL_GENERATION
    send(harness, joining())
    absent.generation_id, absent.member_id = -1, ""
    assert absent.commit(version=9) == ErrorCode.UNKNOWN_MEMBER_ID
    send(harness, staying(-1))
    assert absent.commit(version=9) == ErrorCode.NONE


@pytest.mark.parametrize(("version", "error"), [(6, ErrorCode.GROUP_ID_NOT_FOUND), (5, 0)])
def test_a_consumer_group_is_no_classic_group(version: int, error: int) -> None:
    """848-ADMIN-05."""
    harness = with_topic()
    send(harness, joining())
    (group,) = harness.send(DescribeGroupsRequest(groups=["group"]), version).response.groups
    assert (group.error_code, group.group_state) == (error, "Dead")


def test_a_fetch_of_offsets_names_the_members_epoch_or_nobody() -> None:
    """848-OFF-07: a missing group has no offsets, and no error."""
    harness = with_topic()

    def error(member_id: str | None, epoch: int, group_id: str = "group") -> int:
        group = OffsetFetchRequestGroup(
            group_id=group_id, member_id=member_id, member_epoch=epoch, topics=None
        )
        (answer,) = harness.send(OffsetFetchRequest(groups=[group]), 9).response.groups
        return int(answer.error_code)

    assert error("member", 2) == ErrorCode.NONE
    send(harness, joining())
    assert error(None, -1) == ErrorCode.NONE
    assert error("member", 2) == ErrorCode.NONE
    assert error("member", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert error("other", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_assignors_of_clients_were_never_shipped() -> None:
    """848-ASSIGN-09: no request of the release is about them."""
    names = [each.name for each in APIS.values()]
    assert "ConsumerGroupHeartbeat" in names
    assert not [
        each for each in names if "PrepareAssignment" in each or "InstallAssignment" in each
    ]


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        (["topic", "other"], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (["group", "topic"], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (["group", "topic", "other"], None),
    ],
)
def test_a_member_may_read_the_group_and_describe_every_topic_that_it_names(
    allowed: list[str], error: ErrorCode | None
) -> None:
    """848-HB-02: one topic refuses all."""
    request = joining(subscribed_topic_names=["topic", "other"])
    needs = APIS[request.API_KEY].needs_on(ListenerType.BROKER)
    asker = SimpleNamespace(meets=lambda _, name: name in allowed)
    verdict = consumer_group_heartbeat(Asked(asker, None, request, needs, None, None))  # type: ignore[arg-type]  # what this guard asks for
    if error is None:
        assert isinstance(verdict, Passed)
        assert verdict.request is request
    else:
        assert isinstance(verdict, ConsumerGroupHeartbeatResponse)
        assert verdict.error_code == error

"""WriteShareGroupState: delivery states, start offsets, snapshots and updates."""

from __future__ import annotations

import pytest

from kraft_wire.broker.share_state.state import ShareState, ShareUpdate
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.write_share_group_state import (
    PartitionData,
    WriteShareGroupStateRequest,
    WriteStateData,
)
from tests.broker.share_state.sharing import (
    FLUSHED,
    GROUP,
    NOWHERE,
    Batch,
    Sharing,
    batch,
    refused_appends,
    stored,
    unreadable_state,
)

SNAPSHOT_AFTER = "share.coordinator.snapshot.update.records.per.snapshot"


def test_a_write_is_an_update_that_names_its_snapshot() -> None:
    """932-COORD-09."""
    node = Sharing()
    node.initialize(epoch=1)
    node.initialize(epoch=2)
    node.write(0, (5, 6, 2, 1), (3, 4, 0, 2), epoch=9, leader=9, start=4, complete=1)
    assert node.changes()[-1] == ShareUpdate(
        snapshot_epoch=1,
        leader_epoch=0,
        start_offset=4,
        delivery_complete_count=1,
        batches=[batch(4, 4, 0, 2), batch(5, 6, 2, 1)],
    )
    assert node.read().state_epoch == 2


def test_a_snapshot_follows_so_many_updates() -> None:
    """932-COORD-10: reads of a new leader count as well."""
    node = Sharing(**{SNAPSHOT_AFTER: "2"})
    node.initialize(epoch=1, start=0)
    node.write(0, (0, 0, 2, 1), start=0)
    node.read(leader=3)
    node.write(0, (1, 1, 2, 1), start=-1, complete=2)
    node.write(0, (2, 2, 0, 1), start=-1)
    kinds = [type(each) for each in node.changes()]
    assert kinds == [ShareState, ShareUpdate, ShareUpdate, ShareState, ShareUpdate]
    snapshot = node.changes()[3]
    assert isinstance(snapshot, ShareState)
    assert (snapshot.snapshot_epoch, snapshot.state_epoch, snapshot.leader_epoch) == (1, 1, 3)
    assert (snapshot.start_offset, snapshot.delivery_complete_count) == (0, 2)
    assert snapshot.batches == [batch(0, 1, 2, 1)]


def test_a_start_offset_of_minus_one_is_unchanged() -> None:
    """932-COORD-11."""
    node = Sharing()
    node.initialize(start=5)
    node.write(0, (5, 9, 2, 1), start=-1)
    assert (node.read().start_offset, node.summary().start_offset) == (5, 5)
    node.write(0, start=8)
    assert (node.read().start_offset, stored(node.read().state_batches)) == (8, [(8, 9, 2, 1)])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ([(0, 4, 0, 1), (2, 3, 2, 1)], [(0, 1, 0, 1), (2, 3, 2, 1), (4, 4, 0, 1)]),
        ([(0, 4, 2, 1), (2, 3, 0, 1)], [(0, 4, 2, 1)]),
        ([(0, 4, 2, 1), (2, 6, 0, 2)], [(0, 1, 2, 1), (2, 6, 0, 2)]),
        ([(0, 4, 2, 1), (5, 6, 2, 1)], [(0, 6, 2, 1)]),
        ([(8, 9, 2, 1), (0, 4, 2, 1)], [(0, 4, 2, 1), (8, 9, 2, 1)]),
    ],
)
def test_batches_are_merged(written: list[Batch], read: list[Batch]) -> None:
    """932-COORD-12: the higher delivery count and state win; neighbors are joined."""
    node = Sharing()
    node.initialize()
    for each in written:
        node.write(0, each)
    assert stored(node.read().state_batches) == read
    assert stored(node.restarted().read().state_batches) == read


def test_the_count_of_completed_deliveries_is_kept() -> None:
    """932-COORD-15: version 0 of a request or a response does not have it."""
    node = Sharing()
    node.initialize(start=0)
    node.write(complete=4)
    assert node.summary().delivery_complete_count == 4
    assert node.summary(version=0).delivery_complete_count == -1
    node.write(complete=4, version=0)
    assert node.summary().delivery_complete_count == -1


@pytest.mark.parametrize("wrong", [(4, 3, 0, 1), (0, 1, 5, 1), (0, 1, -1, 1)])
def test_a_batch_that_no_share_partition_has_is_refused(wrong: Batch) -> None:
    node = Sharing()
    node.initialize()
    assert node.write(0, (0, 9, 0, 1), wrong).error_code == E.INVALID_REQUEST
    assert len(node.changes()) == 1


def test_a_share_partition_that_is_named_twice_has_one_result() -> None:
    node = Sharing()
    node.initialize()
    request = node.write_request(0, (0, 0, 2, 1))
    request.topics[0].partitions.append(PartitionData(partition=0, leader_epoch=-1, state_epoch=0))
    (topic,) = node.send(request, 1).response.results
    assert [each.error_code for each in topic.partitions] == [E.FENCED_STATE_EPOCH]
    assert len(node.changes()) == 2


@pytest.mark.parametrize(
    ("group", "topics"),
    [
        ("", [WriteStateData(partitions=[PartitionData()])]),
        (GROUP, []),
        (GROUP, [WriteStateData(partitions=[PartitionData()]), WriteStateData()]),
    ],
)
def test_a_request_about_nothing_is_answered_with_nothing(
    group: str, topics: list[WriteStateData]
) -> None:
    request = WriteShareGroupStateRequest(group_id=group, topics=topics)
    assert Sharing().send(request, 1).response.results == []


def test_an_answer_waits_until_the_write_is_on_the_disk() -> None:
    node = Sharing(**FLUSHED)
    node.initialize()
    node.keeps_flushes_back = True
    waiting = node.send(node.write_request(0, (0, 0, 2, 1)), 1, connection=2)
    read = node.read()
    assert waiting.response is None
    assert read is None, "it would show what may be lost"
    node.flush()
    assert waiting.response.results[0].partitions[0].error_code == E.NONE


def test_a_write_that_is_not_committed_in_time_may_still_count() -> None:
    node = Sharing(**FLUSHED, **{"share.coordinator.write.timeout.ms": "700"})
    node.initialize()
    node.keeps_flushes_back = True
    waiting = node.send(node.write_request(0, (0, 0, 2, 1)), 1)
    node.advance(699)
    assert waiting.response is None
    node.advance(1)
    result = waiting.response.results[0].partitions[0]
    assert result.error_code == E.COORDINATOR_NOT_AVAILABLE
    assert result.error_message == ("Unable to write share group state: The request timed out.")
    node.flush()
    assert stored(node.read().state_batches) == [(0, 0, 2, 1)]


def test_a_write_that_the_log_refuses_changes_nothing() -> None:
    node = Sharing()
    node.initialize()
    with refused_appends(E.NOT_ENOUGH_REPLICAS):
        result = node.write(0, (0, 0, 2, 1))
    assert result.error_code == E.COORDINATOR_NOT_AVAILABLE
    assert result.error_message == (
        "Unable to write share group state: Messages are rejected since there are fewer in-sync"
        " replicas than required."
    )
    assert stored(node.read().state_batches) == []


def test_errors_in_order() -> None:
    assert Sharing(is_in_use=False).write(-1).error_code == E.NOT_COORDINATOR
    node = Sharing()
    node.initialize(epoch=7)
    with unreadable_state():
        node = node.restarted()
        assert node.write(-1).error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1_000)
    assert node.write(-1).error_code == E.INVALID_REQUEST
    assert node.write(1, topic_id=NOWHERE).error_code == E.INVALID_REQUEST
    node.read(0, leader=5)
    node.forget_topic()
    wrong = (1, 0, 0, 1)
    assert node.write(0, wrong, leader=4, epoch=6).error_code == E.FENCED_LEADER_EPOCH
    assert node.write(0, wrong, leader=5, epoch=6).error_code == E.FENCED_STATE_EPOCH
    assert node.write(0, wrong, leader=5, epoch=7).error_code == E.UNKNOWN_TOPIC_OR_PARTITION

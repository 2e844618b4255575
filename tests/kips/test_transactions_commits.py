"""Records of the coordinator that are not committed, or not written at all."""

from __future__ import annotations

import pytest

from kraft_wire.broker.coordination.append_errors import coordinator_error
from kraft_wire.broker.handlers.find_coordinator import handle
from kraft_wire.broker.transactions.add_partitions import add_partitions
from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.broker.small_broker import broker_image, context, image_of, partition_image, small_broker
from tests.broker.transactions.scripted import FOREVER_MS, Scripted

ONGOING, PREPARED = TransactionState.ONGOING, TransactionState.PREPARE_COMMIT


@pytest.mark.parametrize("version", [0, 2])
def test_a_partition_that_moved_before_the_commit(version: int) -> None:
    """TXN-END-12: also where this broker leads it again, under another epoch."""
    scripted = Scripted(version)
    producer = scripted.begin(version)
    scripted.log.waits = True
    scripted.end(producer, version)
    before = len(scripted.answers)
    scripted.shard.resign()
    scripted.log.end_wait(E.NONE)
    assert [each.error for each in scripted.answers[before:]] == [E.NOT_COORDINATOR]
    assert not scripted.markers.is_waiting
    assert scripted.shard.ids["tid"].metadata.state is ONGOING


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_fence_whose_record_was_refused(version: int) -> None:
    """TXN-FENCE-04: the next one raises the epoch once, too."""
    scripted = Scripted(version)
    rules = 0 if version == 0 else 2
    producer_id, epoch = scripted.begin(rules)
    scripted.log.refusals = [E.COORDINATOR_NOT_AVAILABLE] * 2
    for _ in range(2):
        scripted.init()
        assert scripted.last.error is E.COORDINATOR_NOT_AVAILABLE
        assert scripted.shard.ids["tid"].pending is None
    scripted.init()
    assert scripted.last.error is E.CONCURRENT_TRANSACTIONS
    metadata = scripted.shard.ids["tid"].metadata
    assert metadata.state is TransactionState.PREPARE_ABORT
    assert (metadata.producer_id, metadata.producer_epoch) == (producer_id, epoch + 1)


def test_errors_of_appends() -> None:
    """TXN-LOG-11."""
    expected = {
        E.UNKNOWN_TOPIC_OR_PARTITION: E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_ENOUGH_REPLICAS: E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: E.COORDINATOR_NOT_AVAILABLE,
        E.REQUEST_TIMED_OUT: E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER: E.NOT_COORDINATOR,
        E.KAFKA_STORAGE_ERROR: E.NOT_COORDINATOR,
        E.MESSAGE_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
        E.RECORD_LIST_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
        E.INVALID_PRODUCER_EPOCH: E.INVALID_PRODUCER_EPOCH,
    }
    assert {each: coordinator_error(each) for each in expected} == expected
    scripted = Scripted()
    producer = scripted.begin()
    scripted.log.refusals = [E.NOT_COORDINATOR]
    scripted.end(producer)
    assert scripted.last.error is E.NOT_COORDINATOR
    assert scripted.shard.ids["tid"].metadata.state is ONGOING
    scripted.end(producer)
    assert scripted.last.error is E.NONE


def test_a_record_of_unknown_fate_keeps_its_change_pending() -> None:
    """TXN-STATE-03: it takes effect as soon as it is committed; 4.3.1 rolls back in memory."""
    scripted = Scripted()
    producer = scripted.begin()
    scripted.log.waits = True
    scripted.end(producer)
    (wait,) = scripted.log.waiting
    assert wait[2] == FOREVER_MS, "the transaction's own timeout"
    scripted.log.end_wait(E.COORDINATOR_NOT_AVAILABLE)
    assert scripted.last.error is E.COORDINATOR_NOT_AVAILABLE
    scripted.end(producer)
    assert scripted.last.error is E.CONCURRENT_TRANSACTIONS
    answered = len(scripted.answers)
    scripted.log.end_wait(E.NONE)
    assert scripted.shard.ids["tid"].metadata.state is PREPARED
    assert scripted.markers.is_waiting
    assert len(scripted.answers) == answered, "the client has its answer"


def test_a_commit_with_too_few_replicas_left_is_a_commit() -> None:
    """TXN-STATE-03."""
    scripted = Scripted()
    producer = scripted.begin()
    scripted.log.waits = True
    scripted.end(producer)
    scripted.log.watermark = len(scripted.log.records)
    scripted.log.end_wait(E.COORDINATOR_NOT_AVAILABLE)
    assert scripted.last.error is E.COORDINATOR_NOT_AVAILABLE
    assert scripted.shard.ids["tid"].metadata.state is PREPARED
    assert scripted.log.waiting == []


def test_a_refused_complete_record_is_written_again() -> None:
    """TXN-STATE-04: meanwhile the id stays pending."""
    scripted = Scripted()
    producer = scripted.begin()
    scripted.image = image_of({}, [broker_image(1)])  # no partition needs a marker
    scripted.log.refusals = [E.NONE, E.COORDINATOR_NOT_AVAILABLE]
    scripted.end(producer)
    assert scripted.last.error is E.NONE
    entry = scripted.shard.ids["tid"]
    assert (entry.metadata.state, entry.pending) == (PREPARED, TransactionState.COMPLETE_COMMIT)
    scripted.shard.tick(scripted.at)  # too early
    assert entry.pending is TransactionState.COMPLETE_COMMIT
    due_ms = scripted.shard.timers.deadline_ms()
    assert due_ms is not None
    assert due_ms > 0
    scripted.now_ms = due_ms
    scripted.shard.tick(scripted.at)
    assert (entry.metadata.state, entry.pending) == (TransactionState.COMPLETE_COMMIT, None)


def test_an_id_whose_first_record_was_refused_is_forgotten() -> None:
    """TXN-INIT-05: 4.3.1 keeps it, without an epoch."""
    scripted = Scripted()
    scripted.log.refusals = [E.COORDINATOR_NOT_AVAILABLE]
    scripted.init()
    assert scripted.last.error is E.COORDINATOR_NOT_AVAILABLE
    assert scripted.shard.ids == {}


def test_no_producer_id_is_left() -> None:
    """TXN-INIT-01, TXN-INIT-05: clients come again."""
    scripted = Scripted()
    scripted.ids_left = 0
    scripted.init()
    assert scripted.last.error is E.COORDINATOR_LOAD_IN_PROGRESS
    assert scripted.shard.ids == {}


@pytest.mark.parametrize(
    ("leader", "fenced"), [(-1, False), (2, True), (3, False)], ids=["none", "fenced", "unknown"]
)
def test_a_coordinator_that_is_not_there(leader: int, fenced: bool) -> None:
    """TXN-FIND-03."""
    state = partition_image(0, leader=leader, replicas=(2,))
    brokers = [broker_image(1), broker_image(2, fenced=fenced)]
    broker = small_broker(image_of({"__transaction_state": [state]}, brokers))
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["tid"])
    (found,) = handle(broker, context(6), request).coordinators
    assert (found.error_code, found.node_id) == (E.COORDINATOR_NOT_AVAILABLE, -1)


def test_markers_wait_for_a_leader() -> None:
    """TXN-STATE-04, TXN-MARK-10: 4.3.1 takes a partition without one for deleted."""
    leaderless = image_of({"t": [partition_image(0, leader=-1)]}, [broker_image(1)])
    scripted = Scripted(image=leaderless)
    producer = scripted.begin()
    scripted.end(producer)
    entry = scripted.shard.ids["tid"]
    for _ in range(10):
        due_ms = scripted.markers.deadline_ms()
        assert due_ms is not None
        scripted.now_ms = due_ms
        scripted.markers.tick(scripted.at)
        assert entry.metadata.state is PREPARED
    assert scripted.now_ms < 10_000
    scripted.image = image_of({"t": [partition_image(0, leader=2)]}, [broker_image(2)])
    scripted.markers.metadata_changed(scripted.at)
    (leader,) = scripted.markers.destinations
    assert leader == 2
    assert scripted.markers.deadline_ms() is None


def test_a_marker_for_offsets_waits_until_the_metadata_have_their_topic() -> None:
    """TXN-MARK-10: the group coordinator knew the topic before; 4.3.1 drops the marker."""
    scripted = Scripted(image=image_of({}, [broker_image(1)]))
    offsets = TopicPartition("__consumer_offsets", 0)
    entry = scripted.commit_with(offsets)
    for _ in range(10):
        due_ms = scripted.markers.deadline_ms()
        assert due_ms is not None
        scripted.now_ms = due_ms
        scripted.markers.tick(scripted.at)
        assert entry.metadata.state is PREPARED
    assert len(scripted.topic_asked_ms) == 11, "nobody else may ever have it created"
    there = {"__consumer_offsets": [partition_image(0, leader=2)]}
    scripted.image = image_of(there, [broker_image(2)])
    scripted.markers.metadata_changed(scripted.at)
    request = scripted.markers.destinations[2].request(1, 0)
    assert isinstance(request, WriteTxnMarkersRequest)
    assert [each.name for each in request.markers[0].topics] == ["__consumer_offsets"]
    scripted.markers.destinations[2].answered(marked(request), 0, 0)
    assert entry.metadata.state is TransactionState.COMPLETE_COMMIT


def test_offsets_whose_topic_was_deleted_need_no_marker() -> None:
    """TXN-MARK-10: what the metadata had and lack now is gone."""
    there = {"__consumer_offsets": [partition_image(0)]}
    scripted = Scripted(image=image_of(there, [broker_image(1)]))
    scripted.markers.metadata_changed(scripted.at)
    scripted.image = image_of({}, [broker_image(1)])
    scripted.markers.metadata_changed(scripted.at)
    entry = scripted.commit_with(TopicPartition("__consumer_offsets", 0))
    assert entry.metadata.state is TransactionState.COMPLETE_COMMIT
    assert scripted.topic_asked_ms == []


def test_markers_in_flight_follow_their_partition() -> None:
    """TXN-MARK-10: a broker that is paused holds up nothing that others lead meanwhile."""
    two = {"t": [partition_image(0, leader=2), partition_image(1, leader=2)]}
    scripted = Scripted(image=image_of(two, [broker_image(2), broker_image(3)]))
    producer = scripted.begin()
    add_partitions(
        *(scripted.shard, "tid", producer, {TopicPartition("t", 1): None}, 2, scripted.at),
        scripted.answers.append,
    )
    scripted.end(producer)
    paused = scripted.markers.destinations[2]
    request = paused.request(1, 0)
    assert isinstance(request, WriteTxnMarkersRequest)
    moved = {"t": [partition_image(0, leader=3), partition_image(1, leader=-1)]}
    scripted.image = image_of(moved, [broker_image(3)])
    scripted.markers.metadata_changed(scripted.at)
    other = scripted.markers.destinations[3].request(1, 0)
    assert isinstance(other, WriteTxnMarkersRequest)
    assert [each.partition_indexes for each in other.markers[0].topics] == [[0]]
    scripted.markers.destinations[3].answered(marked(other), 0, 0)
    entry = scripted.shard.ids["tid"]
    assert list(entry.unmarked) == [TopicPartition("t", 1)]
    paused.answered(marked(request), 0, 0)
    assert entry.metadata.state is TransactionState.COMPLETE_COMMIT


def marked(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """The response of a broker that has written everything."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=each)
                            for each in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )

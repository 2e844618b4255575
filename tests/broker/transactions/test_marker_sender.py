"""Markers go to the leaders of their partitions until each has one: every error, pause and order.

As `TransactionMarkerRequestCompletionHandler` and `TransactionMarkerChannelManager` of 4.3.1;
partitions without a leader are handled as DEVIATIONS.md says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.topic import CoordinatorTopic
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.transactions.coordinator import TransactionCoordinator
from kraft_wire.broker.transactions.environment import TransactionEnvironment
from kraft_wire.broker.transactions.markers import MarkerSender, TransactionMarkers
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.broker.small_broker import broker_image, image_of, partition_image
from tests.broker.transactions.scripted import PARTITION, Scripted

ENDED = {E.NONE, E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED}
ENDED |= {E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.UNSUPPORTED_VERSION}
PASSING = {
    *(E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_LEADER_OR_FOLLOWER, E.REQUEST_TIMED_OUT),
    *(E.NOT_ENOUGH_REPLICAS, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.KAFKA_STORAGE_ERROR),
}
Written = list[tuple[int, str, list[int]]]


class Sending:
    """A sender; partitions 0 and 1 of "t" and 0 of "u" are led by brokers 1, 2 and 1."""

    def __init__(self) -> None:
        self.led = {"t": [1, 2], "u": [1]}
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.completed: list[int] = []
        self.dropped: set[int] = set()
        self.now_ms = 0
        self.sender = MarkerSender(
            self.image,
            lambda _: None,
            lambda event, **fields: self.lines.append((event, fields)),
        )

    @property
    def events(self) -> list[str]:
        """The names of the lines."""
        return [name for name, _ in self.lines]

    def image(self) -> Any:
        topics = {
            name: [partition_image(number, leader=each) for number, each in enumerate(leaders)]
            for name, leaders in self.led.items()
        }
        return image_of(topics, [broker_image(each) for each in (1, 2, 3)])

    @property
    def at(self) -> ClockReading:
        return ClockReading(self.now_ms, 50 + self.now_ms)

    def sends(self, producer_id: int, *partitions: tuple[str, int]) -> TransactionMarkers:
        markers = TransactionMarkers(
            transactional_id=f"tid-{producer_id}",
            producer_id=producer_id,
            producer_epoch=producer_id + 1,
            is_commit=bool(producer_id % 2),
            coordinator_epoch=9,
            transaction_version=2,
            unmarked={TopicPartition(*each): None for each in partitions},
            completed=lambda _: self.completed.append(producer_id),
            is_dropped=lambda: producer_id in self.dropped,
        )
        self.sender.send(markers, self.at)
        return markers

    def moves(self, **led: list[int]) -> None:
        self.led = led
        self.sender.metadata_changed(self.at)

    def ticks_when_due(self) -> int:
        """Pass the time until the next mark is due; return it."""
        due_ms = self.sender.deadline_ms()
        assert due_ms is not None
        passed_ms, self.now_ms = due_ms - self.now_ms, due_ms
        self.sender.tick(self.at)
        return passed_ms

    def asked(self, broker_id: int) -> WriteTxnMarkersRequest | None:
        request = self.sender.destinations[broker_id].request(1, self.now_ms)
        assert request is None or isinstance(request, WriteTxnMarkersRequest)
        return request

    def written(self, broker_id: int) -> Written:
        """What a broker is asked now: producer, topic, partitions."""
        request = self.asked(broker_id)
        return [] if request is None else written_by(request)

    def answers(self, broker_id: int, results: Mapping[tuple[int, str, int], E]) -> None:
        response = WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=number, error_code=error
                                )
                            ],
                        )
                    ],
                )
                for (producer_id, topic, number), error in results.items()
            ]
        )
        self.sender.destinations[broker_id].answered(response, self.now_ms, 50 + self.now_ms)


def written_by(request: WriteTxnMarkersRequest) -> Written:
    return [
        (marker.producer_id, topic.name, topic.partition_indexes)
        for marker in request.markers
        for topic in marker.topics
    ]


def test_request_has_one_marker_for_each_transaction() -> None:
    sending = Sending()
    sending.sends(5, ("t", 0), ("t", 1), ("u", 0))
    sending.sends(6, ("t", 0))
    request = sending.asked(1)
    assert request is not None
    assert written_by(request) == [(5, "t", [0]), (5, "u", [0]), (6, "t", [0])]
    first, second = request.markers
    assert (first.producer_epoch, first.transaction_result) == (6, True)
    assert (second.producer_epoch, second.transaction_result) == (7, False)
    for each in (first, second):
        assert (each.coordinator_epoch, each.transaction_version) == (9, 2)
    assert sending.written(2) == [(5, "t", [1])]


def test_markers_have_the_leader_epoch_of_the_partition_that_their_id_is_in() -> None:
    """By it leaders of data refuse a former coordinator; other partitions have other epochs."""
    node = Scripted()
    node.log.partition = 3
    node.commit_with(PARTITION)
    request = node.markers.destinations[1].request(1, 0)
    assert isinstance(request, WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert marker.coordinator_epoch == node.shard.env.coordinator_epoch(3)
    assert marker.coordinator_epoch != node.shard.env.coordinator_epoch(0)


@pytest.mark.parametrize("error", [*E, None])
def test_error_ends_a_marker_or_has_it_sent_again(error: E | None) -> None:
    """None: the response does not mention the partition."""
    sending = Sending()
    markers = sending.sends(5, ("t", 0), ("u", 0))
    assert sending.written(1)
    results = {(5, "u", 0): E.NONE}
    if error is not None:
        results[5, "t", 0] = error
    sending.answers(1, results)
    is_ended = error in ENDED
    assert sending.completed == ([5] if is_ended else [])
    assert list(markers.unmarked) == ([] if is_ended else [("t", 0)])
    if error is E.NONE or error in PASSING:
        assert sending.events == []
    else:
        told = "given_up" if is_ended else "refused"
        assert sending.events == [f"transaction_marker_{told}"]
    assert sending.sender.is_waiting == (not is_ended)
    if not is_ended:
        assert sending.written(1) == [], "it rests first"
        assert sending.ticks_when_due() == 20
        assert sending.written(1) == [(5, "t", [0])]


def test_lines_of_a_marker_have_its_transaction_partition_and_error() -> None:
    """A marker is logged each time that its partition refuses it."""
    sending = Sending()
    sending.sends(5, ("t", 0), ("u", 0))
    sending.sends(6, ("t", 0))
    assert sending.written(1)
    sending.answers(
        1,
        {
            (5, "t", 0): E.CORRUPT_MESSAGE,
            (5, "u", 0): E.NONE,
            (6, "t", 0): E.INVALID_PRODUCER_EPOCH,
        },
    )
    refused = {"transactional_id": "tid-5", "partition": ("t", 0), "error": 2}
    given_up = {"transactional_id": "tid-6", "partition": ("t", 0), "error": 47}
    lines = [("transaction_marker_refused", refused), ("transaction_marker_given_up", given_up)]
    assert sending.lines == lines
    sending.ticks_when_due()
    assert sending.written(1) == [(5, "t", [0])]
    sending.answers(1, {(5, "t", 0): E.UNKNOWN_SERVER_ERROR})
    assert sending.lines == [*lines, ("transaction_marker_refused", refused | {"error": -1})]


def test_marker_that_waits_for_the_topic_of_offsets_is_logged_once() -> None:
    """Each marker is, however often it is sent again; one of a deleted topic is done at once."""
    sending = Sending()
    sending.sends(5, ("__consumer_offsets", 3), ("gone", 0), ("t", 0))
    sending.sends(6, ("__consumer_offsets", 4))
    lines = [
        (
            "transaction_marker_awaits_topic",
            {"transactional_id": name, "partition": partition, "error": "-"},
        )
        for name, partition in (
            ("tid-5", ("__consumer_offsets", 3)),
            ("tid-6", ("__consumer_offsets", 4)),
        )
    ]
    assert sending.lines == lines
    for _ in range(3):
        sending.ticks_when_due()
        sending.moves(t=[1, 2])
    assert sending.lines == lines
    sending.moves(__consumer_offsets=[1] * 5)
    sending.moves(t=[1])
    sending.sends(7, ("__consumer_offsets", 3))
    assert sending.lines == lines, "the topic is deleted, not missing"
    assert sending.completed == [5, 6, 7]


def test_pauses_double_up_to_a_second() -> None:
    sending = Sending()
    sending.sends(5, ("t", 0))
    pauses = []
    for _ in range(9):
        assert sending.written(1) == [(5, "t", [0])]
        sending.answers(1, {(5, "t", 0): E.NOT_LEADER_OR_FOLLOWER})
        pauses.append(sending.ticks_when_due())
    assert pauses == [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]


def test_broker_has_one_request_at_a_time_and_gets_the_others_with_the_next() -> None:
    sending = Sending()
    sending.sends(5, ("t", 0))
    assert sending.written(1) == [(5, "t", [0])]
    sending.sends(6, ("t", 0))
    sending.sends(7, ("u", 0))
    assert sending.written(1) == []
    sending.answers(1, {(5, "t", 0): E.NONE, (6, "t", 0): E.NONE})
    assert sending.completed == [5], "an answer counts for what was asked"
    assert sending.written(1) == [(6, "t", [0]), (7, "u", [0])]
    sending.answers(1, {(7, "u", 0): E.NONE, (6, "t", 0): E.NONE})
    assert sending.completed == [5, 6, 7]
    assert not sending.sender.is_waiting


def test_failed_request_is_sent_again_after_a_pause() -> None:
    sending = Sending()
    sending.sends(5, ("t", 0), ("u", 0))
    assert sending.written(1)
    sending.sender.destinations[1].failed(0, 50)
    assert (sending.written(1), sending.sender.resting_count) == ([], 2)
    assert sending.ticks_when_due() == 20
    assert sending.written(1) == [(5, "t", [0]), (5, "u", [0])]


def test_markers_of_another_coordinator_are_neither_sent_nor_completed() -> None:
    """The partition of the state topic moved: its new leader sends them."""
    sending = Sending()
    for producer_id in (5, 6):
        sending.sends(producer_id, ("t", 0), ("t", 1))
    assert sending.written(1)
    sending.dropped = {5}
    sending.answers(1, {(5, "t", 0): E.NONE, (6, "t", 0): E.NOT_LEADER_OR_FOLLOWER})
    assert sending.written(2) == [(6, "t", [1])], "those that wait"
    sending.answers(2, {(6, "t", 1): E.NONE})
    sending.moves(t=[2, 2], u=[1])
    sending.dropped = {5, 6}
    sending.moves(t=[3, 3], u=[1])
    assert (sending.completed, sending.written(2)) == ([], [])
    assert 3 not in sending.sender.destinations
    sending.moves(u=[1])
    assert sending.completed == [], "nor by a topic that is deleted"
    assert not sending.sender.is_waiting


def test_last_marker_of_a_dropped_transaction_completes_nothing() -> None:
    sending = Sending()
    sending.sends(5, ("t", 0))
    assert sending.written(1)
    sending.dropped = {5}
    sending.answers(1, {(5, "t", 0): E.NONE})
    assert sending.completed == []


def test_markers_follow_their_partitions_wherever_they_wait() -> None:
    """Queued, in flight, or resting; what stays with a paused broker is still answered by it."""
    sending = Sending()
    sending.sends(5, ("t", 0), ("u", 0))
    assert sending.written(1) == [(5, "t", [0]), (5, "u", [0])]
    sending.sends(6, ("t", 0))
    sending.sends(7, ("t", 1))
    assert sending.written(2) == [(7, "t", [1])]
    sending.answers(2, {(7, "t", 1): E.NOT_LEADER_OR_FOLLOWER})
    sending.moves(t=[3, 3], u=[1])
    assert sending.written(3) == [(7, "t", [1]), (6, "t", [0]), (5, "t", [0])]
    sending.answers(3, {(5, "t", 0): E.NONE, (6, "t", 0): E.NONE, (7, "t", 1): E.NONE})
    assert sorted(sending.completed) == [6, 7]
    sending.answers(1, {(5, "t", 0): E.NOT_LEADER_OR_FOLLOWER, (5, "u", 0): E.NONE})
    assert sorted(sending.completed) == [5, 6, 7]
    assert not sending.sender.is_waiting


def test_partition_that_is_deleted_needs_no_marker() -> None:
    sending = Sending()
    markers = sending.sends(5, ("t", 0), ("t", 1))
    sending.sends(6, ("gone", 0))
    assert sending.completed == [6], "at once"
    sending.moves(t=[1], u=[1])
    assert list(markers.unmarked) == [("t", 0)]
    sending.moves(u=[1])
    assert sending.completed == [6, 5]


def test_transaction_without_partitions_is_complete_at_once() -> None:
    sending = Sending()
    sending.sends(5)
    assert sending.completed == [5]
    assert (sending.sender.is_waiting, sending.sender.deadline_ms()) == (False, None)


def test_coordinator_is_woken_by_metadata_while_markers_wait() -> None:
    """The next tick looks for their leaders. Without markers, new metadata causes no tick."""
    sending = Sending()
    env = TransactionEnvironment(
        settings=BrokerSettings,
        transaction_version=lambda: 2,
        take_producer_id=lambda _: None,
        coordinator_epoch=lambda _: 0,
        markers=sending.sender,
        report=lambda *_, **__: None,
    )
    topic = CoordinatorTopic("__transaction_state", lambda: 1, lambda: 1, lambda: 1)
    unused: Any = None
    coordinator = TransactionCoordinator(1, topic, unused, unused, env, unused, unused)

    def published(now_ms: int, **led: list[int]) -> int | None:
        before = sending.image()
        sending.led = led
        coordinator.published(MetadataDelta.between(before, sending.image()), now_ms)
        return coordinator.deadline_ms()

    assert published(3, t=[-1, 2], u=[1]) is None
    coordinator.tick(3, 3)
    sending.now_ms = 4
    sending.sends(5, ("t", 0))
    assert coordinator.deadline_ms() == 24, "the pause of a marker without a leader"
    assert published(30, t=[-1, 2], u=[1]) == 24, "the sooner of both"
    coordinator.tick(5, 5)
    assert published(7, t=[2, 2], u=[1]) == 7
    coordinator.tick(7, 7)
    assert sending.written(2) == [(5, "t", [0])]
    assert coordinator.deadline_ms() is None
    assert published(9, t=[3, 2], u=[1]) == 9, "it is in flight to who leads no more"
    coordinator.tick(9, 9)
    assert sending.written(3) == [(5, "t", [0])]

"""Questions to leaders for the ends of partitions, answer by answer and pause by pause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kraft_wire.broker import end_offsets
from kraft_wire.broker.end_offsets import EndOffset, EndOffsets, _pause_ms
from kraft_wire.broker.inter_broker import BrokerRequests
from kraft_wire.metadata.image import MetadataImage, TopicImage
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.broker.groups.harness import CountingChance, image_of, partition_led, topic_id_of

WALL_MS = 1_700_000_000_000
PARTS = [TopicPartition("t", number) for number in range(4)]

Ends = Mapping[TopicPartition, EndOffset]


class Asking:
    """Four partitions: 0 and 3 are led by broker 1, 1 by broker 2, 2 by nobody."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.ends = EndOffsets(self.image, CountingChance())
        self.found: list[Ends] = []

    def image(self) -> MetadataImage:
        leaders = [1, 2, -1, 1]
        led = {number: partition_led(number, leader) for number, leader in enumerate(leaders)}
        image = image_of({"t": TopicImage("t", topic_id_of("t"), led)})
        brokers = {each: replace(image.brokers[1], broker_id=each) for each in (1, 2)}
        return replace(image, brokers=brokers)

    def ask(self, *partitions: TopicPartition) -> None:
        self.ends.ask(partitions, self.found.append)

    def to(self, broker_id: int) -> BrokerRequests:
        return self.ends.client().destinations()[broker_id]

    def sent(self, broker_id: int) -> list[TopicPartition] | None:
        """What a request to a broker asks about now."""
        request = self.to(broker_id).request(5, self.now_ms)
        if request is None:
            return None
        assert isinstance(request, ListOffsetsRequest)
        assert (request.replica_id, request.isolation_level) == (-1, 0)
        asked = [(topic.name, each) for topic in request.topics for each in topic.partitions]
        assert {(each.timestamp, each.current_leader_epoch) for _, each in asked} == {(-1, -1)}
        return [TopicPartition(name, each.partition_index) for name, each in asked]

    def answer(self, broker_id: int, **offsets: int) -> None:
        """Answer with offsets, or errors below 0, by "p" and the partition's number."""
        parts = [
            ListOffsetsPartitionResponse(
                partition_index=int(name[1:]), offset=max(end, -1), error_code=max(-end - 1, 0)
            )
            for name, end in offsets.items()
        ]
        response = ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name="t", partitions=parts)]
        )
        self.to(broker_id).answered(response, self.now_ms, WALL_MS)

    def fail(self, broker_id: int) -> None:
        self.to(broker_id).failed(self.now_ms, WALL_MS)


def test_each_leader_is_asked_for_its_partitions() -> None:
    asking = Asking()
    asking.ask(PARTS[0], PARTS[1], PARTS[3], PARTS[0])
    assert (asking.sent(1), asking.sent(2)) == ([PARTS[0], PARTS[3]], [PARTS[1]])
    asking.answer(1, p0=5, p3=-1 - E.NOT_LEADER_OR_FOLLOWER)
    assert asking.found == []
    asking.answer(2, p1=7)
    (ends,) = asking.found
    assert ends == {
        PARTS[0]: EndOffset(5),
        PARTS[1]: EndOffset(7),
        PARTS[3]: EndOffset(-1, E.NOT_LEADER_OR_FOLLOWER),
    }
    assert (asking.sent(1), asking.to(1).deadline_ms()) == (None, None)


def test_partitions_without_a_leader_are_answered_at_once() -> None:
    asking = Asking()
    unknown = TopicPartition("none", 0), TopicPartition("t", 9)
    asking.ask()
    asking.ask(PARTS[2], *unknown)
    nothing = EndOffset(-1, E.LEADER_NOT_AVAILABLE)
    assert asking.found == [{}, dict.fromkeys((PARTS[2], *unknown), nothing)]


def test_a_leader_has_one_request_in_flight() -> None:
    asking = Asking()
    asking.ask(PARTS[0])
    assert asking.sent(1) == [PARTS[0]]
    asking.ask(PARTS[0])
    asking.ask(PARTS[0], PARTS[3])
    assert asking.sent(1) is None
    asking.answer(1, p0=5)
    assert asking.found == [{PARTS[0]: EndOffset(5)}]
    assert asking.sent(1) == [PARTS[0], PARTS[3]]
    asking.answer(1, p0=6, p3=8)
    assert asking.found[1:] == [
        {PARTS[0]: EndOffset(6)},
        {PARTS[0]: EndOffset(6), PARTS[3]: EndOffset(8)},
    ]


def test_a_partition_that_the_response_lacks_is_unknown() -> None:
    asking = Asking()
    asking.ask(PARTS[0], PARTS[3])
    asking.sent(1)
    asking.answer(1, p3=8)
    assert asking.found == [
        {PARTS[0]: EndOffset(-1, E.UNKNOWN_TOPIC_OR_PARTITION), PARTS[3]: EndOffset(8)}
    ]


def test_an_error_of_a_later_release_is_an_unexpected_error() -> None:
    asking = Asking()
    asking.ask(PARTS[0], PARTS[3])
    asking.sent(1)
    asking.answer(1, p0=-1 - 4_711, p3=8)
    assert asking.found == [
        {PARTS[0]: EndOffset(-1, E.UNKNOWN_SERVER_ERROR), PARTS[3]: EndOffset(8)}
    ]


def test_a_request_without_a_response_is_repeated_five_times() -> None:
    asking = Asking()
    asking.ask(PARTS[0])
    for pause_ms in (2_000, 4_000, 8_000, 16_000, 30_000):
        assert asking.sent(1) == [PARTS[0]]
        assert asking.to(1).deadline_ms() is None
        asking.fail(1)
        due_ms = asking.to(1).deadline_ms()
        assert due_ms is not None
        assert 0.8 * pause_ms <= due_ms - asking.now_ms <= min(1.2 * pause_ms, 30_000)
        asking.now_ms = due_ms - 1
        assert asking.sent(1) is None
        asking.now_ms = due_ms
    assert asking.sent(1) == [PARTS[0]]
    assert asking.found == []
    asking.fail(1)
    assert asking.found == [{PARTS[0]: EndOffset(-1, E.NETWORK_EXCEPTION)}]
    assert (asking.sent(1), asking.to(1).deadline_ms()) == (None, None)


def test_a_repeated_request_counts_as_any_other() -> None:
    asking = Asking()
    asking.ask(PARTS[0])
    asking.sent(1)
    asking.fail(1)
    asking.ask(PARTS[3])
    assert asking.sent(1) == [PARTS[3]]
    asking.now_ms += 30_000
    asking.answer(1, p3=8)
    assert asking.sent(1) == [PARTS[0]]
    asking.answer(1, p0=5)
    assert asking.found == [{PARTS[3]: EndOffset(8)}, {PARTS[0]: EndOffset(5)}]


def test_requests_and_what_waits_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_offsets, "_PARTITIONS_MAX", 1)
    monkeypatch.setattr(end_offsets, "_WAITING_MAX", 2)
    asking = Asking()
    asking.ask(PARTS[0], PARTS[3])
    assert asking.sent(1) == [PARTS[0]]
    asking.ask(PARTS[0])
    assert asking.found == [{PARTS[0]: EndOffset(-1, E.NETWORK_EXCEPTION)}]
    asking.fail(1)
    asking.ask(PARTS[0])
    assert len(asking.found) == 2
    assert asking.sent(1) == [PARTS[3]]
    asking.answer(1, p3=8)
    asking.now_ms += 30_000
    assert asking.sent(1) == [PARTS[0]]
    asking.answer(1, p0=5)
    assert asking.found[2:] == [{PARTS[0]: EndOffset(5), PARTS[3]: EndOffset(8)}]


@pytest.mark.parametrize(
    ("percent", "pauses_ms"),
    [
        (80, [1_600, 3_200, 6_400, 12_800, 24_000]),
        (100, [2_000, 4_000, 8_000, 16_000, 30_000]),
        (120, [2_400, 4_800, 9_600, 19_200, 30_000]),
    ],
)
def test_pauses_double_and_are_never_longer_than_the_longest(
    percent: int, pauses_ms: list[int]
) -> None:
    """`ExponentialBackoff.backoff`: the jitter adds nothing to 30 seconds."""
    assert [_pause_ms(retries, percent) for retries in range(1, 6)] == pauses_ms

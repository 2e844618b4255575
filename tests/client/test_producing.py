"""The idempotent producer, its brokers losing, refusing, repeating: each record once, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.client.cluster import ClusterClient, ClusterRefused, ClusterSettings
from kraft_wire.client.connection import BrokerConnectionError
from kraft_wire.client.producing import IdempotentProducer, ProduceSettings
from kraft_wire.model import TopicPartition
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import InitProducerIdResponse
from kraft_wire.wire.generated.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kraft_wire.wire.records.memory_records import iter_batches

KEYS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
FAULTS = ["none", "lost request", "lost answer", "moved", "left out"]


class Brokers:
    """What all brokers of a cluster store, and what goes wrong next."""

    def __init__(self, faults: list[str], bytes_max: int = 1 << 20) -> None:
        self.faults = faults
        self.bytes_max = bytes_max
        self.stored: dict[TopicPartition, list[bytes]] = {key: [] for key in KEYS}
        self.next_sequence = dict.fromkeys(KEYS, 0)
        self.versions: list[tuple[str, int]] = []
        self.requests: list[ProduceRequest] = []
        self.unknown = 0
        """How often a request for an id is refused for now."""
        self.refusal = 0
        """The error of such a request for good."""

    def fault(self) -> str:
        return self.faults.pop() if self.faults else "none"

    def store(self, key: TopicPartition, data: bytes) -> int:
        (batch,) = iter_batches(bytes(data))
        if len(data) > self.bytes_max:
            return ErrorCode.MESSAGE_TOO_LARGE
        if batch.base_sequence < self.next_sequence[key]:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        assert batch.base_sequence == self.next_sequence[key], "a gap"
        assert batch.producer_id == 7
        self.next_sequence[key] += batch.records_count
        self.stored[key] += [r.value or b"" for r in batch.iter_records(STORED_LIMITS)]
        return ErrorCode.NONE

    def answer(self, request: ProduceRequest) -> ProduceResponse:
        fault = self.fault()
        if fault == "lost request":
            raise BrokerConnectionError("lost")
        answers = []
        for topic in request.topic_data:
            parts = []
            for part in topic.partition_data:
                key = TopicPartition(topic.name, part.index)
                moved = fault == "moved" and part.index == 0
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER if moved else self.store(key, part.records)
                parts.append(PartitionProduceResponse(index=part.index, error_code=code))
            if fault == "left out":
                parts.pop()
            answers.append(TopicProduceResponse(name=topic.name, partition_responses=parts))
        if fault == "lost answer":
            raise BrokerConnectionError("lost")
        return ProduceResponse(responses=answers)


class Connection:
    """One connection to all of them."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.waiting: list[ProduceRequest] = []

    def version_of(self, request: Any, *, at_most: int) -> int:
        self.brokers.versions.append((request.NAME, at_most))
        return at_most

    def send(self, request: Any, _: type[object], *, version: int) -> InitProducerIdResponse:
        if self.brokers.unknown:
            self.brokers.unknown -= 1
            return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.brokers.refusal:
            return InitProducerIdResponse(error_code=self.brokers.refusal)
        return InitProducerIdResponse(producer_id=7, producer_epoch=0)

    def post(self, request: ProduceRequest, *, version: int) -> None:
        assert not self.waiting, "one request to a leader at a time"
        self.brokers.requests.append(request)
        self.waiting.append(request)

    def answer(self, _: type[object]) -> ProduceResponse:
        return self.brokers.answer(self.waiting.pop())


class FakeCluster(ClusterClient):
    """A cluster whose partitions are all led by one broker, reached again after each error."""

    def __init__(self, brokers: Brokers) -> None:
        super().__init__(ClusterSettings(("nowhere:1",), deadline_seconds=5))
        self.brokers = brokers
        self.forget()

    def forget(self) -> None:
        self.connection = Connection(self.brokers)

    def leader_of(self, key: TopicPartition) -> Any:
        return self.connection

    def any_broker(self) -> Any:
        return self.connection


@contextmanager
def no_time() -> Iterator[Callable[[float], None]]:
    """Let pauses take none of the test's time; give what lets time pass."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        assert seconds >= 0
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    with patch("kraft_wire.client.cluster.time", clock):
        yield sleep


@given(
    sizes=st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 400)), max_size=40),
    faults=st.lists(st.sampled_from(FAULTS), max_size=12),
    batch_bytes=st.sampled_from([1, 300, 1000, 1 << 18]),
    request_bytes=st.sampled_from([1, 500, 1 << 20]),
    bytes_max=st.sampled_from([600, 900, 1 << 20]),
)
def test_every_record_is_stored_once_and_in_order(
    sizes: list[tuple[TopicPartition, int]],
    faults: list[str],
    batch_bytes: int,
    request_bytes: int,
    bytes_max: int,
) -> None:
    brokers = Brokers(faults, bytes_max)
    settings = ProduceSettings(batch_bytes=batch_bytes, request_bytes=request_bytes)
    wanted: dict[TopicPartition, list[bytes]] = {key: [] for key in KEYS}
    with no_time():
        producer = IdempotentProducer(FakeCluster(brokers), settings)
        for number, (key, size) in enumerate(sizes):
            value = b"%d:" % number + bytes(size)
            wanted[key].append(value)
            producer.append(key, number, None, value)
        producer.flush()
    assert brokers.stored == wanted
    for request in brokers.requests:
        keys = [(topic.name, p.index) for topic in request.topic_data for p in topic.partition_data]
        assert len(keys) == len(set(keys)), "one batch of each partition"


def test_batches_that_are_not_full_are_sent_before_they_take_too_much_memory() -> None:
    brokers = Brokers([])
    settings = ProduceSettings(request_bytes=1, open_bytes_max=10_000)
    with no_time():
        producer = IdempotentProducer(FakeCluster(brokers), settings)
        for number in range(300):
            producer.append(KEYS[number % 3], number, None, bytes(100))
            held = number + 1 - sum(map(len, brokers.stored.values()))
            assert held <= 200, "within twice the limit: one request is under way"
        producer.flush()
    assert len(brokers.requests) > 3


def test_batch_that_is_full_is_told_and_as_large_as_asked() -> None:
    brokers = Brokers([])
    with no_time():
        producer = IdempotentProducer(FakeCluster(brokers), ProduceSettings(batch_bytes=1000))
        full = [producer.append(KEYS[0], n, None, bytes(100)) for n in range(20)]
        producer.flush()
    sizes = [
        len(p.records) for r in brokers.requests for t in r.topic_data for p in t.partition_data
    ]
    assert sum(full) == len(sizes) - 1 == 2
    assert max(sizes) <= 1000


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "a-0 at no leader: TOPIC_AUTHORIZATION_FAILED"),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, "NOT_LEADER_OR_FOLLOWER; nothing was written for 9 s"),
    ],
)
def test_what_cannot_be_written_is_refused(code: int, words: str) -> None:
    brokers = Brokers([])
    brokers.store = lambda key, data: code  # type: ignore[method-assign]  # a broker that refuses
    with no_time():
        settings = ProduceSettings(delivery_seconds=9)
        producer = IdempotentProducer(FakeCluster(brokers), settings)
        producer.append(KEYS[0], 1, None, b"x")
        with pytest.raises(ClusterRefused, match=words):
            producer.flush()
    assert {request.timeout_ms for request in brokers.requests} == {9_000}


def test_a_leader_that_never_answers_is_the_reason() -> None:
    brokers = Brokers(["lost request"] * 100)
    with no_time():
        settings = ProduceSettings(delivery_seconds=9)
        producer = IdempotentProducer(FakeCluster(brokers), settings)
        producer.append(KEYS[0], 1, None, b"x")
        with pytest.raises(ClusterRefused, match=r"^lost; nothing was written for 9 s"):
            producer.flush()


def test_record_that_is_too_large_is_refused_before_or_by_the_topic() -> None:
    with no_time():
        settings = ProduceSettings(record_bytes_max=500)
        producer = IdempotentProducer(FakeCluster(Brokers([])), settings)
        with pytest.raises(ClusterRefused, match=r"is larger than max.request.size, 500"):
            producer.append(KEYS[0], 1, None, bytes(500))
        producer = IdempotentProducer(FakeCluster(Brokers([], 200)), ProduceSettings())
        producer.append(KEYS[0], 1, None, bytes(200))
        with pytest.raises(ClusterRefused, match="one record makes a batch of"):
            producer.flush()


def test_id_is_asked_for_until_there_is_one_in_versions_without_transactions() -> None:
    brokers = Brokers([])
    brokers.unknown = 3
    with no_time():
        producer = IdempotentProducer(FakeCluster(brokers), ProduceSettings())
        assert producer.producer_id == 7
        producer.append(KEYS[0], 1, None, b"x")
        producer.flush()
        assert set(brokers.versions) == {("InitProducerIdRequest", 5), ("ProduceRequest", 11)}
        brokers.unknown = 1000
        with pytest.raises(ClusterRefused, match="COORDINATOR_LOAD_IN_PROGRESS"):
            IdempotentProducer(FakeCluster(brokers), ProduceSettings())


def test_id_that_is_refused_for_good_is_not_asked_for_again() -> None:
    """CLUSTER_AUTHORIZATION_FAILED: neither IDEMPOTENT_WRITE nor WRITE of any topic (KIP-679)."""
    brokers = Brokers([])
    brokers.refusal = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(ClusterRefused, match=r"^no producer id: CLUSTER_AUTHORIZATION_FAILED$"):
        IdempotentProducer(FakeCluster(brokers), ProduceSettings())
    assert brokers.versions == [("InitProducerIdRequest", 5)]


def test_a_pause_of_the_writer_is_no_time_in_which_nothing_could_be_written() -> None:
    """`kraft-wire produce` at a terminal: a broker that restarts meanwhile is asked again."""
    brokers = Brokers([])
    with no_time() as sleep:
        producer = IdempotentProducer(FakeCluster(brokers), ProduceSettings(delivery_seconds=9))
        for value in (b"x", b"y"):
            sleep(10)
            brokers.faults = ["moved", "lost request"]
            producer.append(KEYS[0], 1, None, value)
            producer.flush()
    assert brokers.stored[KEYS[0]] == [b"x", b"y"]


def test_each_stored_batch_begins_the_time_for_delivery_anew() -> None:
    """Ten pauses for each of two batches, together longer than the time for one."""
    brokers = Brokers([])
    with no_time():
        settings = ProduceSettings(batch_bytes=1, delivery_seconds=9)
        producer = IdempotentProducer(FakeCluster(brokers), settings)
        brokers.faults = [*["moved"] * 10, "none", *["moved"] * 10]
        producer.append(KEYS[0], 1, None, b"x")
        producer.append(KEYS[0], 1, None, b"y")
        producer.flush()
    assert brokers.stored[KEYS[0]] == [b"x", b"y"]


@pytest.mark.parametrize("others", [[], [KEYS[1]]])
def test_records_that_are_in_closed_batches_leave_room_for_open_ones(
    others: list[TopicPartition],
) -> None:
    """Else every record would make a batch once the limit of open bytes is reached."""
    brokers = Brokers([])
    settings = ProduceSettings(batch_bytes=1000, open_bytes_max=3000)
    producer = IdempotentProducer(FakeCluster(brokers), settings)
    for key in others:
        producer.append(key, 1, None, b"x")
    for _ in range(210):
        producer.append(KEYS[0], 1, None, bytes(100))
    producer.flush()
    topics = [topic for request in brokers.requests for topic in request.topic_data]
    assert sum(len(topic.partition_data) for topic in topics) <= 210 // 7 + len(others)

"""Reading a partition from a leader that loses answers, moves, and deletes what is oldest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    ClusterClient,
    ClusterRefused,
    ClusterSettings,
)
from kraft_wire.client.connection import BrokerConnectionError
from kraft_wire.client.fetching import (
    FetchedBatches,
    FetchSettings,
    OffsetsLost,
    fetch_partition,
    whole_batches,
)
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import Record
from tests.client.test_producing import no_time

KEY = TopicPartition("t", 3)
FAULTS = ["none", "lost", "moved", "closed", "left out", "null"]


class Leader(ClusterClient):
    """One partition's log, its broker and the connection to it."""

    def __init__(self, counts: list[int], faults: list[str]) -> None:
        super().__init__(ClusterSettings(("nowhere:1",)))
        self.batches: list[tuple[int, int, bytes]] = []
        self.end = 0
        for count in counts:
            records = [Record(None, b"v", self.end + n) for n in range(count)]
            data = bytes(build_batch(records, base_offset=self.end))
            self.batches.append((self.end, self.end + count, data))
            self.end += count
        self.start = 0
        self.faults = faults
        self.waiting: list[FetchRequest] = []
        self.asked: list[FetchRequest] = []
        self.idle: Callable[[float], None] = lambda seconds: None

    def forget(self) -> None:
        self.waiting.clear()

    def leader_of(self, key: TopicPartition) -> Any:
        assert key == KEY
        return self

    def leader_address(self, key: TopicPartition) -> str:
        return "leader:1"

    def version_of(self, request: FetchRequest, *, at_most: int) -> int:
        return at_most

    def post(self, request: FetchRequest, *, version: int) -> None:
        assert version == 12
        assert not self.waiting, "one request is ahead"
        self.waiting.append(request)
        self.asked.append(request)

    def offsets_at(self, wanted: Any, *, read_committed: bool = False) -> Any:
        ((key, at),) = wanted.items()
        return {key: self.start if at == EARLIEST_TIMESTAMP else self.end}

    def answer(self, _: type[object]) -> FetchResponse:
        (topic,) = self.waiting.pop().topics
        (asked,) = topic.partitions
        fault = self.faults.pop() if self.faults else "none"
        if fault == "lost":
            raise BrokerConnectionError("lost")
        if fault == "closed":
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        part = PartitionData(partition_index=asked.partition)
        if fault == "refused":
            part.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif fault == "moved":
            part.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif not self.start <= asked.fetch_offset <= self.end:
            part.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif fault == "null":
            part.records = None
        else:
            there = [data for _, end, data in self.batches if end > asked.fetch_offset]
            whole = b"".join(there)[: max(asked.partition_max_bytes, len(there[0]) if there else 0)]
            part.records = memoryview(whole)
            if not whole:
                self.idle(0.5)
            part.aborted_transactions = [AbortedTransaction(producer_id=4, first_offset=1)]
        others = [PartitionData(partition_index=2, error_code=ErrorCode.UNKNOWN_SERVER_ERROR)]
        parts = others if fault == "left out" else [*others, part]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=parts)])


def offsets(found: list[FetchedBatches]) -> list[int]:
    return [
        offset
        for each in found
        for batch in iter_batches(bytes(each.records))
        for offset in range(max(batch.base_offset, each.offset), batch.last_offset + 1)
    ]


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    faults=st.lists(st.sampled_from(FAULTS), max_size=8),
    size=st.sampled_from([1, 100, 200, 1 << 20]),
    bounds=st.tuples(st.integers(0, 48), st.integers(0, 48)),
)
def test_every_offset_comes_once_and_in_order(
    counts: list[int], faults: list[str], size: int, bounds: tuple[int, int]
) -> None:
    leader = Leader(counts, faults)
    start, end = sorted(min(each, leader.end) for each in bounds)
    with no_time():
        settings = FetchSettings(partition_bytes_max=size, wait_ms_max=77, bytes_min=5)
        found = list(fetch_partition(leader, KEY, start, end, settings))
    read = offsets(found)
    assert read == list(range(start, start + len(read)))
    assert len(read) >= end - start
    assert all(one.offset < end for one in found), "nothing is asked for behind the end"
    assert all(one.aborted == [(4, 1)] for one in found)
    for one in leader.asked:
        assert (one.max_wait_ms, one.min_bytes, one.max_bytes) == (77, 5, 52_428_800)


@pytest.mark.parametrize(
    ("start", "words"), [(1, "the log begins at 4"), (9, "the log ends before")]
)
def test_offsets_that_are_gone_are_an_error_or_passed_over(start: int, words: str) -> None:
    leader = Leader([2, 2, 2], [])
    leader.start = 4
    with no_time():
        with pytest.raises(OffsetsLost, match=f"t-3: offset {start} does not exist, {words}"):
            list(fetch_partition(leader, KEY, start, 12, FetchSettings()))
        found = list(
            fetch_partition(leader, KEY, start, max(start, 6), FetchSettings(), fail_on_loss=False)
        )
    assert offsets(found) == ([4, 5] if start < 6 else [])


def test_end_that_does_not_come_is_waited_for_as_long_as_it_says() -> None:
    leader = Leader([2], [])
    leader.end = 5
    settings = FetchSettings(progress_seconds=9)
    with no_time() as sleep:
        leader.idle = sleep
        with pytest.raises(ClusterRefused, match=r"no record from offset 2 for 9 s; the end is 5"):
            list(fetch_partition(leader, KEY, 0, 5, settings))


@pytest.mark.parametrize(
    ("faults", "words"),
    [(["lost"] * 99, "lost; t-3 was retried for 9 s"), (["moved"] * 99, "NOT_LEADER_OR_FOLLOWER")],
)
def test_leader_that_is_gone_is_asked_as_long_as_it_says(faults: list[str], words: str) -> None:
    reading = fetch_partition(Leader([2], faults), KEY, 0, 2, FetchSettings(progress_seconds=9))
    with no_time(), pytest.raises(ClusterRefused, match=words):
        next(reading)


def test_a_refusal_ends_the_reading_at_once_with_its_place() -> None:
    """An error that is not retriable by the protocol guide."""
    leader = Leader([2, 2], ["refused"])
    reading = fetch_partition(leader, KEY, 1, 4, FetchSettings())
    with pytest.raises(ClusterRefused, match="t-3: TOPIC_AUTHORIZATION_FAILED at "):
        next(reading)
    assert len(leader.asked) == 1


def test_whole_batches_are_counted_and_the_rest_is_cut_off() -> None:
    data = b"".join(each for *_, each in Leader([2, 3], []).batches)
    (first, _) = (each for *_, each in Leader([2, 3], []).batches)
    for size in range(len(data) + 1):
        known = (0, -1) if size < len(first) else (len(first), 2)
        known = (len(data), 5) if size == len(data) else known
        assert whole_batches(memoryview(data[:size])) == known


@pytest.mark.parametrize("sent", ["half a batch", "an older batch"])
def test_answer_that_goes_on_nowhere_is_an_error_at_once(sent: str) -> None:
    leader = Leader([3, 3], [])
    first = leader.batches[0][2]
    data = first[:-1] if sent == "half a batch" else first
    leader.batches = [(0, 6, data)]
    words = rf"no complete batch at offset 3 in {len(data)} bytes from leader:1"
    with no_time(), pytest.raises(ClusterRefused, match=words):
        list(fetch_partition(leader, KEY, 3, 6, FetchSettings()))


def test_the_time_that_the_caller_takes_is_not_that_of_the_leader() -> None:
    leader = Leader([2, 2], [])
    settings = FetchSettings(partition_bytes_max=1, progress_seconds=9)
    with no_time() as sleep:
        found = fetch_partition(leader, KEY, 0, 4, settings)
        read = [next(found)]
        sleep(10)
        leader.faults = ["moved", "lost"]
        read += found
    assert offsets(read) == [0, 1, 2, 3]


@pytest.mark.parametrize("read_committed", [True, False])
def test_every_request_has_the_isolation_that_is_asked_for(read_committed: bool) -> None:
    """Without it an open transaction's records would be handed out."""
    leader = Leader([2, 2], ["moved"])
    settings = FetchSettings(partition_bytes_max=1, read_committed=read_committed)
    with no_time():
        assert offsets(list(fetch_partition(leader, KEY, 0, 4, settings))) == [0, 1, 2, 3]
    assert {each.isolation_level for each in leader.asked} == {int(read_committed)}

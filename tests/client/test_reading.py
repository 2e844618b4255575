"""Rounds over several partitions: positions, what a reader never sees, turns, and patience."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ClusterClient,
    ClusterRefused,
    ClusterSettings,
)
from kraft_wire.client.connection import BrokerConnectionError
from kraft_wire.client.fetching import FetchSettings
from kraft_wire.client.reading import PartitionsReader
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
from kraft_wire.wire.records.record import Record
from tests.client.test_producing import no_time
from tests.storage.making import batch_bytes, marker_bytes

A, B, C = (TopicPartition("t", number) for number in range(3))
SETTINGS = FetchSettings(
    partition_bytes_max=111, fetch_bytes_max=2_222, bytes_min=3, wait_ms_max=44, read_committed=True
)


class Leader(ClusterClient):
    """The leader of every partition; it answers what a test says, then nothing."""

    def __init__(self) -> None:
        super().__init__(ClusterSettings(("nowhere:1",), deadline_seconds=5))
        self.asked: list[FetchRequest] = []
        self.answers: list[FetchResponse | BrokerConnectionError] = []
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1

    def leader_of(self, key: TopicPartition) -> Any:
        return self

    def leader_address(self, key: TopicPartition) -> str:
        return "leader:1"

    def version_of(self, request: FetchRequest, *, at_most: int) -> int:
        return at_most

    def post(self, request: FetchRequest, *, version: int) -> None:
        self.asked.append(request)

    def offsets_at(self, wanted: Any, *, read_committed: bool = False) -> Any:
        places = {EARLIEST_TIMESTAMP: 40, LATEST_TIMESTAMP: 90}
        return {key: places[at] for key, at in wanted.items()}

    def answer(self, _: type[object]) -> FetchResponse:
        found = self.answers.pop(0) if self.answers else FetchResponse()
        if isinstance(found, BrokerConnectionError):
            raise found
        return found

    def says(self, *data: bytes, key: TopicPartition = A, error: int = 0, **more: Any) -> None:
        """Answer with these batches of a partition."""
        part = PartitionData(
            partition_index=key.partition, error_code=error, records=b"".join(data), **more
        )
        topic = FetchableTopicResponse(topic=key.topic, partitions=[part])
        self.answers.append(FetchResponse(responses=[topic]))


def reader_of(leader: Leader, **positions: int) -> PartitionsReader:
    reader = PartitionsReader(leader, SETTINGS)
    reader.positions = {key: positions.get("abc"[key.partition], 0) for key in (A, B, C)}
    return reader


def offsets(reader: PartitionsReader, *keys: TopicPartition) -> list[int]:
    return [record.offset for _, record in reader.round(keys or (A,))]


def test_each_round_begins_with_the_next_partition() -> None:
    """A full answer lacks the last partitions, so each round begins with another one."""
    leader = Leader()
    reader = reader_of(leader, a=5, b=6, c=7)
    for _ in range(4):
        assert offsets(reader, A, B, C) == []
    order = [[each.partition for each in one.topics[0].partitions] for one in leader.asked]
    assert order == [[1, 2, 0], [2, 0, 1], [0, 1, 2], [1, 2, 0]]


def test_request_has_the_settings_and_the_positions() -> None:
    leader = Leader()
    offsets(reader_of(leader, a=5, b=6), A, B)
    (request,) = leader.asked
    bounds = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level)
    assert bounds == (44, 3, 2_222, 1)
    found = {each.partition: each for each in request.topics[0].partitions}
    assert {number: each.fetch_offset for number, each in found.items()} == {0: 5, 1: 6}
    assert {each.partition_max_bytes for each in found.values()} == {111}


@pytest.mark.parametrize("start", range(6))
def test_records_come_from_the_position_on_within_a_batch(start: int) -> None:
    leader = Leader()
    leader.says(batch_bytes(0, count=3), batch_bytes(3, count=2))
    reader = reader_of(leader, a=start)
    assert offsets(reader) == list(range(start, 5))
    assert reader.positions[A] == max(start, 5)


def test_position_passes_offsets_that_compaction_took() -> None:
    leader = Leader()
    records = [Record(b"k", b"v", timestamp=1, offset=2)]
    leader.says(bytes(build_batch(records, base_offset=0, last_offset=9)))
    reader = reader_of(leader)
    assert offsets(reader) == [2]
    assert reader.positions[A] == 10


def test_reader_sees_neither_markers_nor_aborted_records() -> None:
    leader = Leader()
    of = {"sequence": 0, "transactional": True}
    leader.says(
        batch_bytes(0, producer_id=1, **of),
        batch_bytes(1, producer_id=2, **of),
        batch_bytes(2, producer_id=1, sequence=1),
        marker_bytes(3, producer_id=2, abort=False),
        batch_bytes(4, producer_id=1, **of),
        marker_bytes(5, producer_id=1, abort=True),
        batch_bytes(6, producer_id=1, **of),
        batch_bytes(7, count=2, producer_id=2, **of),
        marker_bytes(9, producer_id=2, abort=True),
        marker_bytes(10, producer_id=1, abort=False),
        aborted_transactions=[
            AbortedTransaction(producer_id=2, first_offset=8),
            AbortedTransaction(producer_id=1, first_offset=0),
        ],
    )
    reader = reader_of(leader)
    assert offsets(reader) == [1, 2, 6]
    assert reader.positions[A] == 11


@pytest.mark.parametrize(("to_latest", "offset"), [(False, 40), (True, 90)])
def test_offset_out_of_range_is_replaced_and_noted(to_latest: bool, offset: int) -> None:
    leader, notes = Leader(), list[str]()
    reader = PartitionsReader(leader, SETTINGS, resets_to_latest=to_latest, note=notes.append)
    reader.positions = {A: 7}
    leader.says(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert offsets(reader) == []
    assert reader.positions == {A: offset}
    assert notes == [f"t-0: offset 7 is out of range; reading from {offset}"]
    assert leader.forgotten == 0


def test_answer_about_a_partition_that_is_not_read_is_passed_over() -> None:
    leader = Leader()
    leader.says(batch_bytes(0), key=TopicPartition("t", 9))
    leader.says(batch_bytes(0), key=TopicPartition("other", 0), error=3)
    reader = reader_of(leader)
    assert offsets(reader) == offsets(reader) == []


def test_permanent_error_ends_the_reading_at_once() -> None:
    leader = Leader()
    leader.says(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ClusterRefused, match="t-0 at leader:1: TOPIC_AUTHORIZATION_FAILED"):
        offsets(reader_of(leader))


def test_a_refused_answer_passes_and_an_old_format_does_not() -> None:
    """FETCH_SESSION errors are of the whole answer; messages of magic 1 have no batches."""
    leader = Leader()
    leader.answers.append(FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    leader.says(batch_bytes(0))
    with no_time():
        reader = reader_of(leader)
        assert offsets(reader) == []
        assert offsets(reader) == [0]
    old = struct.pack(">qiIbbi", 0, 14 + 8, 0, 1, 0, -1) + bytes(12)
    leader.says(old)
    with pytest.raises(ClusterRefused, match=r"t-0: a message format older than Kafka 0\.11"):
        offsets(reader_of(leader))


def test_passing_errors_are_waited_out_each_time_anew_until_the_deadline() -> None:
    leader = Leader()
    with no_time():
        reader = reader_of(leader)
        rounds = 0
        for _ in range(9):
            for _ in range(3):
                leader.says(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                assert offsets(reader) == []
                rounds += 1
                assert leader.forgotten == rounds, "the leader is another one now"
            leader.says(batch_bytes(reader.positions[A]))
            assert len(offsets(reader)) == 1
        leader.answers = [BrokerConnectionError("lost") for _ in range(99)]
        with pytest.raises(ClusterRefused, match=r"lost \(for 5 s\)"):
            assert not any(offsets(reader) for _ in range(99))


def test_time_between_rounds_is_not_that_of_a_problem() -> None:
    """A member that waits for its group between rounds reads on after a leader's move."""
    leader = Leader()
    with no_time() as sleep:
        reader = reader_of(leader)
        for offset in (0, 1):
            sleep(6)
            leader.says(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            leader.says(batch_bytes(offset))
            assert offsets(reader) + offsets(reader) == [offset]


@pytest.mark.parametrize(
    ("at", "reason"),
    [(-1, "the checksum is wrong"), (16, "magic is 253"), (8, "batch declares a length of -")],
)
def test_damaged_records_are_refused_with_their_place(at: int, reason: str) -> None:
    """As by Java's consumer, which checks checksums unless it is told not to."""
    leader = Leader()
    damaged = bytearray(batch_bytes(3, count=2))
    damaged[at] ^= 0xFF
    leader.says(batch_bytes(0, count=3), bytes(damaged))
    reader = reader_of(leader)
    with pytest.raises(ClusterRefused, match=f"t-0: damaged records from offset 3 on: {reason}"):
        offsets(reader)
    assert reader.positions[A] == 3

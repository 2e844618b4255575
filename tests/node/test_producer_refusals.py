"""A batch that a producer's epoch or sequence forbids leaves a line that says what is known."""

from __future__ import annotations

import pytest

from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import NodeDoor


def produced(door: NodeDoor, sequence: int, *, epoch: int = 3) -> int:
    """The error code of a batch of two records of producer 7."""
    records = [Record(None, b"v", timestamp=WALL_MS)] * 2
    batch = build_batch(records, producer_id=7, producer_epoch=epoch, base_sequence=sequence)
    data = PartitionProduceData(index=0, records=bytes(batch))
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
    answer = door.send(request, 9).response.responses[0].partition_responses[0]
    assert answer.error_message is None
    return int(answer.error_code)


def opened() -> NodeDoor:
    door = NodeDoor(SimFileSystem())
    door.prepare("t")
    return door


def test_gap_and_old_epoch_are_told_with_what_the_partition_remembers() -> None:
    door = opened()
    assert produced(door, 0) == ErrorCode.NONE
    assert door.lines == []
    assert produced(door, 490) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produced(door, 2, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    told = [
        (name, {key: str(value) for key, value in fields.items()}) for name, fields in door.lines
    ]
    common = {
        "client": "127.0.0.1",
        "client_id": "client",
        "partition": "t-0",
        "leader_epoch": "0",
        "log_end_offset": "2",
        "producer_id": "7",
        "last_epoch": "3",
        "last_sequence": "1",
    }
    gap = {"reason": "OUT_OF_ORDER_SEQUENCE_NUMBER", "epoch": "3", "sequence": "490"}
    fenced = {"reason": "INVALID_PRODUCER_EPOCH", "epoch": "2", "sequence": "2"}
    assert told == [("producer_refused", common | each) for each in (gap, fenced)]


def test_retry_of_a_batch_and_what_comes_next_leave_no_line() -> None:
    door = opened()
    assert [produced(door, sequence) for sequence in (0, 0, 2)] == [ErrorCode.NONE] * 3
    assert door.lines == []


def test_flood_of_one_second_is_counted_behind_ten_lines() -> None:
    door = opened()
    produced(door, 0)
    door.advance(1_000 - door.now_ms % 1_000)
    for _ in range(25):
        assert produced(door, 490) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [name for name, _ in door.lines] == ["producer_refused"] * 10
    door.advance(1_000)
    hidden = {"client": "127.0.0.1", "reason": "OUT_OF_ORDER_SEQUENCE_NUMBER", "count": 15}
    assert door.lines[10:] == [("producer_refused_suppressed", hidden)]
    produced(door, 490)
    assert [name for name, _ in door.lines[11:]] == ["producer_refused"]


WHOLE = bytes(build_batch([Record(b"k", b"v" * 50, timestamp=WALL_MS)] * 2))


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (WHOLE, ErrorCode.NONE),
        (None, ErrorCode.INVALID_RECORD),
        (WHOLE[:-1], ErrorCode.INVALID_RECORD),
        (WHOLE[:70], ErrorCode.INVALID_RECORD),
        (WHOLE[:16], ErrorCode.INVALID_RECORD),
        (WHOLE + WHOLE, ErrorCode.INVALID_RECORD),
        (WHOLE + WHOLE[:30], ErrorCode.NONE),
        (WHOLE[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (WHOLE[:8] + bytes(4) + WHOLE[12:], ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_bytes_that_are_not_one_batch_are_refused(records: bytes | None, error: int) -> None:
    """As Apache's broker answers them (`tests/server/test_beside_apache.py`)."""
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
    answer = opened().send(request, 9).response.responses[0].partition_responses[0]
    assert answer.error_code == error

"""What a partition tells producers and followers of its records, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kraft_wire.broker.partition import AppendResult, Partition
from kraft_wire.broker.producing.append_validation import AppendOrigin
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.test_append_validation import WALL_MS, batch, partition


@dataclass
class Replication:
    """The state of the other replicas, as a partition reads it."""

    isr: tuple[int, ...] = (1, 2, 3)
    maximal_isr: tuple[int, ...] = (1, 2, 3)
    end: int | None = None
    low: int = 0
    asked: list[tuple[int, ...]] = field(default_factory=list)

    def min_isr(self, configured: int) -> int:
        return configured

    def committed_end(self, own: int, log_end: int, min_isr: int, now_ms: int) -> int | None:
        self.asked.append((own, log_end, min_isr, now_ms))
        return self.end

    def low_watermark(self, own: int) -> int:
        return min(own, self.low)


def replicated(records: int = 0, *, flush_messages: int = 1 << 60, **state: Any) -> Partition:
    """A partition of three replicas, of which two must be in sync."""
    target = partition(min_insync_replicas=2, flush_messages=flush_messages)
    append(target, records)
    target.leadership = cast(Any, Replication(**state))
    return target


def append(target: Partition, records: int, acks: int = 1) -> AppendResult | None:
    result = None
    for _ in range(records):
        (parsed,) = parse_batches(batch(1))
        result = target.append_as_leader(
            parsed, origin=AppendOrigin.CLIENT, acks=acks, now_ms=77, wall_ms=WALL_MS
        )
    return result


@pytest.mark.parametrize(
    ("isr", "acks", "is_taken"),
    [((1,), -1, False), ((1,), 1, True), ((1,), 0, True), ((1, 2), -1, True)],
)
def test_append_for_all_replicas_needs_enough_of_them(
    isr: tuple[int, ...], acks: int, is_taken: bool
) -> None:
    """`Partition.appendRecordsToLeader` of 4.3.1; nothing is written otherwise."""
    target = replicated(isr=isr)
    result = append(target, 1, acks)
    assert target.log_end_offset == int(is_taken)
    if not is_taken:
        message = (
            "The size of the current ISR : 1 is insufficient to satisfy the min.isr requirement "
            "of 2 for partition t-0"
        )
        assert result == AppendResult(
            E.NOT_ENOUGH_REPLICAS, log_start_offset=Offset(0), error_message=message
        )


@pytest.mark.parametrize(
    ("high_watermark", "acks", "maximal_isr", "expected"),
    [
        (4, -1, (1, 2), E.NONE),
        (4, -1, (1,), E.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (4, 1, (1,), E.NONE),
        (3, -1, (1, 2), None),
        (3, -1, (1,), None),
        (3, 1, (1,), E.NONE),
        (3, 0, (1,), E.NONE),
    ],
)
def test_producer_is_answered_when_its_records_are_as_safe_as_it_asked(
    high_watermark: int, acks: int, maximal_isr: tuple[int, ...], expected: E | None
) -> None:
    target = replicated(4, maximal_isr=maximal_isr)
    target.log.high_watermark = Offset(high_watermark)
    assert target.acknowledgement(Offset(4), acks) is expected
    target.is_leader = False
    assert target.acknowledgement(Offset(4), acks) is E.NOT_LEADER_OR_FOLLOWER
    target.offline = True
    assert target.acknowledgement(Offset(4), acks) is E.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_only_replica_answers_what_it_has_committed(acks: int) -> None:
    target = partition(flush_messages=2)
    append(target, 3)
    assert (target.high_watermark, target.counted_end_offset) == (1, 0)
    expected = {1: E.NONE, 2: None, 3: None}
    assert {end: target.acknowledgement(Offset(end), acks) for end in (1, 2, 3)} == expected


@pytest.mark.parametrize(("flush_messages", "counted"), [(3, 0), (4, 3), (1, 0)])
def test_records_count_once_they_are_flushed_where_that_is_promised(
    flush_messages: int, counted: int
) -> None:
    """`flush.messages` many that are not on the disk must be flushed; fewer need not."""
    target = replicated(3, flush_messages=flush_messages)
    assert target.counted_end_offset == counted
    assert target.acknowledgement(Offset(3), 1) is (E.NONE if counted == 3 else None)
    assert isinstance(target.log, Log)
    target.log.flush()
    assert target.counted_end_offset == 3
    assert target.acknowledgement(Offset(3), 1) is E.NONE


def test_high_watermark_is_the_end_that_the_replicas_have_and_never_falls() -> None:
    target = replicated(4)
    leadership = cast(Any, target.leadership)
    target.log.high_watermark = Offset(2)
    found = []
    for leadership.end in (None, 1, 3, 2, 4):
        target.advance_high_watermark(5)
        found.append(target.high_watermark)
    assert found == [2, 2, 3, 3, 4]
    assert leadership.asked[-1] == (4, 4, 2, 5)
    leadership.end = None
    target.flushed(Offset(4), 9)
    assert leadership.asked[-1] == (4, 4, 2, 9)
    append(target, 1)
    assert leadership.asked[-1] == (5, 5, 2, 77)
    assert target.high_watermark == 4


def test_follower_s_flush_commits_nothing() -> None:
    target = partition()
    append(target, 2)
    target.log.high_watermark = Offset(1)
    target.is_leader = False
    target.flushed(Offset(2), 1)
    assert target.high_watermark == 1
    target.is_leader = True
    target.flushed(Offset(2), 1)
    assert target.high_watermark == 2


def test_low_watermark_is_that_of_the_replicas() -> None:
    target = replicated(4, low=1)
    target.log.high_watermark = Offset(4)
    target.log.advance_log_start_offset(Offset(3))
    assert target.low_watermark() == 1
    target.leadership = None
    assert (target.low_watermark(), target.log_start_offset) == (3, 3)


def test_epoch_of_an_offset_is_that_of_its_record_or_the_leader_s() -> None:
    target = partition()
    assert [target.leader_epoch_at(Offset(each)) for each in (0, 1)] == [4, 4]
    append(target, 2)
    target.leader_epoch = LeaderEpoch(6)
    append(target, 1)
    target.leader_epoch = LeaderEpoch(9)
    offsets = [target.leader_epoch_at(Offset(each)) for each in (0, 1, 2, 3)]
    assert offsets == [4, 4, 6, 6]
    target.log.truncate_fully_and_start_at(Offset(5))
    assert [target.leader_epoch_at(Offset(each)) for each in (4, 5)] == [-1, 9]

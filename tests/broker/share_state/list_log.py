"""A shard's log in memory."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["ListLog"]


class ListLog:
    """`ShardLog` over a list, where everything is committed at once."""

    partition = 0

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []

    def append_for_later(self, records: Sequence[CoordinatorRecord], at: ClockReading) -> Appended:
        self.records += records
        return Appended(ErrorCode.NONE)

    def end_offset(self) -> int:
        return len(self.records)

    def high_watermark(self) -> int:
        return len(self.records)

    def await_commit(self, safe_at: int, at: ClockReading, then: CommitCallback) -> None:
        raise AssertionError("committed already")

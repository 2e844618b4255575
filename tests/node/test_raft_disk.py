"""Batches of a leader that the metadata log refuses: a line a second, and a pause."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.node.event_log import Line
from kraft_wire.node.quorum.raft_disk import RaftDisk
from kraft_wire.raft.effects import AppendFetched
from kraft_wire.raft.events import RecordsAppended
from tests.node.test_quorum_log import damaged, opened, sent

REFUSED = (
    "metadata_batch_refused",
    {"offset": Offset(3), "reason": "no good batch at the log's end"},
)


class Disk:
    """A metadata log of three records of epoch 2, which appends what a leader of epoch 3 sent."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []
        unused = cast(Any, None)
        self.disk = RaftDisk(unused, unused, opened(), unused, self._report)

    def _report(self, name: str, **fields: object) -> None:
        texts = {key: each.text if isinstance(each, Line) else each for key, each in fields.items()}
        self.lines.append((name, texts))

    def append(self, data: bytes, now_ms: int) -> object:
        end_offset = self.disk._log.log_end_offset
        return self.disk.perform(AppendFetched(end_offset, LeaderEpoch(3), data), now_ms, now_ms)


@pytest.mark.parametrize("data", [damaged(sent(3, 3)), sent(3, 4), sent(4, 3), b""])
def test_batch_that_is_not_valid_is_refused_with_the_end_of_the_log(data: bytes) -> None:
    disk = Disk()
    assert disk.append(data, 5_000) is None
    assert disk.lines == [REFUSED]
    assert disk.disk.again_at_ms == 5_500


def test_valid_batches_are_appended_and_not_reported_even_before_a_damaged_one() -> None:
    disk = Disk()
    assert disk.append(sent(3, 3), 5_000) == RecordsAppended(())
    assert disk.append(sent(4, 3) + damaged(sent(5, 3)), 5_000) == RecordsAppended(())
    assert disk.lines == []
    assert disk.disk.again_at_ms is None


def test_refused_batches_are_one_line_a_second() -> None:
    disk = Disk()
    for now_ms, lines_count in ((5_000, 1), (5_500, 1), (5_999, 1), (6_000, 2), (6_999, 2)):
        disk.append(b"", now_ms)
        assert disk.lines == [REFUSED] * lines_count, now_ms

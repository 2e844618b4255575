"""The metadata logs of a quorum, compared byte for byte up to the high watermark.

A leader's batches are replicated as they are, so whatever two nodes both still hold below the high
watermark has the same bytes at the same offsets, whoever wrote it. Read from the segment files, of
running nodes too: what is committed never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import peek_header

PARTITION = "__cluster_metadata-0"


@dataclass(frozen=True)
class Comparison:
    """What two logs have in common."""

    offsets: int
    size_bytes: int


def batches(data: Path) -> dict[int, bytes]:
    """Every whole batch of a directory by its base offset."""
    found: dict[int, bytes] = {}
    for segment in sorted((data / PARTITION).glob("*.log")):
        content = segment.read_bytes()
        position = 0
        while position < len(content):
            try:
                batch = peek_header(content, position)
            except CorruptRecordBatch:
                break  # a tail that is being written
            if position + batch.size_bytes > len(content):
                break
            found[batch.base_offset] = content[position : position + batch.size_bytes]
            position += batch.size_bytes
    return found


def compare(directories: dict[int, Path], high_watermark: int) -> Comparison:
    """Compare each two; AssertionError names the first batch that differs."""
    logs = {node_id: batches(data) for node_id, data in directories.items()}
    offsets = size_bytes = 0
    for one, other in combinations(logs, 2):
        start = max(min(logs[one], default=0), min(logs[other], default=0))
        left, right = (
            {at: data for at, data in logs[each].items() if start <= at < high_watermark}
            for each in (one, other)
        )
        for at in sorted(left.keys() | right.keys()):
            assert left.get(at) == right.get(at), f"nodes {one} and {other} differ at {at}"
        offsets = max(offsets, high_watermark - start)
        size_bytes = max(size_bytes, sum(map(len, left.values())))
    return Comparison(offsets, size_bytes)

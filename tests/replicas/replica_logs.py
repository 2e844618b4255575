"""What the brokers have on their disks: batches, compared byte for byte, and tails that were cut.

A follower takes its leader's batches as they are, so every replica has the same bytes at the same
offsets below the high watermark. Segments may begin elsewhere: a follower rolls where the batches
of one answer end. Read from files, of running brokers too, without any code of a broker's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path

from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch, peek_header

EPOCHS = "leader-epoch-checkpoint"


class Writers:
    """Which producers wrote the partitions of a topic, by one replica's files."""

    def __init__(self, data: Path, topic: str) -> None:
        self._data, self._topic = data, topic
        self._logs: dict[int, list[RecordBatch]] = {}

    def __call__(self, partition: int, offset: int) -> tuple[int, int]:
        """Producer id and epoch of the batch that holds an offset; it has to be there."""
        if partition not in self._logs:
            files = segments(self._data / f"{self._topic}-{partition}")
            self._logs[partition] = [batch for file in files for batch in batches_of(file)]
        log = self._logs[partition]
        batch = log[bisect_right(log, offset, key=lambda each: each.base_offset) - 1]
        assert batch.base_offset <= offset <= batch.last_offset, (partition, offset, told(batch))
        return batch.producer_id, batch.producer_epoch


@dataclass
class Comparison:
    """What the replicas of a partition have in common, and where they differ."""

    batches: int = 0
    size_bytes: int = 0
    epochs: int = 0
    """Leader epochs that wrote some of it."""
    segments: dict[int, int] = field(default_factory=dict)
    """By replica."""
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tail:
    """The last segment of a partition as a kill left it: the bytes of its whole batches."""

    partition: Path
    segment: str
    batches: tuple[bytes, ...]

    def cut(self) -> list[RecordBatch]:
        """Those that are not there any more."""
        files = (file for file in segments(self.partition) if file.name >= self.segment)
        left = {bytes(each.view) for file in files for each in batches_of(file)}
        gone = [each for each in self.batches if each not in left]
        return [RecordBatch(memoryview(each)) for each in gone]


def segments(partition: Path) -> list[Path]:
    """The log's files, in order."""
    return sorted(partition.glob("*.log"))


def batches_of(segment: Path) -> Iterator[RecordBatch]:
    """The whole batches of a file, without what is being written, or was when a kill came."""
    try:
        content = segment.read_bytes()
    except FileNotFoundError:
        return  # a broker has just deleted it
    position = 0
    while position < len(content):
        try:
            batch = peek_header(content, position)
        except CorruptRecordBatch:
            return
        if position + batch.size_bytes > len(content):
            return
        yield batch
        position += batch.size_bytes


def tails(data: Path, topic: str) -> list[Tail]:
    """The last segments of a topic's partitions in a log directory."""
    found = []
    for partition in sorted(data.glob(f"{topic}-*")):
        for segment in segments(partition)[-1:]:
            batches = tuple(bytes(each.view) for each in batches_of(segment))
            found.append(Tail(partition, segment.name, batches))
    return found


def cut_by_make(left: Iterable[tuple[str, Iterable[Tail]]]) -> Counter[str]:
    """Count the batches of tails that are not there any more, each once, by make.

    A broker that was killed twice before it had caught up has left two tails.
    """
    gone = {
        (make, tail.partition, bytes(batch.view))
        for make, tails_left in left
        for tail in tails_left
        for batch in tail.cut()
    }
    return Counter(make for make, _, _ in gone)


def compare(replicas: Mapping[int, Path], high_watermark: int) -> Comparison:
    """Compare the replicas of a partition, by directory, up to the high watermark."""
    found = Comparison()
    logs = {}
    for node_id, partition in replicas.items():
        files = segments(partition)
        found.segments[node_id] = len(files)
        whole = [batch for file in files for batch in batches_of(file)]
        logs[node_id] = [batch for batch in whole if batch.base_offset < high_watermark]
        problems = _chain(logs[node_id], high_watermark) + _epochs(logs[node_id], partition)
        found.differences += [f"node {node_id}, {partition.name}: {each}" for each in problems]
    first = next(iter(replicas))
    for other in list(replicas)[1:]:
        for left, right in zip_longest(logs[first], logs[other]):
            if left is None or right is None or left.view != right.view:
                found.differences.append(
                    f"{replicas[first].name}: node {first} has {told(left)}, "
                    f"node {other} has {told(right)}"
                )
                break
    found.batches = len(logs[first])
    found.size_bytes = sum(each.size_bytes for each in logs[first])
    found.epochs = len({each.partition_leader_epoch for each in logs[first]})
    return found


def told(batch: RecordBatch | None) -> str:
    """All that tells a batch from another."""
    if batch is None:
        return "nothing"
    return (
        f"[{batch.base_offset}..{batch.last_offset} epoch {batch.partition_leader_epoch}, "
        f"producer {batch.producer_id}/{batch.producer_epoch} from sequence "
        f"{batch.base_sequence}, {batch.size_bytes} bytes, crc {batch.crc:#010x}]"
    )


def _chain(log: list[RecordBatch], high_watermark: int) -> list[str]:
    """Batches follow one another from 0 to the high watermark, in epochs that do not fall."""
    problems = []
    if (log[0].base_offset if log else 0) != 0:
        problems.append(f"begins with {told(log[0])}")
    if (log[-1].next_offset if log else 0) != high_watermark:
        problems.append(f"ends with {told(log[-1] if log else None)}, not at {high_watermark}")
    for left, right in pairwise(log):
        if left.next_offset != right.base_offset:
            problems.append(f"{told(left)} is followed by {told(right)}")
        if left.partition_leader_epoch > right.partition_leader_epoch:
            problems.append(f"epochs fall from {told(left)} to {told(right)}")
    problems += [f"{told(each)} is damaged" for each in log if not each.crc_is_valid()]
    return problems


def _epochs(log: list[RecordBatch], partition: Path) -> list[str]:
    """The checkpoint of leader epochs says of each batch in which epoch it was written."""
    lines = (partition / EPOCHS).read_text().splitlines()
    entries = [tuple(map(int, line.split())) for line in lines[2:]]
    problems = []
    at = -1
    for batch in log:
        while at + 1 < len(entries) and entries[at + 1][1] <= batch.base_offset:
            at += 1
        epoch = entries[at][0] if at >= 0 else None
        if epoch != batch.partition_leader_epoch:
            problems.append(f"{EPOCHS} says {epoch} of {told(batch)}: {entries}")
            break
    return problems

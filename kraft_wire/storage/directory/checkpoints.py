"""The offset checkpoints of a log directory, each one line per partition in Kafka's format.

`recovery-point-offset-checkpoint` (durable up to), `log-start-offset-checkpoint` (only logs whose
start is above their first segment), `replication-offset-checkpoint` (high watermarks) and
`cleaner-offset-checkpoint` (compacted up to).
"""

from collections.abc import Mapping

from kraft_wire.model import Offset, TopicPartition
from kraft_wire.storage.directory.checkpoint_text import (
    CorruptCheckpoint,
    number,
    read_entries,
    write_entries,
)
from kraft_wire.storage.files import FileSystem

__all__ = [
    "CLEANER_OFFSETS",
    "HIGH_WATERMARKS",
    "LOG_START_OFFSETS",
    "RECOVERY_POINTS",
    "read_offsets",
    "write_offsets",
]

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, Offset]:
    """Return the offsets, empty without the file; CorruptCheckpoint if it is damaged."""
    offsets: dict[TopicPartition, Offset] = {}
    for topic, partition_text, offset_text in read_entries(fs, path, 3) or []:
        partition, offset = number(path, partition_text), number(path, offset_text)
        if partition < 0 or offset < 0:
            raise CorruptCheckpoint(path, f"impossible entry {topic} {partition} {offset}")
        known = TopicPartition(topic, partition)
        if known in offsets:
            raise CorruptCheckpoint(path, f"{known} is listed twice")
        offsets[known] = Offset(offset)
    assert all(offset >= 0 for offset in offsets.values()), path
    return offsets


def write_offsets(
    fs: FileSystem, path: str, offsets: Mapping[TopicPartition, Offset], *, durable: bool = True
) -> None:
    """Replace the file atomically."""
    assert all(partition.partition >= 0 for partition in offsets), offsets
    assert all(offset >= 0 for offset in offsets.values()), offsets
    entries = [(*partition, offset) for partition, offset in sorted(offsets.items())]
    write_entries(fs, path, entries, durable=durable)

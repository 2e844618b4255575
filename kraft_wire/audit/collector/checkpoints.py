"""The offset checkpoints of log directories: the high watermarks in them, and their damage.

A damaged checkpoint is not used, so a check that needs it cannot be decided for any partition of
its directory: that is reported once, without a topic. The cleaner's checkpoint names the compacted
partitions, even if the metadata log is in another directory, or the settings are in a file.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kraft_wire.audit.finding import NO_OFFSET, NOWHERE, Finding
from kraft_wire.columnar import node_of
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    read_offsets,
)
from kraft_wire.storage.files import FileSystem

__all__ = [
    "checkpointed_watermarks",
    "cleaned_partitions",
    "damaged_checkpoints",
    "highest_watermarks",
]

_NO_PARTITION: Final = -1
_NEEDED_BY: Final = {HIGH_WATERMARKS: "below-high-watermark", LOG_START_OFFSETS: "gap"}


def checkpointed_watermarks(
    fs: FileSystem, directories: Sequence[str]
) -> dict[str, dict[TopicPartition, Offset]]:
    """Return the high watermarks by directory, none for a damaged checkpoint."""
    return {each: _offsets(fs, f"{each}/{HIGH_WATERMARKS}") for each in directories}


def cleaned_partitions(fs: FileSystem, directories: Sequence[str]) -> frozenset[TopicPartition]:
    """Return the partitions that were compacted in any of the directories."""
    cleaned = [_offsets(fs, f"{each}/{CLEANER_OFFSETS}") for each in directories]
    return frozenset(key for known in cleaned for key in known)


def _offsets(fs: FileSystem, path: str) -> dict[TopicPartition, Offset]:
    try:
        return read_offsets(fs, path)
    except CorruptCheckpoint:
        return {}


def highest_watermarks(
    checkpointed: Iterable[Mapping[TopicPartition, Offset]],
    reported: Mapping[tuple[str, int], int],
) -> dict[tuple[str, int], int]:
    """Return the largest high watermark of each partition, of all inputs and checkpoints."""
    highest = dict(reported)
    for known in checkpointed:
        for key, offset in known.items():
            highest[key] = max(int(offset), highest.get(key, 0))
    return highest


def damaged_checkpoints(fs: FileSystem, directories: Sequence[str]) -> list[Finding]:
    """Return one finding for each checkpoint that is not in its form."""
    findings: list[Finding] = []
    for directory in directories:
        for name, check in _NEEDED_BY.items():
            try:
                read_offsets(fs, f"{directory}/{name}")
            except CorruptCheckpoint as error:
                detail = f"the checkpoint is damaged: {error.reason}"
                node = node_of(fs, directory) or directory.rpartition("/")[2]
                place = (node, "", _NO_PARTITION, NO_OFFSET, name, NOWHERE)
                findings.append(Finding(check, "error", *place, detail))
    return findings

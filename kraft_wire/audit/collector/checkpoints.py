"""The offset checkpoints of log directories: the high watermarks they tell, and damage in them.

A damaged one says nothing, so a proposition that needs it cannot be decided for any partition of
its directory: that is told once, without a topic.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.audit.finding import NO_OFFSET, NOWHERE, Finding
from kraft_wire.columnar import node_of
from kraft_wire.storage.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, read_offsets
from kraft_wire.storage.files import FileSystem

__all__ = ["damaged_checkpoints", "seen_watermarks"]

_NO_PARTITION: Final = -1
_NEEDED_BY: Final = {HIGH_WATERMARKS: "below-high-watermark", LOG_START_OFFSETS: "gap"}


def seen_watermarks(
    fs: FileSystem, paths: Sequence[str], told: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    """Return the largest high watermark of each partition, told or checkpointed anywhere."""
    highest = dict(told)
    for path in paths:
        try:
            known = read_offsets(fs, f"{path.rstrip('/')}/{HIGH_WATERMARKS}")
        except CorruptCheckpoint:
            continue
        for key, offset in known.items():
            highest[key] = max(int(offset), highest.get(key, 0))
    return highest


def damaged_checkpoints(fs: FileSystem, paths: Sequence[str]) -> list[Finding]:
    """Return one finding for each checkpoint that is not in its form."""
    findings: list[Finding] = []
    for directory in (path.rstrip("/") for path in paths):
        for name, check in _NEEDED_BY.items():
            try:
                read_offsets(fs, f"{directory}/{name}")
            except CorruptCheckpoint as error:
                detail = f"the checkpoint is damaged: {error.reason}"
                node = node_of(fs, directory) or directory.rpartition("/")[2]
                place = (node, "", _NO_PARTITION, NO_OFFSET, name, NOWHERE)
                findings.append(Finding(check, "error", *place, detail))
    return findings

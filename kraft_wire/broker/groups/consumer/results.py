"""What a coordinator works out for a group and keeps: targets, and topics that match."""

from collections.abc import Mapping
from typing import TypeAlias

from kraft_wire.broker.groups.object_sizes import PARTITION_BYTES
from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid

__all__ = ["ResolvedRegex", "Target"]

Target: TypeAlias = Mapping[Uuid, tuple[int, ...]]
"""Topic id to partitions, in the order of the record."""


@frozen
class ResolvedRegex:
    """The topics that a regular expression matched when it was last evaluated."""

    topics: tuple[str, ...]
    image_version: int
    """Version of the metadata image that was searched."""
    timestamp_ms: int
    """Wall clock at the start of the evaluation."""

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, as `object_sizes` counts it."""
        return PARTITION_BYTES * len(self.topics) + sum(map(len, self.topics))

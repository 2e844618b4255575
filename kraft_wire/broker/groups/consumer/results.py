"""What a coordinator works out for a group and keeps: the topics that an expression matches."""

from kraft_wire.broker.groups.object_sizes import PARTITION_BYTES
from kraft_wire.frozen import frozen

__all__ = ["ResolvedRegex"]


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

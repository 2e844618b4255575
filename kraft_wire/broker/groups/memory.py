"""How much memory the groups of this broker take, near enough to bound it.

Kafka bounds none of it; a client that invents group ids would fill the process. What is counted is
what clients send, plus a flat cost per object that was measured on CPython and rounded up.
"""

from typing import Final

__all__ = ["GROUP_BYTES", "MEMBER_BYTES", "OFFSET_BYTES", "PENDING_MEMBER_BYTES", "MemoryUse"]

GROUP_BYTES: Final = 1_024
MEMBER_BYTES: Final = 1_536
PENDING_MEMBER_BYTES: Final = 512
"""An id that was given out, with its deadline."""
OFFSET_BYTES: Final = 768


class MemoryUse:
    """A running total, shared by everything that grows and shrinks."""

    __slots__ = ("total_bytes",)

    def __init__(self) -> None:
        self.total_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Count something in, or out when negative."""
        self.total_bytes += size_bytes
        assert self.total_bytes >= 0, (self.total_bytes, size_bytes)

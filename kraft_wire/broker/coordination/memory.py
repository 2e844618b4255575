"""Estimates the memory of one kind of coordinator's state, to bound it.

Kafka has no such bound; a client that invents group ids would fill the process's memory. The count
is the size of what clients send, plus a flat cost per object, which each kind of coordinator
measures.
"""

from collections.abc import Callable

__all__ = ["MemoryUse"]


class MemoryUse:
    """A running total, shared by everything that grows and shrinks, and its bound."""

    __slots__ = ("_bytes_max", "total_bytes")

    def __init__(self, bytes_max: Callable[[], int]) -> None:
        """`bytes_max` is read at each use, because a dynamic setting may change it."""
        self._bytes_max = bytes_max
        self.total_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Count something in, or out when negative."""
        self.total_bytes += size_bytes
        assert self.total_bytes >= 0, (self.total_bytes, size_bytes)

    def has_room_for(self, more_bytes: int) -> bool:
        """Whether the bound leaves room for more; otherwise the request gets POLICY_VIOLATION."""
        return self.total_bytes + more_bytes <= self._bytes_max()

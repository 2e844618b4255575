"""Which part of a partition of `__share_group_state` a load still needs (KIP-932).

A load needs each share partition's newest snapshot and everything after it. So the oldest of these
snapshots is the first offset that has to stay.
"""

from kraft_wire.broker.share_persister import SharePartitionKey

__all__ = ["NeededOffsets"]


class NeededOffsets:
    """The offsets of the newest snapshots, ascending: records come in the order of the log."""

    __slots__ = ("_first", "_newest")

    def __init__(self) -> None:
        self._newest: dict[SharePartitionKey, int] = {}
        self._first: int | None = None

    def written(self, key: SharePartitionKey, offset: int, *, is_end: bool) -> None:
        """Note a snapshot or a tombstone; the latter stays until the next snapshot is written."""
        self._newest.pop(key, None)
        self._newest[key] = offset
        self._first = next(iter(self._newest.values()))
        if is_end:
            del self._newest[key]

    def first_needed(self) -> int | None:
        """Return the first offset that has to stay, None if nothing can be removed."""
        return self._first or None

"""Epochs that coordinators count: of groups, members and generations, and of share states."""

from kraft_wire.wire.varint import wrap_int32

__all__ = ["epoch_after"]


def epoch_after(epoch: int) -> int:
    """Return the epoch behind another. The smallest follows the largest, as with Java's int.

    A record that a client produced may have the largest.
    """
    return wrap_int32(epoch + 1)

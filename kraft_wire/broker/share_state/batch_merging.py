"""Merges delivery states of ranges of offsets, with Kafka's result for the same input.

Where two batches overlap, the one with the higher pair of delivery count and state has the offsets
of both; batches below the start offset are cut off, neighbours of equal count and state joined.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from kraft_wire.broker.share_persister import DeliveryStateBatch
from kraft_wire.model import Offset

__all__ = ["merged_batches"]

_NO_START: Final = -1

_Batch: TypeAlias = tuple[int, int, int, int]
"""First and last offset, delivery count, delivery state: in the order in which they are merged."""


def merged_batches(
    stored: Iterable[DeliveryStateBatch], new: Iterable[DeliveryStateBatch], start_offset: int
) -> Sequence[DeliveryStateBatch]:
    """Return the batches at or above the start offset, ascending; -1 cuts off nothing.

    A batch that ends before it begins is left out.
    """
    kept: list[_Batch] = []
    for batches in (stored, new):
        for first, last, state, count in batches:
            if start_offset != _NO_START:
                first = max(first, Offset(start_offset))
            if first <= last:
                kept.append((first, last, count, state))
    return [
        DeliveryStateBatch(Offset(first), Offset(last), state, count)
        for first, last, count, state in _merged(kept)
    ]


def _merged(batches: list[_Batch]) -> list[_Batch]:
    """Merge the first two batches that touch until none do; `batches` is used up."""
    if len(batches) < 2:
        return batches
    done: list[_Batch] = []
    heapify(batches)
    while batches:
        earlier = heappop(batches)
        later = _next_other(batches, earlier)
        if later is None:
            done.append(earlier)
        else:
            heappop(batches)
            for each in _overlap(earlier, later):
                heappush(batches, each)
    return done


def _next_other(batches: list[_Batch], earlier: _Batch) -> _Batch | None:
    """Return the next batch if it touches the one before it; the same batch counts once."""
    while batches and batches[0] == earlier:
        heappop(batches)
    if not batches:
        return None
    later = batches[0]
    overlaps = later[0] <= earlier[1]
    continues = later[0] == earlier[1] + 1 and later[2:] == earlier[2:]
    return later if overlaps or continues else None


def _overlap(earlier: _Batch, later: _Batch) -> list[_Batch]:
    """Return what two batches that touch become."""
    first, last, *_ = earlier
    later_first, later_last, *_ = later
    info, later_info = earlier[2:], later[2:]
    if later_info == info:
        return [(first, max(last, later_last), *info)]
    if later_info < info:
        return [earlier, (last + 1, later_last, *later_info)] if later_last > last else [earlier]
    parts = [later]
    if first < later_first:
        parts.append((first, later_first - 1, *info))
        if later_last < last:
            parts.append((later_last + 1, last, *info))
    return parts

"""Compares the replicas of one partition: where they differ, and which one is the odd one.

It compares the sound batches of each replica, wherever at least two replicas have some: a third
replica may start later or end earlier. Consecutive differences are one disagreement. With three
replicas the odd one is named; without a majority, all are. The begin of a disagreement decides
whether it is `log-matching` or `divergence`: the same (base offset, epoch) with another content, or
other epochs and boundaries.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from kraft_wire.audit.layout import Layout
from kraft_wire.columnar.arrays import Bools, Int64s

__all__ = ["Disagreement", "disagreements"]

_NO_ROW: Final = -1


class Identity(NamedTuple):
    """The fields by which two batches are equal: the checksum covers neither offset nor epoch."""

    base_offset: int
    epoch: int
    content: tuple[int, int, int]
    """Last offset, checksum, size; (-1, -1, -1) where another batch continues."""


@dataclass(slots=True)
class Disagreement:
    """A stretch of offsets over which replicas do not hold the same batches."""

    first_offset: int
    last_offset: int
    """Base offset of the last batch that differs."""
    odd: list[str]
    """The nodes that differ from the majority, or all without a majority; sorted."""
    same_place: bool
    """Whether it begins with batches of the same base offset and epoch."""
    only_epoch: bool
    """Whether it begins with batches that differ in nothing but the epoch."""
    epochs: list[int]
    """The epochs at its beginning, of all nodes."""
    row: int
    """Where it begins in the first odd node, -1 where that has no batch with this base offset."""


class _View:
    """The comparable batches of one replica as arrays."""

    def __init__(self, layout: Layout, doubtful_epochs: Int64s) -> None:
        batches = layout.replica.batches
        self.node = layout.replica.node
        self.rows = layout.rows
        self.base = batches.base_offset[self.rows]
        self.last = batches.last_offset[self.rows]
        self.epoch = batches.leader_epoch[self.rows]
        self.crc = batches.crc[self.rows]
        self.size = batches.size_bytes[self.rows]
        self.doubtful = set(doubtful_epochs.tolist())

    @property
    def start_offset(self) -> int:
        """The offset at which its batches begin."""
        return int(self.base[0])

    @property
    def end_offset(self) -> int:
        """The offset behind its last batch."""
        return int(self.last[-1]) + 1

    def keys(self, start: int, end: int) -> Int64s:
        """Return one row of numbers for each batch that begins in a range of offsets."""
        first, stop = np.searchsorted(self.base, (start, end))
        columns = (self.base, self.last, self.epoch, self.crc, self.size)
        return np.stack([column[first:stop] for column in columns], axis=1)

    def at(self, offset: int) -> tuple[Identity, int] | None:
        """Return the batch at an offset, None if the replica has no sound one."""
        index = int(np.searchsorted(self.base, offset, side="right")) - 1
        if index < 0 or int(self.last[index]) < offset:
            return None
        epoch = int(self.epoch[index])
        if int(self.base[index]) != offset:
            return Identity(int(self.base[index]), epoch, (-1, -1, -1)), _NO_ROW
        content = (int(self.last[index]), int(self.crc[index]), int(self.size[index]))
        return Identity(offset, epoch, content), int(self.rows[index])


def disagreements(
    layouts: Sequence[Layout], doubtful: Mapping[str, Int64s] | None = None
) -> list[Disagreement]:
    """Return where the replicas differ, by offset; compacted ones differ by design.

    `doubtful` are the rows, by node, whose epoch another check has found to be wrong: only their
    content is compared.
    """
    known = doubtful or {}
    none = np.zeros(0, np.int64)
    views = [
        _View(layout, known.get(layout.replica.node, none))
        for layout in layouts
        if len(layout.rows) and not layout.replica.is_compacted
    ]
    offsets, agreed = _differing(views)
    found: list[Disagreement] = []
    for offset in offsets.tolist():
        each = _judge(views, offset)
        if each is None:
            continue
        if found and _goes_on(found[-1], each, agreed):
            found[-1].last_offset = each.last_offset
        else:
            found.append(each)
    return found


def _differing(views: list[_View]) -> tuple[Int64s, Int64s]:
    """Return the base offsets of batches that differ, and of those on which replicas agree.

    Both grow. The offsets are divided where a replica begins or ends, so that in each range the
    same replicas have batches; a range that one replica alone has is in neither list.
    """
    bounds = sorted({at for view in views for at in (view.start_offset, view.end_offset)})
    differing, agreed = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start, end in pairwise(bounds):
        those = [view for view in views if view.start_offset <= start and end <= view.end_offset]
        if len(those) < 2:
            continue
        keys = [view.keys(start, end) for view in those]
        if all(np.array_equal(keys[0], other) for other in keys[1:]):
            agreed.append(keys[0][:, 0])
            continue
        unique, counts = np.unique(np.concatenate(keys), axis=0, return_counts=True)
        is_common: Bools = counts == len(those)
        differing.append(np.unique(unique[~is_common, 0]))
        agreed.append(unique[is_common, 0])
    return np.concatenate(differing), np.concatenate(agreed)


def _judge(views: list[_View], offset: int) -> Disagreement | None:
    """Return the nodes that differ at an offset, None if all with a batch there agree."""
    held = {view.node: (view, found) for view in views if (found := view.at(offset)) is not None}
    identities = {node: identity for node, (_, (identity, _)) in held.items()}
    if len(set(identities.values())) < 2:
        return None
    contents = {(each.base_offset, each.content) for each in identities.values()}
    only_epoch = len(contents) == 1
    if only_epoch and any(row in view.doubtful for view, (_, row) in held.values()):
        return None
    usual, count = Counter(identities.values()).most_common(1)[0]
    is_majority = 2 * count > len(held)
    odd = sorted(node for node, each in identities.items() if not is_majority or each != usual)
    places = Counter((each.base_offset, each.epoch) for each in Counter(identities.values()))
    return Disagreement(
        first_offset=offset,
        last_offset=offset,
        odd=odd,
        same_place=max(places.values()) > 1,
        only_epoch=only_epoch,
        epochs=sorted({each.epoch for each in identities.values()}),
        row=held[odd[0]][1][1],
    )


def _goes_on(before: Disagreement, after: Disagreement, agreed: Int64s) -> bool:
    """Whether no batch on which all agree is between, and the same replicas differ."""
    between = np.searchsorted(agreed, (before.last_offset, after.first_offset))
    is_next = int(between[0]) == int(between[1])
    return is_next and not set(before.odd).isdisjoint(after.odd)

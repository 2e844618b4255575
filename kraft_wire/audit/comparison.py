"""The replicas of one partition against each other: where they disagree, and who is the odd one.

Compared are the batches that each replica can be believed about, from the highest log start on, as
far as at least two reach. What differs in a row is one disagreement. With three replicas the odd
one is named; where no majority agrees, all are. Whether a disagreement is `log-matching` or
`divergence` is decided by where it begins: the same (base offset, epoch) with another content, or
other epochs and boundaries.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from kraft_wire.audit.layout import Layout
from kraft_wire.columnar.arrays import Bools, Int64s

__all__ = ["Disagreement", "disagreements"]

_NO_ROW: Final = -1


class Identity(NamedTuple):
    """What makes two batches the same one: the checksum covers neither offset nor epoch."""

    base_offset: int
    epoch: int
    content: tuple[int, int, int]
    """Last offset, checksum, size; (-1, -1, -1) where another batch goes on."""


@dataclass(slots=True)
class Disagreement:
    """A stretch of offsets over which replicas do not hold the same batches."""

    first_offset: int
    last_offset: int
    """Base offset of the last batch that differs."""
    odd: list[str]
    """The nodes that differ from the majority, or all where there is none; sorted."""
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

    def since(self, offset: int) -> int:
        """Return the index of the first batch that begins at an offset or behind it."""
        return int(np.searchsorted(self.base, offset))

    def keys(self, first: int) -> Int64s:
        """Return one row of numbers a batch, of those from an index on."""
        columns = (self.base, self.last, self.epoch, self.crc, self.size)
        return np.stack([column[first:] for column in columns], axis=1)

    def at(self, offset: int) -> tuple[Identity, int] | None:
        """Return what stands at an offset, None where the replica has nothing to say."""
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

    `doubtful` are the rows, by node, whose epoch something else has found to be wrong: they count
    by their content.
    """
    known = doubtful or {}
    none = np.zeros(0, np.int64)
    views = [
        _View(layout, known.get(layout.replica.node, none))
        for layout in layouts
        if len(layout.rows) and not layout.replica.is_compacted
    ]
    if len(views) < 2:
        return []
    start = max(int(view.base[0]) for view in views)
    offsets, agreed = _differing(views, start)
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


def _differing(views: list[_View], start: int) -> tuple[Int64s, Int64s]:
    """Return the base offsets of batches that not all replicas have, and of those that all have."""
    firsts = [view.since(start) for view in views]
    length = min(len(view.base) - first for view, first in zip(views, firsts, strict=True))
    heads = [view.keys(first)[:length] for view, first in zip(views, firsts, strict=True)]
    if all(np.array_equal(heads[0], head) for head in heads[1:]):
        ends = [view.base[first + length :] for view, first in zip(views, firsts, strict=True)]
        if np.count_nonzero([len(end) for end in ends]) < 2:
            return np.zeros(0, np.int64), heads[0][:, 0]
    keys = np.concatenate([view.keys(first) for view, first in zip(views, firsts, strict=True)])
    unique, counts = np.unique(keys, axis=0, return_counts=True)
    is_common: Bools = counts == len(views)
    return np.unique(unique[~is_common, 0]), unique[is_common, 0]


def _judge(views: list[_View], offset: int) -> Disagreement | None:
    """Return who differs at an offset, None where all that have something there agree."""
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
    """Whether no batch on which all agree lies between, and the same replicas differ."""
    between = np.searchsorted(agreed, (before.last_offset, after.first_offset))
    is_next = int(between[0]) == int(between[1])
    return is_next and not set(before.odd).isdisjoint(after.odd)

"""Guesses where records begin in the middle of large batches, so that a chain can be divided.

The chain of record sizes must be followed one record at a time, but several pieces of it can be
followed at once, if it is known where they begin. This module guesses that: the attributes of a
record are one zero byte behind its size, and the offset delta of the next record is one higher. The
caller that follows the pieces checks each guess: it is right if the previous piece ends there to
the byte, after as many records as the offset deltas say.
"""

from typing import Final, NamedTuple

import numpy as np

from kraft_wire.columnar.arrays import Bools, Bytes, Int64s, Words
from kraft_wire.columnar.varints import WORD_BYTES_MAX, read_varints

__all__ = ["Cuts", "guess_cuts"]

_SEARCHED_RECORDS: Final = 3
"""The number of average record sizes that are searched for a record's begin."""
_CONTINUES: Final = 0x80
_SHORTEST: Final = 10
"""A size below is that of no record: it has six bytes at least, and they are doubled."""


class Cuts(NamedTuple):
    """Places where a record seems to begin."""

    owners: Int64s
    """Which body each is in."""
    positions: Int64s
    deltas: Int64s
    """The offset delta of the record there: how many records of the batch come before it."""


def guess_cuts(
    data: Bytes, words: Words, starts: Int64s, ends: Int64s, counts: Int64s, pieces: Int64s
) -> Cuts:
    """Return the places to cut bodies into about `pieces` parts; there may be fewer, or none."""
    owners = np.repeat(np.arange(len(pieces)), np.maximum(pieces - 1, 0))
    first = np.cumsum(np.maximum(pieces - 1, 0)) - np.maximum(pieces - 1, 0)
    number = np.arange(len(owners)) - first[owners] + 1
    sizes = ends - starts
    targets = starts[owners] + sizes[owners] * number // pieces[owners]
    width = _SEARCHED_RECORDS * int((sizes // np.maximum(counts, 1)).max(initial=1))
    row, position = _candidates(data, targets, width)
    delta, fits = _looks_like_a_record(words, position, ends[owners[row]], counts[owners[row]])
    row, position, delta = row[fits], position[fits], delta[fits]
    order = np.lexsort((position, row))
    row, kept = np.unique(row[order], return_index=True)
    chosen = order[kept]
    return _growing(Cuts(owners[row], position[chosen], delta[chosen]))


def _candidates(data: Bytes, targets: Int64s, width: int) -> tuple[Int64s, Int64s]:
    """Return (target, position) of possible sizes before a zero byte, in `width` bytes.

    A size of one byte is even, because it is not negative; one of two begins above 127.
    """
    places = np.minimum(targets[:, np.newaxis] + np.arange(width), len(data) - 1)
    found = data[places]
    is_zero = found[:, 2:] == 0
    before, earlier = found[:, 1:-1], found[:, :-2]
    ends = is_zero & (before < _CONTINUES)
    short_rows, short = np.nonzero(ends & (before & 1 == 0) & (before > _SHORTEST))
    long_rows, long = np.nonzero(ends & (earlier >= _CONTINUES) & (earlier & 1 == 0))
    rows = np.concatenate([short_rows, long_rows])
    return rows, targets[rows] + np.concatenate([short + 1, long])


def _looks_like_a_record(
    words: Words, positions: Int64s, ends: Int64s, counts: Int64s
) -> tuple[Int64s, Bools]:
    """Return the offset delta of a record there, and whether the next record agrees."""
    positions = np.maximum(positions, 0)
    delta, after, fits = _head(words, positions)
    fits &= (after < ends) & (delta > 0) & (delta < counts)
    following, _, begins = _head(words, np.where(fits, after, 0))
    fits &= begins & (following == delta + 1)
    return delta, fits


def _head(words: Words, positions: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Return offset delta, end and whether the attributes are zero, of a record at each place."""
    sizes, attributes_at, _ = read_varints(words, positions)
    clean = words[np.minimum(attributes_at, len(words) - 1)] & np.uint64(0xFF) == 0
    _, delta_at, _ = read_varints(words, attributes_at + 1, WORD_BYTES_MAX)
    delta, _, _ = read_varints(words, delta_at)
    fits: Bools = clean & (sizes > 0)
    return delta, attributes_at + sizes, fits


def _growing(cuts: Cuts) -> Cuts:
    """Leave out cuts that are not after the previous cut in the same body."""
    same = cuts.owners[1:] == cuts.owners[:-1]
    wrong = same & (
        (cuts.positions[1:] <= cuts.positions[:-1]) | (cuts.deltas[1:] <= cuts.deltas[:-1])
    )
    if not wrong.any():
        return cuts
    bad = np.isin(cuts.owners, cuts.owners[1:][wrong])
    return Cuts(cuts.owners[~bad], cuts.positions[~bad], cuts.deltas[~bad])

"""Where each record begins: the chain of sizes inside a batch, followed in many batches at once.

The next record's place is only known after the record before it is measured, but batches are
independent: step i reads record i of all batches together. If a few batches are large, they are
divided at guessed places (`chain_cuts`), and the pieces are followed like batches. If a piece does
not end where the next one begins, the guess was wrong, and its batch is followed in a plain loop,
as are batches that are too few for arrays. The faster way is estimated from the counts.

Knows sizes only. A chain that breaks (a size that is negative, that leaves the body, or that ends
elsewhere than the body) marks its batch, and `record_fields` never sees its records.
"""

from typing import Final, NamedTuple

import numpy as np

from kraft_wire.columnar.arrays import Bools, Int64s, Words, as_bytes
from kraft_wire.columnar.chain_cuts import guess_cuts
from kraft_wire.columnar.varints import read_varints
from kraft_wire.wire.varint import read_varint

__all__ = ["RECORD_BYTES_MIN", "Bodies", "RecordStarts", "find_record_starts"]

RECORD_BYTES_MIN: Final = 7
"""A size, attributes, two deltas, two null lengths and a count of headers, a byte each."""

_STEP_SECONDS: Final = 22e-6
_STEP_SECONDS_PER_RECORD: Final = 22e-9
_PLAIN_SECONDS_PER_RECORD: Final = 110e-9
_PIECE_RECORDS: Final = 64
_DIVIDED_RECORDS_MIN: Final = 20_000
"""With fewer in all, looking for cuts costs more than it saves."""


class Bodies(NamedTuple):
    """Uncompressed bodies of batches, one after another in one padded buffer."""

    data: bytes
    words: Words
    starts: Int64s
    ends: Int64s
    counts: Int64s
    """As the headers declare them, at least 1."""


class RecordStarts(NamedTuple):
    """Where the records of all unbroken chains begin, in order."""

    positions: Int64s
    owners: Int64s
    """Which body each record is in, as an index into `Bodies`."""
    broken: Bools
    """One flag a body."""


def find_record_starts(bodies: Bodies) -> RecordStarts:
    """Follow the chains of all bodies; a declared count is trusted once the bytes confirm it."""
    broken = bodies.counts * RECORD_BYTES_MIN > bodies.ends - bodies.starts
    counts = np.where(broken, 0, bodies.counts)
    total, longest = int(counts.sum()), int(counts.max(initial=0))
    in_step = longest * _STEP_SECONDS + total * _STEP_SECONDS_PER_RECORD
    divided = _PIECE_RECORDS * _STEP_SECONDS + total * 2 * _STEP_SECONDS_PER_RECORD
    if longest > 2 * _PIECE_RECORDS and total > _DIVIDED_RECORDS_MIN and divided < in_step:
        positions, wrong = _in_pieces(bodies, counts)
    elif in_step < total * _PLAIN_SECONDS_PER_RECORD:
        positions, wrong = _in_step(bodies.starts, bodies.ends, counts, bodies.words)
    else:
        positions, wrong = _one_by_one(bodies, counts)
    owners = np.repeat(np.arange(len(counts)), counts)
    broken |= wrong
    if wrong.any():
        kept = ~broken[owners]
        positions, owners = positions[kept], owners[kept]
    return RecordStarts(positions, owners, broken)


def _in_pieces(bodies: Bodies, counts: Int64s) -> tuple[Int64s, Bools]:
    """Divide large batches, follow all pieces in step, and wrongly divided batches one by one."""
    pieces = np.maximum(counts // _PIECE_RECORDS, 1)
    data = as_bytes(bodies.data)
    cuts = guess_cuts(data, bodies.words, bodies.starts, bodies.ends, counts, pieces)
    whole = np.flatnonzero(counts)
    owners = np.concatenate([whole, cuts.owners])
    starts = np.concatenate([bodies.starts[whole], cuts.positions])
    firsts = np.concatenate([np.zeros(len(whole), np.int64), cuts.deltas])
    order = np.lexsort((starts, owners))
    owners, starts, firsts = owners[order], starts[order], firsts[order]
    is_last = np.append(owners[1:] != owners[:-1], True)
    ends = np.where(is_last, bodies.ends[owners], np.append(starts[1:], 0))
    lasts = np.where(is_last, counts[owners], np.append(firsts[1:], 0))
    positions, broken = _in_step(starts, ends, lasts - firsts, bodies.words)
    wrong = np.zeros(len(counts), np.bool_)
    wrong[owners[broken]] = True
    if not wrong.any():
        return positions, wrong
    again, still_wrong = _one_by_one(bodies, np.where(wrong, counts, 0))
    positions[np.repeat(wrong, counts)] = again
    return positions, still_wrong


def _in_step(starts: Int64s, ends: Int64s, counts: Int64s, words: Words) -> tuple[Int64s, Bools]:
    """Measure record i of every batch in step i; batches with many records are first."""
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order]
    first_slot = (np.cumsum(counts) - counts)[order]
    cursor, ends = starts[order], ends[order]
    wrong = np.zeros(len(counts), np.bool_)
    positions = np.empty(int(counts.sum()), np.int64)
    active = np.searchsorted(-ordered, -np.arange(int(ordered[0])), side="left")
    for step, width in enumerate(active.tolist()):
        at = cursor[:width]
        positions[first_slot[:width] + step] = at
        sizes, after, too_long = read_varints(words, at)
        after += sizes
        bad = (sizes < 0) | (after > ends[:width])
        if too_long is not None:
            bad |= too_long
        if bad.any():
            wrong[:width] |= bad
            after = np.where(bad, ends[:width], after)
        cursor[:width] = after
    wrong |= (cursor != ends) & (ordered > 0)
    unordered = np.empty_like(wrong)
    unordered[order] = wrong
    return positions, unordered


def _one_by_one(bodies: Bodies, counts: Int64s) -> tuple[Int64s, Bools]:
    """Each batch in a plain loop."""
    positions: list[int] = []
    wrong = np.zeros(len(counts), np.bool_)
    places = zip(bodies.starts.tolist(), bodies.ends.tolist(), counts.tolist(), strict=True)
    for index, (start, end, count) in enumerate(places):
        before = len(positions)
        if count and not _follow(bodies.data, start, end, count, positions):
            wrong[index] = True
            del positions[before:]
            positions += [start] * count  # dropped by the caller; keeps the slots in order
    return np.array(positions, np.int64), wrong


def _follow(data: bytes, position: int, end: int, count: int, positions: list[int]) -> bool:
    """Append the starts of one batch's records; False where the chain breaks."""
    append = positions.append
    for _ in range(count):
        if position >= end:
            return False
        append(position)
        size = data[position]
        if size < 0x80:
            position += 1
        elif (second := data[position + 1]) < 0x80:
            size = size & 0x7F | second << 7
            position += 2
        else:
            try:
                length, position = read_varint(data, position)
            except (IndexError, ValueError):
                return False
            size = length << 1 if length >= 0 else 1
        if size & 1:
            return False
        position += size >> 1
    return position == end

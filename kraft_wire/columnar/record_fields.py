"""The fields of many records at once, given where each begins (KIP-98).

Every record is measured to its end: the fields must fill exactly the size that the record declares.
Unusual records are not judged here: their batch is marked, and `wire.record`, whose verdict counts,
reads it again. These are overlong varints, records with very many headers, and records whose sizes
do not add up.
"""

from typing import Final, NamedTuple

import numpy as np

from kraft_wire.columnar.arrays import Bools, Int64s
from kraft_wire.columnar.record_starts import Bodies, RecordStarts
from kraft_wire.columnar.varints import WORD_BYTES_MAX, Varints, read_varints

__all__ = ["HeaderFields", "RecordFields", "read_record_fields"]

_HEADERS_MAX: Final = 64
"""Records with more headers are rare enough for the plain reader."""


class HeaderFields(NamedTuple):
    """All headers of all records, in order."""

    counts: Int64s
    """Headers of each record."""
    key_starts: Int64s
    key_sizes: Int64s
    value_starts: Int64s
    value_sizes: Int64s
    """Negative for null."""


class RecordFields(NamedTuple):
    """One element a record; positions are in the buffer of the bodies."""

    owners: Int64s
    timestamp_deltas: Int64s
    offset_deltas: Int64s
    key_starts: Int64s
    key_sizes: Int64s
    """Negative for null."""
    value_starts: Int64s
    value_sizes: Int64s
    headers: HeaderFields
    odd: Bools
    """One flag a body: whether the plain reader must decide; its records are left out."""


class _Reader:
    """A position in each of many records, and which of them are odd."""

    def __init__(self, bodies: Bodies, positions: Int64s) -> None:
        self.words = bodies.words
        self.position = positions
        self.odd = np.zeros(len(positions), np.bool_)

    def varint(self) -> Int64s:
        """Read a 32-bit number everywhere."""
        return self._took(read_varints(self.words, self.position))

    def varlong(self) -> Int64s:
        """Read a 64-bit number everywhere; those of nine and ten bytes are odd."""
        return self._took(read_varints(self.words, self.position, WORD_BYTES_MAX))

    def blob(self) -> tuple[Int64s, Int64s]:
        """Read sizes, and pass over as many bytes; return where the bytes begin, and the sizes."""
        sizes = self.varint()
        starts = self.position
        self.position = starts + np.maximum(sizes, 0)
        return starts, sizes

    def _took(self, found: Varints) -> Int64s:
        if found.too_long is not None:
            self.odd |= found.too_long
        self.position = found.ends
        return found.values


def read_record_fields(bodies: Bodies, starts: RecordStarts) -> RecordFields:
    """Read all records whose chain is whole."""
    reader = _Reader(bodies, starts.positions)
    sizes = reader.varint()
    ends = reader.position + sizes
    reader.position = reader.position + 1  # the attributes, of which none are defined
    timestamp_deltas = reader.varlong()
    offset_deltas = reader.varint()
    key_starts, key_sizes = reader.blob()
    value_starts, value_sizes = reader.blob()
    header_counts = reader.varint()
    headers = _read_headers(bodies, reader, header_counts, ends)
    reader.odd |= reader.position != ends
    fields = RecordFields(
        starts.owners,
        timestamp_deltas,
        offset_deltas,
        key_starts,
        key_sizes,
        value_starts,
        value_sizes,
        headers,
        starts.broken,
    )
    return _without_odd(fields, reader.odd) if reader.odd.any() else fields


def _read_headers(bodies: Bodies, reader: _Reader, counts: Int64s, ends: Int64s) -> HeaderFields:
    """Read header i of all records that have as many in step i; moves the reader behind them."""
    wrong = (counts < 0) | (counts > _HEADERS_MAX) | (reader.position > ends)
    reader.odd |= wrong
    counts = np.where(wrong, 0, counts)
    total = int(counts.sum())
    found = HeaderFields(counts, *(np.zeros(total, np.int64) for _ in range(4)))
    first_slot = np.cumsum(counts) - counts
    having = np.flatnonzero(counts)
    step = 0
    while len(having):
        part = _Reader(bodies, reader.position[having])
        slots = first_slot[having] + step
        found.key_starts[slots], found.key_sizes[slots] = part.blob()
        part.odd |= found.key_sizes[slots] < 0
        found.value_starts[slots], found.value_sizes[slots] = part.blob()
        reader.position[having] = part.position
        reader.odd[having] |= part.odd
        step += 1
        having = having[counts[having] > step]
    return found


def _without_odd(fields: RecordFields, odd_records: Bools) -> RecordFields:
    """Leave out all records of a batch that has an odd one."""
    odd = fields.odd.copy()
    odd[fields.owners[odd_records]] = True
    kept = ~odd[fields.owners]
    kept_headers = np.repeat(kept, fields.headers.counts)
    counts, *header_columns = fields.headers
    headers = HeaderFields(counts[kept], *(column[kept_headers] for column in header_columns))
    return RecordFields(
        fields.owners[kept],
        fields.timestamp_deltas[kept],
        fields.offset_deltas[kept],
        fields.key_starts[kept],
        fields.key_sizes[kept],
        fields.value_starts[kept],
        fields.value_sizes[kept],
        headers,
        odd,
    )

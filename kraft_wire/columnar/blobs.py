"""Keys, values and headers as Arrow arrays, cut out of a buffer without a loop over bytes.

The buffer itself becomes a binary array whose elements alternate: first field, gap, second field,
gap, first field of the next record. Taking every second element copies each field once, natively.
Header keys that are not UTF-8 are decoded as Java decodes them, one by one.
"""

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.arrays import Int64s
from kraft_wire.columnar.record_fields import HeaderFields
from kraft_wire.columnar.schemas import HEADERS_TYPE
from kraft_wire.wire.varint import text_from_utf8

__all__ = ["FieldPairs", "headers_array", "texts"]

_ELEMENTS_PER_PAIR = 4
_HEADER_TYPE = HEADERS_TYPE.value_type


class FieldPairs:
    """Two fields each of many records, in the order in which they are in the buffer.

    Sizes below zero mean null.
    """

    def __init__(
        self,
        data: bytes,
        first_starts: Int64s,
        first_sizes: Int64s,
        second_starts: Int64s,
        second_sizes: Int64s,
    ) -> None:
        assert len(data) < 1 << 31, "Arrow's binary type has 32-bit offsets"
        edges = np.empty((len(first_starts), _ELEMENTS_PER_PAIR), np.int32)
        edges[:, 0] = first_starts
        edges[:, 1] = first_starts + np.maximum(first_sizes, 0)
        edges[:, 2] = second_starts
        edges[:, 3] = second_starts + np.maximum(second_sizes, 0)
        buffers = [None, pa.py_buffer(edges), pa.py_buffer(data)]
        length = max(edges.size - 1, 0)
        self._alternating = pa.BinaryArray.from_buffers(pa.binary(), length, buffers)
        self._sizes = (first_sizes, second_sizes)

    def first(self) -> pa.Array:
        """Return the first field of every record, for example the keys."""
        return self._taken(0)

    def second(self) -> pa.Array:
        """Return the second field of every record, for example the values."""
        return self._taken(1)

    def _taken(self, which: int) -> pa.Array:
        sizes = self._sizes[which]
        places = np.arange(len(sizes)) * _ELEMENTS_PER_PAIR + 2 * which
        return self._alternating.take(pa.array(places, mask=sizes < 0))


def headers_array(data: bytes, headers: HeaderFields) -> pa.Array:
    """Return a list of (key, value) a record; null where a record has no headers."""
    pairs = FieldPairs(
        data, headers.key_starts, headers.key_sizes, headers.value_starts, headers.value_sizes
    )
    children = [texts(pairs.first()), pairs.second()]
    elements = pa.StructArray.from_arrays(children, fields=list(_HEADER_TYPE))
    offsets = np.zeros(len(headers.counts) + 1, np.int32)
    np.cumsum(headers.counts, out=offsets[1:])
    none = pa.array(headers.counts == 0)
    return pa.ListArray.from_arrays(pa.array(offsets), elements, type=HEADERS_TYPE, mask=none)


def texts(keys: pa.Array) -> pa.Array:
    """Return header keys as strings."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([text_from_utf8(key) for key in keys.to_pylist()], pa.string())

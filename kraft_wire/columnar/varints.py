"""Zig-zag varints (KIP-98), one at each of many positions at once.

A varint of up to eight bytes is taken out of one 64-bit load: the lowest clear continuation bit
ends it, and three shifts squeeze its groups of seven bits together. The caller leaves longer ones
to `wire.varint`: no known writer makes them, but a log may hold them.
"""

from typing import Final, NamedTuple

import numpy as np

from kraft_wire.columnar.arrays import Bools, Int64s, Words

__all__ = ["VARINT_BYTES_MAX", "WORD_BYTES_MAX", "Varints", "read_varints"]

VARINT_BYTES_MAX: Final = 5
WORD_BYTES_MAX: Final = 8
"""The bytes of one load; a varlong may have ten bytes."""

_ONE: Final = np.uint64(1)
_CONTINUES: Final = np.uint64(0x8080808080808080)
_SEVEN: Final = np.uint64(7)
_FIFTEEN: Final = np.uint64(15)
_LOW_SEVEN: Final = np.uint64(0x7F)
_SECOND_SEVEN: Final = np.uint64(0x3F80)
_INT32_MASK: Final = np.uint64(0xFFFFFFFF)
_SQUEEZES: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


class Varints(NamedTuple):
    """Values, the positions behind them, and which are longer than was allowed."""

    values: Int64s
    ends: Int64s
    too_long: Bools | None
    """None without such places; the values at these places have no meaning."""


def read_varints(words: Words, positions: Int64s, bytes_max: int = VARINT_BYTES_MAX) -> Varints:
    """Read one varint of at most `bytes_max` bytes at each position.

    Positions beyond the last word read that one: a caller that bounds what it uses by the end of a
    body never looks at such a value. With five bytes, bits above the 32nd are dropped, as Apache
    drops them.
    """
    loaded = words[np.minimum(positions, len(words) - 1)]
    continues = loaded >> _SEVEN & _ONE
    if not continues.any():
        return Varints(_unzigzag(loaded & _LOW_SEVEN), positions + 1, None)
    if not (loaded >> _FIFTEEN & continues).any():
        raw = loaded & _LOW_SEVEN | (loaded >> _ONE & _SECOND_SEVEN) * continues
        return Varints(_unzigzag(raw), positions + 1 + continues.view(np.int64), None)
    return _read_long_varints(loaded, positions, bytes_max)


def _read_long_varints(loaded: Words, positions: Int64s, bytes_max: int) -> Varints:
    """Take varints of any length out of the words that begin with them."""
    stops = ~loaded & _CONTINUES
    kept = stops ^ (stops - _ONE)  # everything up to and with the lowest stop; all for none
    lengths = (np.bitwise_count(kept) >> np.uint8(3)).astype(np.int64)
    longest = int(lengths.max(initial=1))
    too_long = None
    if longest > bytes_max or longest == WORD_BYTES_MAX:
        too_long = (lengths > bytes_max) | (stops == 0)
    raw = loaded & kept & ~_CONTINUES
    for low, high, shift in _SQUEEZES:
        raw = raw & low | (raw & high) >> shift
    if bytes_max == VARINT_BYTES_MAX:
        raw &= _INT32_MASK
    return Varints(_unzigzag(raw), positions + lengths, too_long)


def _unzigzag(raw: Words) -> Int64s:
    signs = (raw & _ONE).view(np.int64)
    return (raw >> _ONE).view(np.int64) ^ -signs

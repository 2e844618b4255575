"""Columns of varints hold what one after the other holds, whatever their lengths."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kraft_wire.columnar.varints import VARINT_BYTES_MAX, WORD_BYTES_MAX, read_varints


def written(value: int) -> bytes:
    """Return a zigzag varint, by the rule of the protocol buffers."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while raw > 127:
        found.append(raw & 127 | 128)
        raw >>= 7
    return bytes([*found, raw])


def drawn(chance: random.Random, bytes_long: int) -> int:
    """Return a value whose varint has this length, often the least or the greatest of them."""
    low, high = (1 << 7 * (bytes_long - 1)) >> 1, (1 << 7 * bytes_long - 1) - 1
    if bytes_long == VARINT_BYTES_MAX:
        high = (1 << 31) - 1
    size = chance.choice((low, high, chance.randint(low, high)))
    value = chance.choice((size, -size - 1))
    assert len(written(value)) == bytes_long, value
    return value


@pytest.mark.parametrize("longest", range(1, 9))
@pytest.mark.parametrize("bytes_max", [VARINT_BYTES_MAX, WORD_BYTES_MAX - 1, WORD_BYTES_MAX])
def test_varints_of_every_length_are_read_at_once(longest: int, bytes_max: int) -> None:
    chance = random.Random(longest)
    for lengths in ([longest] * 20, [1, longest], [chance.randint(1, longest) for _ in range(50)]):
        values = [drawn(chance, each) for each in lengths]
        data = b"".join(map(written, values)) + bytes(8)
        words = np.array(
            [int.from_bytes(data[at : at + 8], "little") for at in range(len(data) - 7)], np.uint64
        )
        starts = np.cumsum([0, *lengths[:-1]])
        found = read_varints(words, starts, bytes_max)
        too_long = found.too_long if found.too_long is not None else np.zeros(len(values), bool)
        allowed = min(bytes_max, WORD_BYTES_MAX)
        assert too_long.tolist() == [each > allowed for each in lengths]
        assert found.ends[~too_long].tolist() == (starts + lengths)[~too_long].tolist()
        expected = np.array(values)[~too_long]
        assert found.values[~too_long].tolist() == expected.tolist()

"""Batches of thousands of records, whose chains are divided at guesses: no guess decides."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from kraft_wire.columnar import chain_cuts, record_starts
from kraft_wire.columnar.arrays import PADDING_BYTES, as_bytes, words_of
from kraft_wire.columnar.record_starts import Bodies, find_record_starts
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import HEADER_BYTES
from tests.columnar.by_wire import assert_read_alike

BATCHES = 12
RECORDS = 2000
SEED = 11

Values = Callable[[random.Random, int], bytes | None]


def text(random_source: random.Random, number: int) -> bytes | None:
    """A value as most are, null now and then."""
    return None if number % 50 == 0 else b"x" * random_source.randrange(20, 200)


def zeros(random_source: random.Random, number: int) -> bytes | None:
    """Nothing but bytes that attributes have."""
    return bytes(random_source.randrange(10, 90))


def other_records(random_source: random.Random, number: int) -> bytes | None:
    """The body of another batch: every place in it looks like a record, with deltas that follow."""
    first = random_source.randrange(1, 1500)
    records = [Record(b"k", b"v" * 9, offset, 5) for offset in range(first, first + 8)]
    return bytes(build_batch([Record(None, None, 0, 5), *records], base_offset=0))[HEADER_BYTES:]


def body_of(values: Values, random_source: random.Random, gap: int, codec: Compression) -> bytes:
    """One batch; with a gap above 1 as compaction leaves it."""
    records = [
        Record(b"key-%d" % number, values(random_source, number), 7 + number * gap, 1_000 + number)
        for number in range(RECORDS)
    ]
    return bytes(build_batch(records, base_offset=7, compression=codec))


@pytest.mark.parametrize("values", [text, zeros, other_records])
@pytest.mark.parametrize("gap", [1, 3])
def test_records_are_those_of_the_straight_decoder(values: Values, gap: int) -> None:
    random_source = random.Random(SEED)
    codecs = [Compression.NONE, Compression.LZ4]
    batches = [body_of(values, random_source, gap, codecs[n % 2]) for n in range(BATCHES)]
    assert_read_alike(b"".join(batches))


def bodies_of(parts: list[bytes]) -> Bodies:
    """The bodies of batches in one buffer."""
    contents = [part[HEADER_BYTES:] for part in parts]
    data = b"".join(contents) + bytes(PADDING_BYTES)
    ends = np.cumsum([len(content) for content in contents], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    counts = np.full(len(parts), RECORDS, np.int64)
    return Bodies(data, words_of(data), starts, ends, counts)


def test_usual_batches_are_cut_where_records_begin() -> None:
    random_source = random.Random(SEED)
    parts = [body_of(text, random_source, 1, Compression.NONE) for _ in range(BATCHES)]
    bodies = bodies_of(parts)
    pieces = np.full(BATCHES, 30, np.int64)
    cuts = chain_cuts.guess_cuts(
        as_bytes(bodies.data), bodies.words, bodies.starts, bodies.ends, bodies.counts, pieces
    )
    assert len(cuts.positions) > 0.9 * 29 * BATCHES
    found = find_record_starts(bodies)
    assert not found.broken.any()
    assert np.isin(cuts.positions, found.positions).all()


def test_broken_chain_is_told_from_a_wrong_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    random_source = random.Random(SEED)
    parts = [body_of(text, random_source, 1, Compression.NONE) for _ in range(BATCHES)]
    broken = bytearray(parts[3])
    broken[len(broken) // 2] ^= 0xFF
    parts[3] = bytes(broken)
    parts[5] = parts[5][:-4]
    bodies = bodies_of(parts)
    divided = find_record_starts(bodies)
    monkeypatch.setattr(record_starts, "_DIVIDED_RECORDS_MIN", 1 << 60)
    plain = find_record_starts(bodies)
    assert np.array_equal(divided.broken, plain.broken)
    assert divided.broken[5]
    assert np.array_equal(divided.positions, plain.positions)
    assert np.array_equal(divided.owners, plain.owners)


@pytest.mark.parametrize("size", [b"\xfe\x7e", b"\xfe\xff\xff\xff\x07"], ids=["8127", "1 GiB"])
def test_chain_that_leaps_out_of_everything_is_broken(size: bytes) -> None:
    """The record that it begins ends far behind the buffer, and another one is to follow."""
    content = size + bytes(30)
    data = content + bytes(PADDING_BYTES)
    starts, ends = np.zeros(1, np.int64), np.full(1, len(content), np.int64)
    bodies = Bodies(data, words_of(data), starts, ends, np.full(1, 2, np.int64))
    found = find_record_starts(bodies)
    assert found.broken.tolist() == [True]
    assert found.positions.size == 0

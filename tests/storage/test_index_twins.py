"""Indexes against `LogSegment.append` written down plainly, and against themselves made otherwise.

However a segment came to its batches (appended, cut, opened again, rebuilt from the log alone), its
index files and its times are the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.segment import Segment, file_name
from tests.storage.making import batch_bytes, parsed

BASE = Offset(1000)
STEM = f"d/{file_name(BASE, '')}"


@dataclass(frozen=True)
class Wanted:
    """One batch: how many records and bytes it has, and the time of its first record."""

    count: int
    size: int
    timestamp: int


@dataclass(frozen=True)
class State:
    """What indexes hold."""

    index: bytes
    time_index: bytes
    max_timestamp: int
    first_timestamp: int


def made(wanted: list[Wanted]) -> list[bytes]:
    """The batches, one after the other from the base offset on."""
    found, offset = [], int(BASE)
    for each in wanted:
        found.append(
            batch_bytes(offset, count=each.count, size=each.size, timestamp=each.timestamp)
        )
        offset += each.count
    return found


def twin(batches: list[bytes], interval_bytes: int) -> State:
    """`LogSegment.append`, batch by batch, with nothing kept but what it names."""
    index, time_index = b"", b""
    largest, largest_at, since, position = -1, 0, 0, 0
    entered = -1
    for data in batches:
        batch = parsed(data)
        last = batch.last_offset - BASE
        if batch.max_timestamp > largest:
            largest, largest_at = batch.max_timestamp, last
        if since > interval_bytes:
            index += struct.pack(">ii", last, position)
            if largest > entered:
                time_index += struct.pack(">qi", largest, largest_at)
                entered = largest
            since = 0
        since += len(data)
        position += len(data)
    first = parsed(batches[0]).max_timestamp if batches else -1
    return State(index, time_index, largest, first)


class Filled:
    """A segment on a disk of its own."""

    def __init__(self, interval_bytes: int) -> None:
        self.fs = SimFileSystem()
        self.fs.make_directory("d")
        self.config = LogConfig(index_interval_bytes=interval_bytes)
        self.segment = Segment.create(self.fs, "d", BASE, self.config, 1)

    def append(self, batches: list[bytes]) -> None:
        for data in batches:
            self.segment.append(data, [parsed(data)])

    def state(self) -> State:
        self.segment.indexes.save()
        indexes = self.segment.indexes
        return State(
            self.fs.read(f"{STEM}.index"),
            self.fs.read(f"{STEM}.timeindex"),
            indexes.max_timestamp,
            indexes.first_timestamp,
        )

    def reopen(self) -> None:
        self.segment.indexes.save()
        self.segment = Segment.open_existing(self.fs, "d", BASE, self.config, 1)


def assert_true(time_index: bytes, batches: list[bytes]) -> None:
    """Each entry names the first batch with the largest time so far; both grow."""
    times = {}
    for data in batches:
        batch = parsed(data)
        if batch.max_timestamp > max(times, default=-1):
            times[batch.max_timestamp] = batch.last_offset - BASE
    entries = list(struct.iter_unpack(">qi", time_index))
    assert entries == [(time, at) for time, at in times.items() if (time, at) in entries]


BATCHES = st.lists(
    st.builds(Wanted, st.integers(1, 3), st.integers(0, 60), st.integers(1, 9)), max_size=14
)
INTERVALS = st.sampled_from([0, 1, 100, 150, 1_000])


@settings(max_examples=80, deadline=None)
@given(BATCHES, INTERVALS)
def test_indexes_are_those_of_the_plain_twin(wanted: list[Wanted], interval_bytes: int) -> None:
    batches = made(wanted)
    filled = Filled(interval_bytes)
    filled.append(batches)
    assert filled.state() == twin(batches, interval_bytes)


@settings(max_examples=80, deadline=None)
@given(BATCHES, BATCHES, INTERVALS, st.sampled_from(["reopen", "rebuild", "cut"]))
def test_indexes_go_on_as_if_nothing_had_been(
    wanted: list[Wanted], more: list[Wanted], interval_bytes: int, step: str
) -> None:
    """Also the distance to the last entry is kept: the next entries are where they would be.

    A cut may leave a time that the twin has not entered yet: one that was largest before the cut,
    entered with a batch behind it. It is true all the same, as in `TimeIndex.truncateTo`.
    """
    whole = made(wanted + more)
    before, after = whole[: len(wanted)], whole[len(wanted) :]
    filled = Filled(interval_bytes)
    filled.append(before)
    if step == "cut":
        filled.append(after)
        end = sum(map(len, before))
        offset = Offset(BASE + sum(each.count for each in wanted))
        filled.segment.cut(end, offset)
    elif step == "reopen":
        filled.reopen()
    else:
        filled.segment.indexes.rebuild(filled.segment)
    for batches in (before, whole):
        if batches is whole:
            filled.append(after)
        found, plain = filled.state(), twin(batches, interval_bytes)
        assert_true(found.time_index, batches)
        if step == "cut":
            found = replace(found, time_index=plain.time_index)
        assert found == plain


@settings(max_examples=80, deadline=None)
@given(BATCHES.filter(bool), INTERVALS, st.sampled_from(["", "reopen", "rebuild"]))
def test_sealed_segment_has_its_largest_time_in_the_index(
    wanted: list[Wanted], interval_bytes: int, step: str
) -> None:
    """`LogSegment.onBecomeInactiveSegment`: so that a search by time may skip whole segments."""
    batches = made(wanted)
    filled = Filled(interval_bytes)
    filled.append(batches)
    if step == "reopen":
        filled.reopen()
    elif step == "rebuild":
        filled.segment.indexes.rebuild(filled.segment)
    filled.segment.seal()
    plain = twin(batches, interval_bytes)
    first = next(each for each in batches if parsed(each).max_timestamp == plain.max_timestamp)
    entry = struct.pack(">qi", plain.max_timestamp, parsed(first).last_offset - BASE)
    has_it = plain.time_index[-12:] == entry
    times = plain.time_index if has_it else plain.time_index + entry
    assert filled.state() == replace(plain, time_index=times)

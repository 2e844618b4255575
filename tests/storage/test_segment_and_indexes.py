"""Segments, their three indexes, and the walk over batches; layouts are Kafka's."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.indexes import (
    AbortedTransaction,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
)
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.scan import (
    BadBatch,
    batches,
    find_batch_after,
    find_frame,
    frame_here,
    frames,
)
from kraft_wire.storage.segment import CorruptLog, Segment, file_name, offset_in
from kraft_wire.storage.segment_indexes import SegmentIndexes
from tests.storage.making import batch_bytes, flip, parsed

BASE = Offset(1000)
CONFIG = LogConfig(index_interval_bytes=200)


def disk(content: bytes = b"", name: str = "f") -> SimFileSystem:
    fs = SimFileSystem()
    fs.make_directory("d")
    replace_file(fs, f"d/{name}", content)
    return fs


def filled(count: int, **settings: int) -> tuple[SimFileSystem, Segment]:
    fs = disk()
    segment = Segment.create(fs, "d", BASE, CONFIG, 1)
    for at in range(count):
        data = batch_bytes(BASE + at, **settings)  # type: ignore[arg-type]  # of a batch
        segment.append(data, [parsed(data)])
    return fs, segment


def reopened(fs: SimFileSystem) -> Segment:
    return Segment.open_existing(fs, "d", BASE, CONFIG, 1)


# -- offset index --------------------------------------------------------------------------------


def test_offset_index_writes_big_endian_pairs_and_appends_only_what_is_new() -> None:
    fs = disk()
    index = OffsetIndex("d/i", BASE)
    index.save(fs)
    index.append(Offset(1003), 0)
    index.append(Offset(1010), 4200)
    assert index.has_unsaved
    index.save(fs, sync=True)
    index.append(Offset(1020), 9000)
    index.save(fs)
    assert not index.has_unsaved
    assert fs.read("d/i") == struct.pack(">6i", 3, 0, 10, 4200, 20, 9000)
    again = OffsetIndex("d/i", BASE)
    again.load(fs, 10_000)
    assert len(again) == 3
    assert again.entry_before(Offset(1019)) == (1010, 4200)
    assert again.entry_before(Offset(1003)) == (1003, 0)
    assert again.entry_before(Offset(1002)) is None
    again.truncate_to(Offset(1010))
    again.save(fs)
    assert fs.read("d/i") == struct.pack(">2i", 3, 0)


def test_zeros_that_kafka_preallocated_are_dropped() -> None:
    fs = disk(struct.pack(">2i", 3, 0) + bytes(80), "i")
    index = OffsetIndex("d/i", BASE)
    index.load(fs, 100)
    assert len(index) == 1
    index.save(fs)
    assert len(fs.read("d/i")) == 8


@pytest.mark.parametrize(
    "content",
    [
        bytes(7),
        bytes(16),
        struct.pack(">2i", 3, 100),
        struct.pack(">2i", -1, 5),
        struct.pack(">4i", 3, 0, 3, 50),
        struct.pack(">4i", 3, 50, 4, 40),
    ],
)
def test_impossible_offset_index_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndex("d/i", BASE).load(disk(content, "i"), 100)


# -- time index ----------------------------------------------------------------------------------


def test_time_index_takes_growing_times_only() -> None:
    fs = disk()
    index = TimeIndex("d/t", BASE)
    assert index.last_entry() is None
    assert not index.maybe_append(-1, BASE)
    assert index.maybe_append(500, Offset(1003))
    assert not index.maybe_append(500, Offset(1004))
    assert index.maybe_append(700, Offset(1009))
    assert index.has_unsaved
    index.save(fs)
    assert fs.read("d/t") == struct.pack(">qiqi", 500, 3, 700, 9)
    file = fs.open("d/t")
    file.pwrite(bytes(120), file.size_bytes())
    again = TimeIndex("d/t", BASE)
    again.load(fs)
    assert (len(again), again.last_entry()) == (2, (700, 1009))
    assert again.entry_before(700) == (500, 1003)
    assert again.entry_before(500) is None


@pytest.mark.parametrize(
    "content",
    [
        bytes(11),
        struct.pack(">qi", -5, 1),
        struct.pack(">qi", 5, -1),
        struct.pack(">qiqi", 5, 1, 5, 2),
        struct.pack(">qiqi", 5, 1, 6, 1),
    ],
)
def test_impossible_time_index_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptIndex):
        TimeIndex("d/t", BASE).load(disk(content, "t"))


# -- transaction index ---------------------------------------------------------------------------


def test_transaction_index_has_34_byte_entries_and_no_file_while_empty() -> None:
    fs = disk()
    index = TransactionIndex("d/x.txnindex")
    index.save(fs)
    assert not fs.exists("d/x.txnindex")
    entry = AbortedTransaction(7, Offset(3), Offset(9), Offset(10))
    index.append(entry)
    index.save(fs, sync=True)
    assert fs.read("d/x.txnindex") == struct.pack(">hqqqq", 0, 7, 3, 9, 10)
    again = TransactionIndex("d/x.txnindex")
    again.load(fs)
    assert again.entries == [entry]
    again.truncate_to(Offset(9))
    again.save(fs)
    assert fs.read("d/x.txnindex") == b""


def test_transaction_index_writes_no_entry_twice() -> None:
    """What is durable stays so: a crash may tear what is written, and no other file has it."""
    fs = disk()
    index = TransactionIndex("d/x.txnindex")
    index.append(AbortedTransaction(7, Offset(3), Offset(9), Offset(10)))
    index.save(fs, sync=True)
    changes = fs.changes_count
    index.save(fs)
    again = TransactionIndex("d/x.txnindex")
    again.load(fs)
    again.save(fs)
    assert fs.changes_count == changes
    again.append(AbortedTransaction(8, Offset(4), Offset(11), Offset(12)))
    again.save(fs)
    assert fs.changes_count > changes
    assert len(fs.read("d/x.txnindex")) == 68


@pytest.mark.parametrize(
    "content",
    [
        bytes(33),
        struct.pack(">hqqqq", 1, 7, 3, 9, 10),
        struct.pack(">hqqqq", 0, 7, 9, 3, 10),
        struct.pack(">hqqqq", 0, 7, 3, 9, 10) * 2,
    ],
)
def test_impossible_transaction_index_is_refused_as_the_log_alone_cannot_rebuild_it(
    content: bytes,
) -> None:
    with pytest.raises(CorruptIndex):
        TransactionIndex("d/x.txnindex").load(disk(content, "x.txnindex"))
    fs, segment = filled(3)
    segment.close()
    replace_file(fs, f"d/{BASE:020d}.txnindex", content)
    with pytest.raises(CorruptLog, match="txnindex"):
        reopened(fs).indexes.aborted_transactions(BASE, BASE)


# -- walks ---------------------------------------------------------------------------------------


def test_walks_cross_chunks_and_agree() -> None:
    sizes = [10, 70_000, 5, 2_000_000, 30, 4000, 100]
    data = b"".join(batch_bytes(at, size=size) for at, size in enumerate(sizes))
    file = disk(data).open("d/f")
    headers = list(frames(file, 0, len(data)))
    whole = list(batches(file, 0, len(data)))
    assert [frame.position for frame in headers] == [position for position, _ in whole]
    assert [frame.base_offset for frame in headers] == list(range(len(sizes)))
    for offset, frame in enumerate(headers):
        assert find_frame(file, 0, len(data), Offset(offset)) == frame
    assert find_frame(file, 0, len(data), Offset(7)) is None


def test_walk_says_where_and_why_it_ends() -> None:
    data = batch_bytes(0) + batch_bytes(1)
    at = len(batch_bytes(0))
    legacy = struct.pack(">qiIbb", 5, 14, 0, 1, 0) + bytes(8)
    cases = {
        data[:-1]: "beyond the end",
        data[: at + 20]: "not a header",
        data[:at] + struct.pack(">qi", 1, 20) + data[at + 12 :]: "shorter than a header",
        data[:at] + data[at : at + 16] + b"\3" + data[at + 17 :]: "magic 3",
        data[:at] + data[at : at + 23] + b"\xff" + data[at + 24 :]: "last offset delta -",
    }
    for content, reason in cases.items():
        file = disk(content).open("d/f")
        for walk in (frames, batches):
            with pytest.raises(BadBatch, match=reason) as bad:
                list(walk(file, 0, len(content)))
            assert bad.value.position == at
        with pytest.raises(BadBatch, match="within a header" if "no" in reason else reason):
            find_frame(file, 0, len(content), Offset(9))
    content = data[:at] + b"\xff" * 8 + data[at + 8 :]
    for walk in (frames, batches):  # `find_frame` looks at the base offset of its result alone
        with pytest.raises(BadBatch, match="base offset -1") as bad:
            list(walk(disk(content).open("d/f"), 0, len(content)))
        assert bad.value.position == at
    file = disk(legacy + data).open("d/f")
    assert [frame.last_offset for frame in frames(file, 0, len(legacy + data))] == [5, 0, 1]
    assert find_frame(file, 0, len(legacy), Offset(5)) is not None
    following = struct.pack(">q", 6) + legacy[8:]
    content = legacy + following + batch_bytes(7)
    found = find_frame(disk(content).open("d/f"), 0, len(content), Offset(6))
    assert found is not None
    assert (found.position, found.base_offset) == (len(legacy), 6)
    with pytest.raises(BadBatch, match="magic"):
        list(batches(file, 0, len(legacy + data)))


def test_file_that_became_shorter_is_noticed() -> None:
    data = batch_bytes(0)
    file = disk(data).open("d/f")
    for walk in (frames, batches):
        with pytest.raises(BadBatch):
            list(walk(file, 0, len(data) + 200))
    with pytest.raises(BadBatch):
        find_frame(file, 0, len(data) + 200, Offset(9))
    with pytest.raises(BadBatch, match="within a header"):
        find_frame(disk(data[:20]).open("d/f"), 0, len(data), Offset(9))
    with pytest.raises(BadBatch, match="within a header"):
        frame_here(disk(data[:20]).open("d/f"), 0, len(data))
    lying = data[:8] + struct.pack(">i", 5000) + data[12:]
    with pytest.raises(BadBatch, match="reaches beyond"):
        find_frame(disk(lying).open("d/f"), 0, len(lying), Offset(9))
    spoilt = data[:-1] + bytes([data[-1] ^ 1])
    assert find_batch_after(disk(spoilt).open("d/f"), 0, len(data), 0) == -1
    assert find_batch_after(file, 0, len(data) + 99, 5) == -1
    assert find_batch_after(file, len(data), len(data) + 99, 5) == -1


@given(st.binary(max_size=300), st.integers(0, 3))
def test_valid_batch_is_found_behind_any_bytes(noise: bytes, base: int) -> None:
    data = noise + batch_bytes(7) + noise
    file = disk(data).open("d/f")
    assert find_batch_after(file, 0, len(data), base) == len(noise)
    assert find_batch_after(file, 0, len(data), 8) == -1


def test_valid_batch_is_found_across_windows() -> None:
    for gap in range((1 << 20) - 70, (1 << 20) + 10, 9):
        data = bytes(gap) + batch_bytes(7)
        file = disk(data).open("d/f")
        assert find_batch_after(file, 0, len(data), 0) == gap


# -- segments ------------------------------------------------------------------------------------


def test_index_entries_name_the_last_offset_and_the_position_of_a_batch() -> None:
    """As Kafka's index sanity check wants it: one entry per interval, none at position 0."""
    fs, segment = filled(12)
    segment.seal()
    entries = list(struct.iter_unpack(">ii", fs.read(f"d/{BASE:020d}.index")))
    assert len(entries) > 2
    for relative, position in entries:
        _, batch = next(segment.batches_from(position))
        assert batch.last_offset == BASE + relative
        assert position > 0
    last = struct.unpack(">qi", fs.read(f"d/{BASE:020d}.timeindex")[-12:])
    assert last == (1000 + BASE + 11, 11)


def test_lying_index_is_rebuilt_when_it_is_hit() -> None:
    for position in range(8):
        fs, segment = filled(30)
        segment.close()
        flip(fs, f"d/{BASE:020d}.index", 8 + position, 2)
        again = reopened(fs)
        for offset in range(30):
            frame = again.locate(Offset(BASE + offset))
            assert frame is not None
            assert frame.base_offset == BASE + offset


def test_index_that_points_into_a_batch_is_rebuilt() -> None:
    fs, segment = filled(30)
    segment.close()
    path = f"d/{BASE:020d}.index"
    good = fs.read(path)
    relative, position = struct.unpack_from(">ii", good)
    fs.open(path).pwrite(struct.pack(">ii", relative, position + 1), 0)
    again = reopened(fs)
    assert again.locate(Offset(BASE + relative)) is not None
    assert fs.read(path) == good


def test_lying_time_index_is_rebuilt_when_it_is_hit() -> None:
    for shift in (0, 8):
        fs, segment = filled(30)
        segment.close()
        flip(fs, f"d/{BASE:020d}.timeindex", 12 + shift + (7 if shift == 0 else 3), 1)
        again = reopened(fs)
        for offset in range(30):
            position = again.indexes.position_before_timestamp(again, 1000 + BASE + offset)
            _, batch = next(again.batches_from(position))
            assert batch.base_offset <= BASE + offset


def test_newest_time_is_checked_against_the_log() -> None:
    fs, segment = filled(30)
    segment.close()
    path = f"d/{BASE:020d}.timeindex"
    good = fs.read(path)
    for entry in (struct.pack(">qi", 1 << 60, 29), struct.pack(">qi", 1 << 60, 1 << 20)):
        fs.open(path).pwrite(entry, len(good) - 12)
        assert reopened(fs).indexes.max_timestamp == 1000 + BASE + 29


def test_damaged_log_is_refused_wherever_it_is_walked() -> None:
    fs, segment = filled(30)
    segment.close()
    segment.close()
    path = f"d/{BASE:020d}.log"
    size = len(batch_bytes(BASE))
    fs.open(path).pwrite(bytes(size), 29 * size)
    for call in (
        lambda again: again.locate(Offset(BASE + 29)),
        lambda again: again.last_frame(),
        lambda again: list(again.batches_from(0)),
    ):
        with pytest.raises(CorruptLog, match=f"verify {path}: position {29 * size}"):
            call(reopened(fs))


def test_damage_that_comes_later_is_noticed_by_the_next_walk() -> None:
    fs, segment = filled(2)
    fs.open(f"d/{BASE:020d}.log").pwrite(bytes(30), len(batch_bytes(BASE)))
    with pytest.raises(CorruptLog):
        segment.last_frame()


def test_removal_leaves_readers_alone() -> None:
    fs, segment = filled(3)
    file = segment.file
    segment.remove()
    assert fs.names("d") == ["f"]
    assert file.pread(8, 0) == struct.pack(">q", BASE)


def test_preallocated_segment_is_trimmed_when_sealed() -> None:
    fs = disk()
    segment = Segment.create(fs, "d", BASE, LogConfig(preallocate=True, segment_bytes=900), 1)
    data = batch_bytes(BASE)
    segment.append(data, [parsed(data)])
    assert len(fs.read(segment.path)) == 900
    segment.seal()
    assert len(fs.read(segment.path)) == len(data)


@pytest.mark.parametrize("count", [1, 5, 400])
def test_what_was_just_appended_is_found_as_it_lies_in_the_file(count: int) -> None:
    """The segment remembers the frames of recent appends; a walk over the file judges them."""
    fs = disk()
    segment = Segment.create(fs, "d", BASE, LogConfig(), 1)
    for at in range(count):
        data = batch_bytes(BASE + 2 * at, count=2, size=3, epoch=at % 7)
        segment.append(data, [parsed(data)])
    whole = fs.read(segment.path)
    found = list(frames(fs.open(segment.path), 0, len(whole)))
    assert [frame.leader_epoch for frame in found] == [at % 7 for at in range(count)]
    assert [segment.locate(frame.base_offset) for frame in found] == found
    assert [segment.locate(frame.last_offset) for frame in found] == found


def test_segment_that_was_never_read_is_closed_without_touching_its_files() -> None:
    fs, segment = filled(3)
    segment.close()
    before = fs.changes_count
    again = reopened(fs)
    again.close()
    again.close()
    assert fs.changes_count == before


def test_only_the_newest_batches_are_remembered_by_position() -> None:
    _, segment = filled(80)
    for offset in range(80):
        frame = segment.locate(Offset(BASE + offset))
        assert frame is not None
        assert frame.base_offset == BASE + offset


def test_readers_at_one_offset_share_one_look_and_few_are_remembered() -> None:
    fs, segment = filled(80)
    segment.close()
    again = reopened(fs)
    found = again.locate(Offset(BASE + 30))
    assert again.locate(Offset(BASE + 30)) is found
    for offset in range(30):
        again.locate(Offset(BASE + offset))
    once_more = again.locate(Offset(BASE + 30))
    assert once_more == found
    assert once_more is not found


def test_what_readers_found_is_forgotten_when_it_is_cut_off() -> None:
    fs, segment = filled(30)
    segment.close()
    again = reopened(fs)
    found = again.locate(Offset(BASE + 20))
    assert found is not None
    again.cut(found.position, Offset(BASE + 20))
    assert again.locate(Offset(BASE + 20)) is None


def test_time_entry_before_the_newest_is_checked_when_it_is_hit() -> None:
    fs, segment = filled(30)
    segment.close()
    path = f"d/{BASE:020d}.timeindex"
    good = fs.read(path)
    timestamp, relative = struct.unpack_from(">qi", good, 12)
    for entry in ((timestamp - 1, relative), (timestamp, relative + 1), (timestamp - 1, 1 + 0)):
        fs.open(path).pwrite(good, 0)
        fs.open(path).pwrite(struct.pack(">qi", *entry), 12)
        again = reopened(fs)
        position = again.indexes.position_before_timestamp(again, timestamp)
        _, batch = next(again.batches_from(position))
        assert batch.max_timestamp <= timestamp
    fs.open(path).pwrite(good, 0)
    assert fs.read(path) == good


def test_index_entry_beyond_the_log_is_no_hit() -> None:
    _, segment = filled(30)
    segment.indexes.offsets.append(Offset(BASE + 40), segment.size_bytes + 5)
    assert segment.last_frame() is not None


# -- settings ------------------------------------------------------------------------------------


def test_settings_are_parsed_by_the_type_of_their_default() -> None:
    config = LogConfig.from_mapping(
        {
            "cleanup.policy": "compact, delete",
            "preallocate": "TRUE",
            "min.cleanable.dirty.ratio": "0.25",
            "retention.ms": " -1 ",
            "compression.type": "zstd",
            "flush.messages": "1",
        }
    )
    assert (config.is_compacted, config.is_deleted, config.preallocate) == (True, True, True)
    assert (config.min_cleanable_dirty_ratio, config.retention_ms) == (0.25, -1)
    assert (config.compression_type, config.flushes_every_append) == ("zstd", True)
    assert not LogConfig().is_compacted


@pytest.mark.parametrize(("key", "text"), [("segment.bytes", "x"), ("preallocate", "yes")])
def test_setting_that_is_no_value_of_its_type_is_named(key: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"{key}: '{text}'"):
        LogConfig.from_mapping({key: text})


# -- names and room ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        (f"{'0' * 20}.log", 0),
        (f"{'0' * 17}123.log", 123),
        ("123.log", None),
        (f"{'0' * 21}.log", None),
        (f"{'0' * 19}x.log", None),
        (f"-{'0' * 19}.log", None),
        (f"{'²' * 20}.log", None),
        ("0" * 20, None),
        (f"{'0' * 20}.log.swap", None),
        (f"{'0' * 20}.index", None),
    ],
)
def test_only_names_of_20_digits_have_an_offset(name: str, offset: int | None) -> None:
    assert offset_in(name, ".log") == offset


@given(st.integers(0, (1 << 63) - 1), st.sampled_from([".log", ".index", ".snapshot"]))
def test_name_has_the_offset_that_it_was_made_of(offset: int, suffix: str) -> None:
    assert offset_in(file_name(offset, suffix), suffix) == offset


@pytest.mark.parametrize(
    ("written", "more_bytes", "has_room"),
    [(0, 200, True), (0, 201, True), (150, 50, True), (150, 51, False)],
)
def test_batch_that_is_larger_than_a_segment_gets_an_empty_one(
    written: int, more_bytes: int, has_room: bool
) -> None:
    """`LogSegment.shouldRoll` rolls for the size only a segment that has records."""
    segment = Segment.create(disk(), "d", BASE, CONFIG, 1)
    segment.size_bytes = written
    config = LogConfig(segment_bytes=200)
    assert segment.has_room_for(more_bytes, BASE, config) == has_room


@pytest.mark.parametrize(("last", "has_room"), [(BASE + 2**31 - 1, True), (BASE + 2**31, False)])
def test_offsets_of_a_segment_fit_into_its_index(last: int, has_room: bool) -> None:
    """`LogSegment.canConvertToRelativeOffset`."""
    segment = Segment.create(disk(), "d", BASE, CONFIG, 1)
    assert segment.has_room_for(1, last, CONFIG) == has_room


def test_cleared_indexes_are_as_new_ones() -> None:
    fs, segment = filled(6, timestamp=900)
    indexes = segment.indexes
    assert indexes.max_timestamp == indexes.first_timestamp == 900
    assert len(indexes.offsets) > 0
    indexes.clear()
    new = SegmentIndexes(fs, "d/new", "", BASE)
    for name in ("max_timestamp", "first_timestamp", "_offset_of_max_timestamp"):
        assert getattr(indexes, name) == getattr(new, name), name
    assert indexes._bytes_since_entry == new._bytes_since_entry == 0
    assert len(indexes.offsets) == 0

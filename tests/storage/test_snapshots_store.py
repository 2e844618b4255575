"""The snapshots of a metadata log: written, fetched, served, installed, and found at a start."""

from collections.abc import Callable
from random import Random

import pytest

from kraft_wire.model import DiskFull, FileSlice, LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.sim.crash.states import CrashState, Enumerator, Limits
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION, LogDirectory
from kraft_wire.storage.files import MissingFile, replace_file
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.storage.snapshots.metadata_snapshot import (
    CorruptMetadataSnapshot,
    SnapshotWriter,
    snapshot_name,
)
from kraft_wire.storage.snapshots.store import FORMATTED_ID, MetadataSnapshots, open_snapshots
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.voters_record import Voter, VotersRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_key
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.storage.making import take_snapshot

from .making import append, batch_bytes, contents, flip

D = f"disk/{METADATA_PARTITION}"
CONFIG = LogConfig(segment_bytes=1400, retention_ms=-1, retention_bytes=-1)
VOTERS = (
    KRaftVersionRecord(kraft_version=1),
    VotersRecord(voters=[Voter(voter_id=1, voter_directory_id=bytes(range(16)))]),
)
HEAD = SnapshotHead(last_contained_timestamp_ms=77, wall_ms=900, control_records=VOTERS)


def at(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))


def file_bytes(snapshot_id: OffsetAndEpoch, values: list[bytes]) -> bytes:
    return b"".join(bytes(batch) for batch in snapshot_batches(snapshot_id, HEAD, values))


def metadata_log(fs: SimFileSystem, *epochs: int) -> Log:
    """A flushed log with a record of 200 bytes for each epoch that is named."""
    log = LogDirectory.open(fs, "disk").open_metadata_log(CONFIG, 1)
    for epoch in epochs:
        append(log, batch_bytes(log.log_end_offset, epoch=epoch, key=None, size=200))
    log.flush()
    return log


def reopened(fs: SimFileSystem) -> tuple[Log, MetadataSnapshots]:
    """What a start finds after the process was killed."""
    after = SimFileSystem.from_image(fs.everything())
    log = LogDirectory.open(after, "disk").open_metadata_log(CONFIG, 1)
    return log, open_snapshots(after, log)


def test_written_snapshot_is_streamed_back_with_what_was_put_in() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1, 1))
    values = [bytes([1 + i % 200]) * 20 for i in range(2500)]
    take_snapshot(snapshots, at(2, 1), HEAD, iter(values))
    batches = list(snapshots.batches(at(2, 1)))
    assert [batch.records_count for batch in batches] == [3, 1024, 1024, 452, 1]
    assert [batch.is_control for batch in batches] == [True, False, False, False, True]
    assert {batch.partition_leader_epoch for batch in batches} == {1}
    assert [record.value for batch in batches[1:-1] for record in batch.records()] == values
    assert {record.timestamp for batch in batches for record in batch.records()} == {900}
    assert snapshots.control_records(at(2, 1)) == VOTERS
    assert snapshots.header_timestamp_ms(at(2, 1)) == 77
    assert snapshots.size_bytes(at(2, 1)) == len(file_bytes(at(2, 1), values))
    assert snapshots.latest_id == snapshots.earliest_id == at(2, 1)
    assert "00000000000000000002-0000000001.checkpoint" in fs.names(D)


def test_snapshot_without_state_or_voters_is_header_and_footer() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    take_snapshot(snapshots, at(1, 1), SnapshotHead(5, 6), [])
    assert [batch.records_count for batch in snapshots.batches(at(1, 1))] == [1, 1]
    assert snapshots.control_records(at(1, 1)) == ()


def test_batch_ends_before_it_grows_beyond_eight_mebibytes() -> None:
    values = [bytes([1]) * (5 << 20), bytes([2]) * (5 << 20)]
    sizes = [len(batch) for batch in snapshot_batches(at(1, 1), HEAD, values)]
    assert len(sizes) == 4
    assert max(sizes) < 8 << 20


def test_writing_in_steps_counts_only_when_it_is_done() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    steps = snapshots.writing(at(1, 1), HEAD, [b"v"])
    assert next(steps) < next(steps) < next(steps)
    assert snapshots.latest_id is None
    assert list(steps) == []
    assert snapshots.latest_id == at(1, 1)
    assert list(snapshots.writing(at(1, 1), HEAD, [b"other"])) == []


def test_snapshot_that_is_overtaken_while_it_is_written_is_not_the_newest() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    steps = snapshots.writing(at(1, 1), HEAD, [b"v"])
    next(steps)
    snapshots.append_chunk(at(9, 2), 0, file_bytes(at(9, 2), [b"v" * 100]))
    snapshots.freeze(at(9, 2))
    assert list(steps) != []
    assert (snapshots.earliest_id, snapshots.latest_id) == (at(1, 1), at(9, 2))
    assert snapshots.ids == [at(1, 1), at(9, 2)]


def test_writing_that_is_given_up_leaves_nothing_behind() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    names = fs.names(D)
    steps = snapshots.writing(at(1, 1), HEAD, [b"v"])
    next(steps)
    assert len(fs.names(D)) == len(names) + 1
    steps.close()  # type: ignore[attr-defined]  # a generator, which the interface does not say
    assert fs.names(D) == names
    assert snapshots.latest_id is None


def test_disk_that_is_full_costs_the_snapshot_and_nothing_else() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    names = fs.names(D)
    fs.capacity_bytes = fs.used_bytes() + 300
    with pytest.raises(DiskFull):
        take_snapshot(snapshots, at(1, 1), HEAD, [b"v" * 500])
    with pytest.raises(DiskFull):
        snapshots.append_chunk(at(9, 1), 0, bytes(500))
    fs.capacity_bytes = None
    assert fs.names(D) == names
    assert snapshots.ids == []


def test_fetched_snapshot_grows_by_chunks_and_counts_once_frozen() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    whole = file_bytes(at(9, 2), [b"v" * 100])
    for position in range(0, len(whole), 50):
        snapshots.append_chunk(at(9, 2), position, memoryview(whole)[position : position + 50])
    assert snapshots.size_bytes(at(9, 2)) is None
    snapshots.freeze(at(9, 2))
    assert snapshots.size_bytes(at(9, 2)) == len(whole)
    assert fs.read(f"{D}/{snapshot_name(at(9, 2))}") == whole


def test_batches_of_a_fetched_snapshot_are_read_once_as_they_become_whole() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    whole = file_bytes(at(9, 2), [b"v" * 100])
    arrived: list[int] = []
    for position in range(0, len(whole), 50):
        snapshots.append_chunk(at(9, 2), position, whole[position : position + 50])
        arrived += [batch.base_offset for batch in snapshots.arrived()]
    assert arrived == [0, 3, 4]
    snapshots.freeze(at(9, 2))
    assert snapshots.ids == [at(9, 2)]


def test_batch_that_a_reader_did_not_get_past_is_judged_when_the_snapshot_is_frozen() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    snapshots.append_chunk(at(9, 2), 0, with_unreadable_records())
    for batch in snapshots.arrived():
        if batch.base_offset == 1:
            break
    with pytest.raises(CorruptMetadataSnapshot, match="another size"):
        snapshots.freeze(at(9, 2))


def test_chunk_at_position_zero_begins_anew_also_for_another_snapshot() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    snapshots.append_chunk(at(9, 2), 0, b"half of something")
    whole = file_bytes(at(8, 1), [])
    replace_file(fs, "disk/sent", whole)
    sent = fs.open("disk/sent")
    snapshots.append_chunk(at(8, 1), 0, FileSlice(sent, 0, 10))
    snapshots.append_chunk(at(8, 1), 0, FileSlice(sent, 0, len(whole)))
    assert sum(name.endswith(".part") for name in fs.names(D)) == 1
    snapshots.freeze(at(8, 1))
    assert snapshots.ids == [at(8, 1)]
    snapshots.abandon_partial()


def garbage_control(offset: int, kind: int) -> bytes:
    record = Record(bytes([0, 0, 0, kind]), b"\xff", timestamp=1)
    return bytes(
        build_batch([record], base_offset=offset, partition_leader_epoch=2, is_control=True)
    )


def footer_at(offset: int) -> bytes:
    *_, footer = snapshot_batches(at(9, 2), SnapshotHead(1, 1), [])
    footer[0:8] = offset.to_bytes(8, "big")
    return bytes(footer)


def with_unreadable_records() -> bytes:
    head = next(snapshot_batches(at(9, 2), SnapshotHead(1, 1), []))
    broken = bytearray(build_batch([Record(None, b"abc", timestamp=1)], base_offset=1))
    broken[12:16] = (2).to_bytes(4, "big")
    broken[61] = 0x7F  # the record claims to be longer than the batch
    broken[17:21] = crc32c(bytes(broken[21:])).to_bytes(4, "big")
    return head + bytes(broken) + footer_at(2)


def with_codec(codec: int) -> bytes:
    """Records that are not compressed, in a batch that names a codec."""
    head = next(snapshot_batches(at(9, 2), SnapshotHead(1, 1), []))
    broken = bytearray(batch_bytes(1, epoch=2))
    broken[22] = codec
    broken[17:21] = crc32c(bytes(broken[21:])).to_bytes(4, "big")
    return head + bytes(broken) + footer_at(2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (file_bytes(at(9, 2), [b"v" * 30])[:-1], "beyond the end"),
        (file_bytes(at(9, 2), [b"v" * 30])[:-75], "no footer"),
        (b"\0" * 200, "length 0"),
        (file_bytes(at(9, 1), [b"v"]), "leader epoch 1"),
        (garbage_control(0, 3), "SNAPSHOT_HEADER"),
        (garbage_control(0, 99), "no header"),
        (with_unreadable_records(), "record"),
        (with_codec(7), "codec 7"),
        (with_codec(1), "gzip data"),
    ],
)
def test_fetched_snapshot_that_is_not_whole_is_dropped_by_name(data: bytes, reason: str) -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    names = fs.names(D)
    snapshots.append_chunk(at(9, 2), 0, data)
    with pytest.raises(CorruptMetadataSnapshot, match=reason):
        snapshots.freeze(at(9, 2))
    assert fs.names(D) == names
    assert snapshots.ids == []


def test_control_record_of_an_unknown_type_in_a_fetched_snapshot_is_refused() -> None:
    head = bytes(next(snapshot_batches(at(9, 2), SnapshotHead(1, 1), [])))
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    snapshots.append_chunk(at(9, 2), 0, head + garbage_control(1, 99) + footer_at(2))
    with pytest.raises(CorruptMetadataSnapshot, match="unknown type"):
        snapshots.freeze(at(9, 2))


def test_batch_that_claims_control_records_and_has_none_is_corrupt() -> None:
    key = control_key(ControlRecordType.SNAPSHOT_HEADER)
    broken = bytearray(
        build_batch([Record(key, b"", timestamp=1)], partition_leader_epoch=2, is_control=True)
    )
    broken[61] = 0x7F
    broken[17:21] = crc32c(bytes(broken[21:])).to_bytes(4, "big")
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1))
    snapshots.append_chunk(at(9, 2), 0, bytes(broken))
    with pytest.raises(CorruptMetadataSnapshot, match="position 0"):
        snapshots.freeze(at(9, 2))


def test_slice_copies_nothing_and_outlives_its_snapshot() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1, 1, 1))
    for offset in (1, 2, 3):
        take_snapshot(snapshots, at(offset, 1), HEAD, [b"v" * offset])
    whole = file_bytes(at(1, 1), [b"v"])
    part = snapshots.slice(at(1, 1), 5, 20)
    assert part.read() == whole[5:25]
    assert snapshots.slice(at(1, 1), len(whole) - 3, 20).read() == whole[-3:]
    snapshots.slice(at(2, 1), 0, 1)
    retired = snapshots.delete_before(at(2, 1))
    assert snapshots.slice(at(2, 1), 0, 1).size_bytes == 1
    snapshots.slice(at(3, 1), 0, 1)
    retired += snapshots.delete_before(at(3, 1))
    snapshots.slice(at(3, 1), 0, 1)
    snapshots.delete_before(at(3, 1))
    assert [path.rpartition("/")[2] for path in retired] == [
        "00000000000000000001-0000000001.checkpoint.deleted",
        "00000000000000000002-0000000001.checkpoint.deleted",
    ]
    for path in retired:
        fs.unlink(path)
    assert part.read() == whole[5:25]
    assert snapshots.ids == [at(3, 1)]
    with pytest.raises(MissingFile):
        next(snapshots.batches(at(1, 1)))


def test_served_snapshot_that_is_dropped_is_closed() -> None:
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, metadata_log(fs, 1, 1))
    for offset in (1, 2):
        take_snapshot(snapshots, at(offset, 1), HEAD, [])
    snapshots.slice(at(1, 1), 0, 1)
    snapshots.delete_before(at(2, 1))
    assert snapshots.earliest_id == at(2, 1)


def test_formatted_checkpoint_is_read_but_is_none_of_the_snapshots() -> None:
    fs = SimFileSystem()
    log = metadata_log(fs)
    writer = SnapshotWriter(fs, D, FORMATTED_ID, 0)
    writer.append(file_bytes(FORMATTED_ID, []))
    writer.freeze()
    snapshots = open_snapshots(fs, log)
    assert snapshots.latest_id is None
    assert snapshots.size_bytes(FORMATTED_ID) is None
    assert snapshots.control_records(FORMATTED_ID) == VOTERS


def fetched(snapshots: MetadataSnapshots, snapshot_id: OffsetAndEpoch) -> None:
    snapshots.append_chunk(snapshot_id, 0, file_bytes(snapshot_id, [b"state"]))


def test_installed_snapshot_is_the_whole_log_and_the_only_snapshot() -> None:
    fs = SimFileSystem()
    log = metadata_log(fs, 1, 1, 1)
    snapshots = open_snapshots(fs, log)
    take_snapshot(snapshots, at(2, 1), HEAD, [])
    fetched(snapshots, at(9, 2))
    retired = snapshots.install(log, at(9, 2))
    assert len(retired) == 1
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (9, 9, 9)
    assert snapshots.ids == [at(9, 2)]
    log, snapshots = reopened(fs)
    assert (log.log_start_offset, log.log_end_offset) == (9, 9)
    assert snapshots.ids == [at(9, 2)]


@pytest.mark.parametrize(
    ("epochs", "is_reset"),
    [
        ((), True),
        ((1, 1), True),  # shorter than the snapshot
        ((1, 1, 1, 1, 1), True),  # long enough, but of an older epoch
        ((1, 3, 3), True),  # shorter, and of a newer epoch that was never committed
        ((1, 2, 2, 2), False),  # holds the snapshot's end
        ((1, 3, 3, 3, 3), True),  # other records where the snapshot ends
        ((1, 2, 2, 3), False),
    ],
)
def test_log_that_does_not_hold_the_newest_snapshots_end_begins_anew_at_it(
    epochs: tuple[int, ...], is_reset: bool
) -> None:
    fs = SimFileSystem()
    metadata_log(fs, *epochs)
    snapshots = MetadataSnapshots(fs, D)
    fetched(snapshots, at(3, 2))
    snapshots.freeze(at(3, 2))  # and the power goes before the log is reset
    log, snapshots = reopened(fs)
    expected = (3, 3) if is_reset else (0, len(epochs))
    assert (log.log_start_offset, log.log_end_offset) == expected
    assert snapshots.latest_id == at(3, 2)


def test_log_that_goes_on_from_the_snapshots_end_stays() -> None:
    fs = SimFileSystem()
    log = metadata_log(fs, 1)
    snapshots = open_snapshots(fs, log)
    fetched(snapshots, at(9, 2))
    snapshots.install(log, at(9, 2))
    append(log, batch_bytes(9, epoch=3, key=None))
    log.flush()
    log, snapshots = reopened(fs)
    assert (log.log_start_offset, log.log_end_offset) == (9, 10)


def test_log_is_not_thrown_away_for_a_damaged_snapshot() -> None:
    fs = SimFileSystem()
    metadata_log(fs, 1, 1)
    snapshots = MetadataSnapshots(fs, D)
    fetched(snapshots, at(9, 2))
    snapshots.freeze(at(9, 2))
    image = fs.everything()
    path = f"{D}/{snapshot_name(at(9, 2))}"
    damaged = image[path]
    assert damaged is not None
    image[path] = damaged[:-40] + bytes([damaged[-40] ^ 1]) + damaged[-39:]
    after = SimFileSystem.from_image(image)
    log = LogDirectory.open(after, "disk").open_metadata_log(CONFIG, 1)
    with pytest.raises(CorruptMetadataSnapshot):
        open_snapshots(after, log)
    assert len(contents(log)) == 2


def test_start_removes_what_was_unfinished_and_what_was_retired() -> None:
    fs = SimFileSystem()
    log = metadata_log(fs, 1, 1, 1)
    snapshots = open_snapshots(fs, log)
    for offset in (1, 2):
        take_snapshot(snapshots, at(offset, 1), HEAD, [])
    snapshots.delete_before(at(2, 1))
    snapshots.append_chunk(at(9, 3), 0, b"some")
    before = [name for name in fs.names(D) if name.endswith((".part", ".deleted"))]
    assert len(before) == 2
    log, snapshots = reopened(fs)
    assert snapshots.ids == [at(2, 1)]
    assert log.log_start_offset == 0


def test_start_of_the_log_moves_back_up_to_the_oldest_snapshot() -> None:
    fs = SimFileSystem()
    log = metadata_log(fs, *([1] * 12))
    assert len(log.segments) > 2
    snapshots = open_snapshots(fs, log)
    inside = Offset(log.segments[1].base_offset + 1)
    take_snapshot(snapshots, at(inside, 1), HEAD, [])
    log.remove_first_segments(1)
    log, snapshots = reopened(fs)
    assert log.segments[0].base_offset < log.log_start_offset == inside
    assert snapshots.earliest_id == at(inside, 1)


def test_log_start_that_no_snapshot_reaches_refuses_the_start() -> None:
    fs = SimFileSystem()
    log = metadata_log(fs, *([1] * 12))
    take_snapshot(MetadataSnapshots(fs, D), at(1, 1), HEAD, [])
    log.remove_first_segments(1)
    names = fs.names(D)
    with pytest.raises(StorageError, match="no snapshot reaches"):
        open_snapshots(fs, log)
    assert fs.names(D) == names


# -- power loss ----------------------------------------------------------------------------------

FEW = Limits(exhaustive_atoms=6, random_subsets=40, states_max=1500)


def crash_everywhere(
    fs: SimFileSystem, work: Callable[[], None], check: Callable[[CrashState], None]
) -> int:
    """Run `work`, and check every state that a loss of power during it may leave."""
    enumerator = Enumerator(FEW, Random(7), check)
    enumerator.watch(fs, lambda: None, 1)
    work()
    assert fs.before_change is not None
    fs.before_change()
    fs.before_change = None
    return len(enumerator.images)


def durable(fs: SimFileSystem) -> SimFileSystem:
    return SimFileSystem.from_image(fs.everything())


@pytest.mark.parametrize("epochs", [(1, 1, 1), (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)])
def test_power_loss_during_an_installation_leaves_the_old_log_or_the_snapshot(
    epochs: tuple[int, ...],
) -> None:
    made = SimFileSystem()
    metadata_log(made, *epochs)
    fs = durable(made)
    log = LogDirectory.open(fs, "disk").open_metadata_log(CONFIG, 1)
    snapshots = open_snapshots(fs, log)
    fetched(snapshots, at(20, 2))
    seen: set[bool] = set()

    def check(state: CrashState) -> None:
        after, found = reopened(SimFileSystem.from_image(state.image))
        is_installed = found.latest_id == at(20, 2)
        expected = (20, 20) if is_installed else (0, len(epochs))
        assert (after.log_start_offset, after.log_end_offset) == expected
        if is_installed:
            assert b"".join(bytes(batch.view) for batch in found.batches(at(20, 2)))
        seen.add(is_installed)

    states = crash_everywhere(fs, lambda: _ignored(snapshots.install(log, at(20, 2))), check)
    assert seen == {False, True}
    assert states > 20


def test_power_loss_while_writing_leaves_the_snapshot_whole_or_absent() -> None:
    made = SimFileSystem()
    metadata_log(made, 1, 1)
    fs = durable(made)
    log = LogDirectory.open(fs, "disk").open_metadata_log(CONFIG, 1)
    snapshots = open_snapshots(fs, log)
    values = [bytes([i + 1]) * 300 for i in range(6)]
    seen: set[bool] = set()

    def check(state: CrashState) -> None:
        _, found = reopened(SimFileSystem.from_image(state.image))
        assert found.ids in ([], [at(2, 1)])
        if found.ids:
            whole = b"".join(bytes(batch.view) for batch in found.batches(at(2, 1)))
            assert whole == file_bytes(at(2, 1), values)
        seen.add(bool(found.ids))

    states = crash_everywhere(fs, lambda: take_snapshot(snapshots, at(2, 1), HEAD, values), check)
    assert seen == {False, True}
    assert states > 20


def test_snapshot_that_was_announced_survives_power_loss() -> None:
    made = SimFileSystem()
    metadata_log(made, 1, 1)
    fs = durable(made)
    snapshots = MetadataSnapshots(fs, D)
    take_snapshot(snapshots, at(2, 1), HEAD, [b"v"])
    after = fs.crashed([])
    assert MetadataSnapshots(after, D).ids == [at(2, 1)]


def _ignored(_: object) -> None:
    """Take an answer that a test does not look at."""


def test_bit_that_flips_at_rest_is_found_when_the_snapshot_is_read() -> None:
    fs = SimFileSystem()
    metadata_log(fs, 1)
    snapshots = MetadataSnapshots(fs, D)
    whole = file_bytes(at(1, 1), [b"v" * 50])
    for position in range(20, len(whole), 7):
        replace_file(fs, f"{D}/{snapshot_name(at(1, 1))}", whole)
        flip(fs, f"{D}/{snapshot_name(at(1, 1))}", position)
        with pytest.raises(CorruptMetadataSnapshot):
            list(snapshots.batches(at(1, 1)))


def test_record_that_is_larger_than_a_batch_has_one_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kraft_wire.storage.snapshots.contents._BATCH_BYTES_MAX", 300)
    values = [b"a" * 400, b"b" * 50, b"c" * 50, b"d" * 400]
    batches = [parse_batches(data)[0] for data in snapshot_batches(at(9, 2), HEAD, values)]
    found = [[record.value for record in batch.records()] for batch in batches[1:-1]]
    assert found == [values[:1], values[1:3], values[3:]]

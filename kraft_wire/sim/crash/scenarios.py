"""The crashed runs: short runs of production storage code, one per interruptible operation.

`harness` judges the runs.
"""

from dataclasses import replace

from kraft_wire.model import (
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    ReplicaId,
    StorageError,
)
from kraft_wire.sim.crash.harness import (
    DISK,
    PARTITION,
    TOPIC_ID,
    FileScenario,
    Harness,
    LogLedger,
    LogScenario,
    Outcome,
    Scenario,
)
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.cleaning.retention import apply_retention
from kraft_wire.storage.directory.log_directory import note_compaction
from kraft_wire.storage.directory.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraft_wire.storage.directory.quorum_state import (
    ElectionState,
    read_quorum_state,
    write_quorum_state,
)
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.snapshots.metadata_snapshot import (
    SnapshotReader,
    SnapshotWriter,
    list_snapshots,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["SCENARIOS", "Outcome", "Scenario"]


def _append_and_flush(harness: Harness) -> None:
    for group in ([100], [700, 90], [1500, 80], [60], [600, 40, 300], [1100]):
        harness.append(group)
        harness.flush()
        if group == [60]:
            harness.directory.checkpoint()


def _append_in_one_group(harness: Harness) -> None:
    harness.append([300])
    harness.flush()
    harness.append([900, 500, 200, 1300, 50])
    harness.flush()
    harness.append([2600, 100])
    harness.flush()
    harness.append([700, 600, 800], producer_id=9)
    harness.flush()
    harness.append([90, 1700, 60, 1000])
    harness.flush()


def _roll(harness: Harness) -> None:
    for size in (500, 450, 700, 60, 300, 900, 200):
        harness.append([size], producer_id=5)
        harness.flush()


def _roll_in_a_group(harness: Harness) -> None:
    harness.append([200])
    harness.flush()
    harness.append([700, 400, 650, 90])
    harness.flush()
    harness.append([300, 1200, 40])
    harness.flush()


def _truncate(harness: Harness) -> None:
    for size in (500, 450, 700, 60, 300, 900):
        harness.append([size], producer_id=5 if size < 400 else 6)
        harness.flush()
    harness.directory.checkpoint()
    harness.truncate(2)
    harness.epoch = 3
    harness.append([350])
    harness.flush()
    harness.append([640, 90])
    harness.truncate(3)
    harness.epoch = 4
    harness.append([70])
    harness.flush()


def _recover(harness: Harness) -> None:
    harness.append([400, 200])
    harness.flush()
    harness.append([900])
    harness.restart()
    harness.append([80])
    harness.flush()
    harness.restart()
    harness.append([120, 640])
    harness.flush()


def _checkpoint(harness: Harness) -> None:
    harness.append([100, 100])
    harness.flush()
    harness.log.update_high_watermark(Offset(2))
    harness.directory.checkpoint()
    harness.stop_cleanly_and_start()
    harness.append([900])
    harness.flush()
    harness.directory.checkpoint()
    harness.stop_cleanly_and_start()


def _retention(harness: Harness) -> None:
    for size in (500, 450, 700, 60, 300):
        harness.append([size])
        harness.flush()
    log = harness.log
    log.update_high_watermark(log.log_end_offset)
    harness.ledger = replace(harness.ledger, start_offset_max=3)
    log.advance_log_start_offset(Offset(3))
    harness.directory.checkpoint()
    apply_retention(log, 1)
    harness.append([90])
    harness.flush()
    harness.directory.checkpoint()


def _start_elsewhere(harness: Harness) -> None:
    for size in (500, 450, 700):
        harness.append([size])
        harness.flush()
    harness.directory.checkpoint()
    harness.ledger = replace(harness.ledger, required={}, start_offset_max=50)
    harness.log.truncate_fully_and_start_at(Offset(50))
    harness.appended = {}
    harness.ledger = replace(harness.ledger, allowed={})
    for size in (350, 640):
        harness.append([size])
        harness.flush()
        harness.directory.checkpoint()


def _delete_topic(harness: Harness) -> None:
    harness.append([300, 100])
    harness.flush()
    harness.log.update_high_watermark(Offset(2))
    harness.ledger = replace(harness.ledger, start_offset_max=1)
    harness.log.advance_log_start_offset(Offset(1))
    harness.directory.checkpoint()
    old = harness.ledger
    harness.ledger = replace(old, exists=False, required={}, start_offset_max=1)
    doomed = harness.directory.delete_log(PARTITION)
    harness.appended = {}
    harness.ledger = LogLedger()
    harness.directory.remove_deleted(doomed)
    harness.directory.create_log(PARTITION, TOPIC_ID, harness.config, 1)
    harness.ledger = replace(harness.ledger, exists=True)
    harness.append([90])
    harness.flush()


def _create_together(harness: Harness) -> None:
    """Create as the node does, with one sync for all partitions, and a stop before any record."""
    harness.ledger = replace(harness.ledger, exists=False)
    harness.directory.delete_log(PARTITION)
    harness.directory.create_log(PARTITION, TOPIC_ID, harness.config, 1, durable=False)
    harness.directory.settle()
    harness.ledger = replace(harness.ledger, exists=True)
    harness.append([90])
    harness.append([300])
    harness.flush()
    harness.append([700])
    harness.flush()
    harness.stop_cleanly_and_start()
    harness.append([60])
    harness.flush()


def _compaction(harness: Harness) -> None:
    for key in (b"a", b"b", b"a", b"c", b"b", b"a"):
        harness.append([280], key=key)
        harness.flush()
    log = harness.log
    log.update_high_watermark(log.log_end_offset)
    dirty = Offset(0)
    for _ in range(2):
        note_compaction(harness.directory, PARTITION, dirty)
        result = compact(harness.fs, log, dirty, 5_000)
        dirty = harness.directory.cleaner_offsets[PARTITION] = result.next_dirty_offset
        harness.directory.checkpoint()
        harness.append([120], key=b"d")
        harness.flush()
        log.roll(1)
        log.update_high_watermark(log.log_end_offset)


def _disk_full(harness: Harness) -> None:
    harness.append([300])
    harness.flush()
    harness.fs.capacity_bytes = harness.fs.used_bytes() + 700
    try:
        harness.append([1500])
    except StorageError as error:
        harness.directory.note_error(PARTITION, error)
    harness.fs.capacity_bytes = None
    harness.directory.space.refresh()
    harness.append([200])
    harness.flush()


def _write_vote(fs: SimFileSystem, version: int) -> None:
    state = ElectionState(LeaderEpoch(version), voted_id=ReplicaId(version % 3))
    write_quorum_state(fs, DISK, state, version % 2)


def _read_vote(fs: SimFileSystem) -> int:
    state = read_quorum_state(fs, DISK)
    if state is None:
        return -1
    return state.leader_epoch if state.voted_id == state.leader_epoch % 3 else -2


def _write_identity(fs: SimFileSystem, version: int) -> None:
    write_meta_properties(fs, DISK, MetaProperties("cluster", version, TOPIC_ID))


def _read_identity(fs: SimFileSystem) -> int:
    meta = read_meta_properties(fs, DISK)
    return -1 if meta is None else meta.node_id


def _snapshot_batches(offset: int) -> list[bytes]:
    def control(kind: int, at: int) -> bytes:
        key = bytes([0, 0, 0, kind])
        record = Record(key, b"\x00\x00\x00", timestamp=1)
        return bytes(
            build_batch([record], base_offset=at, partition_leader_epoch=1, is_control=True)
        )

    value = bytes(at % 251 for at in range(400 + offset))
    data = build_batch([Record(None, value, timestamp=1)], base_offset=1, partition_leader_epoch=1)
    return [control(3, 0), bytes(data), control(4, 2)]


def _write_snapshot(fs: SimFileSystem, version: int) -> None:
    snapshot_id = OffsetAndEpoch(Offset(version * 10), LeaderEpoch(1))
    writer = SnapshotWriter(fs, DISK, snapshot_id, 7)
    for data in _snapshot_batches(version * 10):
        writer.append(data)
    writer.freeze()


def _read_snapshot(fs: SimFileSystem) -> int:
    known = list_snapshots(fs, DISK)
    for snapshot_id in known:
        reader = SnapshotReader(fs, DISK, snapshot_id)
        read = b"".join(bytes(batch.view) for batch in reader.batches())
        if read != b"".join(_snapshot_batches(snapshot_id.offset)):
            return -2
    return known[-1].offset // 10 if known else -1


_DURABLE = LogConfig(flush_messages=1)
_SMALL = LogConfig(flush_messages=1, segment_bytes=1400, index_interval_bytes=300)
_COMPACTED = LogConfig(
    flush_messages=1, segment_bytes=800, cleanup_policy=("compact",), delete_retention_ms=0
)

SCENARIOS: list[Scenario] = [
    LogScenario("append and flush", _DURABLE, _append_and_flush),
    LogScenario("group of appends, one flush", _DURABLE, _append_in_one_group),
    LogScenario("segment roll", _SMALL, _roll),
    LogScenario("rolls within a group", _SMALL, _roll_in_a_group),
    LogScenario("truncate across segments", _SMALL, _truncate),
    LogScenario("recover and go on", _DURABLE, _recover),
    LogScenario("checkpoints and clean stop", _DURABLE, _checkpoint),
    LogScenario("log start and retention", _SMALL, _retention),
    LogScenario("drop everything and start elsewhere", _SMALL, _start_elsewhere),
    LogScenario("delete and create a topic", _DURABLE, _delete_topic),
    LogScenario("create with other partitions", _DURABLE, _create_together),
    LogScenario("compaction", _COMPACTED, _compaction, is_keyed=True),
    LogScenario("disk full and freed", _DURABLE, _disk_full),
    FileScenario("vote (quorum-state)", _write_vote, _read_vote, 8),
    FileScenario("format (meta.properties)", _write_identity, _read_identity, 4),
    FileScenario("metadata snapshot", _write_snapshot, _read_snapshot, 4),
]

"""Three clean replicas of everything, written by the node's own storage: what damage starts from.

Small enough to be audited hundreds of times: segments of a few batches, three leader epochs,
idempotent producers, all codecs, a compacted topic, and a metadata log with two snapshots.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from kraft_wire.metadata.image_records import snapshot_values
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, TopicPartition, Uuid
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
NODE_IDS = (1, 2, 3)
TOPICS = {"orders": 2, "payments": 1, "state": 1}
COMPACTED = "state"
BATCHES = 60
SEGMENT_BYTES = 4_000
UNCOMMITTED = 2
"""Batches above the high watermark."""

_STAMP = 1_700_000_000_000


def write_clean_set(directory: Path, seed: int = 1) -> list[Path]:
    """Write the directories of three nodes and return them."""
    random_source = random.Random(seed)
    first = directory / "node-1"
    first.mkdir(parents=True)
    fs = OsFileSystem()
    write_meta_properties(fs, str(first), MetaProperties(CLUSTER_ID, 1, _directory_id(1)))
    logs = LogDirectory.open(fs, str(first))
    for number, (topic, partitions) in enumerate(TOPICS.items(), 1):
        for partition in range(partitions):
            _fill(logs, TopicPartition(topic, partition), _topic_id(number), random_source)
    logs.close(broker_epoch=1)
    _write_metadata(first)
    found = [first]
    for node_id in NODE_IDS[1:]:
        copy = directory / f"node-{node_id}"
        shutil.copytree(first, copy)
        write_meta_properties(
            fs, str(copy), MetaProperties(CLUSTER_ID, node_id, _directory_id(node_id))
        )
        found.append(copy)
    return found


def _topic_id(number: int) -> Uuid:
    return Uuid(bytes([number] * 16))


def _directory_id(node_id: int) -> Uuid:
    return Uuid(bytes([100 + node_id] * 16))


def _fill(
    logs: LogDirectory, place: TopicPartition, topic_id: Uuid, random_source: random.Random
) -> None:
    config = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=600)
    log = logs.create_log(place, topic_id, config, 1)
    for number in range(BATCHES):
        base = int(log.log_end_offset)
        records = [
            Record(
                b"key-%d" % random_source.randrange(20),
                random_source.randbytes(random_source.randrange(10, 80)),
                offset,
                _STAMP + offset,
            )
            for offset in range(base, base + random_source.randrange(1, 9))
        ]
        data = bytes(
            build_batch(
                records,
                base_offset=base,
                partition_leader_epoch=number // 20,
                producer_id=7,
                producer_epoch=0,
                base_sequence=base,
                compression=list(Compression)[number % len(Compression)],
            )
        )
        log.append(data, parse_batches(memoryview(data)), 1, 1)
        if number + UNCOMMITTED < BATCHES:
            log.update_high_watermark(Offset(log.log_end_offset))


def _metadata() -> list[list[VersionedRecord]]:
    """The batches of the metadata log."""
    batches = [[VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=30))]]
    for number, (topic, partitions) in enumerate(TOPICS.items(), 1):
        topic_id = _topic_id(number)
        batches.append([VersionedRecord(TopicRecord(name=topic, topic_id=topic_id))])
        if topic == COMPACTED:
            policy = ConfigRecord(
                resource_type=2, resource_name=topic, name="cleanup.policy", value="compact"
            )
            batches.append([VersionedRecord(policy)])
        batches += [[_partition(topic_id, partition)] for partition in range(partitions)]
    return batches


def _partition(topic_id: Uuid, partition: int) -> VersionedRecord:
    nodes = list(NODE_IDS)
    record = PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=nodes,
        isr=nodes,
        leader=1,
        leader_epoch=2,
        partition_epoch=3,
        directories=[_directory_id(node_id) for node_id in nodes],
    )
    return VersionedRecord(record, 1)


def _write_metadata(node: Path) -> None:
    directory = node / "__cluster_metadata-0"
    directory.mkdir()
    data = bytearray()
    loader = MetadataLoader()
    offset = 0
    for number, batch in enumerate(_metadata(), 1):
        values = [Record(None, encode_record(each), timestamp=_STAMP) for each in batch]
        data += build_batch(values, base_offset=offset, partition_leader_epoch=1)
        loader.take_batch([each.record for each in batch], offset, 1)
        offset += len(batch)
        if number in (4, 7):
            _write_snapshot(directory, offset, loader)
    (directory / f"{0:020d}.log").write_bytes(data)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")


def _write_snapshot(directory: Path, offset: int, loader: MetadataLoader) -> None:
    values = list(snapshot_values(loader.image))
    write_snapshot(directory, OffsetAndEpoch(Offset(offset), LeaderEpoch(1)), values)


def write_snapshot(
    directory: Path,
    snapshot_id: OffsetAndEpoch,
    values: Sequence[bytes],
    last_contained_ms: int = _STAMP,
) -> None:
    """Write a snapshot that holds these records."""
    writer = SnapshotWriter(OsFileSystem(), str(directory), snapshot_id, 0)
    for batch in snapshot_batches(snapshot_id, SnapshotHead(last_contained_ms, _STAMP), values):
        writer.append(batch)
    writer.freeze()


def values_in(snapshot: Path) -> list[bytes]:
    """The metadata records of a snapshot."""
    return [
        bytes(record.value or b"")
        for batch in iter_batches(snapshot.read_bytes())
        if isinstance(batch, RecordBatch) and not batch.is_control
        for record in batch.iter_records()
    ]

"""Finds damage that recovery refuses, and what a truncation would remove; changes nothing.

`inspect` walks every batch of a log and checks the small files beside it, by the rules of recovery
(`verification`). `repair` acts on its findings, when an operator runs it.

Left out: `meta.properties`, which every command needs.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from kraft_wire.model import Offset, StorageError, TopicPartition
from kraft_wire.storage.cleaning.cleanable import COMPACTED_TOPICS
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.checkpoints import (
    CLEANER_OFFSETS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_offsets,
)
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION, partition_of_directory
from kraft_wire.storage.directory.partition_metadata import read_topic_id
from kraft_wire.storage.directory.quorum_state import read_quorum_state
from kraft_wire.storage.files import File, FileSystem
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.producers.producer_state import read_marker
from kraft_wire.storage.recovery.opening import SWAP_SUFFIX
from kraft_wire.storage.recovery.verification import LogVerifier, damage_behind, right_batches
from kraft_wire.storage.scan import BadBatch, find_batch_after
from kraft_wire.storage.segment import LOG_SUFFIX, file_name, offset_in
from kraft_wire.storage.snapshots.metadata_snapshot import (
    CorruptMetadataSnapshot,
    SnapshotReader,
    list_snapshots,
    snapshot_name,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["Damage", "FoundSegment", "inspect", "partitions_of", "segments_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Damage that recovery refuses, and what a truncation would remove."""

    partition: TopicPartition | None
    """None for a file that all logs of the directory share."""
    path: str
    position: int = 0
    reason: str
    consequence: str
    """The effect of a cut, in words."""
    can_be_cut: bool = True
    first_offset: int | None = None
    """In a log: the first offset that a cut would remove."""
    last_offset: int | None = None
    """The last readable offset after the damage, None without one."""
    cut_bytes: int = 0
    readable_batches: int = 0
    """Whole batches after the damage, which a cut would remove."""


class FoundSegment:
    """One `.log` file, opened for reading."""

    def __init__(self, fs: FileSystem, path: str, base_offset: Offset) -> None:
        assert base_offset >= 0, base_offset
        self.path = path
        self.base_offset = base_offset
        self.file: File = fs.open_for_reading(path)
        self.size_bytes = self.file.size_bytes()


def partitions_of(fs: FileSystem, path: str) -> list[TopicPartition]:
    """Return the partitions that have a directory, the metadata log first."""
    names = [name for name in fs.names(path) if fs.is_directory(f"{path}/{name}")]
    parsed = [partition_of_directory(name) for name in names]
    found = [partition for partition in parsed if partition is not None]
    found.sort(key=lambda partition: (partition != METADATA_PARTITION, partition))
    assert len(set(found)) == len(found), found
    return found


def inspect(fs: FileSystem, path: str, partition: TopicPartition | None) -> list[Damage]:
    """Return the damage in one log, or in the files that the logs of `path` share (None).

    The caller holds the directory's lock. Errors: StorageError of the disk itself.
    """
    assert path, "a log directory needs a path"
    if partition is None:
        return _shared_damage(fs, path)
    directory = f"{path}/{partition}"
    is_metadata = partition == METADATA_PARTITION
    found = [
        *_swap_damage(fs, directory, partition),
        *_log_damage(fs, path, partition, is_contiguous=not _has_gaps(fs, path, partition)),
        *_topic_id_damage(fs, directory, partition),
    ]
    if is_metadata:
        found += _snapshot_damage(fs, directory)
        found += _vote_damage(fs, directory)
    return found


def _has_gaps(fs: FileSystem, path: str, partition: TopicPartition) -> bool:
    """Return whether compaction may have removed offsets of a log, by its checkpoint or its name.

    A follower of Apache Kafka copies gaps of its leader, and has no entry before its own first
    compaction.
    """
    assert path, partition
    if partition == METADATA_PARTITION:
        return False
    if partition.topic in COMPACTED_TOPICS:
        return True
    try:
        return partition in read_offsets(fs, f"{path}/{CLEANER_OFFSETS}")
    except CorruptCheckpoint:
        return True


def _recovery_point(fs: FileSystem, path: str, partition: TopicPartition) -> Offset:
    """Return the offset up to which a log was known to be durable, 0 if unknown."""
    assert path, partition
    with suppress(CorruptCheckpoint):
        return read_offsets(fs, f"{path}/{RECOVERY_POINTS}").get(partition, Offset(0))
    return Offset(0)


def _log_damage(
    fs: FileSystem, path: str, partition: TopicPartition, *, is_contiguous: bool
) -> list[Damage]:
    """Walk a log as recovery would, from its first batch on."""
    directory = f"{path}/{partition}"
    segments = list(segments_of(fs, directory))
    no_epochs, epochs = LeaderEpochs(fs, directory), LeaderEpochs(fs, directory)
    try:
        epochs.load()
    except CorruptCheckpoint as error:
        return [_epoch_damage(epochs, partition, error.reason)]
    recovery_point = _recovery_point(fs, path, partition)
    start = segments[0].base_offset if segments else Offset(0)
    verifier = LogVerifier(start, epochs, recovery_point, is_contiguous=is_contiguous)
    stopped = _walk(verifier, segments)
    assert verifier.expected >= start, (verifier.expected, start)
    if stopped is not None:
        index, bad = stopped
        without = LogVerifier(start, no_epochs, recovery_point, is_contiguous=is_contiguous)
        alone = _walk(without, segments)
        if alone is None or (alone[0], alone[1].position) != (index, bad.position):
            return [_epoch_damage(epochs, partition, f"contradicts the log: {bad.reason}")]
        why = damage_behind(bad, segments[index:], verifier.expected, recovery_point)
        if why is None:
            return []
        with_gaps = LogVerifier(start, epochs, recovery_point, is_contiguous=False)
        if is_contiguous and _walk(with_gaps, segments) is None:  # only the gaps are wrong
            why += "; no damage if the log was copied from one that was compacted"
        return [_damage_at(partition, segments[index:], bad, why, verifier.expected)]
    if verifier.expected >= recovery_point:
        return []
    reason = f"ends at {verifier.expected}; offsets below {recovery_point} were durable"
    last = segments[-1] if segments else None
    return [
        Damage(
            partition=partition,
            path=f"{directory}/{file_name(0, LOG_SUFFIX)}" if last is None else last.path,
            position=0 if last is None else last.size_bytes,
            reason=reason,
            consequence="no cut is needed: the log is accepted unchanged",
            first_offset=verifier.expected,
        )
    ]


def _walk(verifier: LogVerifier, segments: list[FoundSegment]) -> "tuple[int, BadBatch] | None":
    """Verify the segments; return place and reason of the first error, None without one."""
    for index, segment in enumerate(segments):
        assert index == 0 or segments[index - 1].base_offset < segment.base_offset, segment.path
        try:
            for position, size, base, *_, producer_id, view, at in verifier.batches_of(segment):
                if producer_id >= 0 and not _says_what_it_ends(RecordBatch(view[at : at + size])):
                    verifier.expected = Offset(base)
                    raise BadBatch(position, "a marker cannot be read", is_damage=True)
        except BadBatch as bad:
            return index, bad
    return None


def _says_what_it_ends(batch: RecordBatch) -> bool:
    """Return whether a transaction's marker can be read, as recovery needs."""
    assert batch.producer_id >= 0, batch
    if batch.is_control:
        try:
            read_marker(batch)
        except CorruptRecordBatch:
            return False
    return True


def segments_of(fs: FileSystem, directory: str) -> Iterator[FoundSegment]:
    """Open the segments of a log in the order of their offsets."""
    assert directory, "a log needs a directory"
    for name in fs.names(directory):
        base_offset = offset_in(name, LOG_SUFFIX)
        if base_offset is not None:
            yield FoundSegment(fs, f"{directory}/{name}", base_offset)


def _damage_at(
    partition: TopicPartition,
    segments: list[FoundSegment],
    bad: BadBatch,
    reason: str,
    expected: Offset,
) -> Damage:
    """Count the bytes and batches from a bad batch on, in the first of `segments`."""
    assert segments, "something is damaged"
    position = max(0, bad.position)
    readable, last_offset = 0, None
    for index, segment in enumerate(segments):
        for found in _readable(segment, 0 if index else position, expected):
            readable, last_offset = readable + 1, found
    return Damage(
        partition=partition,
        path=segments[0].path,
        position=position,
        reason=reason,
        consequence="the log ends before the damage; the rest is kept in a side file",
        first_offset=expected,
        last_offset=last_offset,
        cut_bytes=sum(segment.size_bytes for segment in segments) - position,
        readable_batches=readable,
    )


def _readable(segment: FoundSegment, position: int, offset_min: int) -> Iterator[int]:
    """Yield the last offset of each whole batch from `position` on; skip bytes between them."""
    assert 0 <= position <= segment.size_bytes, (position, segment.path)
    while True:
        position = find_batch_after(segment.file, position, segment.size_bytes, offset_min)
        if position < 0:
            return
        try:
            for found in right_batches(segment.file, position, segment.size_bytes):
                position = found[0] + found[1]
                yield found[3]
        except BadBatch:
            position += 1


def _epoch_damage(epochs: LeaderEpochs, partition: TopicPartition, reason: str) -> Damage:
    return Damage(
        partition=partition,
        path=epochs.path,
        reason=reason,
        consequence="the file is renamed and rebuilt from the log",
    )


def _swap_damage(fs: FileSystem, directory: str, partition: TopicPartition) -> Iterator[Damage]:
    """Check replacements that compaction had finished when the process was killed."""
    assert directory, partition
    for name in fs.names(directory):
        if not name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            continue
        path = f"{directory}/{name}"
        file = fs.open_for_reading(path)
        size_bytes = file.size_bytes()
        try:
            for _ in right_batches(file, 0, size_bytes):
                pass
        except BadBatch as bad:
            yield Damage(
                partition=partition,
                path=path,
                position=bad.position,
                reason=bad.reason,
                consequence="the compacted segment is renamed and not used",
                cut_bytes=size_bytes,
            )


def _topic_id_damage(fs: FileSystem, directory: str, partition: TopicPartition) -> Iterator[Damage]:
    assert directory, partition
    try:
        read_topic_id(fs, directory)
    except CorruptCheckpoint as error:
        yield Damage(
            partition=partition,
            path=error.path,
            reason=error.reason,
            consequence="the file is renamed; the metadata log has the topic id",
        )


def _snapshot_damage(fs: FileSystem, directory: str) -> Iterator[Damage]:
    """Check the newest snapshot, which a start loads."""
    known = list_snapshots(fs, directory)
    assert known == sorted(known, key=lambda each: (each.epoch, each.offset)), known
    for snapshot_id in known[-1:]:
        try:
            for _ in SnapshotReader(fs, directory, snapshot_id).batches():
                pass
        except CorruptMetadataSnapshot as error:
            log_start = next((each.base_offset for each in segments_of(fs, directory)), None)
            before = known[-2].offset if len(known) > 1 else 0
            yield Damage(
                partition=METADATA_PARTITION,
                path=f"{directory}/{snapshot_name(snapshot_id)}",
                position=error.position,
                reason=error.reason,
                consequence="the snapshot is renamed; the log is read instead",
                can_be_cut=log_start is not None and log_start <= before,
            )


def _vote_damage(fs: FileSystem, directory: str) -> Iterator[Damage]:
    assert directory, "a quorum's state has a directory"
    try:
        read_quorum_state(fs, directory)
    except StorageError as error:
        yield Damage(
            partition=METADATA_PARTITION,
            path=error.path,
            reason=error.reason,
            consequence="a vote cannot be rebuilt: restore the file from a copy",
            can_be_cut=False,
        )


def _shared_damage(fs: FileSystem, path: str) -> list[Damage]:
    """Check shared files of the logs that cannot be restored."""
    assert path, "logs share a directory"
    try:
        read_offsets(fs, f"{path}/{LOG_START_OFFSETS}")
    except CorruptCheckpoint as error:
        return [
            Damage(
                partition=None,
                path=error.path,
                reason=error.reason,
                consequence="the file is renamed; deleted records may reappear",
            )
        ]
    return []

"""Opens the durable state of the metadata quorum, and makes it consistent.

The whole log is verified, its start and the snapshots are made consistent (KIP-630), and the voter
sets are read from the newest snapshot and the whole log, committed or not (KIP-853).
`quorum-state` has the vote and the epoch. The formatted `(0, 0)` checkpoint has only the first
voters; `bootstrap.checkpoint` has a cluster's first records.
"""

from typing import Final, NamedTuple

from kraft_wire.metadata.records import VersionedRecord, decode_record
from kraft_wire.model import ElectionState, Offset
from kraft_wire.node.quorum.quorum_log import QuorumLog
from kraft_wire.raft.following import take_control_record
from kraft_wire.raft.voters import BEFORE_LOG, VoterSet, VoterSetHistory
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.quorum_state import read_quorum_state
from kraft_wire.storage.files import FileSystem, MissingFile
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.snapshots.metadata_snapshot import list_snapshots
from kraft_wire.storage.snapshots.store import FORMATTED_ID, open_snapshots
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import parse_batches

__all__ = ["BOOTSTRAP_CHECKPOINT", "OpenedMetadata", "bootstrap_records_of", "open_metadata_log"]

BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"


class OpenedMetadata(NamedTuple):
    """The opened state."""

    log: QuorumLog
    voters: VoterSetHistory
    election: ElectionState | None


def open_metadata_log(
    fs: FileSystem,
    directory: LogDirectory,
    settings: NodeSettings,
    static_voters: VoterSet | None,
    wall_ms: int,
) -> OpenedMetadata:
    """Open log, snapshots, voter sets and vote.

    Errors: StorageError for damage and contradictions, each naming the file.
    """
    log = directory.open_metadata_log(_log_config(settings), wall_ms)
    snapshots = open_snapshots(fs, log)
    quorum_log = QuorumLog(log, snapshots)
    election = read_quorum_state(fs, log.directory)
    return OpenedMetadata(quorum_log, _voters(fs, quorum_log, static_voters), election)


def _log_config(settings: NodeSettings) -> LogConfig:
    """Return the log's settings: only snapshots move its start, not time or size."""
    internal = settings.value("internal.metadata.log.segment.bytes")
    usual = settings.integer("metadata.log.segment.bytes")
    return LogConfig(
        segment_bytes=internal if isinstance(internal, int) else usual,
        segment_ms=settings.integer("metadata.log.segment.ms"),
        retention_ms=-1,
        retention_bytes=-1,
    )


def _voters(fs: FileSystem, log: QuorumLog, static_voters: VoterSet | None) -> VoterSetHistory:
    """Return the voter sets and levels of the newest snapshot and of the whole log after it."""
    voters = VoterSetHistory(static_voters)
    snapshots = log.snapshots
    latest = snapshots.latest_id
    log_directory = log.log.directory
    has_formatted = FORMATTED_ID in list_snapshots(fs, log_directory)
    known, before = (
        (latest, Offset(latest.offset - 1)) if latest is not None else (None, BEFORE_LOG)
    )
    if known is None and has_formatted and log.log_start_offset == 0:
        known = FORMATTED_ID
    try:
        if known is not None:
            for message in snapshots.control_records(known):
                _take(voters, before, message, log_directory)
        for record in log.control_records():
            if record.offset > before:
                _take(voters, record.offset, record.message, log_directory)
    except CorruptRecordBatch as error:
        raise CorruptCheckpoint(log_directory, f"control records: {error}") from error
    return voters


def _take(voters: VoterSetHistory, offset: Offset, message: Message, path: str) -> None:
    assert offset >= BEFORE_LOG, offset
    if not take_control_record(voters, offset, message):
        raise CorruptCheckpoint(path, f"the voter set or level at offset {offset} is impossible")


def bootstrap_records_of(fs: FileSystem, directory: LogDirectory) -> list[VersionedRecord]:
    """Return a cluster's first records. CorruptCheckpoint: missing or damaged."""
    path = f"{directory.path}/{BOOTSTRAP_CHECKPOINT}"
    try:
        batches = parse_batches(fs.read(path))
        if not all(batch.crc_is_valid() for batch in batches):
            raise CorruptCheckpoint(path, "is damaged: a checksum is wrong")
        return [
            decode_record(record.value or b"")
            for batch in batches
            if not batch.is_control
            for record in batch.records()
        ]
    except MissingFile:
        raise CorruptCheckpoint(path, "is missing, and the metadata log is empty") from None
    except CorruptRecordBatch as error:
        raise CorruptCheckpoint(path, f"is damaged: {error}") from error

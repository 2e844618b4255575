"""Effects of a replica. `step` returns a list, which the host must perform in order.

Durable before the next effect runs: PersistElectionState, TruncateLog, InstallSnapshot.
AppendRecords, AppendControlRecords, AppendFetched and AppendSnapshotChunk are durable only after
the flush or the installation.

FlushLog may run in another thread while the list and later steps continue, and one flush may serve
several effects: acknowledgements wait for `LogView.flushed_end_offset`, which must never be too
high. A flush that began before a TruncateLog does not cover records appended after it.

At start, before `Started`, the host makes log and snapshots consistent: power may have been lost
between the two halves of InstallSnapshot. If the newest snapshot's end is not part of the log, the
log is dropped and restarts at that end; unfinished snapshots are removed.
"""

from typing import TypeAlias

from kraft_wire.frozen import frozen
from kraft_wire.model import ElectionState, LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotResponse
from kraft_wire.wire.message import Message, Part

__all__ = [
    "AppendControlRecords",
    "AppendFetched",
    "AppendRecords",
    "AppendRefused",
    "AppendSnapshotChunk",
    "Effect",
    "FlushLog",
    "HighWatermarkAdvanced",
    "InstallSnapshot",
    "LeaderChanged",
    "LeadershipEnded",
    "LeadershipEstablished",
    "PersistElectionState",
    "Reply",
    "ReplyWithRecords",
    "ReplyWithSnapshotSlice",
    "SendRequest",
    "ShutdownCompleted",
    "TruncateLog",
    "VersionUpgradeAnswered",
]


@frozen
class PersistElectionState:
    """Replace quorum-state."""

    election: ElectionState
    data_version: int
    """0 with a static voter set, 1 from kraft.version 1 on."""


@frozen
class AppendRecords:
    """Append the state machine's records as one batch at `base_offset`, the log's end."""

    ticket: object
    base_offset: Offset
    leader_epoch: LeaderEpoch
    values: tuple[bytes, ...]


@frozen
class AppendControlRecords:
    """Append this replica's control records as one batch at `base_offset`, the log's end."""

    base_offset: Offset
    leader_epoch: LeaderEpoch
    messages: tuple[Message, ...]


@frozen
class AppendFetched:
    """Append the longest valid prefix of a leader's batches, possibly none.

    A valid batch continues the log without a gap, has a correct CRC, and has an epoch neither
    below the log's last nor above `leader_epoch`. RecordsAppended is due afterwards.
    """

    base_offset: Offset
    leader_epoch: LeaderEpoch
    records: Part


@frozen
class FlushLog:
    """Make everything appended so far durable; LogFlushed is due afterwards."""


@frozen
class TruncateLog:
    """Truncate the log at `end_offset` and make the rest durable; LogFlushed is due afterwards."""

    end_offset: Offset


@frozen
class AppendSnapshotChunk:
    """Write a chunk into the partial file of a snapshot; position 0 starts it again.

    SnapshotRefused is due if it cannot be written.
    """

    snapshot_id: OffsetAndEpoch
    position: int
    data: Part


@frozen
class InstallSnapshot:
    """Freeze the partial file and make it the whole log, durably; SnapshotInstalled is due.

    SnapshotRefused is due instead, with an unchanged log, if the file is not a whole snapshot.
    """

    snapshot_id: OffsetAndEpoch


@frozen
class SendRequest:
    """Send a request to a peer, in the newest version that both sides support.

    If no common version has its fields, the host itself answers with a response whose top-level
    error is UNSUPPORTED_VERSION.
    """

    request_id: int
    node_id: int
    """The peer's node id; negative for a bootstrap server whose id is not known."""
    address: Address
    request: Message


@frozen
class Reply:
    """Answer a request."""

    reply_to: object
    response: Message


@frozen
class ReplyWithRecords:
    """Answer a fetch; the host adds whole batches from `offset`, at least one if available."""

    reply_to: object
    response: FetchResponse
    offset: Offset
    bytes_max: int


@frozen
class ReplyWithSnapshotSlice:
    """Answer a FetchSnapshot; the host adds bytes of the snapshot from `position`."""

    reply_to: object
    response: FetchSnapshotResponse
    snapshot_id: OffsetAndEpoch
    position: int
    bytes_max: int


@frozen
class HighWatermarkAdvanced:
    """Everything below this offset is committed, and in the log."""

    high_watermark: Offset


@frozen
class LeaderChanged:
    """The leader that this replica knows; for hints to clients, not for the state machine."""

    leader_id: ReplicaId
    """-1 if unknown."""
    leader_epoch: LeaderEpoch


@frozen
class LeadershipEstablished:
    """The state machine may act as leader once it has applied everything below the offset."""

    leader_epoch: LeaderEpoch
    from_offset: Offset


@frozen
class LeadershipEnded:
    """The state machine must stop acting as leader of the epoch."""

    leader_epoch: LeaderEpoch


@frozen
class AppendRefused:
    """Nothing was appended, because this replica does not lead that epoch."""

    ticket: object


@frozen
class VersionUpgradeAnswered:
    """How a request to raise kraft.version ended; NONE once its record is appended."""

    ticket: object
    error_code: ErrorCode


@frozen
class ShutdownCompleted:
    """The graceful stop is over; the host may close."""


Effect: TypeAlias = (
    PersistElectionState
    | AppendRecords
    | AppendControlRecords
    | AppendFetched
    | FlushLog
    | TruncateLog
    | AppendSnapshotChunk
    | InstallSnapshot
    | SendRequest
    | Reply
    | ReplyWithRecords
    | ReplyWithSnapshotSlice
    | HighWatermarkAdvanced
    | LeaderChanged
    | LeadershipEstablished
    | LeadershipEnded
    | AppendRefused
    | VersionUpgradeAnswered
    | ShutdownCompleted
)

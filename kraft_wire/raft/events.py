"""Events of a replica. Frozen values; the time is an argument of `step`, never a field.

The host must report four of them: `RecordsAppended` after it performed AppendFetched, `LogFlushed`
after FlushLog or TruncateLog, `SnapshotInstalled` after InstallSnapshot (or `SnapshotRefused`),
`TimerFired` at `deadline_ms`.
"""

from typing import TypeAlias

from kraft_wire.frozen import frozen
from kraft_wire.model import ElectionState, Offset, OffsetAndEpoch
from kraft_wire.wire.message import Message

__all__ = [
    "AppendRequested",
    "ControlRecord",
    "Event",
    "LogFlushed",
    "RecordsAppended",
    "RequestFailed",
    "RequestReceived",
    "ResignRequested",
    "ResponseReceived",
    "ShutdownRequested",
    "SnapshotInstalled",
    "SnapshotRefused",
    "SnapshotTaken",
    "Started",
    "TimerFired",
    "VersionUpgradeRequested",
]


@frozen
class Started:
    """The first event: the content of quorum-state, None without the file."""

    election: ElectionState | None


@frozen
class RequestReceived:
    """A request of a peer or client; the answer has its `reply_to`."""

    reply_to: object
    request: Message
    version: int
    listener: str
    """The listener that received it: NodeEndpoints in answers have the leader's address there."""
    wall_ms: int = 0
    """The time of day, only used for times in answers."""


@frozen
class ResponseReceived:
    """The answer to this replica's request; ignored if `request_id` is no longer outstanding."""

    request_id: int
    response: Message


@frozen
class RequestFailed:
    """The connection could not be made or broke before an answer came."""

    request_id: int


@frozen
class TimerFired:
    """The time that `deadline_ms` named has come, or a spurious wake-up."""


@frozen
class AppendRequested:
    """The state machine's request to append records, all of them in one batch or none."""

    ticket: object
    """Returned in AppendRecords or AppendRefused."""
    values: tuple[bytes, ...]
    leader_epoch: int
    """The epoch in which the state machine assumes that this replica leads."""


@frozen
class ControlRecord:
    """A control record of the quorum, which a replica applies from its append on (KIP-853)."""

    offset: Offset
    message: Message


@frozen
class RecordsAppended:
    """AppendFetched was performed: the valid prefix is in the log, flushed or not."""

    control_records: tuple[ControlRecord, ...] = ()


@frozen
class LogFlushed:
    """The log is durable up to `LogView.flushed_end_offset`, after an append or a truncation."""


@frozen
class SnapshotInstalled:
    """InstallSnapshot was performed; its KRaftVersion and KRaftVoters, in file order."""

    snapshot_id: OffsetAndEpoch
    control_records: tuple[Message, ...] = ()


@frozen
class SnapshotRefused:
    """The partial file could not be written, or is not a whole snapshot; it was removed.

    The snapshot is fetched again from its first byte after a backoff.
    """

    snapshot_id: OffsetAndEpoch


@frozen
class SnapshotTaken:
    """The state machine has completed its own snapshot."""

    snapshot_id: OffsetAndEpoch


@frozen
class ResignRequested:
    """The state machine gives up the leadership of an epoch."""

    leader_epoch: int


@frozen
class VersionUpgradeRequested:
    """The active controller finalises a level of kraft.version (UpdateFeatures)."""

    ticket: object
    level: int
    leader_epoch: int
    validate_only: bool


@frozen
class ShutdownRequested:
    """Stop gracefully, within a time: a leader resigns first."""

    timeout_ms: int


Event: TypeAlias = (
    Started
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | AppendRequested
    | RecordsAppended
    | LogFlushed
    | SnapshotInstalled
    | SnapshotRefused
    | SnapshotTaken
    | ResignRequested
    | VersionUpgradeRequested
    | ShutdownRequested
)

"""What may happen to a replica. Frozen values; the time is an argument of `step`, never a field.

The host owes four of them: `RecordsAppended` after it performed AppendFetched, `LogFlushed` after
FlushLog or TruncateLog, `SnapshotInstalled` after InstallSnapshot, `TimerFired` at `deadline_ms`.
"""

from dataclasses import dataclass
from typing import TypeAlias

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
    "SnapshotTaken",
    "Started",
    "TimerFired",
    "VersionUpgradeRequested",
]


@dataclass(frozen=True, slots=True)
class Started:
    """The first event: what quorum-state held, None where there was no file."""

    election: ElectionState | None


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A peer or client asks; `reply_to` is handed back with the answer."""

    reply_to: object
    request: Message
    version: int
    listener: str
    """The listener that it came in on: NodeEndpoints in answers name the leader's address there."""
    wall_ms: int = 0
    """The time of day, only ever used to state times in answers."""


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The answer to a request of ours; ignored where `request_id` is no longer asked."""

    request_id: int
    response: Message


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The connection could not be made or broke before an answer came."""

    request_id: int


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time that `deadline_ms` named has come, or a spurious wake-up."""


@dataclass(frozen=True, slots=True)
class AppendRequested:
    """The state machine wants records appended, all of them in one batch or none."""

    ticket: object
    """Handed back in AppendRecords or AppendRefused."""
    values: tuple[bytes, ...]
    leader_epoch: int
    """The epoch in which the state machine believes this replica leads."""


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """A control record of the quorum, which a replica obeys from its append on (KIP-853)."""

    offset: Offset
    message: Message


@dataclass(frozen=True, slots=True)
class RecordsAppended:
    """AppendFetched was performed: the good prefix is in the log, flushed or not."""

    control_records: tuple[ControlRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class LogFlushed:
    """The log is durable up to `LogView.flushed_end_offset`, after an append or a truncation."""


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """InstallSnapshot was performed; its KRaftVersion and KRaftVoters, in file order."""

    snapshot_id: OffsetAndEpoch
    control_records: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """The state machine has completed a snapshot of its own."""

    snapshot_id: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class ResignRequested:
    """The state machine gives up the leadership of an epoch."""

    leader_epoch: int


@dataclass(frozen=True, slots=True)
class VersionUpgradeRequested:
    """The active controller finalises a level of kraft.version (UpdateFeatures)."""

    ticket: object
    level: int
    leader_epoch: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
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
    | SnapshotTaken
    | ResignRequested
    | VersionUpgradeRequested
    | ShutdownRequested
)

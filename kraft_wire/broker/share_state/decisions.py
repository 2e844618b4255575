"""What each call checks, answers and writes: Kafka's `ShareCoordinatorShard`, call by call.

Pure functions. The order of the checks is Kafka's. A write raises neither the leader epoch nor the
state epoch that later calls are compared with: the first is raised by a read, the second by
Initialize.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
    SharePartitionState,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.batch_merging import merged_batches
from kraft_wire.broker.share_state.calls import CallKind, StateCall, refusal
from kraft_wire.broker.share_state.state import (
    NO_EPOCH,
    UNCHANGED,
    UNKNOWN,
    ShareState,
    ShareUpdate,
)
from kraft_wire.broker.share_state.state_table import Change, SharePartitionEntry, Tombstone
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["DecidingFacts", "Decision", "decide"]

_DONE: Final = PersisterResult(ErrorCode.NONE)
_STATES_MAX: Final = 4
"""The largest delivery state, archived."""


class Decision(NamedTuple):
    """The answer of a call, and what is written before it may leave."""

    result: PersisterResult
    change: Change | None = None


class DecidingFacts(NamedTuple):
    """What a decision depends on besides the state."""

    has_partition: Callable[[SharePartitionKey], bool]
    """Whether the metadata have the topic partition."""
    updates_per_snapshot: int
    wall_ms: int


def decide(call: StateCall, entry: SharePartitionEntry | None, facts: DecidingFacts) -> Decision:
    """Return what a call answers and writes; `entry` is None without state."""
    if call.key.partition < 0:
        return _invalid("The partition id cannot be a negative number.")
    match call.kind:
        case CallKind.INITIALIZE:
            initial = cast("InitialShareState", call.argument)
            return _initialize(call.key, initial, entry, facts)
        case CallKind.WRITE:
            return _write(call.key, cast("ShareStateWrite", call.argument), entry, facts)
        case CallKind.READ:
            return _read(call.key, cast("LeaderEpoch", call.argument), entry, facts)
        case CallKind.DELETE:
            return _delete(call.key, entry, facts)
        case CallKind.SUMMARY:
            return _summary(call.key, entry, facts)


def _initialize(
    key: SharePartitionKey,
    initial: InitialShareState,
    entry: SharePartitionEntry | None,
    facts: DecidingFacts,
) -> Decision:
    """Begin a state, or begin it again.

    Errors, first match wins: FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
    """
    state_epoch, start_offset = initial
    if entry is not None and state_epoch != NO_EPOCH and entry.known_state_epoch > state_epoch:
        return Decision(refusal(ErrorCode.FENCED_STATE_EPOCH))
    if not facts.has_partition(key):
        return _unknown_partition()
    state = ShareState(
        snapshot_epoch=0 if entry is None else epoch_after(entry.state.snapshot_epoch),
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        delivery_complete_count=UNKNOWN if start_offset == UNKNOWN else 0,
        batches=(),
        create_ms=facts.wall_ms,
        write_ms=facts.wall_ms,
    )
    return Decision(_DONE, state)


def _write(
    key: SharePartitionKey,
    write: ShareStateWrite,
    entry: SharePartitionEntry | None,
    facts: DecidingFacts,
) -> Decision:
    """Add to a state.

    Errors, first match wins: INVALID_REQUEST (no state), FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST (a batch that no share partition has).
    """
    if entry is None:
        return _invalid("Write operation on uninitialized share partition not allowed.")
    if write.leader_epoch != NO_EPOCH and entry.known_leader_epoch > write.leader_epoch:
        return Decision(refusal(ErrorCode.FENCED_LEADER_EPOCH))
    if write.state_epoch != NO_EPOCH and entry.known_state_epoch > write.state_epoch:
        return Decision(refusal(ErrorCode.FENCED_STATE_EPOCH))
    if not facts.has_partition(key):
        return _unknown_partition()
    for batch in write.batches:
        if batch.first_offset > batch.last_offset or not 0 <= batch.delivery_state <= _STATES_MAX:
            return _invalid("Invalid state batch in the request.")
    return Decision(_DONE, _written(write, entry, entry.state.leader_epoch, facts))


def _read(
    key: SharePartitionKey,
    leader_epoch: LeaderEpoch,
    entry: SharePartitionEntry | None,
    facts: DecidingFacts,
) -> Decision:
    """Return a state; a higher leader epoch is written first.

    Errors, first match wins: INVALID_REQUEST (no state), FENCED_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION.
    """
    if entry is None:
        return _invalid("Read operation on uninitialized share partition not allowed.")
    if leader_epoch != NO_EPOCH and entry.known_leader_epoch > leader_epoch:
        return Decision(refusal(ErrorCode.FENCED_LEADER_EPOCH))
    if not facts.has_partition(key):
        return _unknown_partition()
    state = entry.state
    found = SharePartitionState(
        state_epoch=state.state_epoch,
        leader_epoch=LeaderEpoch(leader_epoch),
        start_offset=Offset(state.start_offset),
        delivery_complete_count=UNKNOWN,
        batches=state.batches,
    )
    result = PersisterResult(ErrorCode.NONE, state=found)
    if leader_epoch in (NO_EPOCH, entry.known_leader_epoch):
        return Decision(result)
    write = ShareStateWrite(
        state_epoch=state.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=Offset(state.start_offset),
        delivery_complete_count=state.delivery_complete_count,
        batches=(),
    )
    return Decision(result, _written(write, entry, leader_epoch, facts))


def _summary(
    key: SharePartitionKey, entry: SharePartitionEntry | None, facts: DecidingFacts
) -> Decision:
    """Return a state without batches, also where there is none.

    Errors: UNKNOWN_TOPIC_OR_PARTITION.
    """
    if not facts.has_partition(key):
        return _unknown_partition()
    found = SharePartitionState(0, LeaderEpoch(0), Offset(UNKNOWN), UNKNOWN)
    if entry is not None:
        state = entry.state
        found = SharePartitionState(
            state_epoch=state.state_epoch,
            leader_epoch=LeaderEpoch(state.leader_epoch),
            start_offset=Offset(state.start_offset),
            delivery_complete_count=state.delivery_complete_count,
        )
    return Decision(PersisterResult(ErrorCode.NONE, state=found))


def _delete(
    key: SharePartitionKey, entry: SharePartitionEntry | None, facts: DecidingFacts
) -> Decision:
    """Remove a state, if there is one.

    Errors: UNKNOWN_TOPIC_OR_PARTITION.
    """
    if not facts.has_partition(key):
        return _unknown_partition()
    return Decision(_DONE, None if entry is None else Tombstone.TOMBSTONE)


def _written(
    write: ShareStateWrite, entry: SharePartitionEntry, leader_epoch: int, facts: DecidingFacts
) -> ShareState | ShareUpdate:
    """Return the record of a write: an update, or a snapshot after so many updates."""
    state = entry.state
    if entry.updates_count < facts.updates_per_snapshot:
        return ShareUpdate(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            batches=merged_batches((), write.batches, write.start_offset),
        )
    start_offset = state.start_offset if write.start_offset == UNCHANGED else write.start_offset
    return ShareState(
        snapshot_epoch=epoch_after(state.snapshot_epoch),
        state_epoch=state.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=write.delivery_complete_count,
        batches=merged_batches(state.batches, write.batches, start_offset),
        create_ms=facts.wall_ms,
        write_ms=facts.wall_ms,
    )


def _invalid(words: str) -> Decision:
    return Decision(PersisterResult(ErrorCode.INVALID_REQUEST, words))


def _unknown_partition() -> Decision:
    return Decision(refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

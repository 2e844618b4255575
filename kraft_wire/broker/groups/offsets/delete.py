"""OffsetDelete, and the tombstones by which offsets leave the log."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.offsets.table import OffsetKey
from kraft_wire.broker.groups.records import offset_tombstone
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["DeleteOutcome", "delete_offsets", "write_tombstones"]

_TOMBSTONES_PER_BATCH: Final = 1_000


class DeleteOutcome(NamedTuple):
    """The answer to a deletion, and when it may be given."""

    error: ErrorCode
    """Of all keys."""
    answers: dict[OffsetKey, ErrorCode]
    """The error of each key, if there is no error of all keys."""
    safe_at: int | None = None
    """High watermark of the group's partition to wait for; None: now."""


def delete_offsets(
    shard: GroupShard, group_id: str, keys: Sequence[OffsetKey], at: ClockReading
) -> DeleteOutcome:
    """Delete committed offsets of topics that no member reads.

    Errors of all, first match wins: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP (members whose
    subscriptions cannot be read), those of the append. Error of one: GROUP_SUBSCRIBED_TO_TOPIC.
    """
    error = _validate_delete(shard, group_id)
    if error is not ErrorCode.NONE:
        return DeleteOutcome(error, {})
    group = shard.groups.get(group_id) or shard.other_groups.get(group_id)
    answers: dict[OffsetKey, ErrorCode] = {}
    for key in keys:
        subscribed = group is not None and group.is_subscribed_to(key.topic)
        answers[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
    present = [
        key
        for key, answer in answers.items()
        if answer is ErrorCode.NONE
        and (shard.offsets.get(key) is not None or shard.offsets.is_unstable(key))
    ]
    removed = write_tombstones(shard, present, at)
    return DeleteOutcome(removed.error, answers, removed.safe_at)


def write_tombstones(shard: GroupShard, keys: Sequence[OffsetKey], at: ClockReading) -> Appended:
    """Remove offsets, batch by batch; after an error the remaining ones stay committed.

    Earlier removals that are not committed yet must be waited for too.
    """
    for start in range(0, len(keys), _TOMBSTONES_PER_BATCH):
        part = keys[start : start + _TOMBSTONES_PER_BATCH]
        appended = shard.log.append_for_later([offset_tombstone(key) for key in part], at)
        if appended.error is not ErrorCode.NONE:
            return appended
        for key in part:
            shard.uncommitted.change(key, None, appended.safe_at)
    return Appended(ErrorCode.NONE, shard.uncommitted.safe_at)


def _validate_delete(shard: GroupShard, group_id: str) -> ErrorCode:
    other = shard.other_groups.get(group_id)
    if other is not None and other.kind is GroupType.SHARE:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if other is not None:
        return ErrorCode.NONE
    group = shard.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.is_in(GroupState.EMPTY) or group.uses_consumer_protocol:
        return ErrorCode.NONE
    return ErrorCode.NON_EMPTY_GROUP

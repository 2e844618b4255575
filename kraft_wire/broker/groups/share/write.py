"""Records of a share group into the log, and then into the group."""

from collections.abc import Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import record_type
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.replay import replay_record
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)

__all__ = ["apply", "when_committed", "write"]


def write(
    shard: GroupShard,
    group: ShareGroup,
    records: Sequence[CoordinatorRecord],
    at: ClockReading,
) -> Appended:
    """Append the records as one batch and apply them; after an error nothing has changed.

    The group is what its log says: it changes by reading its own records. An answer without records
    waits for the group's last ones, as in Kafka.
    """
    if not records:
        # The answer shows what was written before, and a failover may lose that.
        is_committed = group.safe_at <= shard.log.high_watermark()
        return Appended(ErrorCode.NONE, None if is_committed else group.safe_at)
    appended = shard.log.append_for_later(records, at)
    if appended.error is ErrorCode.NONE:
        apply(group, records, appended, at)
    return appended


def apply(
    group: ShareGroup, records: Sequence[CoordinatorRecord], appended: Appended, at: ClockReading
) -> None:
    """Let the group be what its appended records say."""
    group.safe_at = appended.safe_at or group.safe_at
    for key, value in records:
        replay_record(group, key, value)
        if record_type(key) == ShareGroupStatePartitionMetadataKey.RECORD_TYPE:
            group.noted_at_ms = at.now_ms


def when_committed(
    shard: GroupShard, group: ShareGroup, at: ClockReading, then: CommitCallback
) -> None:
    """Call `then` once the ISR has the newest records of the group, or will not in time."""
    if group.safe_at <= shard.log.high_watermark():
        then(ErrorCode.NONE, at)
    else:
        shard.log.await_commit(group.safe_at, at, then)

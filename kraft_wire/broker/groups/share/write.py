"""Records of a share group into the log, and then into the group."""

from collections.abc import Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import record_type
from kraft_wire.broker.groups.group_writes import uncommitted_end, write_records
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
    """Append the records as one batch and apply them; see `write_records`."""
    return write_records(shard, group, records, at, apply)


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
    end = uncommitted_end(shard, group)
    if end is None:
        then(ErrorCode.NONE, at)
    else:
        shard.log.await_commit(end, at, then)

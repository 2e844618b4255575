"""Records of a consumer group into the log, and then into the group."""

from collections.abc import Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import record_type
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.replay import replay_record
from kraft_wire.broker.groups.records import GROUP_METADATA
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["write"]


def write(
    shard: GroupShard,
    group: ConsumerGroup,
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
        group.safe_at = appended.safe_at or group.safe_at
        for key, value in records:
            if record_type(key) != GROUP_METADATA:
                replay_record(group, key, value)
    return appended

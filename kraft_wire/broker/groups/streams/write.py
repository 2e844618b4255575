"""Records of a streams group into the log, and then into the group."""

from collections.abc import Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import record_type
from kraft_wire.broker.groups.group_writes import write_records
from kraft_wire.broker.groups.records import GROUP_METADATA
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.replay import replay_record

__all__ = ["write"]


def write(
    shard: GroupShard,
    group: StreamsGroup,
    records: Sequence[CoordinatorRecord],
    at: ClockReading,
) -> Appended:
    """Append the records as one batch and apply them; see `write_records`."""
    return write_records(shard, group, records, at, _apply)


def _apply(
    group: StreamsGroup, records: Sequence[CoordinatorRecord], appended: Appended, at: ClockReading
) -> None:
    group.safe_at = appended.safe_at or group.safe_at
    for key, value in records:
        if record_type(key) != GROUP_METADATA:
            replay_record(group, key, value)

"""Records of a group that is not classic, on their way into its log and to the ISR.

The group is what its log says: it changes by reading its own records. An answer shows only what the
ISR has, because a failover may lose the rest.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.groups.group_types import OtherGroup
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["uncommitted_end", "write_records"]

G = TypeVar("G", bound=OtherGroup)


def uncommitted_end(shard: GroupShard, group: OtherGroup) -> int | None:
    """Return the high watermark that commits a group's newest records; None: the ISR has them."""
    return group.safe_at if group.safe_at > shard.log.high_watermark() else None


def write_records(
    shard: GroupShard,
    group: G,
    records: Sequence[CoordinatorRecord],
    at: ClockReading,
    apply: Callable[[G, Sequence[CoordinatorRecord], Appended, ClockReading], None],
) -> Appended:
    """Append records as one batch and `apply` them; after an error nothing has changed.

    An answer without records waits for the group's last ones, as in Kafka.
    """
    if not records:
        return Appended(ErrorCode.NONE, uncommitted_end(shard, group))
    appended = shard.log.append_for_later(records, at)
    if appended.error is ErrorCode.NONE:
        apply(group, records, appended, at)
    return appended

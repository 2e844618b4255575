"""The end of a transaction that committed offsets of groups: its marker in `__consumer_offsets`."""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["end_transaction"]


def end_transaction(shard: GroupShard, marker: TransactionMarker, at: ClockReading) -> Appended:
    """Append a marker, and store or drop the pending offsets of its producer.

    Errors: those of the append, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED. A marker
    that is not appended decides nothing. The answer waits for the high watermark that is returned.
    """
    appended = shard.log.append_marker(marker, at)
    if appended.error is ErrorCode.NONE:
        shard.uncommitted.end_transaction(
            marker.producer_id, commits=marker.is_commit, safe_at=appended.safe_at
        )
    return appended

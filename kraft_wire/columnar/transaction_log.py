"""The decoded records of `__transaction_state`: the states of transactional ids.

Both versions of a value (KIP-98, KIP-890). Unreadable records are left out, as Kafka's coordinator
skips unknown ones when it loads them.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kraft_wire.columnar.coordinator_log import LoggedRecord, coordinator_log
from kraft_wire.columnar.segments import PartitionFiles
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.generated.transaction_log_key import TransactionLogKey
from kraft_wire.wire.generated.transaction_log_value import TransactionLogValue
from kraft_wire.wire.message import MalformedMessage

__all__ = ["TRANSACTION_STATE_TOPIC", "TransactionRecord", "transaction_records"]

TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Names by the number in the log."""
_VERSION_BYTES: Final = 2


class TransactionRecord(NamedTuple):
    """One record of a partition of `__transaction_state`."""

    offset: int
    timestamp: int
    transactional_id: str
    value: TransactionLogValue | None
    """None for a tombstone."""

    @property
    def state(self) -> str | None:
        """The name of the state; None for a tombstone."""
        if self.value is None:
            return None
        number = self.value.transaction_status
        is_known = 0 <= number < len(_STATES)
        return _STATES[number] if is_known else f"state {number}"


def transaction_records(fs: FileSystem, files: PartitionFiles) -> Iterator[TransactionRecord]:
    """Yield the records of one replica of a partition, in the order of the log."""
    for each in coordinator_log(fs, files):
        if isinstance(each, LoggedRecord):
            record = _record(each.offset, each.timestamp, each.key, each.value)
            if record is not None:
                yield record


def _record(
    offset: int, timestamp: int, key: bytes | None, value: bytes | None
) -> TransactionRecord | None:
    if key is None or int.from_bytes(key[:_VERSION_BYTES], "big") != 0:
        return None
    try:
        name = TransactionLogKey.decode(key, 0, _VERSION_BYTES)[0].transactional_id
        if value is None:
            return TransactionRecord(offset, timestamp, name, None)
        version = int.from_bytes(value[:_VERSION_BYTES], "big")
        if not TransactionLogValue.MIN_VERSION <= version <= TransactionLogValue.MAX_VERSION:
            return None
        decoded, _ = TransactionLogValue.decode(value, version, _VERSION_BYTES)
    except MalformedMessage:
        return None
    return TransactionRecord(offset, timestamp, name, decoded)

"""Records of `__transaction_state`, in the versions that Kafka 4.3.1 writes.

A key is an int16 version 0 and the transactional id; a value is an int16 version and the value
struct: version 0 under `transaction.version` 0, version 1 with tagged fields since. A tombstone
has no value.
"""

from typing import Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import (
    coordinator_record,
    read_struct,
    record_type,
    tombstone,
    value_version,
)
from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.broker.transactions.transactional_id import TransactionMetadata
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.transaction_log_key import TransactionLogKey
from kraft_wire.wire.generated.transaction_log_value import PartitionsSchema, TransactionLogValue
from kraft_wire.wire.message import MalformedMessage

__all__ = ["KEY_VERSION", "read_key", "read_value", "transaction_record", "transaction_tombstone"]

KEY_VERSION: Final = 0
_STATES: Final = {
    state.log_id: state
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
}


def transaction_record(
    name: str, metadata: TransactionMetadata, transaction_version: int
) -> CoordinatorRecord:
    """Write the state of a transactional id."""
    version = 0 if transaction_version == 0 else 1
    topics: dict[str, PartitionsSchema] = {}
    for topic, partition in metadata.partitions:
        schema = topics.setdefault(topic, PartitionsSchema(topic=topic))
        schema.partition_ids.append(partition)
    is_empty = metadata.state is TransactionState.EMPTY
    assert not (is_empty and topics), (name, metadata)
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.log_id,
        transaction_partitions=None if is_empty else list(topics.values()),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if version > 0:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_version
    return coordinator_record(TransactionLogKey(transactional_id=name), value, version)


def transaction_tombstone(name: str) -> CoordinatorRecord:
    """Return the tombstone of a transactional id."""
    return tombstone(TransactionLogKey(transactional_id=name))


def read_key(key: bytes) -> str | int:
    """Return the transactional id of a key, or the version of an unknown key (KIP-915).

    Raises MalformedMessage.
    """
    version = record_type(key)
    if version != KEY_VERSION:
        return version
    return read_struct(TransactionLogKey, key, version).transactional_id


def read_value(value: bytes) -> TransactionMetadata | int:
    """Return the state of a transactional id, or the version of an unknown value.

    Raises MalformedMessage, also for a state that is never logged.
    """
    version = value_version(value)
    if not TransactionLogValue.MIN_VERSION <= version <= TransactionLogValue.MAX_VERSION:
        return version
    read = read_struct(TransactionLogValue, value, version)
    state = _STATES.get(read.transaction_status)
    if state is None:
        raise MalformedMessage("transaction_status", 0, f"state {read.transaction_status}")
    partitions = {
        TopicPartition(each.topic, number): None
        for each in read.transaction_partitions or ()
        for number in each.partition_ids
    }
    return TransactionMetadata(
        producer_id=read.producer_id,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        producer_epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        start_ms=read.transaction_start_timestamp_ms,
        last_update_ms=read.transaction_last_update_timestamp_ms,
        client_version=read.client_transaction_version,
    )

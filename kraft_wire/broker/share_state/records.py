"""Records of `__share_group_state`, in the versions that Kafka 4.3.1 writes.

A key is an int16 type, 0 for a snapshot and 1 for an update, and the key struct; a value is an
int16 version 0 and the value struct. A tombstone has the key of a snapshot.
"""

from collections.abc import Iterable
from typing import Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import (
    coordinator_record,
    read_struct,
    record_type,
    tombstone,
    value_version,
)
from kraft_wire.broker.share_persister import DeliveryStateBatch, SharePartitionKey
from kraft_wire.broker.share_state.state import ShareState, ShareUpdate
from kraft_wire.broker.share_state.state_table import Change, Tombstone
from kraft_wire.model import Offset
from kraft_wire.wire.generated import share_snapshot_value, share_update_value
from kraft_wire.wire.generated.share_snapshot_key import ShareSnapshotKey
from kraft_wire.wire.generated.share_snapshot_value import ShareSnapshotValue
from kraft_wire.wire.generated.share_update_key import ShareUpdateKey
from kraft_wire.wire.generated.share_update_value import ShareUpdateValue
from kraft_wire.wire.message import MalformedMessage

__all__ = ["read_record", "record_of"]

_VERSION: Final = 0


def record_of(key: SharePartitionKey, change: Change) -> CoordinatorRecord:
    """Write a change of a share partition's state."""
    group_id, topic_id, partition = key
    if isinstance(change, ShareUpdate):
        update_key = ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition)
        return coordinator_record(update_key, _update_value(change), _VERSION)
    snapshot_key = ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
    if isinstance(change, ShareState):
        return coordinator_record(snapshot_key, _snapshot_value(change), _VERSION)
    return tombstone(snapshot_key)


def read_record(key: bytes, value: bytes | None) -> tuple[SharePartitionKey, Change] | str:
    """Return what a record changes, or why it is left alone: a newer release has written it.

    Raises MalformedMessage.
    """
    kind = record_type(key)
    if kind == ShareSnapshotKey.RECORD_TYPE:
        snapshot_key = read_struct(ShareSnapshotKey, key)
        name = SharePartitionKey(
            snapshot_key.group_id, snapshot_key.topic_id, snapshot_key.partition
        )
        if value is None:
            return name, Tombstone.TOMBSTONE
        if value_version(value) != _VERSION:
            return f"value of version {value_version(value)}"
        return name, _snapshot(read_struct(ShareSnapshotValue, value))
    if kind == ShareUpdateKey.RECORD_TYPE:
        update_key = read_struct(ShareUpdateKey, key)
        name = SharePartitionKey(update_key.group_id, update_key.topic_id, update_key.partition)
        if value is None:
            raise MalformedMessage("value", 0, "an update without a value")
        if value_version(value) != _VERSION:
            return f"value of version {value_version(value)}"
        return name, _update(read_struct(ShareUpdateValue, value))
    return f"key of type {kind}"


def _snapshot_value(state: ShareState) -> ShareSnapshotValue:
    return ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_ms,
        write_timestamp=state.write_ms,
        state_batches=[
            share_snapshot_value.StateBatch(
                first_offset=first, last_offset=last, delivery_state=status, delivery_count=count
            )
            for first, last, status, count in state.batches
        ],
    )


def _update_value(update: ShareUpdate) -> ShareUpdateValue:
    return ShareUpdateValue(
        snapshot_epoch=update.snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=[
            share_update_value.StateBatch(
                first_offset=first, last_offset=last, delivery_state=status, delivery_count=count
            )
            for first, last, status, count in update.batches
        ],
    )


def _snapshot(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=_batches(value.state_batches),
        create_ms=value.create_timestamp,
        write_ms=value.write_timestamp,
    )


def _update(value: ShareUpdateValue) -> ShareUpdate:
    return ShareUpdate(
        snapshot_epoch=value.snapshot_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=_batches(value.state_batches),
    )


def _batches(
    batches: Iterable[share_snapshot_value.StateBatch | share_update_value.StateBatch],
) -> list[DeliveryStateBatch]:
    return [
        DeliveryStateBatch(
            Offset(each.first_offset),
            Offset(each.last_offset),
            each.delivery_state,
            each.delivery_count,
        )
        for each in batches
    ]

"""Replays a partition of `__consumer_offsets`: record type to change of the shard.

Records of a consumer group change that group (`consumer/replay`), and so do those of a share group
(`share/replay`) and of a streams group (`streams/replay`). Unreadable records are left in the log,
and counted under a named reason.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final, Literal

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.coordination.record_codec import (
    BODY_AT,
    read_struct,
    record_type,
    value_version,
)
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.member import Member
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.replay import group_remains, replay_record
from kraft_wire.broker.groups.group_types import (
    GROUP_TYPES_OF_RECORDS,
    GroupType,
    OtherGroup,
)
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey
from kraft_wire.broker.groups.records import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
)
from kraft_wire.broker.groups.replayed_shard import ReplayedShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.replay import replay_record as replay_share_record
from kraft_wire.broker.groups.share.replay import share_group_remains
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.replay import replay_record as replay_streams_record
from kraft_wire.broker.groups.streams.replay import streams_group_remains
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.generated.group_metadata_key import GroupMetadataKey
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraft_wire.wire.generated.legacy_offset_commit_value import LegacyOffsetCommitValue
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from kraft_wire.wire.message import MalformedMessage
from kraft_wire.wire.records.corruption import (
    CorruptRecordBatch,
    DecompressedTooLarge,
    InvalidRecord,
)
from kraft_wire.wire.records.memory_records import AnyBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["CoordinatorReplay", "group_id_of"]

_INT16: Final = Struct(">h")
"""Keys and values begin with an int16: record type, version."""
_COMMIT_MARKER: Final = 1
_ABORT_MARKER: Final = 0


class CoordinatorReplay:
    """One loading of one partition."""

    def __init__(self, shard: ReplayedShard) -> None:
        self.shard = shard
        self.records_count = 0
        self.ignored: dict[str, int] = {}
        """Reason to number of records that were left alone."""
        by_type: dict[int, Callable[[int | None, Record, bytes], bool]] = {
            LEGACY_OFFSET_COMMIT: self._offset_commit,
            OFFSET_COMMIT: self._offset_commit,
            GROUP_METADATA: self._group_metadata,
        }
        by_type.update((kind, self._other_group) for kind in GROUP_TYPES_OF_RECORDS)
        self._by_type = by_type

    def batch(self, batch: AnyBatch) -> None:
        """Take every record of a batch, in order; formats 0 and 1 know no transactions."""
        transaction = None
        if isinstance(batch, RecordBatch) and batch.is_transactional:
            transaction = batch.producer_id
        try:
            for record in _records(batch):
                if isinstance(batch, RecordBatch) and batch.is_control:
                    key = record.key
                    kind = record_type(key[BODY_AT:]) if key is not None else -1
                    self.marker(batch.producer_id, kind)
                else:
                    self.record(record, transaction)
        except (CorruptRecordBatch, DecompressedTooLarge, InvalidRecord):
            self._ignore("batch that cannot be read")

    def record(self, record: Record, transaction: int | None) -> bool:
        """Take one record; whether it could be read.

        `transaction` is the producer id of the transaction that it is in.
        """
        self.records_count += 1
        key = record.key
        if key is None:
            return self._ignore("record without key")
        replay = self._by_type.get(record_type(key))
        if replay is None:
            return self._ignore(f"record type {record_type(key)}")
        try:
            return replay(transaction, record, key)
        except MalformedMessage as malformed:
            return self._ignore(f"malformed {malformed.field}")

    def marker(self, producer_id: int, kind: int) -> None:
        """Take the end of a transaction; `kind` is the type in the key of the control record."""
        self.records_count += 1
        if kind not in (_ABORT_MARKER, _COMMIT_MARKER):
            self._ignore(f"control record of type {kind}")
            return
        self.shard.uncommitted.end_transaction(
            producer_id, commits=kind == _COMMIT_MARKER, safe_at=None
        )

    def _offset_commit(self, transaction: int | None, record: Record, key: bytes) -> bool:
        # The legacy key has the same fields, its value is the same but for what came later.
        struct = read_struct(OffsetCommitKey, key)
        offset_key = OffsetKey(struct.group, struct.topic, struct.partition)
        if record.value is None:
            self.shard.offsets.remove(offset_key)
            return True
        committed = CommittedOffset.from_record(
            _offset_value(record_type(key), record.value), record.offset
        )
        group_id = offset_key.group_id
        if group_id not in self.shard.groups and group_id not in self.shard.other_groups:
            self.shard.groups[group_id] = ClassicGroup(group_id, self.shard.memory, None)
        if transaction is not None:
            self.shard.offsets.put_open(transaction, offset_key, committed)
        else:
            self.shard.offsets.put(offset_key, committed)
        return True

    def _group_metadata(self, transaction: int | None, record: Record, key: bytes) -> bool:
        struct = read_struct(GroupMetadataKey, key)
        group_id = struct.group
        if record.value is None:
            self._drop(group_id)
            return True
        version = value_version(record.value)
        if not GroupMetadataValue.MIN_VERSION <= version <= GroupMetadataValue.MAX_VERSION:
            return self._ignore(f"group metadata of version {version}")
        value = read_struct(GroupMetadataValue, record.value, version)
        if not _is_consistent(value):
            return self._ignore("group metadata that contradicts itself")
        self._drop(group_id)
        self.shard.remove_other_group(group_id)
        self.shard.groups[group_id] = _loaded_group(group_id, self.shard.memory, value)
        return True

    def _other_group(self, transaction: int | None, record: Record, key: bytes) -> bool:
        group_id = group_id_of(key)
        if group_id is None:
            return self._ignore(f"key of record type {record_type(key)}")
        kind = GROUP_TYPES_OF_RECORDS[record_type(key)]
        group = self.shard.other_groups.get(group_id)
        if group is None or group.kind is not kind:
            if record.value is None:
                return True
            fresh = self._new_group(group_id, kind)
            try:
                _replay_into(fresh, key, record.value)
            except MalformedMessage:
                fresh.release()
                raise
            # A group that only had offsets turns out to be the other protocol's; one with members
            # was converted, and its own tombstone may have been compacted away.
            self._drop(group_id)
            self.shard.remove_other_group(group_id)
            self.shard.other_groups[group_id] = fresh
        elif not _replay_into(group, key, record.value):
            self.shard.remove_other_group(group_id)
            self._keep_offsets_reachable(group_id)
        return True

    def _new_group(
        self, group_id: str, kind: GroupType
    ) -> ConsumerGroup | ShareGroup | StreamsGroup:
        if kind is GroupType.CONSUMER:
            return ConsumerGroup(group_id, self.shard.memory)
        if kind is GroupType.SHARE:
            return ShareGroup(group_id, self.shard.memory)
        return StreamsGroup(group_id, self.shard.memory)

    def _keep_offsets_reachable(self, group_id: str) -> None:
        if self.shard.offsets.of_group(group_id):
            self.shard.groups[group_id] = ClassicGroup(group_id, self.shard.memory, None)

    def _drop(self, group_id: str) -> None:
        group = self.shard.groups.pop(group_id, None)
        if group is not None:
            group.release()

    def _ignore(self, reason: str) -> Literal[False]:
        self.ignored[reason] = self.ignored.get(reason, 0) + 1
        return False


def _replay_into(group: OtherGroup, key: bytes, value: bytes | None) -> bool:
    """Give a group its record; whether the group is there afterwards. MalformedMessage."""
    if isinstance(group, ConsumerGroup):
        replay_record(group, key, value)
        return group_remains(key, value)
    if isinstance(group, ShareGroup):
        replay_share_record(group, key, value)
        return share_group_remains(key, value)
    assert isinstance(group, StreamsGroup), group
    replay_streams_record(group, key, value)
    return streams_group_remains(key, value)


def _records(batch: AnyBatch) -> Iterable[Record]:
    if isinstance(batch, RecordBatch):
        return batch.iter_records(STORED_LIMITS)
    return batch.records(STORED_LIMITS)


def group_id_of(key: bytes) -> str | None:
    """Return the group id that all these keys start with, after the record type."""
    if len(key) < 2 * _INT16.size:
        return None
    size = _INT16.unpack_from(key, _INT16.size)[0]
    text = key[2 * _INT16.size : 2 * _INT16.size + max(size, 0)]
    if size < 0 or len(text) != size:
        return None
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _offset_value(kind: int, value: bytes) -> OffsetCommitValue:
    version = value_version(value)
    if kind == LEGACY_OFFSET_COMMIT:
        legacy = read_struct(LegacyOffsetCommitValue, value)
        return OffsetCommitValue(
            offset=legacy.offset,
            metadata=legacy.metadata,
            commit_timestamp=legacy.commit_timestamp,
        )
    if not OffsetCommitValue.MIN_VERSION <= version <= OffsetCommitValue.MAX_VERSION:
        raise MalformedMessage("version", 0, f"offset commit value of version {version}")
    return read_struct(OffsetCommitValue, value, version)


def _is_consistent(value: GroupMetadataValue) -> bool:
    """Whether a group can be made of the record: its members differ, its leader is one of them."""
    if not value.members:
        return True
    member_ids = [member.member_id for member in value.members]
    instance_ids = [m.group_instance_id for m in value.members if m.group_instance_id is not None]
    return (
        len(dict.fromkeys(member_ids)) == len(member_ids)
        and len(dict.fromkeys(instance_ids)) == len(instance_ids)
        and value.leader in member_ids
        and value.protocol is not None
    )


def _loaded_group(group_id: str, memory: MemoryUse, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group of its last record: stable with members, else empty."""
    state = GroupState.STABLE if value.members else GroupState.EMPTY
    stamp = value.current_state_timestamp
    group = ClassicGroup(group_id, memory, None if stamp == -1 else stamp, state)
    for loaded in value.members:
        group.add(_loaded_member(value, loaded), None)
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader if value.members else None
    group.subscribed_topics = group.read_subscriptions()
    return group


def _loaded_member(value: GroupMetadataValue, loaded: MemberMetadata) -> Member:
    timeout_ms = loaded.rebalance_timeout
    return Member(
        member_id=loaded.member_id,
        group_instance_id=loaded.group_instance_id,
        client_id=loaded.client_id,
        client_host=loaded.client_host,
        rebalance_timeout_ms=loaded.session_timeout if timeout_ms == -1 else timeout_ms,
        session_timeout_ms=loaded.session_timeout,
        protocol_type=value.protocol_type,
        protocols={value.protocol or "": bytes(loaded.subscription)},
        assignment=bytes(loaded.assignment),
    )

"""Groups and committed offsets of `__consumer_offsets` as rows of `groups` and `group_offsets`.

The state at the end of the log, as a coordinator loads it. `member_rows` has the members.
"""

from collections.abc import Iterator

from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.group_types import OtherGroup
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.columnar.records import TIME_MS_MAX
from kraft_wire.model import ZERO_UUID, uuid_to_text
from kraft_wire.spark.metadata.group_state import LoadedPartition

__all__ = ["Row", "group_rows", "offset_rows"]

Row = dict[str, object]


def group_rows(loaded: LoadedPartition) -> Iterator[Row]:
    """Yield the groups of a partition, by id."""
    state = loaded.state
    found = [_classic(each) for each in state.groups.values()]
    found += [_other(each) for each in state.other_groups.values()]
    for row in sorted(found, key=lambda row: str(row["groupId"])):
        change = loaded.changes.get(str(row["groupId"]))
        row["coordinatorPartition"] = loaded.partition
        if change is not None:
            row["changedOffset"] = change.offset
            row["changedTimestamp"] = _time(change.timestamp_ms)
        yield row


def _classic(group: ClassicGroup) -> Row:
    return {
        "groupId": group.group_id,
        "groupType": "classic",
        "state": group.state.value,
        "protocolType": group.protocol_type,
        "protocol": group.protocol_name,
        "generation": group.generation_id,
        "leader": group.leader_id,
        "members": len(group.members),
    }


def _other(group: OtherGroup) -> Row:
    assert isinstance(group, ConsumerGroup | ShareGroup | StreamsGroup), group
    topology = group.topology if isinstance(group, StreamsGroup) else None
    return {
        "groupId": group.group_id,
        "groupType": group.kind.value,
        "state": group.state_name,
        "protocolType": group.kind.value,
        "groupEpoch": group.epoch,
        "assignmentEpoch": group.assignment_epoch,
        "topologyEpoch": None if topology is None else topology.epoch,
        "members": len(group.members),
    }


def offset_rows(loaded: LoadedPartition) -> Iterator[Row]:
    """Yield the offsets of a partition by group, topic and partition, the committed one first.

    Further ones of the same partition are pending: the transactions that commit them are open.
    """
    for key, committed, producer_id in sorted(loaded.state.offsets, key=_place):
        yield _offset(loaded.partition, key, committed, producer_id)


def _place(each: tuple[OffsetKey, CommittedOffset, int | None]) -> tuple[OffsetKey, int]:
    key, _, producer_id = each
    return key, -1 if producer_id is None else producer_id


def _offset(
    partition: int, key: OffsetKey, committed: CommittedOffset, producer_id: int | None
) -> Row:
    topic_id, epoch = committed.topic_id, committed.leader_epoch
    return {
        "groupId": key.group_id,
        "topic": key.topic,
        "topicId": None if topic_id == ZERO_UUID else uuid_to_text(topic_id),
        "partition": key.partition,
        "coordinatorPartition": partition,
        "state": "committed" if producer_id is None else "pending",
        "committedOffset": committed.offset,
        "leaderEpoch": None if epoch < 0 else epoch,
        "metadata": committed.metadata,
        "commitTimestamp": _time(committed.commit_timestamp_ms),
        "expireTimestamp": _time(committed.expire_timestamp_ms),
        "producerId": producer_id,
        "recordOffset": committed.record_offset,
    }


def _time(timestamp_ms: int | None) -> int | None:
    """Return microseconds; None for an unknown or invalid time."""
    if timestamp_ms is None:
        return None
    return timestamp_ms * 1000 if 0 <= timestamp_ms <= TIME_MS_MAX else None

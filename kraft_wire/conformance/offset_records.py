"""Committed offsets as a broker writes them to its internal topic, for the cases about them."""

from struct import Struct
from typing import Final

from kraft_wire.conformance.requests import LATEST, fetch, list_offsets
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.fetch import FetchResponse, PartitionData
from kraft_wire.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsResponse
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from kraft_wire.wire.records.record_batch import parse_batches

__all__ = ["offsets_ends", "offsets_since"]

_FETCH_BY_NAME: Final = 12
_INT16: Final = Struct(">h")
_KEY_TYPE: Final = _INT16.pack(OffsetCommitKey.RECORD_TYPE)


def offsets_ends(broker: Subject) -> dict[int, int]:
    """Return the end of each partition of the topic of offsets that the broker leads.

    Errors: NotSupported if the broker keeps offsets elsewhere.
    """
    topic = broker.offsets_topic()
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)])
    partitions = broker.prepare(wanted, MetadataResponse).topics[0].partitions
    own = (broker.target.node_id, -1)
    led = sorted(each.partition_index for each in partitions if each.leader_id in own)
    request = list_offsets(topic, LATEST)
    request.topics[0].partitions = [
        ListOffsetsPartition(partition_index=each, current_leader_epoch=-1, timestamp=LATEST)
        for each in led
    ]
    found = broker.prepare(request, ListOffsetsResponse).topics[0].partitions
    return {each.partition_index: each.offset for each in found}


def offsets_since(
    broker: Subject, ends: dict[int, int], group_id: str, *, count: int
) -> dict[int, OffsetCommitValue]:
    """Read the offsets of a group that were written behind these ends, by partition.

    The group has one topic. Waits until there are offsets of `count` partitions.
    """
    request = fetch(broker.offsets_topic(), _FETCH_BY_NAME, partitions=list(ends))
    for each in request.topics[0].partitions:
        each.fetch_offset = ends[each.partition]
    for _ in broker.attempts(f"offsets of group {group_id} in {count} partitions"):
        answer = broker.prepare(request, FetchResponse, until=_FETCH_BY_NAME)
        values: dict[int, OffsetCommitValue] = {}
        for partition in answer.responses[0].partitions:
            values |= _offsets(partition, group_id)
        if len(values) == count:
            return values
    raise AssertionError("attempts end in an exception")


def _offsets(partition: PartitionData, group_id: str) -> dict[int, OffsetCommitValue]:
    records = bytes(partition.records or b"")  # type: ignore[arg-type]  # decoded frames hold bytes
    values = {}
    for batch in parse_batches(records):
        for record in batch.iter_records():
            key, value = record.key or b"", record.value or b""
            if not key.startswith(_KEY_TYPE) or not value:
                continue
            named, _ = OffsetCommitKey.decode(key, 0, _INT16.size)
            if named.group == group_id:
                (version,) = _INT16.unpack_from(value)
                values[named.partition], _ = OffsetCommitValue.decode(value, version, _INT16.size)
    return values

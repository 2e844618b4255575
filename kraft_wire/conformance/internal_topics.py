"""Records that coordinators write to internal topics, for the cases about them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kraft_wire.conformance import expect
from kraft_wire.conformance.requests import LATEST, fetch, fetched, list_offsets
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.records.record_batch import parse_batches

__all__ = ["BODY_AT", "InternalTopic", "internal_topic", "type_of", "values_since"]

BODY_AT: Final = 2
"""Where a key or value begins, behind the number of its type or version."""


class InternalTopic(NamedTuple):
    """An internal topic, and where the partitions that the broker leads ended."""

    topic: Topic
    ends: dict[int, int]


def internal_topic(broker: Subject, name: str) -> InternalTopic:
    """Return an internal topic as it is now. Errors: NotSupported where it does not exist."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    found = broker.prepare(request, MetadataResponse).topics[0]
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NotSupported(f"the broker has no topic {name}")
    topic, node_id = Topic(name, found.topic_id), broker.target.node_id
    ends = {}
    for each in found.partitions:
        if node_id in (-1, each.leader_id):
            wanted = list_offsets(topic, LATEST, partition=each.partition_index)
            answer = broker.prepare(wanted, ListOffsetsResponse)
            expect.error(answer, "topics[0].partitions[0].error_code", ErrorCode.NONE)
            ends[each.partition_index] = answer.topics[0].partitions[0].offset
    return InternalTopic(topic, ends)


def values_since(broker: Subject, log: InternalTopic) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of the records that came later, without those that delete."""
    _, last = broker.target.versions.get(FetchRequest.API_KEY, (0, -1))
    version = min(last, FetchRequest.MAX_VERSION)
    for partition, end in log.ends.items():
        request = fetch(log.topic, version, end, partitions=(partition,))
        found = fetched(broker.prepare(request, FetchResponse)).records or b""
        for batch in parse_batches(bytes(found)):  # type: ignore[arg-type]  # decoded frames hold bytes
            for record in batch.records():
                if record.key is not None and record.value is not None:
                    yield bytes(record.key), bytes(record.value)


def type_of(data: bytes) -> int:
    """Return the type of a key, or the version of a value."""
    return int.from_bytes(data[:BODY_AT], "big", signed=True)

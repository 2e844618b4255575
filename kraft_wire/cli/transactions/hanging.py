"""Finds hanging transactions: open on a partition, and no coordinator will write a marker there.

As kafka-transactions.sh decides: the producer has been silent for longer than any transaction may
last, and no transactional id has its producer id, or the id's transaction lacks the partition.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kraft_wire.cli.transactions.admin import (
    ProducerFacts,
    active_producers,
    described_transaction,
    listed_transactions,
)
from kraft_wire.client.cluster import ClusterClient
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

__all__ = ["OpenTransaction", "hanging_transactions", "searched_partitions"]

_TOPICS_A_REQUEST: Final = 500


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A producer with a transaction open on a partition."""

    partition: TopicPartition
    producer: ProducerFacts


def searched_partitions(
    client: ClusterClient, topic: str | None, broker_id: int | None
) -> list[TopicPartition]:
    """Return the partitions of a topic, or of all that are not internal, with a replica there."""
    names = client.topic_names() if topic is None else list(client.partitions_of([topic]))
    found = []
    for start in range(0, len(names), _TOPICS_A_REQUEST):
        asked = [MetadataRequestTopic(name=each) for each in names[start:][:_TOPICS_A_REQUEST]]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        for each in client.any_broker().send(request, MetadataResponse).topics:
            found += [
                TopicPartition(each.name or "", partition.partition_index)
                for partition in each.partitions
                if broker_id is None or broker_id in partition.replica_nodes
            ]
    return sorted(found)


def hanging_transactions(
    client: ClusterClient,
    partitions: Iterable[TopicPartition],
    broker_id: int | None,
    silent_since_ms: int,
) -> list[OpenTransaction]:
    """Return the hanging ones of the transactions whose producer last wrote before a time."""
    candidates = [
        OpenTransaction(partition, producer)
        for partition in partitions
        for producer in active_producers(client, partition, broker_id)
        if producer.current_transaction_start_offset is not None
        and producer.last_timestamp < silent_since_ms
    ]
    expected = _expected_partitions(client, candidates)
    return [
        each
        for each in candidates
        if each.partition not in expected.get(each.producer.producer_id, ())
    ]


def _expected_partitions(
    client: ClusterClient, candidates: Sequence[OpenTransaction]
) -> dict[int, list[TopicPartition]]:
    """Return, by producer id, the partitions that a coordinator will write markers to."""
    producer_ids = {each.producer.producer_id for each in candidates}
    expected: dict[int, list[TopicPartition]] = {}
    for listed in listed_transactions(client, producer_ids=producer_ids) if producer_ids else ():
        try:
            described = described_transaction(client, listed.transactional_id)
        except AdminRefused as refused:
            if refused.error is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
        else:
            expected[listed.producer_id] = described.topic_partitions
    return expected

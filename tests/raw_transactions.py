"""A transactional producer of raw requests, which stops wherever a test wants it to.

Real clients end what they began; this one leaves transactions open, and writes where no coordinator
knows of it. It speaks the protocol of transaction.version 2 (KIP-890) to brokers of either make.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

from kraft_wire.client.cluster import ClusterClient, ClusterSettings
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.metadata import MetadataResponse as MetadataAnswer
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.waiting import until

T = TypeVar("T")

UNVERIFIED = 11
"""The last version of Produce whose partitions are verified, and not added (KIP-890)."""
_PASSING = {
    E.CONCURRENT_TRANSACTIONS,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.NOT_LEADER_OR_FOLLOWER,
    E.NOT_ENOUGH_REPLICAS,
    E.UNKNOWN_TOPIC_OR_PARTITION,
}


class RawProducer:
    """One transactional id at a cluster."""

    def __init__(self, bootstrap: str, transactional_id: str | None) -> None:
        self.name = transactional_id
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._client = ClusterClient(ClusterSettings((bootstrap,)))

    def __enter__(self) -> RawProducer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; what is open stays open."""
        self._client.close()

    def move_to(self, bootstrap: str) -> None:
        """Go on at another address, with the ids and sequences that it has."""
        self._client.close()
        self._client = ClusterClient(ClusterSettings((bootstrap,)))

    def init(self, timeout_ms: int = 60_000) -> RawProducer:
        """Take a producer id and an epoch."""
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=timeout_ms
        )

        def ask() -> InitProducerIdResponse:
            return self._client.broker(self._coordinator(self.name or "")).send(
                request, InitProducerIdResponse
            )

        answer = _passed(ask, lambda each: each.error_code)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        return self

    def create(self, topic: str) -> None:
        """Have a topic created by asking for it."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])

        def exists() -> bool:
            (found,) = self._client.any_broker().send(request, MetadataAnswer).topics
            return bool(found.partitions) and not found.error_code

        until(exists, lambda: topic)

    def produce(
        self, topic: str, partition: int, *values: bytes, version: int = 12, at_ms: int = 0
    ) -> int:
        """Append a batch to a transaction; return its offset."""
        key = TopicPartition(topic, partition)
        sequence = self._sequences.get(key, 0)
        at_ms = at_ms or int(time.time() * 1000)
        batch = build_batch(
            [Record(None, value, timestamp=at_ms) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )

        def ask() -> ProduceResponse:
            return self._client.leader_of(key).send(request, ProduceResponse, version=version)

        answer = _passed(ask, lambda each: each.responses[0].partition_responses[0].error_code)
        self._sequences[key] = sequence + len(values)
        return answer.responses[0].partition_responses[0].base_offset

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 in the transaction."""
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name or "",
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )

        def ask() -> TxnOffsetCommitResponse:
            broker = self._client.broker(self._coordinator(group, key_type=0))
            return broker.send(request, TxnOffsetCommitResponse)

        _passed(ask, lambda each: each.topics[0].partitions[0].error_code)

    def end(self, *, commit: bool) -> None:
        """End the transaction; returns once it is decided, before the markers."""
        request = EndTxnRequest(
            transactional_id=self.name or "",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

        def ask() -> EndTxnResponse:
            broker = self._client.broker(self._coordinator(self.name or ""))
            return broker.send(request, EndTxnResponse)

        answer = _passed(ask, lambda each: each.error_code)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    def _coordinator(self, key: str, key_type: int = 1) -> int:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])

        def ask() -> FindCoordinatorResponse:
            return self._client.any_broker().send(request, FindCoordinatorResponse)

        answer = _passed(ask, lambda each: each.coordinators[0].error_code)
        return answer.coordinators[0].node_id


def leave_hanging(bootstrap: str, topic: str, producer_id: int, values: Sequence[bytes]) -> int:
    """Write as a producer that no coordinator knows; return the offset.

    The broker must not verify (transaction.partition.verification.enable=false). The records are
    an hour old, as if the producer had been silent since.
    """
    with RawProducer(bootstrap, "nobody") as producer:
        producer.create(topic)
        producer.producer_id, producer.epoch = producer_id, 3
        an_hour_ago_ms = int(time.time() * 1000) - 3_600_000
        return producer.produce(topic, 0, *values, version=UNVERIFIED, at_ms=an_hour_ago_ms)


def _passed(ask: Callable[[], T], error_of: Callable[[T], int]) -> T:
    """Ask until no error that passes is left, and fail with any other one."""
    answers: list[T] = []

    def is_answered() -> bool:
        answers.append(ask())
        return error_of(answers[-1]) not in _PASSING

    until(is_answered, lambda: answers[-1])
    assert not error_of(answers[-1]), answers[-1]
    return answers[-1]

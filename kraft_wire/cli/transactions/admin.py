"""Administers transactions of a cluster, for the `transactions` verbs, with plain values.

Coordinators report transactional ids, replicas report producers. After a passing error (a
coordinator loads, a leader moved) the request is repeated until the client's deadline; any other
error is `AdminRefused`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from kraft_wire.client.cluster import PASSING_ERRORS, ClusterClient, RetryDeadline, the_only
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

__all__ = [
    "DescribedTransaction",
    "ListedTransaction",
    "ProducerFacts",
    "abort",
    "active_producers",
    "described_transaction",
    "force_terminate",
    "listed_transactions",
]

T = TypeVar("T")

_TRANSACTION_KEY: Final = 1
_KEY_LISTS_FROM: Final = 4
_DURATION_FROM: Final = 1
_PATTERN_FROM: Final = 2
_FENCING_TIMEOUT_MS: Final = 30_000
_RETRIED: Final = PASSING_ERRORS | {ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS}


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id as ListTransactions shows it."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    transaction_state: str


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transactional id as its coordinator describes it."""

    coordinator_id: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_state: str
    transaction_timeout_ms: int
    current_transaction_start_time_ms: int | None
    topic_partitions: list[TopicPartition]


@dataclass(frozen=True, slots=True)
class ProducerFacts:
    """A replica's state of a producer of one partition."""

    producer_id: int
    producer_epoch: int
    latest_coordinator_epoch: int
    """-1 before the first marker."""
    last_sequence: int
    last_timestamp: int
    current_transaction_start_offset: int | None


def listed_transactions(
    client: ClusterClient,
    *,
    duration_ms: int = -1,
    pattern: str | None = None,
    producer_ids: Iterable[int] = (),
) -> list[ListedTransaction]:
    """Return the transactional ids of all coordinators that pass the filters, in id order."""
    found: list[ListedTransaction] = []
    for broker_id in client.broker_ids():
        request = ListTransactionsRequest(producer_id_filters=sorted(producer_ids))
        version = client.broker(broker_id).version_of(request)
        if duration_ms >= 0 or version >= _DURATION_FROM:
            request.duration_filter = duration_ms
        if pattern is not None or version >= _PATTERN_FROM:
            request.transactional_id_pattern = pattern

        def ask() -> tuple[int, str | None, ListTransactionsResponse]:
            answer = client.broker(broker_id).send(request, ListTransactionsResponse)  # noqa: B023  # called at once
            return answer.error_code, None, answer

        answer = _retried(client, f"broker {broker_id}", ask)
        found += [
            ListedTransaction(
                each.transactional_id, broker_id, each.producer_id, each.transaction_state
            )
            for each in answer.transaction_states
        ]
    return sorted(found, key=lambda each: (each.transactional_id, each.coordinator_id))


def described_transaction(client: ClusterClient, transactional_id: str) -> DescribedTransaction:
    """Return the coordinator's state of an id."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

    def ask() -> tuple[int, str | None, DescribedTransaction | None]:
        error, message, coordinator_id = _coordinator(client, transactional_id)
        if error:
            return error, message, None
        answer = client.broker(coordinator_id).send(request, DescribeTransactionsResponse)
        state = the_only(answer.transaction_states, "transactional ids")
        start_ms = state.transaction_start_time_ms
        described = DescribedTransaction(
            coordinator_id,
            transactional_id,
            state.producer_id,
            state.producer_epoch,
            state.transaction_state,
            state.transaction_timeout_ms,
            None if start_ms < 0 else start_ms,
            [TopicPartition(each.topic, p) for each in state.topics for p in each.partitions],
        )
        return state.error_code, None, described

    described = _retried(client, f"transactional id {transactional_id}", ask)
    assert described is not None, "a response without an error describes the id"
    return described


def active_producers(
    client: ClusterClient, partition: TopicPartition, broker_id: int | None = None
) -> list[ProducerFacts]:
    """Return the producers of a partition, from its leader or from one replica."""
    topic = TopicRequest(name=partition.topic, partition_indexes=[partition.partition])
    request = DescribeProducersRequest(topics=[topic])

    def ask() -> tuple[int, str | None, PartitionResponse]:
        connection = client.leader_of(partition) if broker_id is None else client.broker(broker_id)
        answer = connection.send(request, DescribeProducersResponse)
        result = the_only(the_only(answer.topics, "topics").partitions, "partitions")
        return result.error_code, result.error_message, result

    where = "leader" if broker_id is None else f"broker {broker_id}"
    found = _retried(client, f"producers of {partition} at its {where}", ask).active_producers
    return [
        ProducerFacts(
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            None if each.current_txn_start_offset < 0 else each.current_txn_start_offset,
        )
        for each in found
    ]


def abort(
    client: ClusterClient,
    partition: TopicPartition,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
) -> None:
    """Write an abort marker to a partition's leader, past the transaction's coordinator.

    A producer without any marker has coordinator epoch -1; 0 is at most any leader's epoch.
    """
    topic = WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=max(coordinator_epoch, 0),
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    def ask() -> tuple[int, str | None, None]:
        answer = client.leader_of(partition).send(request, WriteTxnMarkersResponse)
        topic = the_only(the_only(answer.markers, "producers").topics, "topics")
        return the_only(topic.partitions, "partitions").error_code, None, None

    _retried(client, f"abort of producer {producer_id} on {partition}", ask)


def force_terminate(client: ClusterClient, transactional_id: str) -> InitProducerIdResponse:
    """Fence the producer of an id, which aborts its open transaction; return the new epoch."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_FENCING_TIMEOUT_MS
    )

    def ask() -> tuple[int, str | None, InitProducerIdResponse]:
        error, message, coordinator_id = _coordinator(client, transactional_id)
        if error:
            return error, message, InitProducerIdResponse()
        answer = client.broker(coordinator_id).send(request, InitProducerIdResponse)
        return answer.error_code, None, answer

    return _retried(client, f"transactional id {transactional_id}", ask)


def _retried(client: ClusterClient, what: str, ask: Callable[[], tuple[int, str | None, T]]) -> T:
    """Retry until there is no retriable error. Errors: AdminRefused."""
    patience = RetryDeadline(client.settings.deadline_seconds)
    while True:
        error, message, answer = ask()
        if not error:
            return answer
        if error not in _RETRIED or patience.is_over:
            raise AdminRefused(what, error, message)
        client.forget()
        patience.pause()


def _coordinator(client: ClusterClient, transactional_id: str) -> tuple[int, str | None, int]:
    """Return error, message and the coordinator's node id."""
    connection = client.any_broker()
    request = FindCoordinatorRequest(key_type=_TRANSACTION_KEY)
    if connection.version_of(request) < _KEY_LISTS_FROM:
        request.key = transactional_id
        old = connection.send(request, FindCoordinatorResponse)
        return old.error_code, old.error_message, old.node_id
    request.coordinator_keys = [transactional_id]
    answer = connection.send(request, FindCoordinatorResponse)
    found = the_only(answer.coordinators, "transactional ids")
    return found.error_code, found.error_message, found.node_id

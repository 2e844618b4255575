"""WriteTxnMarkers, API key 27, versions 1-2.

Behaviour:   appends the marker that ends a producer's transaction to each partition, even if no
             transaction is open · a marker of `__consumer_offsets` stores or drops the offsets that
             the transaction committed · sends one response when the ISR has all markers; results of
             one producer id are merged, and markers without partitions have no result
Versions:    v1 flexible · v2 the transaction version of each marker (KIP-1228)
Left out:    nothing
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.coordination.append_errors import coordinator_error
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.producing.append_validation import AppendOrigin
from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.broker.purgatory import DelayedOperation
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["handle"]

_ALL_IN_SYNC: Final = -1
_COORDINATOR_ERRORS: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

_Results = dict[int, dict[TopicPartition, ErrorCode]]
"""Error of each partition by producer id."""


def handle(
    broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Parked:
    """Append markers; parked until the ISR has them (KIP-98).

    Errors per marker and partition, first match wins: UNKNOWN_TOPIC_OR_PARTITION (no replica
    here), KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, INVALID_PRODUCER_EPOCH,
    UNKNOWN_SERVER_ERROR (transaction version below 0), TRANSACTION_COORDINATOR_FENCED; while it
    waits also NOT_ENOUGH_REPLICAS_AFTER_APPEND and REQUEST_TIMED_OUT. Errors of the group
    coordinator are NOT_LEADER_OR_FOLLOWER, which the transaction coordinator retries.
    """
    results: _Results = {}
    required: dict[TopicPartition, Offset] = {}
    for each in request.markers:
        marker = TransactionMarker(
            each.producer_id,
            each.producer_epoch,
            each.transaction_result,
            each.coordinator_epoch,
            each.transaction_version,
        )
        for name in _partitions(each):
            error, end_offset = _append(broker, context, marker, name)
            results.setdefault(marker.producer_id, {})[name] = error
            if end_offset is not None:
                required[name] = end_offset
    if not required:
        return _response(results)

    def finish(errors: dict[TopicPartition, ErrorCode]) -> None:
        for partitions in results.values():
            for name, error in errors.items():
                if partitions.get(name) is ErrorCode.NONE:
                    partitions[name] = _for_coordinator(name, error)
        broker.complete(context.reply_to, _response(results))

    broker.produce_purgatory.park(
        DelayedOperation(
            context.reply_to,
            context.now_ms + broker.settings.request_timeout_ms,
            required,
            lambda partition, end: partition.acknowledgement(end, _ALL_IN_SYNC),
            finish,
        )
    )
    return PARKED


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def _append(
    broker: Broker, context: RequestContext, marker: TransactionMarker, name: TopicPartition
) -> tuple[ErrorCode, Offset | None]:
    """Append a marker; with NONE return the high watermark to wait for, None if it is reached."""
    partition = broker.partition(*name)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if name.topic == OFFSETS_TOPIC:
        error = _end_offsets(broker, context, marker, name)
    else:
        error = _append_to(broker, context, marker, partition)
    end_offset = partition.log_end_offset
    is_waiting = error is ErrorCode.NONE and partition.high_watermark < end_offset
    return error, end_offset if is_waiting else None


def _append_to(
    broker: Broker, context: RequestContext, marker: TransactionMarker, partition: Partition
) -> ErrorCode:
    """Append a marker to a partition of data."""
    result = partition.append_as_leader(
        RecordBatch(memoryview(marker.batch(context.wall_ms))),
        origin=AppendOrigin.COORDINATOR,
        acks=_ALL_IN_SYNC,
        now_ms=context.now_ms,
        wall_ms=context.wall_ms,
        transaction=marker,
    )
    if result.error is ErrorCode.NONE:
        broker.replicas.appended(partition)
    return result.error


def _end_offsets(
    broker: Broker, context: RequestContext, marker: TransactionMarker, name: TopicPartition
) -> ErrorCode:
    """Append a marker to a partition of `__consumer_offsets`, and apply it to its groups."""
    from kraft_wire.broker.groups.offsets.transactions import end_transaction

    shard = broker.groups.shard_at(name.partition)
    if isinstance(shard, ErrorCode):
        return _for_coordinator(name, shard)
    return _for_coordinator(name, end_transaction(shard, marker, arrival_of(context)).error)


def _for_coordinator(name: TopicPartition, error: ErrorCode) -> ErrorCode:
    """Return an error as the transaction coordinator is to see it."""
    if name.topic == OFFSETS_TOPIC and coordinator_error(error) in _COORDINATOR_ERRORS:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return error


def _response(results: _Results) -> WriteTxnMarkersResponse:
    response = WriteTxnMarkersResponse()
    for producer_id, partitions in results.items():
        topics: dict[str, WritableTxnMarkerTopicResult] = {}
        for (topic, partition), error in partitions.items():
            answer = topics.setdefault(topic, WritableTxnMarkerTopicResult(name=topic))
            answer.partitions.append(
                WritableTxnMarkerPartitionResult(partition_index=partition, error_code=error)
            )
        response.markers.append(
            WritableTxnMarkerResult(producer_id=producer_id, topics=list(topics.values()))
        )
    return response

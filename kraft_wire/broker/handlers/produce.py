"""Produce, API key 0, versions 3-13.

Behaviour:   one record batch of format 2 per partition · a duplicate of an idempotent producer's
             batch is answered with the first copy's offset · acks=0 is answered by silence, and its
             failure by closing the connection · with `flush.messages` within reach, the answer
             waits for a flush that many requests share
Versions:    v7 zstd (KIP-110) · v8 errors per record (KIP-467) · v10 current leader (KIP-951) ·
             v13 topic ids (KIP-516); 0 to 2 are advertised and refused (KAFKA-18659)
Left out:    transactions (a transactional batch gets INVALID_PRODUCER_ID_MAPPING), quotas
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kraft_wire.broker.append_validation import AppendOrigin
from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import CLOSE, NO_REPLY, PARKED, RequestContext, Withheld
from kraft_wire.broker.metadata_cache import is_internal
from kraft_wire.broker.partition import AppendResult, Partition
from kraft_wire.broker.purgatory import ParkedProduce
from kraft_wire.model import FileSlice, Offset, TopicPartition
from kraft_wire.wire.compression import Compression
from kraft_wire.wire.corruption import CorruptRecordBatch
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kraft_wire.wire.record_batch import RecordBatch, parse_batches

__all__ = ["API_KEY", "VERSIONS", "handle"]

API_KEY: Final = 0
VERSIONS: Final = (3, 13)

_ADMIN_CLIENT: Final = "__admin_client"
"""The client id that may write to internal topics, as in Kafka."""
_FIRST_ZSTD_VERSION: Final = 7
_FIRST_LEADER_VERSION: Final = 10
_FIRST_TOPIC_ID_VERSION: Final = 13
_VALID_ACKS: Final = (-1, 0, 1)


@dataclass(slots=True)
class _Append:
    """One partition of the request on its way."""

    data: PartitionProduceData
    partition: Partition | None = None
    batch: RecordBatch | None = None
    result: AppendResult = field(default_factory=AppendResult)


def handle(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Withheld:
    """Append each partition's batch and acknowledge as `acks` and the topic demand.

    KIP-98 "Produce". Errors per partition, first match wins: UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, those of a malformed batch, INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION, those of `Partition.append_as_leader`. Effects: appends; may park.
    """
    topics = [
        (topic, [_checked(broker, context, topic, data) for data in topic.partition_data])
        for topic in request.topic_data
    ]
    _refuse_transactions(request, topics)
    for topic, appends in topics:
        for append in appends:
            if append.result.error is ErrorCode.NONE:
                append.result = _append(broker, context, request, topic, append)
    if request.acks == 0:
        failed = any(a.result.error is not ErrorCode.NONE for _, appends in topics for a in appends)
        return CLOSE if failed else NO_REPLY
    required = _not_yet_safe(topics) if broker.unflushed else {}
    if not required:
        return _response(broker, context, topics)
    broker.produce_purgatory.park(
        ParkedProduce(
            context.reply_to,
            context.now_ms + max(0, request.timeout_ms),
            required,
            partial(_finish, broker, context, topics),
        )
    )
    return PARKED


_Topics = list[tuple[TopicProduceData, list[_Append]]]


def _checked(
    broker: Broker, context: RequestContext, topic: TopicProduceData, data: PartitionProduceData
) -> _Append:
    """Find the partition, and check what a request of this version may carry."""
    append = _Append(data)
    name: str | None = topic.name
    if context.api_version >= _FIRST_TOPIC_ID_VERSION:
        name = broker.topic_name(topic.topic_id)
        if name is None:
            append.result.error = ErrorCode.UNKNOWN_TOPIC_ID
            return append
    append.partition = broker.partitions.get((name, data.index)) if name is not None else None
    if append.partition is None:
        append.result.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return append
    try:
        append.batch = _only_batch(data, context.api_version)
    except _Refused as refused:
        append.result.error = refused.error
        append.result.error_message = str(refused)
    return append


class _Refused(Exception):
    """The records break a rule of the request's version."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def _only_batch(data: PartitionProduceData, version: int) -> RecordBatch:
    """Return the one batch of format 2 that a partition's records must be."""
    records = data.records
    assert not isinstance(records, FileSlice), "decoded requests carry bytes"
    try:
        batches = parse_batches(records) if records is not None else []
    except CorruptRecordBatch as corrupt:
        raise _Refused(*_reason_of(records, version, corrupt)) from corrupt
    if not batches:
        raise _Refused(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one record batch per "
            "partition",
        )
    batch = batches[0]
    if version < _FIRST_ZSTD_VERSION and batch.attributes & 7 == Compression.ZSTD:
        raise _Refused(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if len(batches) > 1:
        raise _Refused(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain exactly one "
            "record batch per partition",
        )
    return batch


def _reason_of(
    records: bytes | bytearray | memoryview | None, version: int, corrupt: CorruptRecordBatch
) -> tuple[ErrorCode, str]:
    """Tell an old message format from damage."""
    if records is not None and len(records) > _MAGIC_AT and records[_MAGIC_AT] in (0, 1):
        return (
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain record batches "
            "with magic version 2",
        )
    return ErrorCode.CORRUPT_MESSAGE, str(corrupt)


_MAGIC_AT: Final = 16


def _refuse_transactions(request: ProduceRequest, topics: _Topics) -> None:
    """Transactions are not served: no transactional id is assigned any producer id here."""
    for _, appends in topics:
        for append in appends:
            if append.batch is not None and append.batch.is_transactional:
                append.result.error = (
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                    if request.transactional_id is None
                    else ErrorCode.INVALID_PRODUCER_ID_MAPPING
                )


def _append(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    topic: TopicProduceData,
    append: _Append,
) -> AppendResult:
    partition, batch = append.partition, append.batch
    assert partition is not None, topic.name
    assert batch is not None, topic.name
    if request.acks not in _VALID_ACKS:
        return AppendResult(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal(partition.topic) and context.client_id != _ADMIN_CLIENT:
        message = f"Cannot append to internal topic {partition.topic}"
        return AppendResult(ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=message)
    result = partition.append_as_leader(
        [batch],
        origin=AppendOrigin.CLIENT,
        acks=request.acks,
        now_ms=context.now_ms,
        wall_ms=context.wall_ms,
    )
    if result.error is ErrorCode.NONE:
        broker.appended(partition)
    return result


def _not_yet_safe(topics: _Topics) -> dict[TopicPartition, Offset]:
    """Return the high watermark that each partition still has to reach."""
    required = {}
    for _, appends in topics:
        for append in appends:
            partition, result = append.partition, append.result
            if result.error is ErrorCode.NONE and partition is not None:
                end = Offset(result.last_offset + 1)
                if partition.high_watermark < end:
                    required[partition.topic_partition] = end
    return required


def _finish(
    broker: Broker,
    context: RequestContext,
    topics: _Topics,
    unfinished: dict[TopicPartition, Offset],
) -> None:
    for _, appends in topics:
        for append in appends:
            partition = append.partition
            if partition is not None and partition.topic_partition in unfinished:
                append.result = AppendResult(ErrorCode.REQUEST_TIMED_OUT)
    broker.complete(context.reply_to, _response(broker, context, topics))


def _response(broker: Broker, context: RequestContext, topics: _Topics) -> ProduceResponse:
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_partition_response(append) for append in appends],
            )
            for topic, appends in topics
        ]
    )
    if context.api_version >= _FIRST_LEADER_VERSION:
        _name_leaders(broker, context, response, topics)
    return response


def _partition_response(append: _Append) -> PartitionProduceResponse:
    result = append.result
    if result.error is ErrorCode.NONE:
        return PartitionProduceResponse(
            index=append.data.index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )
    return PartitionProduceResponse(
        index=append.data.index,
        error_code=result.error,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(
                batch_index=error.batch_index, batch_index_error_message=error.message
            )
            for error in result.record_errors
        ],
        error_message=result.error_message,
    )


def _name_leaders(
    broker: Broker, context: RequestContext, response: ProduceResponse, topics: _Topics
) -> None:
    """Point clients that came to the wrong broker to the right one (KIP-951)."""
    leaders: dict[int, NodeEndpoint] = {}
    for (_, appends), answered in zip(topics, response.responses, strict=True):
        for append, partition_response in zip(appends, answered.partition_responses, strict=True):
            if append.result.error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            assert append.partition is not None, partition_response
            leader = broker.current_leader(append.partition, context.listener)
            partition_response.current_leader = LeaderIdAndEpoch(
                leader_id=leader.broker_id, leader_epoch=leader.leader_epoch
            )
            if leader.host is not None:
                leaders[leader.broker_id] = NodeEndpoint(
                    node_id=leader.broker_id, host=leader.host, port=leader.port, rack=leader.rack
                )
    response.node_endpoints = list(leaders.values())

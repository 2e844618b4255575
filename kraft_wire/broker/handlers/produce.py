"""Produce, API key 0, versions 3-13.

Behaviour:   accepts one record batch of format 2 per partition · a duplicate of an idempotent
             producer's batch gets the offset of the first copy · acks=0 has no response, and an
             error closes the connection · acks=-1 waits until the ISR has the records, and is
             NOT_ENOUGH_REPLICAS(_AFTER_APPEND) below min.insync.replicas · if the batch reaches
             `flush.messages`, the response waits for a flush that many requests share · the first
             batch of a transaction on a partition waits for the transaction coordinator
Versions:    v7 zstd (KIP-110) · v8 errors per record (KIP-467) · v10 current leader (KIP-951) ·
             v11 TRANSACTION_ABORTABLE · v12 the leader adds partitions to the transaction
             (KIP-890) · v13 topic ids (KIP-516); 0 to 2 are advertised and refused (KAFKA-18659)
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import CLOSE, NO_REPLY, PARKED, Parked, RequestContext, Withheld
from kraft_wire.broker.metadata.metadata_cache import (
    ADMIN_CLIENT,
    INTERNAL_TOPICS,
    current_leader,
    no_replica_error,
)
from kraft_wire.broker.partition import AppendResult, Partition
from kraft_wire.broker.producing.append_validation import AppendOrigin, AppendRejected
from kraft_wire.broker.producing.produced_batch import first_corruption, produced_batch
from kraft_wire.broker.producing.producer_refusals import REFUSALS
from kraft_wire.broker.purgatory import DelayedOperation
from kraft_wire.model import Offset, TopicPartition, Uuid
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
from kraft_wire.wire.records.record_batch import TRANSACTIONAL_BIT
from kraft_wire.wire.runtime import new

if TYPE_CHECKING:
    from kraft_wire.broker.producing.transactional_produce import Verified

__all__ = ["handle"]

_FIRST_LEADER_VERSION: Final = 10
_FIRST_TOPIC_ID_VERSION: Final = 13
_VALID_ACKS: Final = (-1, 0, 1)
_NO_ERROR: Final = ErrorCode.NONE  # looking an enum's member up costs what three calls cost
_CLIENT: Final = AppendOrigin.CLIENT
_NO_TRANSACTIONAL_ID: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_RECORD_ERRORS_MAX: Final = 100_000
"""Refused records that one answer names; for a batch all that its validation names, or none."""
_SEVERAL_PRODUCERS: Final = "Transactional records contained more than one producer ID"


def handle(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Withheld:
    """Append each partition's batch and acknowledge as `acks` and the topic demand.

    KIP-98 "Produce". Errors of all partitions, first match wins: CORRUPT_MESSAGE (the first batch
    of a partition has no size or format that exists), TRANSACTIONAL_ID_AUTHORIZATION_FAILED (no
    transactional id), INVALID_PRODUCER_ID_MAPPING (several producers). Errors per partition, first
    match wins: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (no replica
    here), those of a malformed batch, those of the verification, INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION, those of `Partition.append_as_leader`.
    Effects: appends; may park.
    """
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        corrupt = first_corruption(
            each.records for topic in topics for each in topic.partition_data
        )
        if corrupt is not None:
            return _refused(request, topics, corrupt.error, corrupt.message)
        topics = _merged(topics)
        if request.transactional_id is None and _has_transactional(topics):
            return _refused(request, topics, _NO_TRANSACTIONAL_ID)
    if request.transactional_id is not None:
        return _verify(broker, context, request, topics)
    return _append_all(broker, context, request, topics, None)


def _append_all(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    requested: list[TopicProduceData],
    verified: "Verified | None",
) -> ProduceResponse | Withheld:
    """Append the accepted batches; `verified` is None for a request without transactional id."""
    uncommitted: list[_Appended] = []
    failed, named_count = False, 0
    topics = []
    for topic in requested:
        name: str | None = topic.name
        if context.api_version >= _FIRST_TOPIC_ID_VERSION:
            name = broker.topic_name(topic.topic_id)
        answers = []
        for data in topic.partition_data:
            partition = broker.partitions.get((name, data.index)) if name is not None else None
            if partition is not None:
                result = _append(broker, context, request, partition, data, verified)
            else:
                result = _missing(broker, name, data)
            answer = _answer(data.index, result)
            if result.error is not _NO_ERROR:
                failed = True
                named_count = _name_record_errors(answer, result, named_count)
            elif partition is not None and partition.log.high_watermark <= result.last_offset:
                uncommitted.append((partition, Offset(result.last_offset + 1), answer))
            answers.append(answer)
        topics.append(_topic_answer(topic, answers))
    if failed and verified is None and _lacks_transactional_id(requested, answer):
        return _refused(request, requested, _NO_TRANSACTIONAL_ID)
    if request.acks == 0:
        return CLOSE if failed else NO_REPLY
    response = _response(topics)
    if failed and context.api_version >= _FIRST_LEADER_VERSION:
        _name_leaders(broker, context, response)
    waiting = _unfinished(uncommitted, request.acks) if uncommitted else None
    return _park(broker, context, request, response, waiting) if waiting else response


def _lacks_transactional_id(
    requested: list[TopicProduceData], answer: PartitionProduceResponse
) -> bool:
    """Whether a request of one partition is refused for its transactional batch, nothing else.

    As in Kafka, only a batch without size or format is refused before. Requests of several
    partitions have been checked.
    """
    return answer.error_code != ErrorCode.CORRUPT_MESSAGE and _has_transactional(requested)


def _missing(broker: Broker, name: str | None, data: PartitionProduceData) -> AppendResult:
    """Return the error for a partition that is not here; an unknown id has no name."""
    corrupt = first_corruption((data.records,))
    if corrupt is not None:
        return AppendResult(corrupt.error, error_message=corrupt.message)
    if name is None:
        return AppendResult(ErrorCode.UNKNOWN_TOPIC_ID)
    return AppendResult(no_replica_error(broker.image, name, data.index))


def _merged(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Return every topic and partition once, as Kafka's tables have them: the last data counts.

    A topic without partitions is not answered.
    """
    found: dict[tuple[str, Uuid], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        for data in topic.partition_data:
            found.setdefault((topic.name, topic.topic_id), {})[data.index] = data
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in found.items()
    ]


def _has_transactional(topics: list[TopicProduceData]) -> bool:
    """Whether the first batch of a partition is transactional."""
    from kraft_wire.broker.producing.transactional_produce import is_transactional

    return is_transactional(topics)


def _verify(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    topics: list[TopicProduceData],
) -> ProduceResponse | Withheld:
    """Serve a request of a transactional producer, at once or after the coordinator's answer.

    INVALID_PRODUCER_ID_MAPPING of all partitions: one request is of one producer.
    """
    from kraft_wire.broker.producing.transactional_produce import (
        TransactionalProduce,
        several_producers,
        transactional_batches,
    )

    by_id = context.api_version >= _FIRST_TOPIC_ID_VERSION
    batches = transactional_batches(broker, context, topics, by_id=by_id)
    if several_producers(batches):
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return _refused(request, topics, error, _SEVERAL_PRODUCERS)

    def append(then: RequestContext, verified: "Verified") -> ProduceResponse | Withheld:
        return _append_all(broker, then, request, topics, verified)

    return TransactionalProduce(broker, context, request, batches, append).serve()


def _refused(
    request: ProduceRequest,
    topics: list[TopicProduceData],
    error: ErrorCode,
    message: str | None = None,
) -> ProduceResponse | Withheld:
    """Answer every partition with one error."""
    if request.acks == 0:
        return CLOSE
    result = AppendResult(error, error_message=message)
    return _response(
        [
            _topic_answer(topic, [_answer(data.index, result) for data in topic.partition_data])
            for topic in topics
        ]
    )


_Appended = tuple[Partition, Offset, PartitionProduceResponse]
"""An append, with the high watermark that its answer may have to wait for."""
_Waiting = dict[TopicPartition, tuple[Offset, PartitionProduceResponse]]
"""Per partition the high watermark that its answer waits for."""


def _unfinished(uncommitted: list[_Appended], acks: int) -> _Waiting:
    """Return the answers that wait for replicas with these acks; the others are complete.

    Called after the last append: a later append may have lost the disk of an earlier one, which is
    not reported a second time.
    """
    waiting: _Waiting = {}
    for partition, end_offset, answer in uncommitted:
        outcome = partition.acknowledgement(end_offset, acks)
        if outcome is None:
            waiting[partition.topic_partition] = (end_offset, answer)
        else:
            answer.error_code = outcome
    return waiting


def _park(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    waiting: _Waiting,
) -> Parked:
    """Hold the answer back until the records are as safe as acks and topics promise.

    As in Kafka, an error does not take the offset out of the answer: the records are in the log.
    """
    acks = request.acks

    def finish(errors: dict[TopicPartition, ErrorCode]) -> None:
        for topic_partition, error in errors.items():
            waiting[topic_partition][1].error_code = error
        if errors and context.api_version >= _FIRST_LEADER_VERSION:
            _name_leaders(broker, context, response)
        broker.complete(context.reply_to, response)

    broker.produce_purgatory.park(
        DelayedOperation(
            context.reply_to,
            context.now_ms + max(0, request.timeout_ms),
            {topic_partition: end for topic_partition, (end, _) in waiting.items()},
            lambda partition, end: partition.acknowledgement(end, acks),
            finish,
        )
    )
    return PARKED


def _append(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    partition: Partition,
    data: PartitionProduceData,
    verified: "Verified | None",
) -> AppendResult:
    """Check the form of a request's records, and append them."""
    try:
        batch = produced_batch(data.records, context.api_version)
    except AppendRejected as rejected:
        return AppendResult(rejected.error, error_message=rejected.message)
    transaction = None
    if batch.attributes & TRANSACTIONAL_BIT:
        if verified is None:
            return AppendResult(_NO_TRANSACTIONAL_ID)
        outcome = verified.get(partition.topic_partition)
        if isinstance(outcome, AppendResult):
            return outcome
        transaction = outcome
    if request.acks not in _VALID_ACKS:
        return AppendResult(ErrorCode.INVALID_REQUIRED_ACKS)
    if partition.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT:
        return AppendResult(ErrorCode.INVALID_TOPIC_EXCEPTION)
    result = partition.append_as_leader(
        batch,
        origin=_CLIENT,
        acks=request.acks,
        now_ms=context.now_ms,
        wall_ms=context.wall_ms,
        decompression=broker.settings.decompression,
        transaction=transaction,
    )
    if result.error is _NO_ERROR:
        broker.replicas.appended(partition)
        return result
    if result.error in REFUSALS:
        broker.producer_refusals.tell(context, partition, batch, result.error)
    if not result.record_errors:
        result.error_message = None  # as in Kafka, only errors of records have a text
    return result


# Answers are made without their constructors, which take three times as long by keywords.


def _response(topics: list[TopicProduceResponse]) -> ProduceResponse:
    response = new(ProduceResponse)
    response.responses, response.node_endpoints = topics, []
    response.throttle_time_ms = 0
    response.unknown_tagged_fields = None
    return response


def _topic_answer(
    topic: TopicProduceData, answers: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    answer = new(TopicProduceResponse)
    answer.name, answer.topic_id = topic.name, topic.topic_id
    answer.partition_responses = answers
    answer.unknown_tagged_fields = None
    return answer


def _answer(index: int, result: AppendResult) -> PartitionProduceResponse:
    """Return the answer with the result of an append."""
    answer = new(PartitionProduceResponse)
    answer.index = index
    answer.error_code = result.error
    answer.base_offset = result.base_offset
    answer.log_append_time_ms = result.log_append_time_ms
    answer.log_start_offset = result.log_start_offset
    answer.error_message = result.error_message
    answer.record_errors = []
    answer.current_leader = answer.unknown_tagged_fields = None
    return answer


def _name_record_errors(
    answer: PartitionProduceResponse, result: AppendResult, named_count: int
) -> int:
    """Name the refused records of a batch in its answer, if the limit allows as many more.

    Returns the number for the next batch: those named before and those of this batch.
    """
    named_count += len(result.record_errors)
    if named_count <= _RECORD_ERRORS_MAX:
        answer.record_errors = [
            BatchIndexAndErrorMessage(
                batch_index=error.batch_index, batch_index_error_message=error.message
            )
            for error in result.record_errors
        ]
    return named_count


def _name_leaders(broker: Broker, context: RequestContext, response: ProduceResponse) -> None:
    """Name the leader to clients that use the wrong broker (KIP-951)."""
    leaders: dict[int, NodeEndpoint] = {}
    for topic in response.responses:
        name = topic.name or broker.topic_name(topic.topic_id)
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER or name is None:
                continue
            leader = current_leader(broker.image, name, answer.index, context.listener)
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=leader.broker_id, leader_epoch=leader.leader_epoch
            )
            if leader.host is not None:
                leaders[leader.broker_id] = NodeEndpoint(
                    node_id=leader.broker_id, host=leader.host, port=leader.port, rack=leader.rack
                )
    response.node_endpoints = list(leaders.values())
